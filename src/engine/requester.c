/* Requester: turns work requests into request packets, and acknowledgements and responses into completions.
 * Holds: work requests start in order, each packet has the PSN it always had, completions come in order, each once.
 * Not here: when to send again (recovery.c), how much may be under way (peers.c), UD (unconnected.c).
 * IBA vol. 1, 9.7.1 to 9.7.7. */
#include <stdlib.h>
#include "engine/qp.h"

#define ACKREQ_EVERY_BYTES 65536

static struct vb_send_wqe *head_wqe(const struct vb_qp *qp)
{
	return vb_send_wqe_at(&qp->sq, atomic_load_explicit(&qp->sq.head, memory_order_relaxed));
}

static uint32_t head_index(const struct vb_qp *qp)
{
	return atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
}

static bool is_read(const struct vb_send_wqe *wqe)
{
	return wqe->opcode == VB_WR_RDMA_READ;
}

static bool is_atomic(const struct vb_send_wqe *wqe)
{
	return wqe->opcode == VB_WR_ATOMIC_CMP_AND_SWP || wqe->opcode == VB_WR_ATOMIC_FETCH_AND_ADD;
}

static bool is_local(const struct vb_send_wqe *wqe)
{
	return wqe->opcode == VB_WR_LOCAL_INV || wqe->opcode == VB_WR_BIND_MW;
}

static bool takes_a_receive(const struct vb_send_wqe *wqe)
{
	return wqe->opcode == VB_WR_SEND || wqe->opcode == VB_WR_SEND_WITH_IMM || wqe->opcode == VB_WR_SEND_WITH_INV ||
		wqe->opcode == VB_WR_RDMA_WRITE_WITH_IMM;
}

void vb_requester_reset(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	vb_flight_remove(qp, rq->flight_out, rq->flight_in);
	free(rq->echo);
	memset(rq, 0, sizeof(*rq));
	rq->cursor = head_index(qp);
	rq->una_psn = rq->next_psn = rq->max_psn = qp->attr.sq_psn & VB_PSN_MASK;
	rq->heard_at = now;
	vb_recovery_reset(qp, now);
}

/* ---- Pieces of a message -------------------------------------------------------------------------------------------- */

static uint32_t psn_index(const struct vb_send_wqe *wqe, uint32_t psn)
{
	return (psn - wqe->first_psn) & VB_PSN_MASK;
}

static uint32_t read_chunk_packets(const struct vb_qp *qp)
{
	return VB_READ_CHUNK >> qp->mtu_shift;
}

/* One past the last packet of the READ piece that packet index lies in. */
static uint32_t read_chunk_end(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t index)
{
	uint32_t chunk = read_chunk_packets(qp), end = (index / chunk + 1) * chunk;
	return end < wqe->psn_count ? end : wqe->psn_count;
}

/* How many PSNs the request packet at index uses up. */
static uint32_t span_at(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t index)
{
	return is_read(wqe) ? read_chunk_end(qp, wqe, index) - index : 1;
}

/* Bytes of the message in packets from .. to - 1. */
static uint32_t bytes_between(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t from, uint32_t to)
{
	uint64_t begin = (uint64_t)from << qp->mtu_shift, end = (uint64_t)to << qp->mtu_shift;
	if (end > wqe->length)
		end = wqe->length;
	return end > begin ? (uint32_t)(end - begin) : 0;
}

struct window_cost {
	uint32_t out, in;
};

static struct window_cost cost_between(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t from, uint32_t to)
{
	uint32_t overhead = (to - from) * VB_PACKET_OVERHEAD;
	if (is_read(wqe))
		return (struct window_cost){ 0, bytes_between(qp, wqe, from, to) + overhead };
	if (is_atomic(wqe))
		return (struct window_cost){ overhead, 0 };
	return (struct window_cost){ bytes_between(qp, wqe, from, to) + overhead, 0 };
}

/* ---- Starting a work request ------------------------------------------------------------------------------------------ */

void vb_requester_doom(struct vb_qp *qp, enum vb_wc_status status, enum vb_cause_kind cause, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	if (!rq->doomed) {
		rq->doomed = status;
		rq->doomed_cause = cause;
	}
	if (rq->cursor == head_index(qp))
		vb_qp_fail(qp, rq->doomed_cause, rq->doomed, now);
}

/* Local operations that are done complete as soon as they are the oldest. */
static void retire_local_operations(struct vb_qp *qp)
{
	struct vb_requester *rq = &qp->requester;
	while (head_index(qp) != atomic_load_explicit(&qp->sq.tail, memory_order_acquire)) {
		const struct vb_send_wqe *wqe = head_wqe(qp);
		if (!wqe->is_started || wqe->psn_count != 0 || vb_state(qp) == VB_QPS_ERR)
			return;
		if (rq->cursor == head_index(qp))
			rq->cursor++;
		vb_sq_retire(qp, VB_WC_SUCCESS);
	}
}

/* BIND_MW and LOCAL_INV happen here and now, when everything before them has been sent (bind) or finished (invalidate). */
static bool run_local_operation(struct vb_qp *qp, struct vb_send_wqe *wqe, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	if (wqe->opcode == VB_WR_LOCAL_INV) {
		if (rq->cursor != head_index(qp))
			return false;
		if (vb_key_invalidate(qp->pd, qp->qpn, wqe->imm_or_inv)) {
			vb_requester_doom(qp, VB_WC_LOC_QP_OP_ERR, VB_CAUSE_LOCAL_OPERATION, now);
			return false;
		}
	} else if (vb_mw_bind(wqe->bind.mw, wqe->bind.mr, qp->pd, qp->qpn, wqe->bind.addr, wqe->bind.length,
			   wqe->bind.access, wqe->bind.rkey)) {
		vb_requester_doom(qp, VB_WC_MW_BIND_ERR, VB_CAUSE_MW_BIND, now);
		return false;
	}
	wqe->is_started = true;
	wqe->first_psn = rq->max_psn;
	wqe->psn_count = 0;
	rq->cursor++;
	retire_local_operations(qp);
	return true;
}

/* A message that consumes a receive goes beyond the peer's credits only as the single thing outstanding: a probe. */
static bool credits_allow(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t ssn)
{
	const struct vb_requester *rq = &qp->requester;
	if (!rq->has_credits || !takes_a_receive(wqe) || vb_psn_diff(ssn, rq->credit_limit) <= 0)
		return true;
	return !vb_requester_is_busy(qp);
}

static bool may_start(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	const struct vb_requester *rq = &qp->requester;
	if (vb_state(qp) != VB_QPS_RTS)
		return false;
	if ((wqe->flags & VB_SEND_FENCE) && rq->rd_atomic_out > 0)
		return false;
	return credits_allow(qp, wqe, vb_psn_add(rq->ssn, 1));
}

static bool start(struct vb_qp *qp, struct vb_send_wqe *wqe, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	if (!may_start(qp, wqe))
		return false;
	if (is_local(wqe))
		return run_local_operation(qp, wqe, now);
	if ((is_read(wqe) || is_atomic(wqe)) && qp->attr.max_rd_atomic == 0) { /* could never be sent */
		vb_requester_doom(qp, VB_WC_LOC_QP_OP_ERR, VB_CAUSE_LOCAL_OPERATION, now);
		return false;
	}
	uint32_t messages = 1;
	wqe->psn_count = vb_psn_count(qp, wqe->length);
	if (is_read(wqe))
		messages = (wqe->psn_count + read_chunk_packets(qp) - 1) / read_chunk_packets(qp);
	wqe->first_psn = rq->max_psn;
	wqe->is_started = true;
	wqe->started_at = now;
	rq->ssn = vb_psn_add(rq->ssn, messages);
	wqe->ssn = rq->ssn;
	return true;
}

/* ---- Sending ------------------------------------------------------------------------------------------------------------ */

/* First, middle, last and only form of each kind of message, without and with what its last packet carries. */
static uint8_t request_opcode(const struct vb_send_wqe *wqe, bool is_first, bool is_last)
{
	switch ((enum vb_wr_opcode)wqe->opcode) {
	case VB_WR_SEND:
		return is_last ? (is_first ? VB_SEND_ONLY : VB_SEND_LAST) : is_first ? VB_SEND_FIRST : VB_SEND_MIDDLE;
	case VB_WR_SEND_WITH_IMM:
		return is_last ? (is_first ? VB_SEND_ONLY_IMM : VB_SEND_LAST_IMM) : is_first ? VB_SEND_FIRST : VB_SEND_MIDDLE;
	case VB_WR_SEND_WITH_INV:
		return is_last ? (is_first ? VB_SEND_ONLY_INV : VB_SEND_LAST_INV) : is_first ? VB_SEND_FIRST : VB_SEND_MIDDLE;
	case VB_WR_RDMA_WRITE:
		return is_last ? (is_first ? VB_WRITE_ONLY : VB_WRITE_LAST) : is_first ? VB_WRITE_FIRST : VB_WRITE_MIDDLE;
	case VB_WR_RDMA_WRITE_WITH_IMM:
		return is_last ? (is_first ? VB_WRITE_ONLY_IMM : VB_WRITE_LAST_IMM)
			       : is_first ? VB_WRITE_FIRST : VB_WRITE_MIDDLE;
	case VB_WR_RDMA_READ:
		return VB_READ_REQUEST;
	case VB_WR_ATOMIC_CMP_AND_SWP:
		return VB_CMP_SWAP;
	case VB_WR_ATOMIC_FETCH_AND_ADD:
		return VB_FETCH_ADD;
	case VB_WR_LOCAL_INV:
	case VB_WR_BIND_MW:
		break;
	}
	__builtin_unreachable();
}

static void fill_extension_headers(struct vb_packet *packet, const struct vb_send_wqe *wqe, uint32_t offset, uint32_t length)
{
	const struct vb_opcode *row = vb_packet_row(packet);
	packet->va = wqe->remote_addr + offset;
	packet->rkey = wqe->rkey;
	packet->dma_length = length;
	if (row->message == VB_MESSAGE_ATOMIC) {
		bool is_swap = wqe->opcode == VB_WR_ATOMIC_CMP_AND_SWP;
		packet->swap_add = is_swap ? wqe->atomic.swap : wqe->atomic.compare_add;
		packet->compare = is_swap ? wqe->atomic.compare_add : 0;
	}
	if (row->has_imm)
		packet->imm = wqe->imm_or_inv;
	if (row->has_inv)
		packet->inv_rkey = wqe->imm_or_inv;
}

/* Builds the request packet of packets index .. end - 1 of the message (of a READ; others have one). False: a local SGE
 * forbids it. */
static bool build(struct vb_qp *qp, struct vb_batch *batch, const struct vb_send_wqe *wqe, uint32_t index, uint32_t end)
{
	bool is_first = index == 0, is_last = end == wqe->psn_count;
	uint8_t opcode = (uint8_t)(qp->transport | request_opcode(wqe, is_first, is_last));
	struct vb_outgoing *out = vb_batch_add(batch, qp, opcode, &qp->attr.av);
	const struct vb_opcode *row = &vb_opcodes[opcode];

	out->packet.psn = vb_psn_add(wqe->first_psn, index);
	fill_extension_headers(&out->packet, wqe, is_read(wqe) ? index << qp->mtu_shift : 0,
		is_read(wqe) ? bytes_between(qp, wqe, index, end) : wqe->length);
	out->packet.solicited = (wqe->flags & VB_SEND_SOLICITED) && row->consumes_recv;
	if (is_read(wqe) || is_atomic(wqe))
		return true;
	return vb_batch_add_wqe(batch, out, qp, wqe, index << qp->mtu_shift, bytes_between(qp, wqe, index, end));
}

/* A packet asks for an ack when its message ends, every so often within one, and when the window ends with it. */
static bool wants_ack(struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t end, uint32_t bytes)
{
	struct vb_requester *rq = &qp->requester;
	rq->since_ackreq += bytes;
	uint32_t full_packet = qp->mtu + VB_PACKET_OVERHEAD;
	bool window_ends = rq->flight_out + rq->flight_in + full_packet > rq->cc.window_bytes ||
		(qp->peer && qp->peer->flight + full_packet > qp->peer->window);
	if (end < wqe->psn_count && rq->since_ackreq < ACKREQ_EVERY_BYTES && !window_ends)
		return false;
	rq->since_ackreq = 0;
	return true;
}

static bool needs_response(const struct vb_send_wqe *wqe)
{
	return is_read(wqe) || is_atomic(wqe);
}

/* The packet at next_psn, if depth, credits and windows allow it. */
static bool emit_next(struct vb_qp *qp, struct vb_batch *batch, struct vb_send_wqe *wqe, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	uint32_t psn = rq->next_psn, index = psn_index(wqe, psn), span = span_at(qp, wqe, index);
	struct window_cost cost = cost_between(qp, wqe, index, index + span);
	bool is_new = vb_psn_diff(psn, rq->max_psn) >= 0;

	if (needs_response(wqe) && rq->rd_atomic_out >= qp->attr.max_rd_atomic)
		return false;
	if (index > 0 && rq->has_credits && takes_a_receive(wqe) && vb_psn_diff(wqe->ssn, rq->credit_limit) > 0 &&
		rq->next_psn != rq->una_psn)
		return false; /* the probe beyond the credits is one packet */
	if (!vb_flight_allows(qp, cost.out, cost.in))
		return false;
	if (!build(qp, batch, wqe, index, index + span)) {
		vb_batch_undo(batch);
		vb_requester_doom(qp, VB_WC_LOC_PROT_ERR, VB_CAUSE_LOCAL_SGE, now);
		return false;
	}
	if (needs_response(wqe))
		rq->rd_atomic_out++;
	vb_flight_add(qp, cost.out, cost.in);
	struct vb_packet *packet = &batch->out[batch->count - 1].packet;
	packet->ackreq = wants_ack(qp, wqe, index + span, cost.out) || needs_response(wqe);
	rq->next_psn = vb_psn_add(psn, span);
	if (vb_psn_diff(rq->next_psn, rq->max_psn) > 0)
		rq->max_psn = rq->next_psn;
	vb_recovery_on_sent(qp, vb_psn_add(psn, span - 1), is_new, now);
	return true;
}

/* UC: the packet is forgotten as it leaves; the last one completes the message once the port has it. 9.8.2. */
static bool emit_unacknowledged(struct vb_qp *qp, struct vb_batch *batch, struct vb_send_wqe *wqe, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	uint32_t index = psn_index(wqe, rq->next_psn);
	uint32_t cost = cost_between(qp, wqe, index, index + 1).out;

	if (!vb_echo_allows(qp, cost, now))
		return false;
	if (!build(qp, batch, wqe, index, index + 1)) {
		vb_batch_undo(batch);
		vb_requester_doom(qp, VB_WC_LOC_PROT_ERR, VB_CAUSE_LOCAL_SGE, now);
		return false;
	}
	vb_echo_on_sent(qp, &batch->out[batch->count - 1], cost);
	rq->una_psn = rq->next_psn = rq->max_psn = vb_psn_add(rq->next_psn, 1);
	if (index + 1 == wqe->psn_count) {
		batch->out[batch->count - 1].completes_wqe = true;
		rq->awaiting_done++;
		rq->cursor++;
	}
	return true;
}

/* The WQE whose packets include psn; psn lies between una_psn and max_psn. */
static struct vb_send_wqe *wqe_of(const struct vb_qp *qp, uint32_t psn)
{
	uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
	for (uint32_t i = head_index(qp); i != tail; i++) {
		struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, i);
		if (!wqe->is_started)
			return NULL;
		if (wqe->psn_count && psn_index(wqe, psn) < wqe->psn_count)
			return wqe;
	}
	return NULL;
}

void vb_requester_fault(struct vb_qp *qp, uint32_t psn, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	if (vb_state(qp) == VB_QPS_ERR || vb_state(qp) == VB_QPS_SQE || rq->doomed)
		return;
	if (qp->type != VB_QP_RC) { /* packets come back in order: it is the oldest */
		vb_qp_fail(qp, VB_CAUSE_LOCAL_FAULT, VB_WC_LOC_PROT_ERR, now);
		return;
	}
	if (vb_psn_diff(psn, rq->una_psn) < 0)
		return; /* answered all the same: an earlier copy got through */
	uint32_t index = head_index(qp);
	while (index != rq->cursor && psn_index(vb_send_wqe_at(&qp->sq, index), psn) >= vb_send_wqe_at(&qp->sq, index)->psn_count)
		index++;
	rq->cursor = index;
	vb_requester_doom(qp, VB_WC_LOC_PROT_ERR, VB_CAUSE_LOCAL_FAULT, now);
}

/* The newest packet again, or the oldest. Of a READ one packet is asked for: a peer that is merely slow is not made to
 * send everything twice; and where a READ is the oldest, its response is what everything waits for. */
static bool emit_probe(struct vb_qp *qp, struct vb_batch *batch, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	bool is_newest = rq->probe == VB_PROBE_NEWEST;

	rq->probe = VB_PROBE_NONE;
	if (rq->next_psn == rq->una_psn)
		return false;
	const struct vb_send_wqe *wqe = wqe_of(qp, rq->una_psn);
	uint32_t psn = rq->una_psn;
	if (is_newest && wqe && !needs_response(wqe)) {
		psn = vb_psn_add(rq->next_psn, VB_PSN_MASK);
		wqe = wqe_of(qp, psn);
	} else {
		is_newest = false;
	}
	if (!wqe)
		return false;
	uint32_t index = psn_index(wqe, psn);
	if (is_newest && is_read(wqe))
		index -= index % read_chunk_packets(qp); /* what was asked for last begins here */
	if (!build(qp, batch, wqe, index, index + 1)) {
		vb_batch_undo(batch);
		return false;
	}
	struct vb_packet *packet = &batch->out[batch->count - 1].packet;
	packet->ackreq = true;
	rq->probed = is_newest ? VB_PROBE_NEWEST : VB_PROBE_OLDEST;
	rq->probed_psn = packet->psn;
	rq->is_timing = false;
	rq->quiet_since = now;
	vb_count(qp->lane, VB_PROBES, 1);
	return true;
}

bool vb_requester_emit(struct vb_qp *qp, struct vb_batch *batch, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	enum vb_qp_state state = vb_state(qp);

	if ((state != VB_QPS_RTS && state != VB_QPS_SQD) || rq->is_rnr_waiting)
		return false;
	if (rq->probe && emit_probe(qp, batch, now))
		return true;
	if (rq->doomed)
		return false;
	while (rq->cursor != atomic_load_explicit(&qp->sq.tail, memory_order_acquire)) {
		struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, rq->cursor);
		if (!wqe->is_started) {
			if (!start(qp, wqe, now))
				return false;
			continue;
		}
		if (psn_index(wqe, rq->next_psn) >= wqe->psn_count) { /* all of it is on the wire */
			rq->cursor++;
			continue;
		}
		return qp->type == VB_QP_RC ? emit_next(qp, batch, wqe, now) : emit_unacknowledged(qp, batch, wqe, now);
	}
	return false;
}

/* ---- Acknowledgements ----------------------------------------------------------------------------------------------------- */

static void check_drained(struct vb_qp *qp)
{
	struct vb_requester *rq = &qp->requester;
	bool is_empty = head_index(qp) == atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
	if (vb_state(qp) != VB_QPS_SQD || !qp->attr.is_draining || vb_requester_is_busy(qp) || rq->awaiting_done)
		return;
	if (!is_empty && head_wqe(qp)->is_started)
		return; /* a message that was begun is finished first */
	qp->attr.is_draining = false;
	if (qp->attr.notify_drained)
		vb_raise(qp->lane, &qp->notice, VB_EVENT_SQ_DRAINED);
}

/* una_psn moves to psn, which lies within or just after wqe; frees what that held of the windows. */
static uint32_t advance_una(struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t psn)
{
	struct vb_requester *rq = &qp->requester;
	uint32_t from = psn_index(wqe, rq->una_psn), to = psn_index(wqe, psn);
	uint32_t sent_to = vb_psn_diff(rq->next_psn, psn) < 0 ? psn_index(wqe, rq->next_psn) : to;

	if (vb_psn_diff(rq->next_psn, rq->una_psn) > 0 && sent_to > from) {
		struct window_cost cost = cost_between(qp, wqe, from, sent_to);
		vb_flight_remove(qp, cost.out, cost.in);
	}
	if (!needs_response(wqe)) {
		uint32_t bytes = bytes_between(qp, wqe, to - 1, to) + VB_BTH_LENGTH;
		if (bytes > rq->largest_acked)
			rq->largest_acked = bytes;
	}
	rq->una_psn = psn;
	if (vb_psn_diff(rq->next_psn, psn) < 0)
		rq->next_psn = psn;
	return bytes_between(qp, wqe, from, to);
}

/* The oldest WQE is done; the cursor never stays behind it. */
static void retire(struct vb_qp *qp)
{
	struct vb_requester *rq = &qp->requester;
	bool cursor_was_here = rq->cursor == head_index(qp);
	vb_sq_retire(qp, VB_WC_SUCCESS);
	if (cursor_was_here && vb_state(qp) != VB_QPS_ERR)
		rq->cursor++;
}

/* All PSNs up to psn are acknowledged, but a READ or atomic only by its own response: stops there. Returns false when
 * that means that psn was not reached. */
static bool acknowledge_through(struct vb_qp *qp, uint32_t psn, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	struct vb_cc_ack acked = { .flight = rq->flight_out + rq->flight_in };
	bool is_progress = false, is_reached = true;

	while (vb_psn_diff(psn, rq->una_psn) >= 0 && vb_state(qp) != VB_QPS_ERR) {
		retire_local_operations(qp);
		struct vb_send_wqe *wqe = head_wqe(qp);
		if (needs_response(wqe)) {
			is_reached = false;
			break;
		}
		uint32_t end = vb_psn_add(wqe->first_psn, wqe->psn_count);
		bool is_whole = vb_psn_diff(psn, end) >= -1;
		acked.bytes += advance_una(qp, wqe, is_whole ? end : vb_psn_add(psn, 1));
		is_progress = true;
		if (is_whole)
			retire(qp);
	}
	retire_local_operations(qp);
	if (is_progress && vb_state(qp) != VB_QPS_ERR)
		vb_recovery_on_progress(qp, vb_psn_add(rq->una_psn, VB_PSN_MASK), &acked, true, now);
	return is_reached;
}

/* After una_psn moved: more may start, the doomed may be the oldest, the queue may be drained. */
void vb_requester_proceed(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	enum vb_qp_state state = vb_state(qp);
	if (state != VB_QPS_RTS && state != VB_QPS_SQD)
		return;
	retire_local_operations(qp);
	if (rq->doomed && rq->cursor == head_index(qp)) {
		vb_qp_fail(qp, rq->doomed_cause, rq->doomed, now);
		return;
	}
	check_drained(qp);
	if (rq->cursor != atomic_load_explicit(&qp->sq.tail, memory_order_acquire))
		vb_schedule(qp);
}

static const uint16_t credit_count[31] = { 0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768,
	1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768 };

static void note_credits(struct vb_qp *qp, const struct vb_packet *packet)
{
	struct vb_requester *rq = &qp->requester;
	uint8_t code = packet->syndrome & VB_AETH_CODE_MASK;
	rq->has_credits = code != VB_AETH_NO_CREDITS;
	if (rq->has_credits)
		rq->credit_limit = vb_psn_add(packet->msn, credit_count[code]);
}

static void receive_nak(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	static const struct {
		enum vb_cause_kind cause;
		enum vb_wc_status status;
	} verdicts[] = {
		[VB_NAK_INVALID_REQUEST & 31] = { VB_CAUSE_NAK_INVALID_REQUEST, VB_WC_REM_INV_REQ_ERR },
		[VB_NAK_REMOTE_ACCESS & 31] = { VB_CAUSE_NAK_REMOTE_ACCESS, VB_WC_REM_ACCESS_ERR },
		[VB_NAK_REMOTE_OPERATION & 31] = { VB_CAUSE_NAK_REMOTE_OPERATION, VB_WC_REM_OP_ERR },
		[VB_NAK_INVALID_RD & 31] = { VB_CAUSE_NAK_INVALID_REQUEST, VB_WC_REM_INV_REQ_ERR },
	};
	uint8_t code = packet->syndrome & VB_AETH_CODE_MASK;
	vb_count(qp->lane, VB_NAK_RECEIVED, 1);
	acknowledge_through(qp, vb_psn_add(packet->psn, VB_PSN_MASK), now);
	if (vb_state(qp) == VB_QPS_ERR)
		return;
	if (packet->syndrome == VB_NAK_PSN_SEQUENCE)
		vb_recovery_on_gap(qp, now);
	else if (code < sizeof(verdicts) / sizeof(verdicts[0]))
		vb_qp_fail(qp, verdicts[code].cause, verdicts[code].status, now);
}

static void receive_ack(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	switch (packet->syndrome & VB_AETH_TYPE_MASK) {
	case VB_AETH_ACK:
		note_credits(qp, packet);
		if (!acknowledge_through(qp, packet->psn, now)) {
			vb_count(qp->lane, VB_IMPLIED_NAK, 1);
			vb_recovery_on_gap(qp, now);
		}
		break;
	case VB_AETH_RNR:
		vb_count(qp->lane, VB_RNR_RECEIVED, 1);
		acknowledge_through(qp, vb_psn_add(packet->psn, VB_PSN_MASK), now);
		if (vb_state(qp) != VB_QPS_ERR)
			vb_recovery_on_rnr(qp, packet->syndrome & VB_AETH_CODE_MASK, now);
		break;
	case VB_AETH_NAK:
		receive_nak(qp, packet, now);
		break;
	default:
		vb_count(qp->lane, VB_DROP_GHOST, 1);
		break;
	}
}

/* ---- Responses ------------------------------------------------------------------------------------------------------------- */

static bool scatter(struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t offset, const uint8_t *payload, uint32_t length,
	bool ends_message)
{
	for (uint32_t i = 0; i < wqe->sge_count && length > 0; i++) {
		const struct vb_sge *sge = &wqe->sges[i];
		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		uint32_t part = sge->length - offset < length ? sge->length - offset : length;
		struct vb_reach reach;
		if (vb_reach_local(qp->pd, sge, offset, part, VB_ACCESS_LOCAL_WRITE, &reach))
			return false;
		vb_place(&reach, payload, part, ends_message && part == length);
		payload = payload ? payload + part : NULL;
		length -= part;
		offset = 0;
	}
	return length == 0;
}

/* is_only: a response of one packet, which a probe asks for. */
static void response_done(
	struct vb_qp *qp, struct vb_send_wqe *wqe, uint32_t index, uint32_t piece_end, bool is_only, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	struct vb_cc_ack acked = { .flight = rq->flight_out + rq->flight_in };
	uint32_t psn = rq->una_psn;
	bool ends_piece = index + 1 == piece_end, ends_message = index + 1 == wqe->psn_count;

	if (ends_piece && rq->rd_atomic_out > 0 && vb_psn_diff(rq->next_psn, psn) > 0)
		rq->rd_atomic_out--;
	acked.bytes = advance_una(qp, wqe, vb_psn_add(psn, 1));
	if (ends_message)
		retire(qp);
	retire_local_operations(qp);
	if (vb_state(qp) != VB_QPS_ERR)
		vb_recovery_on_progress(qp, psn, &acked, is_only, now);
}

/* A response belongs to the oldest unanswered READ or atomic, or something before it is missing. */
static struct vb_send_wqe *answered_wqe(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	acknowledge_through(qp, vb_psn_add(packet->psn, VB_PSN_MASK), now);
	if (vb_state(qp) == VB_QPS_ERR)
		return NULL;
	if (packet->psn == qp->requester.una_psn)
		return head_wqe(qp);
	vb_count(qp->lane, VB_IMPLIED_NAK, 1);
	vb_recovery_on_gap(qp, now);
	return NULL;
}

static void receive_read_response(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	struct vb_send_wqe *wqe = answered_wqe(qp, packet, now);
	if (!wqe)
		return;
	uint32_t index = psn_index(wqe, packet->psn);
	if (!is_read(wqe) || packet->payload_length != bytes_between(qp, wqe, index, index + 1)) {
		vb_qp_fail(qp, VB_CAUSE_BAD_RESPONSE, VB_WC_BAD_RESP_ERR, now);
		return;
	}
	if (!scatter(qp, wqe, index << qp->mtu_shift, packet->payload, packet->payload_length,
		    index + 1 == wqe->psn_count)) {
		vb_qp_fail(qp, VB_CAUSE_LOCAL_SGE, VB_WC_LOC_PROT_ERR, now);
		return;
	}
	response_done(qp, wqe, index, read_chunk_end(qp, wqe, index), packet->opcode == VB_READ_RESPONSE_ONLY, now);
}

static void receive_atomic_response(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	struct vb_send_wqe *wqe = answered_wqe(qp, packet, now);
	if (!wqe)
		return;
	if (!is_atomic(wqe)) {
		vb_qp_fail(qp, VB_CAUSE_BAD_RESPONSE, VB_WC_BAD_RESP_ERR, now);
		return;
	}
	uint64_t value = packet->atomic_result;
	if (!scatter(qp, wqe, 0, (const uint8_t *)&value, sizeof(value), true)) {
		vb_qp_fail(qp, VB_CAUSE_LOCAL_SGE, VB_WC_LOC_PROT_ERR, now);
		return;
	}
	response_done(qp, wqe, 0, 1, true, now);
}

static bool is_outstanding(const struct vb_requester *rq, uint32_t psn)
{
	return vb_psn_diff(psn, rq->una_psn) >= 0 && vb_psn_diff(psn, rq->max_psn) < 0;
}

void vb_requester_receive(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	enum vb_qp_state state = vb_state(qp);

	if (state != VB_QPS_RTS && state != VB_QPS_SQD) {
		vb_count(qp->lane, VB_DROP_QP_STATE, 1);
		return;
	}
	vb_flight_be_heard(qp);
	if (!is_outstanding(rq, packet->psn)) {
		if (packet->opcode == VB_ACKNOWLEDGE && (packet->syndrome & VB_AETH_TYPE_MASK) == VB_AETH_ACK &&
			packet->psn == vb_psn_add(rq->una_psn, VB_PSN_MASK) && rq->has_credits) {
			note_credits(qp, packet); /* credits alone, 9.7.7.2.4 */
			vb_schedule(qp);
		}
		vb_count(qp->lane, VB_DROP_GHOST, 1);
		vb_recovery_on_ghost(qp, now);
		return;
	}
	switch (packet->opcode) {
	case VB_ACKNOWLEDGE:
		receive_ack(qp, packet, now);
		break;
	case VB_ATOMIC_ACKNOWLEDGE:
		receive_atomic_response(qp, packet, now);
		break;
	default:
		receive_read_response(qp, packet, now);
		break;
	}
	vb_requester_proceed(qp, now);
}
