/* A QP's beginning and end: what its type and capacities ask for, and what goes with it.
 * Not here: the states between (qp_modify.c), how it fails (core/failure.c). IBA vol. 1, 10.2. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "core/execute.h"
#include "core/events.h"
#include "core/handed_out.h"
#include "core/kept.h"
#include "core/lane.h"
#include "core/memory.h"
#include "core/qp_state.h"
#include "core/queues.h"
#include "core/responder.h"
#include "core/tags.h"
#include "core/xrc.h"
#include "engine/nic.h"
#include "engine/qp.h"
#include "engine/transports.h"
#include "roce/failover.h"
#include "roce/selective.h"

/* XRC SRQs are for no QP of their own; tags take a send queue that can READ into the SRQ's memory. */
static bool takes_srq(const struct vb_qp_config *config)
{
	const struct vb_srq *srq = config->srq;
	return !srq->xrcd && (!srq->tags || (config->type == VB_QP_RC && config->pd == srq->pd));
}

/* Each type has what its halves need, and nothing else. */
static int check_parts(const struct vb_qp_config *config)
{
	bool has_none = !config->pd && !config->send_cq && !config->recv_cq;
	switch (config->type) {
	case VB_QP_RC:
	case VB_QP_UC:
	case VB_QP_UD:
		if (!config->pd || !config->send_cq || !config->recv_cq || config->xrcd)
			return -EINVAL;
		return !config->srq || takes_srq(config) ? 0 : -EINVAL;
	case VB_QP_RAW:
		if (!config->pd || config->xrcd)
			return -EINVAL;
		return !config->srq || (config->recv_cq && takes_srq(config)) ? 0 : -EINVAL;
	case VB_QP_XRC_SEND:
		return config->pd && config->send_cq && !config->recv_cq && !config->srq && !config->xrcd ? 0 : -EINVAL;
	case VB_QP_XRC_RECV:
		return has_none && !config->srq && config->xrcd ? 0 : -EINVAL;
	}
	return -EOPNOTSUPP;
}

static int check_config(const struct vb_qp_config *config)
{
	int error = check_parts(config);
	if (error)
		return error;
	if (config->max_send_wr > VB_MAX_QP_WR || config->max_recv_wr > VB_MAX_QP_WR ||
		config->max_send_sge > VB_MAX_SGE || config->max_recv_sge > VB_MAX_SGE ||
		config->max_inline > VB_MAX_INLINE)
		return -EINVAL;
	return 0;
}

static uint32_t at_least_one(uint32_t n)
{
	return n ? n : 1;
}

/* A request of any SRQ fits. */
static int make_xrc_recv(struct vb_qp *qp, struct vb_qp_config *config)
{
	config->max_send_wr = config->max_send_sge = config->max_inline = 0;
	config->max_recv_wr = config->max_recv_sge = 0;
	qp->target.srq_copy = malloc(vb_recv_wqe_bytes(VB_MAX_SGE));
	return qp->target.srq_copy && !vb_sq_init(&qp->sq, 0, 0, 0) ? 0 : -ENOMEM;
}

static int make_queues(struct vb_qp *qp, struct vb_qp_config *config)
{
	if (config->type == VB_QP_XRC_RECV)
		return make_xrc_recv(qp, config);
	config->max_send_sge = at_least_one(config->max_send_sge);
	uint32_t max_wr = at_least_one(config->max_send_wr);
	if (vb_has_tags(qp)) { /* then the send queue is for what they fetch, and not the program's */
		max_wr = VB_RENDEZVOUS_WRS;
		config->max_inline = config->max_inline < VB_TAG_REQUEST ? VB_TAG_REQUEST : config->max_inline;
	}
	if (vb_sq_init(&qp->sq, max_wr, config->max_send_sge, config->max_inline))
		return -ENOMEM;
	/* Room that the SGEs take is there for inline data too. */
	if (qp->sq.max_inline < qp->sq.max_sge * sizeof(struct vb_sge))
		qp->sq.max_inline = (uint16_t)(qp->sq.max_sge * sizeof(struct vb_sge));
	config->max_inline = qp->sq.max_inline;
	if (config->srq) {
		struct vb_srq_config srq;
		vb_srq_query(config->srq, &srq);
		qp->target.srq_copy = malloc(vb_recv_wqe_bytes(at_least_one(srq.max_sge)));
		config->max_recv_wr = config->max_recv_sge = 0;
		return qp->target.srq_copy ? 0 : -ENOMEM;
	}
	if (config->type == VB_QP_XRC_SEND || (config->type == VB_QP_RAW && !config->recv_cq)) {
		config->max_recv_wr = config->max_recv_sge = 0;
		return 0;
	}
	config->max_recv_sge = at_least_one(config->max_recv_sge);
	return vb_recv_ring_init(&qp->rq, at_least_one(config->max_recv_wr), config->max_recv_sge);
}

static void init_links(struct vb_qp *qp)
{
	vb_list_init(&qp->ready_link);
	vb_list_init(&qp->wait_link);
	vb_list_init(&qp->failing_link);
	vb_list_init(&qp->leaving_link);
	vb_list_init(&qp->xrcd_link);
	vb_list_init(&qp->notice.link);
	atomic_init(&qp->notice.pending, 0);
	qp->notice.of = VB_NOTICE_OF_QP;
	vb_timer_init(&qp->timer);
	vb_kept_init(qp);
}

void vb_qp_free(struct vb_qp *qp)
{
	vb_kept_deinit(qp);
	vb_sq_deinit(&qp->sq);
	if (!qp->srq)
		vb_recv_ring_deinit(&qp->rq);
	free(qp->target.srq_copy);
	vb_roce_qp_deinit(qp);
	free(qp->counts);
	free(vb_container_of(qp, struct vb_whole_qp, roce.qp));
}

/* Holds what may not go before the QP does. */
static void hold(struct vb_qp *qp)
{
	if (qp->xrcd) {
		vb_xrc_add_qp(qp);
		return;
	}
	atomic_fetch_add(&qp->pd->users, 1);
	if (qp->send_cq)
		atomic_fetch_add(&qp->send_cq->users, 1);
	if (qp->recv_cq)
		atomic_fetch_add(&qp->recv_cq->users, 1);
	if (qp->srq)
		atomic_fetch_add(&qp->srq->users, 1);
}

static void let_go(struct vb_qp *qp)
{
	if (qp->xrcd) {
		vb_xrc_remove_qp(qp);
		return;
	}
	atomic_fetch_sub(&qp->pd->users, 1);
	if (qp->send_cq)
		atomic_fetch_sub(&qp->send_cq->users, 1);
	if (qp->recv_cq)
		atomic_fetch_sub(&qp->recv_cq->users, 1);
	if (qp->srq)
		atomic_fetch_sub(&qp->srq->users, 1);
}

static void fill(struct vb_qp *qp, const struct vb_qp_config *config)
{
	qp->pd = config->xrcd ? &config->xrcd->nowhere : config->pd;
	qp->type = config->type;
	qp->transport = vb_transport_of(config->type, vb_roce_lane_of(qp)->config.recovery == VB_RECOVERY_GO_BACK_0);
	qp->way = qp->transport;
	qp->service = qp->transport->service;
	qp->is_reliable = qp->transport->is_reliable;
	qp->signal_all = config->signal_all;
	qp->srq = config->srq;
	qp->send_cq = vb_has_tags(qp) ? NULL : config->send_cq;
	qp->recv_cq = vb_has_tags(qp) ? qp->srq->cq : config->recv_cq;
	qp->xrcd = config->xrcd;
	qp->user = config->user;
	qp->mtu = VB_MAX_MTU;
	qp->target = (struct vb_target){ .qp = qp, .pd = qp->pd, .srq = qp->srq, .cq = qp->recv_cq };
	atomic_init(&qp->state, VB_QPS_RESET);
}

static struct vb_qp *allocate(struct vb_lane *lane, const struct vb_qp_config *config)
{
	struct vb_whole_qp *whole = aligned_alloc(VB_CACHE_LINE, sizeof(*whole));
	if (!whole)
		return NULL;
	struct vb_qp *qp = &whole->roce.qp;
	memset(whole, 0, sizeof(*whole));
	qp->lane = lane;
	fill(qp, config);
	init_links(qp);
	vb_local_init(qp, &whole->local);
	return qp;
}

int vb_qp_create(struct vb_lane *lane, struct vb_qp_config *config, struct vb_qp **created)
{
	int error = check_config(config);
	if (error)
		return error;
	struct vb_qp *qp = allocate(lane, config);
	if (!qp)
		return -ENOMEM;
	error = make_queues(qp, config);
	int wire = vb_roce_qp_init(qp);
	if (!error)
		error = wire;
	if (!error)
		error = vb_lane_add_qp(lane, qp, config->number);
	if (error) {
		vb_qp_free(qp);
		return error;
	}
	vb_handed_out_disown(qp);
	vb_kept_join(qp);
	qp->flow = (uint16_t)(0xC000 | ((qp->qpn * 0x61C88647u) >> 18));
	hold(qp);
	assert(vb_lane_find_qp(lane, qp->qpn) == qp);
	*created = qp;
	return 0;
}

static void leave_peer(struct vb_qp *qp)
{
	vb_roce_leave(qp);
	vb_local_leave(qp);
	vb_flight_turn_to(qp, NULL);
}

/* As hardware drivers do: what a QP completed and nobody polled goes with it. What an XRC_RECV QP completed is in the
 * SRQs' CQs, and stays. */
static void forget_completions(struct vb_qp *qp)
{
	if (qp->send_cq)
		vb_cq_forget_qp(qp->send_cq, qp->qpn);
	if (qp->recv_cq && qp->recv_cq != qp->send_cq)
		vb_cq_forget_qp(qp->recv_cq, qp->qpn);
}

static void leave(struct vb_qp *qp)
{
	if (vb_lane_handed_out(qp->lane) == 0) {
		vb_qp_free(qp);
		return;
	}
	qp->leaving_mark = vb_lane_mark(qp->lane);
	vb_list_add_tail(&qp->lane->leaving, &qp->leaving_link);
}

int vb_qp_destroy(struct vb_qp *qp)
{
	struct vb_lane *lane = qp->lane;

	if (atomic_load(&qp->doorbell_rung) || atomic_load(&qp->flush_rung))
		vb_lane_answer_doorbells(lane); /* none of this QP hangs in the stack any more */
	vb_lane_reap(lane);
	vb_roce_unschedule(qp);
	leave_peer(qp);
	vb_timer_remove(&lane->timers, &qp->timer);
	vb_notice_forget(&qp->notice);
	vb_roce_forget(qp);
	forget_completions(qp);
	vb_kept_leave(qp);
	vb_qp_set_state(qp, VB_QPS_RESET);
	vb_lane_remove_qp(lane, qp);
	vb_mw_unbind_qp(qp->pd->nic, qp->qpn);
	let_go(qp);
	assert(!vb_is_failing(qp) && !vb_list_linked(&qp->wait_link) && !qp->local_peer);
	leave(qp);
	return 0;
}

bool vb_qp_takes_leave(struct vb_qp *qp, vb_time now)
{
	const enum vb_qp_state state = vb_state(qp);
	const bool answers = state == VB_QPS_RTR || state == VB_QPS_RTS || state == VB_QPS_SQD;
	return qp->type == VB_QP_RC && answers && !qp->local_peer && vb_early_takes_leave(qp, now);
}

void vb_qp_leave_timer(struct vb_qp *qp, struct vb_timer *heir)
{
	vb_timer_cancel(&qp->timer);
	vb_timer_replace(&qp->lane->timers, &qp->timer, heir);
}

/* Work requests are forgotten without a completion. */
void vb_qp_clear(struct vb_qp *qp)
{
	vb_roce_unschedule(qp);
	vb_timer_cancel(&qp->timer);
	leave_peer(qp);
	vb_handed_out_disown(qp);
	vb_kept_abandon(qp);
	/* Old completions first, since polling one moves released. */
	forget_completions(qp);
	vb_lock_take(&qp->sq.lock);
	atomic_store(&qp->sq.head, atomic_load(&qp->sq.tail));
	atomic_store(&qp->sq.released, atomic_load(&qp->sq.tail));
	vb_lock_release(&qp->sq.lock);
	while (!qp->srq && vb_recv_ring_peek(&qp->rq))
		vb_recv_ring_pop(&qp->rq);
	vb_roce_clear(qp);
	memset(&qp->requester, 0, sizeof(qp->requester));
	qp->requester.cursor = atomic_load(&qp->sq.head);
	memset(&qp->attr, 0, sizeof(qp->attr));
	vb_responder_reset(qp);
}

void vb_qp_query(struct vb_qp *qp, struct vb_qp_attr *attr, struct vb_qp_config *config)
{
	*attr = qp->attr;
	attr->av = vb_failover_own_av(qp);
	attr->state = attr->cur_state = vb_state(qp);
	*config = (struct vb_qp_config){
		.type = qp->type,
		.pd = qp->xrcd ? NULL : qp->pd,
		.send_cq = qp->send_cq,
		.recv_cq = qp->recv_cq,
		.srq = qp->srq,
		.xrcd = qp->xrcd,
		.max_send_wr = qp->sq.max_wr,
		.max_recv_wr = qp->rq.max_wr,
		.max_send_sge = qp->sq.max_sge,
		.max_recv_sge = qp->rq.max_sge,
		.max_inline = qp->sq.max_inline,
		.signal_all = qp->signal_all,
		.user = qp->user,
	};
}

uint32_t vb_qp_number(const struct vb_qp *qp)
{
	return qp->qpn;
}

enum vb_qp_state vb_qp_state(const struct vb_qp *qp)
{
	return vb_state(qp);
}

void *vb_qp_user(const struct vb_qp *qp)
{
	return qp->user;
}
