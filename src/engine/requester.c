/* The requester's sending half: turns work requests into request packets.
 * Holds: work requests start in order, each packet has the PSN it always had.
 * Not here: what comes back (acknowledgement.c), when to send again (recovery.c), how much may be under way (flight.c),
 * UD (ud.c). IBA vol. 1, 9.7.1 to 9.7.4. */
#include <stdlib.h>
#include "base/invariant.h"
#include "engine/batch.h"
#include "engine/congestion.h"
#include "engine/echo.h"
#include "engine/flight.h"
#include "engine/handed_out.h"
#include "engine/kept.h"
#include "engine/lane.h"
#include "engine/memory.h"
#include "engine/message.h"
#include "engine/peers.h"
#include "engine/qp.h"
#include "engine/recovery.h"
#include "engine/requester.h"
#include "engine/scheduler.h"
#include "engine/send_queue.h"

/* Whatever the windows say: of twice as many it could not be told which are old. */
#define PSNS_UNDER_WAY (1 << 22)

int vb_requester_reset(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	vb_flight_stop(qp);
	int error = vb_congestion_start(qp, now);
	if (error)
		return error;
	free(rq->echo);
	memset(rq, 0, sizeof(*rq));
	rq->cursor = head_index(qp);
	rq->una_psn = rq->next_psn = rq->max_psn = qp->attr.sq_psn & VB_PSN_MASK;
	rq->heard_at = now;
	vb_recovery_reset(qp, now);
	return 0;
}

/* ---- Starting a work request ----------------------------------------------------------------------------------- */

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

/* BIND_MW and LOCAL_INV happen here and now, when everything before them has been sent (bind) or finished (invalidate).
 */
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
	vb_retire_local_operations(qp);
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
	if (rq->ssn == 0 && vb_peer_must_be_met(qp))
		return false;
	if (needs_response(wqe) && qp->attr.max_rd_atomic == 0) { /* could never be sent */
		vb_requester_doom(qp, VB_WC_LOC_QP_OP_ERR, VB_CAUSE_LOCAL_OPERATION, now);
		return false;
	}
	rq->is_answer = rq->is_asked || (rq->is_answer && vb_requester_is_busy(qp));
	rq->is_asked = false;
	wqe->psn_count = qp->local.to ? vb_local_part_count(qp, wqe) : vb_psn_count(qp, wqe->length);
	wqe->first_psn = rq->max_psn;
	if (!qp->is_reliable)
		wqe->at_port = 0;
	wqe->is_started = true;
	wqe->started_at = now;
	if (wqe->psn_count > 1 && !is_read(wqe))
		wqe->whole.stamp = NULL;
	wqe->ssn = vb_psn_add(rq->ssn, 1);
	if (is_read(wqe)) {
		wqe->read.piece = vb_flight_read_piece(qp);
		wqe->read.changed_at = 0;
	} else {
		rq->ssn = wqe->ssn;
	}
	return true;
}

/* ---- Sending --------------------------------------------------------------------------------------------------- */

static void fill_extension_headers(
	struct vb_packet *packet, const struct vb_send_wqe *wqe, uint32_t offset, uint32_t length)
{
	const struct vb_opcode *row = vb_packet_row(packet);
	packet->xrc_srqn = wqe->srqn;
	packet->va = wqe->remote_addr + offset;
	packet->rkey = wqe->rkey;
	packet->dma_length = length;
	if (row->message == VB_MESSAGE_ATOMIC) {
		packet->swap_add = swap_or_add_of(wqe);
		packet->compare = compare_of(wqe);
	}
	if (row->message == VB_MESSAGE_FLUSH) {
		packet->flush = flush_word_of(wqe);
		packet->dma_length = wqe->flush.length;
	}
	if (row->has_imm)
		packet->imm = wqe->imm_or_inv;
	if (row->has_inv)
		packet->inv_rkey = wqe->imm_or_inv;
}

/* Builds the request packet of packets index .. end - 1 of the message (of a READ; others have one). False: a local SGE
 * forbids it. */
static bool build(struct vb_qp *qp, struct vb_batch *batch, struct vb_send_wqe *wqe, uint32_t index, uint32_t end)
{
	bool is_first = index == 0, is_last = end == wqe->psn_count;
	uint8_t opcode = (uint8_t)(qp->transport | operation_of(wqe, is_first, is_last));
	struct vb_outgoing *out = vb_batch_add(batch, qp, opcode, &qp->attr.av);
	const struct vb_opcode *row = &vb_opcodes[opcode];

	out->packet.psn = vb_psn_add(wqe->first_psn, index);
	fill_extension_headers(&out->packet, wqe, is_read(wqe) ? vb_offset_of(qp, index) : 0,
		is_read(wqe) ? bytes_between(qp, wqe, index, end) : wqe->length);
	out->packet.solicited = (wqe->flags & VB_SEND_SOLICITED) && row->consumes_recv;
	if (is_read(wqe) || is_atomic(wqe))
		return true;
	return vb_batch_add_wqe(batch, out, qp, wqe, vb_offset_of(qp, index), bytes_between(qp, wqe, index, end));
}

/* It has windows in plenty, and what follows is not held back. */
static bool is_spared(const struct vb_qp *qp)
{
	uint32_t spared = qp->lane->config.acks.spared_bytes;
	return spared && !vb_congestion_counts_packets(&qp->congestion) && vb_flight_is_ample(qp, 4 * spared);
}

static uint32_t ask_every(const struct vb_qp *qp)
{
	return is_spared(qp) ? qp->lane->config.acks.spared_bytes : qp->ask_every;
}

bool vb_requester_asks_later(const struct vb_qp *qp)
{
	return is_spared(qp) && qp->requester.since_ackreq < qp->lane->config.acks.spared_bytes;
}

/* A window ends with it, and what is to open that again has not been asked for. */
static bool ends_a_window(const struct vb_qp *qp)
{
	if (!vb_flight_nears_end(qp, qp->mtu + qp->overhead))
		return false;
	bool asks_when_full = !qp->lane->config.acks.by_count_alone && !is_spared(qp);
	return asks_when_full || qp->flight.out <= qp->requester.since_ackreq;
}

/* A message is queued behind it that can leave as soon as windows let it. */
static bool is_followed(const struct vb_qp *qp)
{
	const struct vb_requester *rq = &qp->requester;
	uint32_t next = rq->cursor + 1;
	if (next == atomic_load_explicit(&qp->sq.tail, memory_order_acquire) || rq->has_credits)
		return false;
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, next);
	return !is_local(wqe) && !needs_response(wqe) && !(wqe->flags & VB_SEND_FENCE);
}

/* A packet asks for an ack when its message ends, unless more follows, every so often, and when a window ends with
 * it. */
static bool wants_ack(struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t end, uint32_t bytes)
{
	struct vb_requester *rq = &qp->requester;
	rq->since_ackreq += bytes;
	bool is_amid = end < wqe->psn_count || (vb_requester_asks_later(qp) && is_followed(qp));
	if (is_amid && rq->since_ackreq < ask_every(qp) && !ends_a_window(qp))
		return false;
	rq->since_ackreq = 0;
	return true;
}

/* The READ goes on in pieces as large as the windows are now. What was asked for before keeps its ends, for it must be
 * asked for again as it was: responders remember each request. So sizes change one after the other. */
static void size_next_piece(struct vb_qp *qp, struct vb_send_wqe *wqe, uint32_t index)
{
	uint32_t piece = vb_flight_read_piece(qp);
	bool is_settled = wqe->read.changed_at == 0 ||
			  vb_psn_diff(qp->requester.una_psn, vb_psn_add(wqe->first_psn, wqe->read.changed_at)) >= 0;
	if (piece == wqe->read.piece || !is_settled)
		return;
	wqe->read.earlier_piece = wqe->read.piece;
	wqe->read.piece = piece;
	wqe->read.changed_at = index;
}

/* The packet at next_psn, if depth, credits and windows allow it. */
static bool emit_next(struct vb_qp *qp, struct vb_batch *batch, struct vb_send_wqe *wqe, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	uint32_t psn = rq->next_psn, index = psn_index(wqe, psn);
	bool is_new = vb_psn_diff(psn, rq->max_psn) >= 0;
	if (is_read(wqe) && is_new)
		size_next_piece(qp, wqe, index);
	uint32_t span = span_at(wqe, index);
	struct window_cost cost = cost_between(qp, wqe, index, index + span);

	if (needs_response(wqe) && rq->rd_atomic_out >= qp->attr.max_rd_atomic)
		return false;
	if (vb_psn_diff(psn, rq->una_psn) >= PSNS_UNDER_WAY)
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
	if (is_read(wqe) && is_new)
		rq->ssn = vb_psn_add(rq->ssn, 1);
	vb_flight_add(qp, cost.out, cost.in);
	struct vb_packet *packet = &batch->out[batch->count - 1].packet;
	packet->ackreq = wants_ack(qp, wqe, index + span, cost.out) || needs_response(wqe);
	rq->next_psn = vb_psn_add(psn, span);
	if (vb_psn_diff(rq->next_psn, rq->max_psn) > 0)
		rq->max_psn = rq->next_psn;
	vb_recovery_on_sent(qp, vb_psn_add(psn, span - 1), is_new, now);
	return true;
}

/* The WQE at next_psn, if what was emitted last is its First or a Middle, and new: no probe, which leaves whatever
 * the windows say, and also when the cursor stands at a WQE before that, which is to fail. */
static struct vb_send_wqe *wqe_in_progress(const struct vb_qp *qp, const struct vb_packet *last)
{
	const struct vb_requester *rq = &qp->requester;
	const struct vb_opcode *row = vb_packet_row(last);
	if (!qp->is_reliable || rq->probed || rq->doomed || row->is_response ||
		(row->place != VB_FIRST && row->place != VB_MIDDLE) || rq->next_psn != rq->max_psn ||
		last->psn != vb_psn_add(rq->next_psn, VB_PSN_MASK))
		return NULL;
	struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, rq->cursor);
	bool is_plain = wqe->sge_count == 1 && !(wqe->flags & VB_SEND_INLINE);
	return is_plain && !(rq->has_credits && takes_a_receive(wqe)) ? wqe : NULL;
}

/* How many Middles may follow of which none asks for an ack: that is for vb_requester_emit. */
static uint32_t middles_allowed(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t most)
{
	const struct vb_requester *rq = &qp->requester;
	uint32_t cost = qp->mtu + qp->overhead, left = wqe->psn_count - 1 - psn_index(wqe, rq->next_psn);
	uint64_t room = vb_flight_room(qp, cost);
	uint32_t every = ask_every(qp), silent = rq->since_ackreq < every ? (every - 1 - rq->since_ackreq) / cost : 0;
	if (room <= most)
		most = room ? (uint32_t)room - 1 : 0;
	if (silent < most)
		most = silent;
	return left < most ? left : most;
}

uint32_t vb_requester_emit_middles(struct vb_qp *qp, struct vb_batch *batch, uint32_t most, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	struct vb_send_wqe *wqe = wqe_in_progress(qp, &batch->out[batch->count - 1].packet);
	uint32_t n = wqe ? middles_allowed(qp, wqe, most) : 0;
	struct vb_reach run;
	if (n == 0 || !vb_reach_part(&wqe->whole, vb_offset_of(qp, psn_index(wqe, rq->next_psn)), vb_offset_of(qp, n),
			      false, &run))
		return 0;
	const uint8_t *bytes = vb_load(&run, vb_offset_of(qp, n));
	uint8_t opcode = (uint8_t)(qp->transport | vb_wr_kinds[wqe->opcode].forms.middle);
	for (uint32_t i = 0; i < n; i++) {
		struct vb_outgoing *out = vb_batch_add(batch, qp, opcode, &qp->attr.av);
		out->packet.psn = vb_psn_add(rq->next_psn, i);
		out->packet.xrc_srqn = wqe->srqn;
		out->packet.payload_length = qp->mtu;
		vb_batch_add_iov(batch, out, bytes ? bytes + vb_offset_of(qp, i) : NULL, qp->mtu);
	}
	vb_flight_add(qp, n * (qp->mtu + qp->overhead), 0);
	rq->since_ackreq += n * (qp->mtu + qp->overhead);
	rq->next_psn = rq->max_psn = vb_psn_add(rq->next_psn, n);
	vb_recovery_on_sent(qp, vb_psn_add(rq->next_psn, VB_PSN_MASK), true, now);
	return n;
}

/* UC: the packet is forgotten as it leaves; the message completes once the port is done with all of its packets.
 * 9.8.2. */
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
	wqe->at_port++;
	vb_handed_out_is_message(batch);
	if (index + 1 == wqe->psn_count)
		rq->cursor++;
	return true;
}

/* The WQE whose packets include psn; psn lies between una_psn and max_psn. Datagrams may wait at the oldest for
 * long. */
static struct vb_send_wqe *wqe_of(const struct vb_qp *qp, uint32_t psn)
{
	uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire), first = head_index(qp);
	if (qp->type == VB_QP_UD && first != tail && psn_index(head_wqe(qp), psn) < tail - first)
		first += psn_index(head_wqe(qp), psn);
	for (uint32_t i = first; i != tail; i++) {
		struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, i);
		if (!wqe->is_started)
			return NULL;
		if (wqe->psn_count && psn_index(wqe, psn) < wqe->psn_count)
			return wqe;
	}
	return NULL;
}

void vb_requester_fault(struct vb_qp *qp, uint32_t psn, enum vb_cause_kind cause, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	if (vb_state(qp) == VB_QPS_ERR || vb_state(qp) == VB_QPS_SQE || rq->doomed)
		return;
	/* Answered all the same, an earlier copy got through; or gone back from, and found again when it is its
	 * turn. */
	if (qp->is_reliable && (vb_psn_diff(psn, rq->una_psn) < 0 || vb_psn_diff(psn, rq->next_psn) >= 0))
		return;
	uint32_t index = head_index(qp);
	while (index != rq->cursor &&
		psn_index(vb_send_wqe_at(&qp->sq, index), psn) >= vb_send_wqe_at(&qp->sq, index)->psn_count)
		index++;
	rq->cursor = index;
	vb_requester_doom(qp, VB_WC_LOC_PROT_ERR, cause, now);
}

/* Packets may come back in any order; messages complete in theirs. */
void vb_requester_left(struct vb_qp *qp, uint32_t psn, vb_time now)
{
	struct vb_send_wqe *wqe = wqe_of(qp, psn);
	if (wqe)
		vb_requester_wqe_left(qp, wqe, now);
}

void vb_requester_wqe_left(struct vb_qp *qp, struct vb_send_wqe *wqe, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	if (--wqe->at_port > 0 || wqe != head_wqe(qp))
		return;
	while (head_index(qp) != rq->cursor && head_wqe(qp)->at_port == 0) {
		vb_sq_retire(qp, VB_WC_SUCCESS);
		vb_retire_local_operations(qp);
	}
	if (vb_kept_any(qp))
		vb_kept_free_done(qp);
	vb_requester_proceed(qp, now);
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
	struct vb_send_wqe *wqe = wqe_of(qp, rq->una_psn);
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
		index = piece_begin(wqe, index);
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
	qp->congestion.tally.probes++;
	return true;
}

static bool may_send(const struct vb_qp *qp)
{
	enum vb_qp_state state = vb_state(qp);
	return (state == VB_QPS_RTS || state == VB_QPS_SQD) && !qp->requester.is_rnr_waiting;
}

bool vb_requester_has_work(const struct vb_qp *qp)
{
	const struct vb_requester *rq = &qp->requester;
	return may_send(qp) && (rq->probe || rq->cursor != atomic_load_explicit(&qp->sq.tail, memory_order_acquire));
}

bool vb_requester_has_unsent(const struct vb_qp *qp)
{
	const struct vb_requester *rq = &qp->requester;
	if (!vb_requester_has_work(qp))
		return false;
	if (rq->probe)
		return true;
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, rq->cursor);
	bool is_sent = wqe->is_started && psn_index(wqe, rq->next_psn) >= wqe->psn_count;
	return !is_sent || rq->cursor + 1 != atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
}

struct vb_send_wqe *vb_requester_next(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;

	if (!may_send(qp) || rq->doomed)
		return NULL;
	while (rq->cursor != atomic_load_explicit(&qp->sq.tail, memory_order_acquire)) {
		struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, rq->cursor);
		if (!wqe->is_started) {
			if (!start(qp, wqe, now))
				return NULL;
			continue;
		}
		if (psn_index(wqe, rq->next_psn) < wqe->psn_count)
			return wqe;
		rq->cursor++; /* all of it has been sent */
	}
	return NULL;
}

bool vb_requester_emit(struct vb_qp *qp, struct vb_batch *batch, vb_time now)
{
	struct vb_requester *rq = &qp->requester;

	if (qp->local.to)
		return false;
	if (rq->probe && may_send(qp) && emit_probe(qp, batch, now))
		return true;
	struct vb_send_wqe *wqe = vb_requester_next(qp, now);
	if (!wqe)
		return false;
	return qp->is_reliable ? emit_next(qp, batch, wqe, now) : emit_unacknowledged(qp, batch, wqe, now);
}

/* Of a connected QP. */
void vb_requester_check(const struct vb_qp *qp)
{
	const struct vb_requester *rq = &qp->requester;
	uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_relaxed), expected_psn = 0;
	bool is_first = true, is_started = true;
	for (uint32_t i = head_index(qp); i != tail; i++) {
		const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, i);
		bool is_sent = (int32_t)(i - rq->cursor) < 0;
		assert(is_started || !wqe->is_started);
		assert(wqe->is_started || !is_sent);
		is_started = wqe->is_started;
		if (!is_started)
			continue;
		assert(is_first || wqe->first_psn == expected_psn);
		expected_psn = vb_psn_add(wqe->first_psn, wqe->psn_count);
		is_first = false;
	}
	const struct vb_send_wqe *oldest = head_wqe(qp);
	if (qp->is_reliable && !sq_is_empty(qp) && oldest->is_started)
		assert(psn_index(oldest, rq->una_psn) < oldest->psn_count);
	/* A doomed one may have been sent, and others after it: its memory was missed when the packet was to leave. */
	const struct vb_send_wqe *next = vb_send_wqe_at(&qp->sq, rq->cursor);
	if (qp->is_reliable && rq->cursor != tail && next->is_started && !rq->doomed)
		assert(psn_index(next, rq->next_psn) <= next->psn_count);
}
