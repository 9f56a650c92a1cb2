/* The requester's sending half: turns work requests into request packets.
 * Holds: work requests start in order, each packet has the PSN it always had.
 * Not here: what comes back (acknowledgement.c), when to send again (recovery.c), how much may be under way (flight.c),
 * UD (ud.c). IBA vol. 1, 9.7.1 to 9.7.4. */
#include <stdlib.h>
#include "roce/roce.h"
#include "base/invariant.h"
#include "roce/batch.h"
#include "roce/echo.h"
#include "core/kept.h"
#include "core/memory.h"
#include "roce/message.h"
#include "roce/peers.h"
#include "roce/requester.h"
#include "roce/selective.h"
#include "core/send_queue.h"

/* Hard cap, whatever the window: with twice as many PSNs outstanding, old and new could not be told apart. */
#define PSNS_UNDER_WAY (1 << 22)

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

static uint8_t opcode_of(const struct vb_qp *qp, const struct vb_send_wqe *wqe, bool is_first, bool is_last)
{
	if (is_read(wqe) && wqe->is_large)
		return VB_READ_LARGE;
	return (uint8_t)(qp->service | operation_of(wqe, is_first, is_last));
}

bool vb_requester_build(struct vb_qp *qp, struct vb_batch *batch, struct vb_send_wqe *wqe, uint32_t index, uint32_t end)
{
	bool is_first = index == 0, is_last = end == wqe->psn_count;
	uint8_t opcode = opcode_of(qp, wqe, is_first, is_last);
	struct vb_outgoing *out = vb_batch_add(batch, qp, opcode, &qp->attr.av);
	const struct vb_opcode *row = &vb_opcodes[opcode];
	assert(index < end && end <= wqe->psn_count);

	vb_batch_set_psn(out, qp, vb_psn_add(wqe->first_psn, index));
	fill_extension_headers(&out->packet, wqe, is_read(wqe) ? bytes_before(qp, wqe, index) : 0,
		is_read(wqe) ? bytes_between(qp, wqe, index, end) : wqe->length);
	out->packet.solicited = (wqe->flags & VB_SEND_SOLICITED) && row->consumes_recv;
	if (is_read(wqe) || is_atomic(wqe))
		return true;
	bool is_again = qp->is_reliable && vb_psn_diff(out->packet.psn, qp->requester.max_psn) < 0;
	return vb_batch_add_wqe(
		       batch, out, qp, wqe, bytes_before(qp, wqe, index), bytes_between(qp, wqe, index, end)) &&
	       (!is_again || vb_batch_is_present(qp->lane, batch));
}

/* After so many bytes who has windows in plenty asks, and what follows is not held back; 0: it has not. Where what is
 * lost is sent again by itself, windows may be smaller. */
static uint32_t spared_bytes(const struct vb_qp *qp)
{
	uint32_t spared = vb_roce_lane_of(qp)->config.acks.spared_bytes;
	if (!spared || vb_congestion_counts_packets(&vb_roce(qp)->congestion))
		return 0;
	while (vb_roce(qp)->selective && spared / 2 >= vb_roce(qp)->ask_every && !vb_flight_is_ample(qp, 4 * spared))
		spared /= 2;
	return vb_flight_is_ample(qp, 4 * spared) ? spared : 0;
}

/* Where what is lost is sent again by itself, a small window has more than one packet that asks: else it waits for a
 * probe whenever that one is lost. */
static uint32_t ask_every(const struct vb_qp *qp)
{
	uint32_t spared = spared_bytes(qp), every = vb_roce(qp)->ask_every;
	uint32_t quarter = vb_roce(qp)->congestion.cc.window_bytes / 4;
	if (spared)
		return spared;
	bool is_shared = vb_roce(qp)->selective && !vb_roce_lane_of(qp)->config.acks.by_count_alone;
	return is_shared && quarter < every ? quarter : every;
}

bool vb_requester_asks_later(const struct vb_qp *qp)
{
	return vb_roce(qp)->since_ackreq < spared_bytes(qp);
}

/* This packet fills the window, and no ack that would reopen it has been asked for. */
static bool ends_a_window(const struct vb_qp *qp)
{
	if (!vb_flight_nears_end(qp, vb_largest_payload(qp) + vb_roce(qp)->overhead))
		return false;
	bool asks_when_full = !vb_roce_lane_of(qp)->config.acks.by_count_alone && !spared_bytes(qp);
	return asks_when_full || vb_roce(qp)->flight.out <= vb_roce(qp)->since_ackreq;
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
	vb_roce(qp)->since_ackreq += bytes;
	bool is_amid = end < wqe->psn_count || (vb_requester_asks_later(qp) && is_followed(qp));
	if (is_amid && vb_roce(qp)->since_ackreq < ask_every(qp) && !ends_a_window(qp))
		return false;
	vb_roce(qp)->since_ackreq = 0;
	return true;
}

/* The READ goes on in pieces as large as the windows are now. What was asked for before keeps its ends, for it must be
 * asked for again as it was: responders remember each request. So sizes change one after the other. */
static void size_next_piece(struct vb_qp *qp, struct vb_send_wqe *wqe, uint32_t index)
{
	uint32_t piece = vb_flight_read_piece(qp, vb_mtu_of(qp, wqe));
	bool is_settled = wqe->read.changed_at == 0 ||
			  vb_psn_diff(qp->requester.una_psn, vb_psn_add(wqe->first_psn, wqe->read.changed_at)) >= 0;
	if (piece == wqe->read.piece || !is_settled)
		return;
	wqe->read.earlier_piece = wqe->read.piece;
	wqe->read.piece = piece;
	wqe->read.changed_at = index;
}

/* READs and atomics that may be outstanding. */
static unsigned granted(const struct vb_qp *qp)
{
	return qp->attr.max_rd_atomic * (vb_selective_keeps_account(qp) ? VB_GRANTED_BEHIND : 1u);
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

	if (needs_response(wqe) && rq->rd_atomic_out >= granted(qp))
		return false;
	if (vb_psn_diff(psn, rq->una_psn) >= PSNS_UNDER_WAY)
		return false;
	if (index > 0 && rq->has_credits && takes_a_receive(wqe) && vb_psn_diff(wqe->ssn, rq->credit_limit) > 0 &&
		rq->next_psn != rq->una_psn)
		return false; /* the probe beyond the credits is one packet */
	if (vb_selective_is_full(qp, span) || !vb_flight_allows(qp, cost.out, cost.in))
		return false;
	if (!vb_requester_build(qp, batch, wqe, index, index + span)) {
		vb_batch_undo(batch);
		vb_requester_doom(qp, VB_WC_LOC_PROT_ERR, VB_CAUSE_LOCAL_SGE, now);
		return false;
	}
	if (!is_new)
		batch->out[batch->count - 1].again = VB_SENT_BACK;
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
	vb_selective_on_sent(qp, psn, span, !is_new, now);
	return true;
}

/* The WQE at next_psn, if what was emitted last is its First or a Middle, and new: no probe, which leaves whatever
 * the windows say, and also when the cursor stands at a WQE before that, which is to fail. */
static struct vb_send_wqe *wqe_in_progress(const struct vb_qp *qp, const struct vb_packet *last)
{
	struct vb_recovery *re = &vb_roce(qp)->recovery;
	const struct vb_requester *rq = &qp->requester;
	const struct vb_opcode *row = vb_packet_row(last);
	if (!qp->is_reliable || re->probed || vb_selective_has_lost(qp) || rq->pending_error ||
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
	uint32_t cost = vb_mtu_of(qp, wqe) + vb_roce(qp)->overhead,
		 left = wqe->psn_count - 1 - psn_index(wqe, rq->next_psn);
	uint64_t room = vb_flight_room(qp, cost);
	uint32_t every = ask_every(qp),
		 silent = vb_roce(qp)->since_ackreq < every ? (every - 1 - vb_roce(qp)->since_ackreq) / cost : 0;
	if (room <= most)
		most = room ? (uint32_t)room - 1 : 0;
	if (silent < most)
		most = silent;
	if (left < most)
		most = left;
	return vb_selective_is_full(qp, most) ? 0 : most;
}

uint32_t vb_requester_emit_middles(struct vb_qp *qp, struct vb_batch *batch, uint32_t most, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	struct vb_send_wqe *wqe = wqe_in_progress(qp, &batch->out[batch->count - 1].packet);
	uint32_t n = wqe ? middles_allowed(qp, wqe, most) : 0;
	struct vb_reach run;
	if (n == 0 || !vb_reach_part(&wqe->whole, bytes_before(qp, wqe, psn_index(wqe, rq->next_psn)),
			      bytes_before(qp, wqe, n), false, &run))
		return 0;
	uint32_t mtu = vb_mtu_of(qp, wqe);
	const uint8_t *bytes = vb_load(&run, n * mtu);
	uint8_t opcode = (uint8_t)(qp->service | vb_wr_kinds[wqe->opcode].forms.middle);
	for (uint32_t i = 0; i < n; i++) {
		struct vb_outgoing *out = vb_batch_add(batch, qp, opcode, &qp->attr.av);
		vb_batch_set_psn(out, qp, vb_psn_add(rq->next_psn, i));
		out->packet.xrc_srqn = wqe->srqn;
		out->packet.payload_length = mtu;
		vb_batch_add_iov(batch, out, bytes ? bytes + i * mtu : NULL, mtu);
	}
	vb_flight_add(qp, n * (mtu + vb_roce(qp)->overhead), 0);
	vb_roce(qp)->since_ackreq += n * (mtu + vb_roce(qp)->overhead);
	rq->next_psn = rq->max_psn = vb_psn_add(rq->next_psn, n);
	vb_recovery_on_sent(qp, vb_psn_add(rq->next_psn, VB_PSN_MASK), true, now);
	vb_selective_on_sent(qp, vb_psn_add(rq->next_psn, VB_PSN_MASK + 1 - n), n, false, now);
	return n;
}

/* UC: the packet is forgotten as it leaves; the message completes once the port is done with all of its packets.
 * 9.8.2. */
static bool emit_unacknowledged(struct vb_qp *qp, struct vb_batch *batch, struct vb_send_wqe *wqe, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	uint32_t index = psn_index(wqe, rq->next_psn);
	uint32_t cost = cost_between(qp, wqe, index, index + 1).out;
	assert(!qp->is_reliable);

	if (!vb_echo_allows(qp, cost, now))
		return false;
	if (!vb_requester_build(qp, batch, wqe, index, index + 1)) {
		vb_batch_undo(batch);
		vb_requester_doom(qp, VB_WC_LOC_PROT_ERR, VB_CAUSE_LOCAL_SGE, now);
		return false;
	}
	vb_echo_on_sent(qp, &batch->out[batch->count - 1], cost);
	rq->una_psn = rq->next_psn = rq->max_psn = vb_psn_add(rq->next_psn, 1);
	wqe->at_port++;
	vb_batch_is_message(batch);
	if (index + 1 == wqe->psn_count)
		rq->cursor++;
	assert(rq->una_psn == rq->next_psn);
	return true;
}

/* The newest packet again, or the oldest. Of a READ one packet is asked for: a peer that is merely slow is not made to
 * send everything twice; and where a READ is the oldest, its response is what everything waits for. */
static bool emit_probe(struct vb_qp *qp, struct vb_batch *batch, vb_time now)
{
	struct vb_recovery *re = &vb_roce(qp)->recovery;
	struct vb_requester *rq = &qp->requester;
	bool is_newest = re->probe == VB_PROBE_NEWEST;

	re->probe = VB_PROBE_NONE;
	if (rq->next_psn == rq->una_psn)
		return false;
	if (vb_selective_has_lost(qp)) /* what it waits for may be lost as well */
		return vb_selective_emit(qp, batch, true, now);
	struct vb_send_wqe *wqe = vb_requester_wqe_of(qp, rq->una_psn);
	uint32_t psn = rq->una_psn;
	if (is_newest && wqe && !needs_response(wqe)) {
		psn = vb_selective_newest_missing(qp);
		wqe = vb_requester_wqe_of(qp, psn);
	} else {
		is_newest = false;
	}
	if (!wqe)
		return false;
	uint32_t index = psn_index(wqe, psn);
	if (is_newest && is_read(wqe))
		index = piece_begin(wqe, index);
	uint32_t span = vb_selective_must_be_whole(qp, wqe, index) ? span_at(wqe, index) : 1;
	if (!vb_requester_build(qp, batch, wqe, index, index + span)) {
		vb_batch_undo(batch);
		vb_retry_go_back(qp); /* what is wrong is found again when it is that one's turn */
		return false;
	}
	struct vb_packet *packet = &batch->out[batch->count - 1].packet;
	packet->ackreq = true;
	batch->out[batch->count - 1].again = VB_SENT_PROBE;
	vb_multipath_go_by_another(qp, &batch->out[batch->count - 1], packet->psn);
	vb_selective_before_probe(qp);
	vb_selective_on_sent(qp, packet->psn, span, true, now);
	re->probed = is_newest ? VB_PROBE_NEWEST : VB_PROBE_OLDEST;
	re->probed_psn = packet->psn;
	re->is_timing = false;
	rq->quiet_since = now;
	vb_count(qp->lane, VB_PROBES, 1);
	vb_roce(qp)->congestion.tally.probes++;
	assert(vb_roce(qp)->recovery.probed != VB_PROBE_NONE);
	return true;
}

bool vb_requester_has_work(const struct vb_qp *qp)
{
	struct vb_recovery *re = &vb_roce(qp)->recovery;
	const struct vb_requester *rq = &qp->requester;
	return vb_requester_may_send(qp) &&
	       (re->probe || vb_selective_has_lost(qp) ||
		       rq->cursor != atomic_load_explicit(&qp->sq.tail, memory_order_acquire));
}

bool vb_requester_has_unsent(const struct vb_qp *qp)
{
	struct vb_recovery *re = &vb_roce(qp)->recovery;
	const struct vb_requester *rq = &qp->requester;
	if (!vb_requester_has_work(qp))
		return false;
	if (re->probe || vb_selective_has_lost(qp))
		return true;
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, rq->cursor);
	bool is_sent = wqe->is_started && psn_index(wqe, rq->next_psn) >= wqe->psn_count;
	return !is_sent || rq->cursor + 1 != atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
}

bool vb_requester_emit(struct vb_qp *qp, struct vb_batch *batch, vb_time now)
{
	struct vb_recovery *re = &vb_roce(qp)->recovery;

	if (qp->local_peer)
		return false;
	if (re->probe && vb_requester_may_send(qp) && emit_probe(qp, batch, now))
		return true;
	if (vb_selective_has_lost(qp) && vb_requester_may_send(qp))
		return vb_selective_emit(qp, batch, false, now);
	struct vb_send_wqe *wqe = vb_requester_next(qp, now);
	if (!wqe)
		return false;
	return qp->is_reliable ? emit_next(qp, batch, wqe, now) : emit_unacknowledged(qp, batch, wqe, now);
}
