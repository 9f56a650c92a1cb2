/* The requester's receiving half: turns acknowledgements, NAKs and responses into completions.
 * Holds: completions come in order, each once; a READ or atomic is finished by its own response alone.
 * Not here: sending requests (requester.c), when to send again (recovery.c). IBA vol. 1, 9.7.5 and 9.7.6. */
#include "roce/roce.h"
#include "base/invariant.h"
#include "core/events.h"
#include "core/memory.h"
#include "roce/message.h"
#include "roce/requester.h"
#include "roce/responder.h"
#include "roce/selective.h"
#include "core/send_queue.h"

#define ANSWER_AFTER_ACK (20 * VB_US)  /* a sender that is interrupted between the two takes as long */
#define ANSWER_MOST      (200 * VB_US) /* for all packets of a large one */

/* ---- Acknowledgements -------------------------------------------------------------------------------------------- */

/* una_psn moves to psn, which lies within or just after wqe. What that held of the windows goes to *freed; gives the
 * message's bytes that congestion control has not been told of yet. */
static uint32_t advance_una(struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t psn, struct window_cost *freed)
{
	struct vb_requester *rq = &qp->requester;
	uint32_t from = psn_index(wqe, rq->una_psn), to = psn_index(wqe, psn);
	uint32_t before = rq->una_psn, told = 0;
	uint32_t sent_to = vb_psn_diff(rq->next_psn, psn) < 0 ? psn_index(wqe, rq->next_psn) : to;

	if (vb_psn_diff(rq->next_psn, rq->una_psn) > 0 && sent_to > from) {
		struct window_cost cost = cost_between(qp, wqe, from, sent_to);
		struct vb_settled settled = vb_selective_settled(qp, wqe, from, sent_to);
		freed->out += cost.out - settled.out;
		freed->in += cost.in - settled.in;
		told = settled.told;
	}
	if (!needs_response(wqe)) {
		uint32_t bytes = bytes_between(qp, wqe, to - 1, to) + VB_BTH_LENGTH;
		if (bytes > rq->largest_acked)
			rq->largest_acked = (uint16_t)bytes;
	}
	rq->una_psn = psn;
	if (vb_psn_diff(rq->next_psn, psn) < 0)
		rq->next_psn = psn;
	assert(vb_psn_diff(rq->next_psn, rq->una_psn) >= 0);
	if (vb_roce(qp)->selective)
		vb_selective_pass(qp, before, psn, needs_response(wqe), qp->lane->now);
	return bytes_between(qp, wqe, from, to) - told;
}

/* The signal to congestion control for an acknowledgement, before that is taken note of. */
static struct vb_cc_signal signal_of(const struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	return (struct vb_cc_signal){
		.event = VB_CC_ACKED,
		.is_marked = packet->becn,
		.flight = vb_roce(qp)->flight.out + vb_roce(qp)->flight.in,
		.telemetry = packet->holder,
		.now = now,
	};
}

/* All PSNs up to psn are acknowledged, but a READ or atomic only by its own response: stops there. Returns false when
 * that means that psn was not reached. */
static bool acknowledge_through(struct vb_qp *qp, const struct vb_packet *packet, uint32_t psn, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	struct vb_cc_signal signal = signal_of(qp, packet, now);
	struct window_cost freed = { 0 };
	uint32_t index = vb_after_local_operations(qp, head_index(qp));
	bool is_progress = false, is_reached = true;

	while (vb_psn_diff(psn, rq->una_psn) >= 0) {
		const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, index);
		assert(wqe->is_started);
		if (needs_response(wqe)) {
			is_reached = false;
			break;
		}
		uint32_t end = vb_psn_add(wqe->first_psn, wqe->psn_count);
		bool is_whole = vb_psn_diff(psn, end) >= -1;
		signal.acked += advance_una(qp, wqe, is_whole ? end : vb_psn_add(psn, 1), &freed);
		is_progress = true;
		if (is_whole)
			index = vb_after_local_operations(qp, index + 1);
	}
	vb_flight_remove(qp, freed.out, freed.in);
	vb_sq_retire_to(qp, index);
	if (is_progress)
		vb_recovery_on_progress(qp, vb_psn_add(rq->una_psn, VB_PSN_MASK), &signal, true, now);
	if (is_progress)
		vb_selective_judge_soon(qp);
	assert(is_reached || vb_psn_diff(psn, rq->una_psn) >= 0);
	return is_reached;
}

bool vb_lane_awaits_answer(const struct vb_lane *lane, vb_time now)
{
	return vb_roce_lane(lane)->answer.is_set && !vb_time_is_due(vb_roce_lane(lane)->answer.at, now);
}

/* An answer of several packets comes as long as they do. */
void vb_requester_note_answer(struct vb_qp *qp, bool is_whole, vb_time now)
{
	struct vb_roce_lane *lane = vb_roce_lane_of(qp);
	vb_time at = vb_time_add(now, ANSWER_AFTER_ACK);
	if (!lane->answer.is_set)
		return;
	lane->answer.is_set = !is_whole && lane->answer_qpn == qp->qpn;
	lane->answer.at = vb_time_before(at, lane->answer_end) ? at : lane->answer_end;
}

bool vb_lane_misses_answer(const struct vb_lane *lane, vb_time now)
{
	return vb_roce_lane(lane)->answer.is_set && vb_time_is_due(vb_roce_lane(lane)->answer.at, now);
}

/* Programs that take turns, each answering the other, send the next answer right behind the ack of ours. Where many are
 * answered one ack comes after the other, and who waits for the first one's answer waits no longer for the others'. */
static void await_answer(struct vb_qp *qp, vb_time now)
{
	const struct vb_requester *rq = &qp->requester;
	struct vb_roce_lane *lane = vb_roce_lane_of(qp);
	bool was_awaited = vb_lane_awaits_answer(qp->lane, now);
	lane->answer.is_set = rq->is_answer && !rq->is_asked && sq_is_empty(qp);
	lane->answer_qpn = qp->qpn;
	if (was_awaited)
		return;
	lane->answer.at = vb_time_add(now, ANSWER_AFTER_ACK);
	lane->answer_end = vb_time_add(now, ANSWER_MOST);
}

/* The SSN of the newest message that is acknowledged. The peer's MSN would be the same, had it not answered a probe of
 * a lost READ as a message of its own. */
static uint32_t acknowledged_ssn(const struct vb_qp *qp)
{
	if (sq_is_empty(qp) || !head_wqe(qp)->is_started)
		return qp->requester.ssn;
	return vb_psn_add(head_wqe(qp)->ssn, VB_PSN_MASK);
}

/* After what the packet acknowledges was taken note of. 9.7.7.2. */
static void note_credits(struct vb_qp *qp, const struct vb_packet *packet)
{
	struct vb_requester *rq = &qp->requester;
	uint8_t code = packet->syndrome & VB_AETH_CODE_MASK;
	assert(qp->is_reliable);
	rq->has_credits = code != VB_AETH_NO_CREDITS;
	if (rq->has_credits)
		rq->credit_limit = vb_psn_add(acknowledged_ssn(qp), vb_credits_of_code(code));
}

/* The newest ACK again: does it bring other credits than it did? 9.7.7.2.4 */
static bool brings_credits(struct vb_qp *qp, const struct vb_packet *packet)
{
	struct vb_requester *rq = &qp->requester;
	uint32_t limit = rq->credit_limit;
	bool is_ack = (packet->opcode & VB_OPERATION_MASK) == VB_ACKNOWLEDGE &&
		      (packet->syndrome & VB_AETH_TYPE_MASK) == VB_AETH_ACK;
	if (!is_ack || packet->psn != vb_psn_add(rq->una_psn, VB_PSN_MASK) || !rq->has_credits)
		return false;
	note_credits(qp, packet);
	return !rq->has_credits || rq->credit_limit != limit;
}

static void receive_nak(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	assert((packet->syndrome & VB_AETH_TYPE_MASK) == VB_AETH_NAK);
	vb_count(qp->lane, VB_NAK_RECEIVED, 1);
	acknowledge_through(qp, packet, vb_psn_add(packet->psn, VB_PSN_MASK), now);
	if (packet->syndrome == VB_NAK_PSN_SEQUENCE)
		vb_recovery_on_gap(qp, now);
	else
		vb_requester_refused(qp, packet->syndrome, now);
}

/* psn is acknowledged, and responses to what came before it are not here. */
static void miss_responses(struct vb_qp *qp, uint32_t psn, vb_time now)
{
	vb_count(qp->lane, VB_IMPLIED_NAK, 1);
	if (vb_roce(qp)->selective)
		vb_selective_await(qp, psn, now);
	else
		vb_recovery_on_gap(qp, now);
}

static void receive_ack(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	switch (packet->syndrome & VB_AETH_TYPE_MASK) {
	case VB_AETH_ACK:
		if (!acknowledge_through(qp, packet, packet->psn, now))
			miss_responses(qp, packet->psn, now);
		note_credits(qp, packet);
		break;
	case VB_AETH_RNR:
		vb_count(qp->lane, VB_RNR_RECEIVED, 1);
		acknowledge_through(qp, packet, vb_psn_add(packet->psn, VB_PSN_MASK), now);
		vb_retry_on_rnr(qp, packet->syndrome & VB_AETH_CODE_MASK, now);
		break;
	case VB_AETH_NAK:
		receive_nak(qp, packet, now);
		break;
	}
}

/* ---- Responses --------------------------------------------------------------------------------------------------- */

/* is_only: a response of one packet, which a probe asks for. */
static void response_done(struct vb_qp *qp, const struct vb_packet *packet, struct vb_send_wqe *wqe, uint32_t index,
	uint32_t end, bool is_only, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	struct vb_cc_signal signal = signal_of(qp, packet, now);
	struct window_cost freed = { 0 };
	uint32_t psn = rq->una_psn;
	bool ends_piece = index + 1 == end, ends_message = index + 1 == wqe->psn_count;
	assert(index < end && packet->psn == qp->requester.una_psn);

	if (ends_piece && rq->rd_atomic_out > 0 && vb_psn_diff(rq->next_psn, psn) > 0)
		rq->rd_atomic_out--;
	vb_selective_note_executed(qp, vb_psn_add(wqe->first_psn, end));
	signal.acked = advance_una(qp, wqe, vb_psn_add(psn, 1), &freed);
	vb_flight_remove(qp, freed.out, freed.in);
	if (ends_message)
		vb_sq_retire_to(qp, vb_after_local_operations(qp, head_index(qp) + 1));
	vb_recovery_on_progress(qp, psn, &signal, is_only, now);
	vb_selective_judge_soon(qp);
}

/* A response belongs to the oldest unanswered READ or atomic, or something before it is missing. */
static struct vb_send_wqe *answered_wqe(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	acknowledge_through(qp, packet, vb_psn_add(packet->psn, VB_PSN_MASK), now);
	if (packet->psn == qp->requester.una_psn)
		return head_wqe(qp);
	if (vb_roce(qp)->selective) {
		vb_selective_hold(qp, packet, now);
		return NULL;
	}
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
	bool is_only = (packet->opcode & VB_OPERATION_MASK) == VB_READ_RESPONSE_ONLY;
	if (is_answered_by_nothing(wqe) && is_only && packet->payload_length == 0) {
		response_done(qp, packet, wqe, 0, 1, true, now);
		return;
	}
	if (!is_read(wqe) || packet->payload_length != bytes_between(qp, wqe, index, index + 1)) {
		vb_qp_fail(qp, VB_CAUSE_BAD_RESPONSE, VB_WC_BAD_RESP_ERR, now);
		return;
	}
	if (!vb_scatter(qp->pd, &qp->known_lkey, wqe->sges, wqe->sge_count, bytes_before(qp, wqe, index),
		    packet->payload, packet->payload_length, index + 1 == wqe->psn_count)) {
		vb_qp_fail(qp, VB_CAUSE_LOCAL_SGE, VB_WC_LOC_PROT_ERR, now);
		return;
	}
	response_done(qp, packet, wqe, index, piece_end(wqe, index), is_only, now);
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
	if (!vb_scatter(qp->pd, &qp->known_lkey, wqe->sges, wqe->sge_count, 0, (const uint8_t *)&value, sizeof(value),
		    true)) {
		vb_qp_fail(qp, VB_CAUSE_LOCAL_SGE, VB_WC_LOC_PROT_ERR, now);
		return;
	}
	response_done(qp, packet, wqe, 0, 1, true, now);
}

static void receive_response(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	if ((packet->opcode & VB_OPERATION_MASK) == VB_ATOMIC_ACKNOWLEDGE)
		receive_atomic_response(qp, packet, now);
	else
		receive_read_response(qp, packet, now);
}

/* ---- What came before its turn ----------------------------------------------------------------------------------- */

static bool awaits_a_response(const struct vb_qp *qp)
{
	return needs_response(vb_send_wqe_at(&qp->sq, vb_after_local_operations(qp, head_index(qp))));
}

/* Responses that are held have their turn, and so have requests behind them that the peer had executed long since. */
static void take_turns(struct vb_qp *qp, vb_time now)
{
	static const struct vb_packet nothing;
	const struct vb_selective *s = vb_roce(qp)->selective;
	uint32_t before;
	do {
		before = qp->requester.una_psn;
		if (vb_psn_diff(s->executed_psn, before) > 0 && !awaits_a_response(qp))
			acknowledge_through(qp, &nothing, vb_psn_add(s->executed_psn, VB_PSN_MASK), now);
		const struct vb_held *held = vb_selective_next_response(qp);
		if (held) { /* it is gone when una_psn has moved on */
			struct vb_packet packet = held->packet;
			receive_response(qp, &packet, now);
		}
	} while (qp->requester.una_psn != before && !vb_is_failing(qp));
}

/* A bitmap that left later has overtaken this one. The requester knows already what this one acknowledges, but not what
 * it says of single packets, which stays true. */
static bool is_overtaken(const struct vb_qp *qp, const struct vb_packet *bitmap)
{
	int32_t behind = vb_psn_diff(qp->requester.una_psn, bitmap->expected_psn);
	return vb_roce(qp)->selective && behind > 0 && behind <= VB_HOLD_PSNS;
}

static void receive_bitmap(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	const struct vb_requester *rq = &qp->requester;
	uint32_t expected = packet->expected_psn, psn = vb_psn_add(expected, VB_PSN_MASK);
	bool is_newest = vb_psn_diff(expected, rq->una_psn) >= 0 && vb_psn_diff(expected, rq->max_psn) <= 0;
	if (!is_newest)
		vb_recovery_on_stale_ack(qp, now);
	if (!is_newest && !is_overtaken(qp, packet)) {
		vb_count(qp->lane, VB_DROP_STALE_ACK, 1);
		return;
	}
	vb_count(qp->lane, VB_BITMAP_RECEIVED, 1);
	if (is_newest && expected != rq->una_psn && !acknowledge_through(qp, packet, psn, now))
		miss_responses(qp, psn, now);
	if (is_newest)
		note_credits(qp, packet);
	if (vb_roce(qp)->selective) {
		vb_selective_receive_bitmap(qp, packet, now);
		take_turns(qp, now);
	} else if (rq->next_psn != rq->una_psn) { /* the hello's answer has been lost */
		vb_recovery_on_gap(qp, now);
	}
	vb_requester_proceed(qp, now);
}

/* The meaning of a reserved code is not known, least of all that anything was executed. A response brings an ACK; the
 * middle one has no AETH. 9.7.5.2, table 44. */
static bool syndrome_is_known(const struct vb_packet *packet)
{
	unsigned operation = packet->opcode & VB_OPERATION_MASK;
	uint8_t code = packet->syndrome & VB_AETH_CODE_MASK;
	if (operation == VB_READ_RESPONSE_MIDDLE)
		return true;
	switch (packet->syndrome & VB_AETH_TYPE_MASK) {
	case VB_AETH_ACK:
		return true;
	case VB_AETH_RNR:
		return operation == VB_ACKNOWLEDGE;
	case VB_AETH_NAK:
		return operation == VB_ACKNOWLEDGE && code <= (VB_NAK_INVALID_RD & VB_AETH_CODE_MASK);
	default:
		return false;
	}
}

/* The peer sends it for its request alone, once for each time that this came. */
static bool answers_itself(const struct vb_packet *packet)
{
	return vb_packet_row(packet)->message == VB_MESSAGE_READ_RESPONSE ||
	       (packet->opcode & VB_OPERATION_MASK) == VB_ATOMIC_ACKNOWLEDGE;
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
	if (qp->local_peer) { /* it has sent none that a packet could answer */
		vb_count(qp->lane, VB_DROP_STALE_ACK, 1);
		return;
	}
	if (!syndrome_is_known(packet)) {
		vb_count(qp->lane, VB_DROP_SYNDROME, 1);
		return;
	}
	vb_flight_be_heard(qp);
	if (packet->becn && vb_roce(qp)->selective)
		vb_multipath_leave(qp, packet->psn);
	if (packet->opcode == VB_BITMAP) {
		receive_bitmap(qp, packet, now);
		return;
	}
	if (!is_outstanding(rq, packet->psn)) {
		if (vb_roce(qp)->selective && answers_itself(packet))
			vb_lateness_note_duplicate(qp, packet->psn);
		if (brings_credits(qp, packet))
			vb_schedule(qp);
		else
			vb_count(qp->lane, VB_DROP_STALE_ACK, 1);
		vb_recovery_on_stale_ack(qp, now);
		return;
	}
	switch (packet->opcode & VB_OPERATION_MASK) {
	case VB_ACKNOWLEDGE:
		receive_ack(qp, packet, now);
		break;
	default:
		receive_response(qp, packet, now);
		break;
	}
	if (vb_roce(qp)->selective)
		take_turns(qp, now);
	await_answer(qp, now);
	vb_requester_proceed(qp, now);
}
