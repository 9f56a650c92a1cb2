/* What leaves next: ready QPs take turns of a train each, within a QP its responses and its requests. An ack that was
 * held back leaves with data, before its QP's requests: programs rely on seeing what they sent complete before they see
 * the answer to it. Where a lane lets replies go first, all urgent ones of all QPs leave before any data. A QP with a
 * rate that has sent its packet is in no list here until the next may leave; only its acks, NAKs and CNPs are. The
 * holder pulls; pacing, fairness and batching are decided nowhere else. */
#include "engine/congestion.h"
#include "engine/echo.h"
#include "engine/flight.h"
#include "engine/handed_out.h"
#include "engine/lane.h"
#include "engine/memory.h"
#include "engine/message.h"
#include "engine/peers.h"
#include "engine/qp.h"
#include "engine/recovery.h"
#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/scheduler.h"
#include "engine/send_queue.h"
#include "engine/ud.h"

void vb_schedule_now(struct vb_qp *qp)
{
	if (!vb_list_linked(&qp->ready_link))
		vb_list_add_tail(qp->type == VB_QP_RAW ? &qp->lane->raw_ready : &qp->lane->ready, &qp->ready_link);
}

void vb_schedule(struct vb_qp *qp)
{
	if (qp->local.to) {
		vb_local_schedule(qp);
		if (qp->responder.active_resources == 0) /* that it answers by packets */
			return;
	}
	if (qp->type == VB_QP_UD &&
		vb_local_route_datagrams(qp, atomic_load_explicit(&qp->sq.tail, memory_order_acquire)))
		return;
	if (vb_congestion_is_due(&qp->congestion, qp->lane->now))
		vb_schedule_now(qp);
	else
		vb_congestion_wait(qp);
}

void vb_schedule_no_ack(struct vb_qp *qp)
{
	if (!qp->responder.is_first)
		vb_list_remove(&qp->ack_link);
}

/* Who is there keeps his place. */
void vb_schedule_reply(struct vb_qp *qp)
{
	if (!qp->lane->config.replies_first) {
		vb_schedule_now(qp);
		return;
	}
	if (qp->responder.is_first)
		return;
	vb_list_remove(&qp->ack_link);
	vb_list_add_tail(&qp->lane->replies, &qp->ack_link);
	qp->responder.is_first = true;
}

void vb_unschedule(struct vb_qp *qp)
{
	vb_list_remove(&qp->ready_link);
	vb_list_remove(&qp->ack_link);
	qp->responder.is_first = false;
}

/* ---- Taking turns ---------------------------------------------------------------------------------------------- */

static bool has_room(const struct vb_batch *batch, unsigned budget)
{
	return batch->count < budget && batch->iov_count + VB_MAX_SGE <= VB_BATCH_IOV;
}

/* A request, but first the ack that waits, which a peer must not see overtaken by the answer. One that waits for
 * responses to leave is not due yet. */
static bool emit_request(struct vb_qp *qp, struct vb_batch *batch, vb_time now)
{
	if (qp->responder.ack.is_wanted && !qp->lane->replies_held && vb_requester_has_work(qp) &&
		vb_responder_emit_ack(qp, batch))
		return true;
	return vb_requester_emit(qp, batch, now);
}

static bool emit_response(struct vb_qp *qp, struct vb_batch *batch, vb_time now)
{
	return qp->responder.active_resources > 0 && vb_responder_emit(qp, batch, now);
}

static bool emit_one(struct vb_qp *qp, struct vb_batch *batch, vb_time now)
{
	if (qp->type == VB_QP_UD)
		return vb_ud_emit(qp, batch, now);
	if (qp->requests_first)
		return emit_request(qp, batch, now) || emit_response(qp, batch, now);
	return emit_response(qp, batch, now) || emit_request(qp, batch, now);
}

/* Others may use up a shared allowance before this QP's next turn: what it sent must be acknowledged without it. Who
 * waits for its time comes again by itself, as long as there is room for a packet of anybody's. Where acks are by
 * count, they are asked for as packets are made. Who has windows to spare and goes on asks later. */
static void ask_for_ack(struct vb_qp *qp, struct vb_batch *batch, unsigned first, bool goes_on)
{
	if (!qp->is_reliable || qp->lane->config.acks.by_count_alone)
		return;
	if (qp->congestion.is_waiting && !vb_flight_nears_end(qp, VB_MAX_MTU + qp->overhead))
		return;
	if (goes_on && vb_requester_asks_later(qp))
		return;
	for (unsigned i = batch->count; i > first; i--) {
		struct vb_packet *packet = &batch->out[i - 1].packet;
		if (vb_packet_row(packet)->message > VB_MESSAGE_ATOMIC_WRITE)
			continue;
		packet->ackreq = true;
		return;
	}
}

static bool has_data(const struct vb_qp *qp)
{
	return qp->responder.active_resources > 0 || vb_requester_has_unsent(qp);
}

/* The next packet may not leave yet. Waits for that if there is one. */
static bool wait_for_time(struct vb_qp *qp)
{
	qp->congestion.is_behind = has_data(qp);
	if (qp->congestion.is_behind)
		vb_congestion_wait(qp);
	return false;
}

/* What is told of each packet to nobody leaves as a run. bytes have been sent in this turn; gives what they are
 * then. */
static uint32_t emit_run(struct vb_qp *qp, struct vb_batch *batch, unsigned budget, uint32_t bytes, vb_time now)
{
	uint32_t each = qp->mtu + 64, left = qp->lane->config.turn_bytes - bytes;
	uint32_t most = budget - batch->count, places = VB_BATCH_IOV - VB_MAX_SGE - batch->iov_count;
	if (places < most)
		most = places;
	if (left / each < most)
		most = left / each;
	return bytes + each * vb_requester_emit_middles(qp, batch, most, now);
}

/* What a rate counts of a packet. */
static uint32_t bytes_of_rate(const struct vb_qp *qp, const struct vb_packet *packet)
{
	uint32_t overhead = qp->lane->config.rate_overhead;
	return overhead ? packet->payload_length + overhead : vb_packet_wire_length(packet);
}

/* Up to a train of data. True when there may be more to send now. */
static bool emit_data(struct vb_qp *qp, struct vb_batch *batch, unsigned budget, vb_time now)
{
	uint32_t bytes = 0;
	bool is_counted = vb_congestion_counts_packets(&qp->congestion);
	if (!vb_congestion_is_due(&qp->congestion, now))
		return wait_for_time(qp);
	while (bytes < qp->lane->config.turn_bytes && has_room(batch, budget)) {
		if (!emit_one(qp, batch, now)) {
			qp->congestion.is_behind = false;
			return false;
		}
		const struct vb_packet *packet = &batch->out[batch->count - 1].packet;
		bytes += packet->payload_length + 64;
		if (!is_counted) {
			bool goes_on =
				vb_packet_row(packet)->place == VB_FIRST || vb_packet_row(packet)->place == VB_MIDDLE;
			if (goes_on && bytes < qp->lane->config.turn_bytes && has_room(batch, budget))
				bytes = emit_run(qp, batch, budget, bytes, now);
			continue;
		}
		if ((packet->opcode & VB_OPERATION_MASK) == VB_ACKNOWLEDGE)
			continue;
		vb_congestion_count_packet(qp, bytes_of_rate(qp, packet), now);
		if (!vb_congestion_is_due(&qp->congestion, now))
			return wait_for_time(qp);
	}
	return true;
}

/* One turn: data, then the QP's ack if one is due. True when it was cut short. */
static bool take_turn(struct vb_qp *qp, struct vb_batch *batch, unsigned budget, vb_time now)
{
	unsigned first = batch->count;

	if (qp->responder.cnp_wanted && !qp->lane->replies_held && has_room(batch, budget))
		vb_responder_emit_cnp(qp, batch, now);
	bool was_cut_short = emit_data(qp, batch, budget, now);
	vb_flight_end_turn(qp);
	if (was_cut_short)
		qp->requests_first = !qp->requests_first;
	ask_for_ack(qp, batch, first, was_cut_short);
	if (qp->requester.echo && qp->requester.echo->is_due) {
		if (!has_room(batch, budget))
			return true;
		vb_echo_emit_request(qp, batch);
	}
	if (qp->lane->replies_held)
		return was_cut_short;
	/* Responses left before the ack that was held back. */
	if (qp->responder.ack.is_wanted && (qp->responder.ack.is_urgent || batch->count > first)) {
		if (!has_room(batch, budget))
			return true;
		vb_responder_emit_ack(qp, batch);
	}
	return was_cut_short;
}

static void flush_held_acks(struct vb_lane *lane, struct vb_batch *batch, unsigned budget, vb_time now)
{
	while (!vb_list_empty(&lane->acks) && has_room(batch, budget)) {
		struct vb_qp *qp = vb_container_of(lane->acks.next, struct vb_qp, ack_link);
		if (!lane->acks_forced && !vb_time_is_due(qp->responder.ack.deadline, now))
			return;
		vb_list_remove(&qp->ack_link);
		vb_responder_emit_ack(qp, batch);
	}
}

/* Echo replies, and acks that are due. After the data, unless that left no room for them. */
static void flush_replies(struct vb_lane *lane, struct vb_batch *batch, unsigned budget, vb_time now)
{
	if (lane->replies_held)
		return;
	while (has_room(batch, budget) && vb_echo_emit_reply(lane, batch))
		;
	flush_held_acks(lane, batch, budget, now);
}

/* True when nothing is left to be said of the QP. An ack that must not overtake responses leaves behind those. */
static bool emit_replies(struct vb_qp *qp, struct vb_batch *batch, unsigned budget, vb_time now)
{
	if (qp->responder.cnp_wanted)
		vb_responder_emit_cnp(qp, batch, now);
	if (!qp->responder.ack.is_wanted)
		return true;
	if (!has_room(batch, budget))
		return false;
	vb_responder_emit_ack(qp, batch);
	return true;
}

static void flush_first(struct vb_lane *lane, struct vb_batch *batch, unsigned budget, vb_time now)
{
	while (!lane->replies_held && !vb_list_empty(&lane->replies) && has_room(batch, budget)) {
		struct vb_qp *qp = vb_container_of(lane->replies.next, struct vb_qp, ack_link);
		if (!emit_replies(qp, batch, budget, now))
			return;
		vb_list_remove(&qp->ack_link);
		qp->responder.is_first = false;
	}
}

/* ---- Held ------------------------------------------------------------------------------------------------------ */

static bool hold(struct vb_lane *lane, struct vb_qp *qp)
{
	const uint8_t class = qp->attr.av.traffic_class >> 5;
	if (!(lane->classes_held & 1u << class) || qp->type == VB_QP_UD)
		return false;
	vb_list_add_tail(&lane->held[class], &qp->ready_link);
	return true;
}

void vb_lane_hold(struct vb_lane *lane, uint8_t classes, bool replies)
{
	for (uint8_t free = lane->classes_held & (uint8_t)~classes; free; free &= (uint8_t)(free - 1))
		vb_list_splice_tail(&lane->ready, &lane->held[__builtin_ctz(free)]);
	lane->classes_held = classes;
	lane->replies_held = replies;
}

/* ---- A batch --------------------------------------------------------------------------------------------------- */

unsigned vb_lane_transmit(struct vb_lane *lane, struct vb_batch *batch, unsigned budget, vb_time now)
{
	if (budget > VB_BATCH_PACKETS)
		budget = VB_BATCH_PACKETS;
	batch->count = batch->iov_count = 0;
	lane->now = now;
	vb_lane_answer_doorbells(lane);
	if (lane->congestion_timers.count > 0)
		vb_congestion_advance(lane, now);
	flush_first(lane, batch, budget, now);
	if (lane->was_full)
		flush_replies(lane, batch, budget, now);
	while (has_room(batch, budget)) {
		struct vb_list *node = vb_list_pop(&lane->ready);
		if (!node)
			break;
		struct vb_qp *qp = vb_container_of(node, struct vb_qp, ready_link);
		if (lane->classes_held && hold(lane, qp))
			continue;
		if (take_turn(qp, batch, budget, now))
			vb_schedule_now(qp);
	}
	flush_replies(lane, batch, budget, now);
	lane->was_full = !has_room(batch, budget);
	vb_handed_out_add(lane, batch);
	vb_lane_reap(lane);
	return batch->count;
}

/* ---- When ------------------------------------------------------------------------------------------------------ */

struct vb_deadline vb_lane_next_deadline(const struct vb_lane *lane)
{
	struct vb_deadline deadline =
		vb_deadline_earlier(vb_timers_next(&lane->timers), vb_timers_next(&lane->congestion_timers));
	if (!vb_list_empty(&lane->watched))
		deadline = vb_deadline_earlier(deadline, vb_local_next_deadline(lane));
	if (!vb_list_empty(&lane->acks) && !lane->replies_held) {
		const struct vb_qp *qp = vb_container_of(lane->acks.next, struct vb_qp, ack_link);
		deadline = vb_deadline_earlier(deadline, (struct vb_deadline){ qp->responder.ack.deadline, true });
	}
	return deadline;
}

bool vb_lane_wants_transmit(const struct vb_lane *lane, vb_time now)
{
	if (!vb_list_empty(&lane->ready) || !vb_list_empty(&lane->raw_ready) || vb_lane_has_doorbells(lane))
		return true;
	if (vb_deadline_due(vb_timers_next(&lane->congestion_timers), now))
		return true;
	if (lane->replies_held)
		return false;
	if (!vb_list_empty(&lane->replies) || lane->echo_next != lane->echo_tail)
		return true;
	if (vb_list_empty(&lane->acks))
		return false;
	const struct vb_qp *qp = vb_container_of(lane->acks.next, struct vb_qp, ack_link);
	return lane->acks_forced || vb_time_is_due(qp->responder.ack.deadline, now);
}

bool vb_qp_is_quiet(const struct vb_qp *qp)
{
	return !vb_list_linked(&qp->ready_link) && !vb_list_linked(&qp->ack_link) && qp->congestion.timer.index < 0 &&
	       !atomic_load(&qp->doorbell_rung);
}

bool vb_lane_is_quiet(const struct vb_lane *lane)
{
	return vb_list_empty(&lane->ready) && vb_list_empty(&lane->raw_ready) && vb_list_empty(&lane->acks) &&
	       vb_list_empty(&lane->notices) && vb_list_empty(&lane->wishes) && lane->congestion_timers.count == 0 &&
	       lane->echo_next == lane->echo_tail && !vb_lane_has_doorbells(lane);
}

bool vb_lane_awaits_answer(const struct vb_lane *lane, vb_time now)
{
	return lane->answer.is_set && !vb_time_is_due(lane->answer.at, now);
}

void vb_lane_flush_acks(struct vb_lane *lane)
{
	lane->acks_forced = true;
}

void vb_lane_advance(struct vb_lane *lane, vb_time now)
{
	struct vb_timer *timer;
	lane->now = now;
	vb_lane_answer_doorbells(lane);
	while ((timer = vb_timers_expire(&lane->timers, now)))
		vb_recovery_on_timer(vb_container_of(timer, struct vb_qp, timer), now);
	if (lane->congestion_timers.count > 0)
		vb_congestion_advance(lane, now);
	if (!vb_list_empty(&lane->watched))
		vb_local_advance(lane, now);
	vb_lane_reap(lane);
}
