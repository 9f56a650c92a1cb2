/* Completion queues: creation, resizing, arming and destruction. The pollers are cq_poll.c and cq_ex.c, events are
 * events.c. */
#include "verbs/objects.h"

static void count_channel_use(struct ibv_comp_channel *channel, int change)
{
	if (!channel)
		return;
	pthread_mutex_lock(&channel->context->mutex);
	channel->refcnt += change;
	pthread_mutex_unlock(&channel->context->mutex);
}

void vb_cq_add_lane(struct cq_object *cq, struct vb_host_lane *host_lane)
{
	unsigned lane = vb_host_lane_bit(host_lane);
	atomic_fetch_or(&cq->lanes, lane);
	if (cq->ibv.channel)
		atomic_fetch_or(&((struct channel_object *)cq->ibv.channel)->lanes, lane);
	if (cq->keeps_time)
		vb_host_lane_keep_time(host_lane);
}

static struct vb_host_lane *host_lane_for(struct ibv_context *context, const struct ibv_pd *parent_domain)
{
	const struct td_object *td = parent_domain ? ((const struct pd_object *)parent_domain)->td : NULL;
	return td ? td->host_lane : vb_device_host_lane_of_caller(vb_host_of(context));
}

static struct cq_object *cq_create(struct ibv_context *context, const struct vb_cq_config *wanted, void *cq_context,
	struct ibv_comp_channel *channel, uint32_t comp_vector, uint64_t wc_flags, struct ibv_pd *parent_domain)
{
	if (vb_refuses_forked(context))
		return vb_fail(VB_FORKED_ERRNO);
	if (wanted->capacity < 1 || wanted->capacity > VB_MAX_CQE ||
		comp_vector >= (uint32_t)context->num_comp_vectors || (channel && channel->context != context))
		return vb_fail(EINVAL);
	bool is_programs;
	struct cq_object *cq = vb_pd_alloc(parent_domain, sizeof(*cq), VB_ALLOCATION_CQ, &is_programs);
	if (!cq)
		return vb_fail(ENOMEM);
	cq->is_programs_memory = is_programs;
	cq->parent_domain = parent_domain;
	struct vb_cq_config config = *wanted;
	config.user = cq;
	cq->host_lane = host_lane_for(context, parent_domain);
	cq->ibv.context = context;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = cq_context;
	cq->ibv.handle = vb_object_handle();
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	vb_list_init(&cq->waiting);
	vb_lock_init(&cq->poll_lock);
	vb_cq_ex_init(cq, wc_flags);
	cq->keeps_time =
		wc_flags & (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	int err = vb_cq_create(vb_device_nic(vb_host_of(context)), &config, &cq->cq);
	if (err) {
		vb_pd_free(parent_domain, cq, VB_ALLOCATION_CQ, is_programs);
		return vb_fail(-err);
	}
	vb_pd_hold(parent_domain, 1);
	cq->ibv.cqe = (int)vb_cq_capacity(cq->cq);
	count_channel_use(channel, 1);
	vb_object_add(context, OBJECT_CQ, &cq->link);
	return cq;
}

VB_EXPORT struct ibv_cq *ibv_create_cq(
	struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel, int comp_vector)
{
	if (vb_call_fails(VB_CALL_ibv_create_cq))
		return NULL;
	if (cqe < 1)
		return vb_fail(EINVAL);
	struct vb_cq_config config = { .capacity = (uint32_t)cqe };
	struct cq_object *cq =
		cq_create(context, &config, cq_context, channel, (uint32_t)comp_vector, IBV_WC_STANDARD_FLAGS, NULL);
	return cq ? ibv_cq_ex_to_cq(&cq->ibv) : NULL;
}

static bool is_parent_domain(struct ibv_pd *pd, struct ibv_context *context)
{
	return pd && pd->context == context && ((struct pd_object *)pd)->base;
}

/* Only fields that comp_mask names are read. */
struct ibv_cq_ex *vb_cq_ops_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	const uint64_t offered = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
				 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK | IBV_WC_EX_WITH_TM_INFO;
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
	if (attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD))
		return vb_fail(EINVAL);
	struct ibv_pd *parent_domain = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? attr->parent_domain : NULL;
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) && !is_parent_domain(parent_domain, context))
		return vb_fail(EINVAL);
	if ((attr->wc_flags & ~offered) ||
		(flags & ~(uint32_t)(IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)))
		return vb_fail(EOPNOTSUPP);
	struct vb_cq_config config = {
		.capacity = attr->cqe,
		.ignore_overrun = flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	};
	struct cq_object *cq = cq_create(
		context, &config, attr->cq_context, attr->channel, attr->comp_vector, attr->wc_flags, parent_domain);
	if (!cq)
		return NULL;
	cq->is_single_threaded = (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) ||
				 (parent_domain && ((struct pd_object *)parent_domain)->td);
	return &cq->ibv;
}

/* At least one lane, so that its mutex is always among those taken. */
static unsigned lanes_of(const struct cq_object *cq)
{
	return atomic_load(&cq->lanes) | vb_host_lane_bit(cq->host_lane);
}

VB_EXPORT int ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	if (vb_call_fails(VB_CALL_ibv_resize_cq))
		return errno;
	struct cq_object *cq = vb_cq_of(ibv);
	if (vb_refuses_forked(ibv->context))
		return VB_FORKED_ERRNO;
	if (cqe < 1 || cqe > VB_MAX_CQE)
		return EINVAL;
	unsigned lanes = lanes_of(cq);
	int err = vb_device_lock(vb_host_of(ibv->context), lanes);
	if (err)
		return -err;
	vb_device_settle(vb_host_of(ibv->context),
		lanes); /* so that completions of posted requests are counted before the size is checked */
	err = vb_cq_resize(cq->cq, (uint32_t)cqe);
	if (!err)
		ibv->cqe = (int)vb_cq_capacity(cq->cq);
	vb_device_unlock(vb_host_of(ibv->context), lanes);
	return -err;
}

VB_EXPORT int ibv_destroy_cq(struct ibv_cq *ibv)
{
	if (vb_call_fails(VB_CALL_ibv_destroy_cq))
		return errno;
	struct cq_object *cq = vb_cq_of(ibv);
	unsigned lanes = lanes_of(cq);
	int err = vb_device_lock(vb_host_of(ibv->context), lanes);
	if (err)
		return -err;
	err = atomic_load(&cq->named_by) ? -EBUSY : vb_cq_destroy(cq->cq);
	vb_device_unlock(vb_host_of(ibv->context), lanes);
	if (err)
		return -err;
	vb_object_remove(ibv->context, &cq->link);
	vb_cq_events_finish(cq);
	count_channel_use(ibv->channel, -1);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	struct ibv_pd *parent_domain = cq->parent_domain;
	vb_pd_free(parent_domain, cq, VB_ALLOCATION_CQ, cq->is_programs_memory);
	vb_pd_hold(parent_domain, -1);
	return 0;
}

int vb_cq_ops_req_notify(struct ibv_cq *ibv, int solicited_only)
{
	if (vb_refuses_forked(ibv->context))
		return VB_FORKED_ERRNO;
	if (vb_cq_request_notify(vb_cq_of(ibv)->cq, solicited_only != 0))
		vb_cq_notify(vb_cq_of(ibv));
	return 0;
}
