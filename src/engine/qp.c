/* A QP's life: creation, the states it goes through, failure and flushing, destruction. IBA vol. 1, 10.3. */
#include <errno.h>
#include <stdlib.h>
#include "engine/congestion.h"
#include "engine/echo.h"
#include "engine/events.h"
#include "engine/execute.h"
#include "engine/flight.h"
#include "engine/handed_out.h"
#include "engine/lane.h"
#include "engine/memory.h"
#include "engine/peers.h"
#include "engine/qp.h"
#include "engine/qp_state.h"
#include "engine/queues.h"
#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/scheduler.h"
#include "engine/send_queue.h"
#include "engine/tags.h"
#include "engine/ud.h"
#include "engine/xrc.h"

static enum vb_transport transport_of(enum vb_qp_type type)
{
	switch (type) {
	case VB_QP_RC:
		return VB_RC;
	case VB_QP_UC:
		return VB_UC;
	case VB_QP_UD:
	case VB_QP_RAW: /* no packet is for it */
		return VB_UD;
	case VB_QP_XRC_SEND:
	case VB_QP_XRC_RECV:
		return VB_XRC;
	}
	return VB_RC;
}

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

/* Whatever SRQ is named: a request of it fits. */
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
		qp->sq.max_inline = (uint32_t)(qp->sq.max_sge * sizeof(struct vb_sge));
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
	vb_list_init(&qp->ack_link);
	vb_flight_init(qp);
	vb_congestion_init(qp);
	vb_list_init(&qp->condemned_link);
	vb_list_init(&qp->leaving_link);
	vb_list_init(&qp->mcast);
	vb_list_init(&qp->xrcd_link);
	vb_list_init(&qp->notice.link);
	atomic_init(&qp->notice.pending, 0);
	qp->notice.of = VB_NOTICE_OF_QP;
	vb_timer_init(&qp->timer);
}

void vb_qp_free(struct vb_qp *qp)
{
	vb_sq_deinit(&qp->sq);
	if (!qp->srq)
		vb_recv_ring_deinit(&qp->rq);
	free(qp->target.srq_copy);
	free(qp->responder.resources);
	free(qp->requester.echo);
	free(qp->spread);
	free(qp->counts);
	free(qp);
}

/* What may not go before the QP does. */
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

int vb_qp_create(struct vb_lane *lane, struct vb_qp_config *config, struct vb_qp **created)
{
	int error = check_config(config);
	if (error)
		return error;
	struct vb_qp *qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->lane = lane;
	qp->pd = config->xrcd ? &config->xrcd->nowhere : config->pd;
	qp->type = config->type;
	qp->transport = transport_of(config->type);
	qp->is_reliable = qp->transport == VB_RC || qp->transport == VB_XRC;
	qp->signal_all = config->signal_all;
	qp->srq = config->srq;
	qp->send_cq = vb_has_tags(qp) ? NULL : config->send_cq;
	qp->recv_cq = vb_has_tags(qp) ? qp->srq->cq : config->recv_cq;
	qp->xrcd = config->xrcd;
	qp->user = config->user;
	qp->target = (struct vb_target){ .qp = qp, .pd = qp->pd, .srq = qp->srq, .cq = qp->recv_cq };
	atomic_init(&qp->state, VB_QPS_RESET);
	init_links(qp);
	error = make_queues(qp, config);
	if (!error)
		error = vb_timers_reserve(&lane->timers, lane->qp_count + 1);
	if (!error)
		error = vb_timers_reserve(&lane->congestion_timers, lane->qp_count + 1);
	if (!error)
		error = vb_lane_add_qp(lane, qp);
	if (error) {
		vb_qp_free(qp);
		return error;
	}
	vb_handed_out_disown(qp);
	qp->flow = (uint16_t)(0xC000 | ((qp->qpn * 0x61C88647u) >> 18));
	hold(qp);
	*created = qp;
	return 0;
}

static void leave_peer(struct vb_qp *qp)
{
	vb_flight_stop(qp);
	vb_congestion_end(qp);
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

int vb_qp_destroy(struct vb_qp *qp)
{
	struct vb_lane *lane = qp->lane;

	vb_lane_answer_doorbells(lane); /* none of this QP hangs in the stack any more */
	vb_lane_reap(lane);
	vb_unschedule(qp);
	leave_peer(qp);
	while (!vb_list_empty(&qp->mcast)) {
		struct vb_mcast_attachment *attachment =
			vb_container_of(qp->mcast.next, struct vb_mcast_attachment, qp_link);
		struct vb_gid gid = attachment->gid;
		vb_qp_detach_mcast(qp, &gid);
	}
	vb_timer_remove(&lane->timers, &qp->timer);
	vb_notice_forget(&qp->notice);
	vb_echo_forget(qp);
	vb_unschedule(qp);
	forget_completions(qp);
	vb_lane_remove_qp(lane, qp);
	vb_mw_unbind_qp(qp->pd->nic, qp->qpn);
	let_go(qp);
	vb_qp_leave(qp);
	return 0;
}

/* ---- Failing and flushing -------------------------------------------------------------------------------------- */

void vb_qp_flush_sends(struct vb_qp *qp)
{
	while (atomic_load_explicit(&qp->sq.head, memory_order_relaxed) !=
		atomic_load_explicit(&qp->sq.tail, memory_order_acquire))
		vb_sq_retire(qp, VB_WC_WR_FLUSH_ERR);
	qp->requester.cursor = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
}

static void flush_receives(struct vb_qp *qp)
{
	struct vb_wc wc = { .status = VB_WC_WR_FLUSH_ERR, .opcode = VB_WC_RECV };
	struct vb_target *target = &qp->target;
	if (target->srq) { /* only what the QP had taken; the rest stays for others */
		if (target->recv)
			vb_complete_recv(target, &wc, true);
		return;
	}
	/* What is posted meanwhile rings for a flush of its own. */
	for (uint32_t left = vb_recv_ring_count(&qp->rq); left > 0 && vb_recv_take(target); left--)
		vb_complete_recv(target, &wc, true);
}

/* Every request that waits completes with WR_FLUSH_ERR, in order. 10.3.1. */
void vb_qp_flush(struct vb_qp *qp)
{
	vb_qp_flush_sends(qp);
	flush_receives(qp);
}

static void stop_requester(struct vb_qp *qp)
{
	struct vb_requester *rq = &qp->requester;
	vb_timer_cancel(&qp->timer);
	vb_echo_give_up(qp);
	vb_flight_stop(qp);
	vb_congestion_stop(qp);
	rq->una_psn = rq->next_psn = rq->max_psn;
	rq->is_rnr_waiting = false;
	rq->probe = VB_PROBE_NONE;
	vb_handed_out_disown(qp);
	if (rq->echo)
		rq->echo->is_blocked = false;
	rq->rd_atomic_out = 0;
}

static void enter_error(struct vb_qp *qp)
{
	atomic_store(&qp->state, VB_QPS_ERR);
	qp->attr.is_draining = false;
	stop_requester(qp);
	vb_congestion_end(qp);
	vb_responder_drop_resources(qp);
	if (qp->responder.ack.is_wanted) { /* what was executed before is acknowledged all the same */
		vb_list_remove(&qp->ack_link);
		qp->responder.ack.is_urgent = true;
		vb_schedule_now(qp);
	}
	qp->target.open = VB_NO_MESSAGE;
	vb_qp_flush(qp);
	if (qp->srq)
		vb_raise(qp->lane, &qp->notice, VB_EVENT_QP_LAST_WQE_REACHED);
}

static uint32_t stuck_bytes(const struct vb_qp *qp)
{
	uint32_t head = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
	if (head == atomic_load_explicit(&qp->sq.tail, memory_order_acquire))
		return 0;
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, head);
	if (wqe->opcode == VB_WR_RDMA_READ)
		return VB_BTH_LENGTH;
	uint32_t index = (qp->requester.una_psn - wqe->first_psn) & VB_PSN_MASK;
	uint64_t offset = (uint64_t)index << qp->mtu_shift;
	uint64_t rest = wqe->length > offset ? wqe->length - offset : 0;
	return VB_BTH_LENGTH + (uint32_t)(rest < qp->mtu ? rest : qp->mtu);
}

static bool is_senders_fault(enum vb_cause_kind cause)
{
	return cause >= VB_CAUSE_LOCAL_SGE && cause <= VB_CAUSE_MW_BIND;
}

/* Causes up to MW_BIND fail the oldest send request; the others concern the receiving side. */
static bool is_requesters(enum vb_cause_kind cause)
{
	return cause <= VB_CAUSE_MW_BIND;
}

static void note_cause(struct vb_qp *qp, enum vb_cause_kind kind, enum vb_wc_status status, vb_time now)
{
	const struct vb_requester *rq = &qp->requester;
	uint32_t head = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
	bool has_wqe = head != atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, head);
	qp->cause = (struct vb_cause){
		.kind = kind,
		.status = status,
		.psn = is_requesters(kind) ? rq->una_psn : qp->responder.expected_psn,
		.tries = rq->tries,
		.stuck_for = has_wqe && wqe->is_started ? vb_time_since(wqe->started_at, now) : 0,
		.was_heard = rq->was_heard,
		.silent_for = vb_time_since(rq->heard_at, now),
		.largest_acked = rq->largest_acked,
		.stuck_wire_bytes = stuck_bytes(qp),
	};
}

void vb_qp_note_access(struct vb_qp *qp, enum vb_message message, uint64_t addr, uint32_t rkey, uint32_t length)
{
	qp->cause.access.what = vb_access_text(message);
	qp->cause.access.addr = addr;
	qp->cause.access.rkey = rkey;
	qp->cause.access.length = length;
}

/* What the oldest request wanted of the peer's memory. */
static void note_refused_access(struct vb_qp *qp)
{
	static const enum vb_message messages[] = {
		[VB_WR_RDMA_WRITE] = VB_MESSAGE_WRITE,
		[VB_WR_RDMA_WRITE_WITH_IMM] = VB_MESSAGE_WRITE,
		[VB_WR_RDMA_READ] = VB_MESSAGE_READ,
		[VB_WR_ATOMIC_CMP_AND_SWP] = VB_MESSAGE_ATOMIC,
		[VB_WR_ATOMIC_FETCH_AND_ADD] = VB_MESSAGE_ATOMIC,
		[VB_WR_FLUSH] = VB_MESSAGE_FLUSH,
		[VB_WR_ATOMIC_WRITE] = VB_MESSAGE_ATOMIC_WRITE,
	};
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, atomic_load_explicit(&qp->sq.head, memory_order_relaxed));
	vb_qp_note_access(qp, messages[wqe->opcode], wqe->remote_addr, wqe->rkey,
		wqe->opcode == VB_WR_FLUSH ? wqe->flush.length : wqe->length);
}

void vb_qp_fail(struct vb_qp *qp, enum vb_cause_kind cause, enum vb_wc_status status, vb_time now)
{
	if (vb_state(qp) == VB_QPS_ERR || vb_state(qp) == VB_QPS_RESET)
		return;
	bool has_request = atomic_load_explicit(&qp->sq.head, memory_order_relaxed) !=
			   atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
	note_cause(qp, cause, status, now);
	if (cause == VB_CAUSE_NAK_REMOTE_ACCESS && has_request)
		note_refused_access(qp);
	vb_count(qp->lane, VB_QP_ERRORS, 1);
	vb_raise(qp->lane, &qp->notice, VB_EVENT_QP_DIED);
	if (!qp->is_reliable && is_senders_fault(cause)) { /* 10.3.1.7: only the send queue stops */
		atomic_store(&qp->state, VB_QPS_SQE);
		stop_requester(qp);
		if (has_request)
			vb_sq_retire(qp, status);
		vb_qp_flush_sends(qp);
		return;
	}
	atomic_store(&qp->state, VB_QPS_ERR);
	if (is_requesters(cause) && has_request)
		vb_sq_retire(qp, status);
	enter_error(qp);
}

void vb_qp_condemn(struct vb_qp *qp)
{
	if (vb_state(qp) == VB_QPS_ERR || vb_is_condemned(qp))
		return;
	vb_raise(qp->lane, &qp->notice, VB_EVENT_QP_FATAL);
	vb_list_add_tail(&qp->lane->condemned, &qp->condemned_link);
}

void vb_lane_execute_condemned(struct vb_lane *lane)
{
	struct vb_list *node;
	while ((node = vb_list_pop(&lane->condemned))) {
		struct vb_qp *qp = vb_container_of(node, struct vb_qp, condemned_link);
		vb_qp_fail(qp, VB_CAUSE_CQ_OVERRUN, VB_WC_FATAL_ERR, lane->now);
	}
}

void vb_qp_cause(const struct vb_qp *qp, struct vb_cause *cause)
{
	*cause = qp->cause;
}

/* ---- Modify ---------------------------------------------------------------------------------------------------- */

static bool is_mtu(uint32_t mtu)
{
	return mtu >= 256 && mtu <= VB_MAX_MTU && (mtu & (mtu - 1)) == 0;
}

static int check_values(const struct vb_qp *qp, const struct vb_qp_attr *attr, uint32_t mask)
{
	if ((mask & VB_QP_PKEY_INDEX) && attr->pkey_index != 0)
		return -EINVAL;
	if ((mask & VB_QP_PORT) && attr->port != 1)
		return -EINVAL;
	if ((mask & VB_QP_PATH_MTU) && (!is_mtu(attr->path_mtu) || attr->path_mtu > atomic_load(&qp->pd->nic->mtu)))
		return -EINVAL;
	if ((mask & VB_QP_MAX_QP_RD_ATOMIC) && attr->max_rd_atomic > VB_MAX_INIT_RD_ATOMIC)
		return -EINVAL;
	if ((mask & VB_QP_MAX_DEST_RD_ATOMIC) && attr->max_dest_rd_atomic > VB_MAX_RD_ATOMIC)
		return -EINVAL;
	if (((mask & VB_QP_RETRY_CNT) && attr->retry_cnt > 7) || ((mask & VB_QP_RNR_RETRY) && attr->rnr_retry > 7))
		return -EINVAL;
	if (((mask & VB_QP_TIMEOUT) && attr->timeout > 31) ||
		((mask & VB_QP_MIN_RNR_TIMER) && attr->min_rnr_timer > 31))
		return -EINVAL;
	if ((mask & VB_QP_AV) &&
		(vb_gid_is_zero(&attr->av.dgid) || vb_gid_is_ipv4(&attr->av.dgid) != vb_gid_is_ipv4(&attr->av.sgid)))
		return -EINVAL;
	return 0;
}

static void copy_attributes(struct vb_qp_attr *to, const struct vb_qp_attr *from, uint32_t mask)
{
	if (mask & VB_QP_PKEY_INDEX)
		to->pkey_index = from->pkey_index;
	if (mask & VB_QP_PORT)
		to->port = from->port;
	if (mask & VB_QP_ACCESS_FLAGS)
		to->access = from->access;
	if (mask & VB_QP_QKEY)
		to->qkey = from->qkey;
	if (mask & VB_QP_AV)
		to->av = from->av;
	if (mask & VB_QP_PATH_MTU)
		to->path_mtu = from->path_mtu;
	if (mask & VB_QP_TIMEOUT)
		to->timeout = from->timeout;
	if (mask & VB_QP_RETRY_CNT)
		to->retry_cnt = from->retry_cnt;
	if (mask & VB_QP_RNR_RETRY)
		to->rnr_retry = from->rnr_retry;
	if (mask & VB_QP_RQ_PSN)
		to->rq_psn = from->rq_psn & VB_PSN_MASK;
	if (mask & VB_QP_SQ_PSN)
		to->sq_psn = from->sq_psn & VB_PSN_MASK;
	if (mask & VB_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = from->max_rd_atomic;
	if (mask & VB_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = from->max_dest_rd_atomic;
	if (mask & VB_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = from->min_rnr_timer;
	if (mask & VB_QP_DEST_QPN)
		to->dest_qpn = from->dest_qpn & VB_QPN_MASK;
	if (mask & VB_QP_EN_SQD_ASYNC_NOTIFY)
		to->notify_drained = from->notify_drained;
}

static void set_mtu(struct vb_qp *qp, uint32_t mtu)
{
	qp->mtu = mtu;
	qp->mtu_shift = (uint8_t)__builtin_ctz(mtu);
}

/* Linux's rule, symmetric in the two QPNs, so that both directions hash alike: rocev2 1.5. */
static uint16_t flow_of(const struct vb_qp *qp)
{
	uint64_t label = qp->attr.av.flow_label;
	if (label == 0) {
		label = (uint64_t)qp->qpn * qp->attr.dest_qpn;
		label ^= label >> 20;
		label ^= label >> 40;
		label &= 0xfffff;
	}
	return (uint16_t)(0xC000 | ((label & 0x3fff) ^ (label >> 14)));
}

/* Whoever has its address now. What is under way counts against that from now on. */
static int find_peer(struct vb_qp *qp)
{
	struct vb_peer *peer;
	int error = vb_peer_get(qp->lane, &qp->attr.av.dgid, (uint8_t)(qp->attr.dest_qpn >> 16), &peer);
	if (!error)
		vb_flight_turn_to(qp, peer);
	return error;
}

static int enter_rtr(struct vb_qp *qp)
{
	if (qp->type == VB_QP_UD || qp->type == VB_QP_RAW) {
		set_mtu(qp, atomic_load(&qp->pd->nic->mtu));
		return 0;
	}
	int error = find_peer(qp);
	if (error)
		return error;
	set_mtu(qp, qp->attr.path_mtu);
	qp->flow = flow_of(qp);
	vb_responder_reset(qp);
	return 0;
}

static void enter_reset(struct vb_qp *qp)
{
	vb_unschedule(qp);
	vb_timer_cancel(&qp->timer);
	leave_peer(qp);
	vb_handed_out_disown(qp);
	/* Work requests are forgotten without a completion; old completions first, since polling one moves released. */
	forget_completions(qp);
	vb_lock_take(&qp->sq.lock);
	atomic_store(&qp->sq.head, atomic_load(&qp->sq.tail));
	atomic_store(&qp->sq.released, atomic_load(&qp->sq.tail));
	vb_lock_release(&qp->sq.lock);
	while (!qp->srq && vb_recv_ring_peek(&qp->rq))
		vb_recv_ring_pop(&qp->rq);
	free(qp->requester.echo);
	memset(&qp->requester, 0, sizeof(qp->requester));
	qp->requester.cursor = atomic_load(&qp->sq.head);
	memset(&qp->attr, 0, sizeof(qp->attr));
	vb_responder_reset(qp);
}

static int enter(struct vb_qp *qp, enum vb_qp_state from, enum vb_qp_state to, vb_time now)
{
	int error = 0;
	switch (to) {
	case VB_QPS_RESET:
		atomic_store(&qp->state, VB_QPS_RESET);
		enter_reset(qp);
		return 0;
	case VB_QPS_RTR:
		if (from == VB_QPS_INIT)
			error = enter_rtr(qp);
		break;
	case VB_QPS_RTS:
		if (from == VB_QPS_RTR)
			error = vb_requester_reset(qp, now);
		else if (from == VB_QPS_SQE)
			qp->requester.doomed = VB_WC_SUCCESS;
		if (error)
			break;
		qp->attr.is_draining = false;
		vb_schedule(qp);
		break;
	case VB_QPS_SQD:
		if (from == VB_QPS_RTS)
			qp->attr.is_draining = true;
		break;
	case VB_QPS_ERR:
		if (from != VB_QPS_ERR)
			enter_error(qp);
		return 0;
	default:
		break;
	}
	if (!error)
		atomic_store(&qp->state, to);
	return error;
}

/* SQD allows a new address. */
static int follow_address(struct vb_qp *qp)
{
	return qp->peer && vb_gid_equal(&qp->peer->gid, &qp->attr.av.dgid) ? 0 : find_peer(qp);
}

int vb_qp_modify(struct vb_qp *qp, const struct vb_qp_attr *attr, uint32_t mask, vb_time now)
{
	enum vb_qp_state from = vb_state(qp), to = mask & VB_QP_STATE ? attr->state : from;

	qp->lane->now = now;
	if ((unsigned)to >= VB_QPS_COUNT || ((mask & VB_QP_CUR_STATE) && attr->cur_state != from))
		return -EINVAL;
	int error = vb_qp_transition_check(qp->type, from, to, mask);
	if (!error)
		error = check_values(qp, attr, mask);
	if (error)
		return error;
	struct vb_qp_attr before = qp->attr;
	copy_attributes(&qp->attr, attr, mask);
	error = enter(qp, from, to, now);
	if (!error && (mask & VB_QP_AV))
		error = follow_address(qp);
	if (error)
		qp->attr = before;
	else if (to == VB_QPS_SQD)
		vb_requester_proceed(qp, now);
	vb_lane_reap(qp->lane);
	return error;
}

int vb_qp_set_congestion_control(struct vb_qp *qp, const struct vb_cc_config *config)
{
	if (vb_state(qp) > VB_QPS_RTR)
		return -EINVAL;
	qp->congestion.config = config;
	return 0;
}

void vb_qp_query(struct vb_qp *qp, struct vb_qp_attr *attr, struct vb_qp_config *config)
{
	*attr = qp->attr;
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
