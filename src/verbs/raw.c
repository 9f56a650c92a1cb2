/* Parts that only raw packet QPs have: checks of their attributes, receive work queues, and the indirection tables by
 * which a QP spreads frames over work queues.
 * Holds: a table's queues outlive it, and the table outlives the QPs that use it.
 * Not here: frames (host/frames.c), flows (flow.c). */
#include <stdlib.h>
#include <string.h>
#include "verbs/objects.h"

#define MAX_LOG_TABLE 12

_Static_assert(1 << MAX_LOG_TABLE == VB_MAX_SPREAD, "what query_device_ex promises");

/* ---- QPs --------------------------------------------------------------------------------------------------------- */

static int check_hash(const struct ibv_rx_hash_conf *conf)
{
	if (conf->rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ ||
		(conf->rx_hash_fields_mask & ~(uint64_t)VB_RX_HASH_FIELDS))
		return EOPNOTSUPP;
	return conf->rx_hash_key_len == VB_TOEPLITZ_KEY && conf->rx_hash_key ? 0 : EINVAL;
}

/* As in the kernel, a process that may not open packet sockets gets EPERM. */
int vb_raw_check(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	if (attr->rwq_ind_tbl) {
		int err = attr->rwq_ind_tbl->context == context ? check_hash(&attr->rx_hash_conf) : EINVAL;
		if (err)
			return err;
	}
	return -vb_device_open_frames(vb_host_of(context));
}

int vb_raw_spread(struct qp_object *qp, const struct ibv_qp_init_attr_ex *attr)
{
	struct ind_table_object *table = (struct ind_table_object *)attr->rwq_ind_tbl;
	struct vb_qp **queues = malloc(table->count * sizeof(struct vb_qp *));
	if (!queues)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->count; i++)
		queues[i] = table->queues[i]->queue.qp;
	struct vb_spread spread = {
		.fields = (uint32_t)attr->rx_hash_conf.rx_hash_fields_mask,
		.count = table->count,
		.queues = queues,
	};
	memcpy(spread.key, attr->rx_hash_conf.rx_hash_key, VB_TOEPLITZ_KEY);
	int err = vb_qp_spread(qp->qp, &spread);
	free(queues);
	if (!err) {
		vb_users_add(&table->users, 1);
		qp->table = table;
	}
	return err;
}

/* ---- Work queues ------------------------------------------------------------------------------------------------- */

static int wq_post_recv(struct ibv_wq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	return vb_qp_ops_post_recv(&((struct wq_object *)ibv)->queue.ibv, wr, bad_wr);
}

static int check_wq(const struct ibv_context *context, const struct ibv_wq_init_attr *attr)
{
	if (attr->wq_type != IBV_WQT_RQ || !attr->pd || !attr->cq || attr->pd->context != context ||
		attr->cq->context != context)
		return EINVAL;
	if ((attr->comp_mask & ~(uint32_t)IBV_WQ_INIT_ATTR_FLAGS) ||
		((attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS) && attr->create_flags))
		return EOPNOTSUPP;
	return attr->max_wr > VB_MAX_QP_WR || attr->max_sge > VB_MAX_SGE ? EINVAL : 0;
}

static int create_queue(struct wq_object *wq, struct ibv_wq_init_attr *attr)
{
	struct qp_object *queue = &wq->queue;
	struct vb_qp_config config = {
		.type = VB_QP_RAW,
		.pd = ((struct pd_object *)attr->pd)->pd,
		.recv_cq = vb_cq_of(attr->cq)->cq,
		.max_recv_wr = attr->max_wr,
		.max_recv_sge = attr->max_sge,
		.user = queue,
	};
	int err = vb_host_lane_lock(queue->host_lane);
	if (err)
		return err;
	err = vb_qp_create(vb_host_lane_lane(queue->host_lane), &config, &queue->qp);
	vb_host_lane_unlock(queue->host_lane);
	if (!err) {
		attr->max_wr = config.max_recv_wr;
		attr->max_sge = config.max_recv_sge;
	}
	return err;
}

struct ibv_wq *vb_wq_ops_create(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
	int err = vb_refuses_forked(context) ? VB_FORKED_ERRNO : check_wq(context, attr);
	if (!err)
		err = -vb_device_open_frames(vb_host_of(context));
	if (err)
		return vb_fail(err);
	struct wq_object *wq = calloc(1, sizeof(*wq));
	if (!wq)
		return vb_fail(ENOMEM);
	wq->queue.ibv.context = context;
	wq->queue.ibv.qp_type = IBV_QPT_RAW_PACKET;
	wq->queue.host = vb_host_of(context);
	wq->queue.host_lane = vb_host_lane_of(context);
	wq->queue.wq = wq;
	err = -create_queue(wq, attr);
	if (err) {
		free(wq);
		return vb_fail(err);
	}
	wq->ibv.context = context;
	wq->ibv.pd = attr->pd;
	wq->ibv.cq = attr->cq;
	wq->ibv.wq_type = attr->wq_type;
	wq->ibv.wq_num = vb_qp_number(wq->queue.qp);
	wq->ibv.handle = wq->ibv.wq_num;
	wq->ibv.state = IBV_WQS_RESET;
	wq->ibv.post_recv = wq_post_recv;
	pthread_mutex_init(&wq->ibv.mutex, NULL);
	pthread_cond_init(&wq->ibv.cond, NULL);
	vb_pd_hold(attr->pd, 1);
	vb_object_add(context, OBJECT_WQ, &wq->link);
	return &wq->ibv;
}

static enum ibv_wq_state wq_state(const struct wq_object *wq)
{
	switch (vb_qp_state(wq->queue.qp)) {
	case VB_QPS_RESET:
		return IBV_WQS_RESET;
	case VB_QPS_ERR:
		return IBV_WQS_ERR;
	default:
		return IBV_WQS_RDY;
	}
}

static int move_queue(struct vb_qp *queue, enum vb_qp_state state, uint32_t mask)
{
	struct vb_qp_attr attr = { .state = state, .port = VB_PORT };
	return vb_qp_modify(queue, &attr, VB_QP_STATE | mask, vb_host_now());
}

/* Legal: to RESET from all; to RDY from RESET and RDY; to ERR from RDY and ERR. */
static int move_wq(struct wq_object *wq, enum ibv_wq_state to)
{
	struct vb_qp *queue = wq->queue.qp;
	enum ibv_wq_state from = wq_state(wq);
	int err = 0;
	switch (to) {
	case IBV_WQS_RESET:
		return move_queue(queue, VB_QPS_RESET, 0);
	case IBV_WQS_RDY:
		if (from == IBV_WQS_RESET)
			err = move_queue(queue, VB_QPS_INIT, VB_QP_PORT);
		if (from == IBV_WQS_RESET && !err)
			err = move_queue(queue, VB_QPS_RTR, 0);
		return from == IBV_WQS_ERR ? -EINVAL : err;
	case IBV_WQS_ERR:
		return from == IBV_WQS_RESET ? -EINVAL : move_queue(queue, VB_QPS_ERR, 0);
	default:
		return -EINVAL;
	}
}

int vb_wq_ops_modify(struct ibv_wq *ibv, struct ibv_wq_attr *attr)
{
	struct wq_object *wq = (struct wq_object *)ibv;
	uint32_t mask = attr->attr_mask;
	if (vb_refuses_forked(ibv->context))
		return VB_FORKED_ERRNO;
	if (mask & ~(uint32_t)(IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE | IBV_WQ_ATTR_FLAGS))
		return EINVAL;
	if ((mask & IBV_WQ_ATTR_FLAGS) && (attr->flags & attr->flags_mask))
		return EOPNOTSUPP;
	int err = vb_host_lane_lock(wq->queue.host_lane);
	if (err)
		return -err;
	if ((mask & IBV_WQ_ATTR_CURR_STATE) && attr->curr_wq_state != wq_state(wq))
		err = -EINVAL;
	else if (mask & IBV_WQ_ATTR_STATE)
		err = move_wq(wq, attr->wq_state);
	ibv->state = wq_state(wq);
	vb_host_lane_unlock(wq->queue.host_lane);
	return -err;
}

int vb_wq_ops_destroy(struct ibv_wq *ibv)
{
	struct wq_object *wq = (struct wq_object *)ibv;
	if (vb_is_forked(ibv->context))
		return VB_FORKED_ERRNO;
	if (atomic_load(&wq->tables))
		return EBUSY;
	int err = -vb_host_lane_lock(vb_host_lane_of(ibv->context));
	if (err)
		return err;
	vb_qp_destroy(wq->queue.qp);
	vb_host_lane_unlock(wq->queue.host_lane);
	vb_object_remove(ibv->context, &wq->link);
	vb_wq_events_finish(wq);
	vb_pd_hold(ibv->pd, -1);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	free(wq);
	return 0;
}

/* ---- Indirection tables ------------------------------------------------------------------------------------------ */

static int check_table(const struct ibv_context *context, const struct ibv_rwq_ind_table_init_attr *attr)
{
	if (attr->comp_mask || attr->log_ind_tbl_size > MAX_LOG_TABLE || !attr->ind_tbl)
		return EINVAL;
	for (uint32_t i = 0; i < 1u << attr->log_ind_tbl_size; i++)
		if (!attr->ind_tbl[i] || attr->ind_tbl[i]->context != context)
			return EINVAL;
	return 0;
}

struct ibv_rwq_ind_table *vb_ind_table_ops_create(struct ibv_context *context, struct ibv_rwq_ind_table_init_attr *attr)
{
	int err = vb_refuses_forked(context) ? VB_FORKED_ERRNO : check_table(context, attr);
	if (err)
		return vb_fail(err);
	uint32_t count = 1u << attr->log_ind_tbl_size;
	struct ind_table_object *table = calloc(1, sizeof(*table) + count * sizeof(table->queues[0]));
	if (!table)
		return vb_fail(ENOMEM);
	table->count = count;
	for (uint32_t i = 0; i < count; i++) {
		table->queues[i] = (struct wq_object *)attr->ind_tbl[i];
		vb_users_add(&table->queues[i]->tables, 1);
	}
	table->ibv.context = context;
	table->ibv.ind_tbl_handle = (int)vb_object_handle();
	table->ibv.ind_tbl_num = table->ibv.ind_tbl_handle;
	vb_object_add(context, OBJECT_IND_TABLE, &table->link);
	return &table->ibv;
}

int vb_ind_table_ops_destroy(struct ibv_rwq_ind_table *ibv)
{
	struct ind_table_object *table = (struct ind_table_object *)ibv;
	if (vb_is_forked(ibv->context))
		return VB_FORKED_ERRNO;
	if (atomic_load(&table->users))
		return EBUSY;
	for (uint32_t i = 0; i < table->count; i++)
		vb_users_add(&table->queues[i]->tables, -1);
	vb_object_remove(ibv->context, &table->link);
	free(table);
	return 0;
}
