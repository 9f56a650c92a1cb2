/* One turn of a QP: data, of responses and requests, and what is to be said of the peer's. An ack that
 * was held back leaves with data, before its QP's requests: programs rely on seeing what they sent complete before they
 * see the answer to it. A QP with a rate that has sent its packet is in no list until the next may leave; only its
 * acks, NAKs and CNPs are. Not here: whose turn it is (engine/scheduler.c). */
#include "roce/batch.h"
#include "base/invariant.h"
#include "core/message.h"
#include "roce/echo.h"
#include "roce/failover.h"
#include "roce/peers.h"
#include "roce/requester.h"
#include "roce/selective.h"
#include "roce/roce.h"
#include "roce/ud.h"

/* A request, but first the ack that waits, which a peer must not see overtaken by the answer. One that waits for
 * responses to leave is not due yet. */
static bool emit_request(struct vb_qp *qp, struct vb_batch *batch, vb_time now)
{
	if (vb_roce(qp)->responses.ack.is_wanted && !vb_roce_lane_of(qp)->replies_held && vb_requester_has_work(qp) &&
		vb_responder_emit_ack(qp, batch))
		return true;
	return vb_requester_emit(qp, batch, now);
}

static bool has_responses(const struct vb_qp *qp)
{
	return vb_roce(qp)->responses.active_resources > 0 || vb_responder_has_repeats(qp);
}

static bool emit_response(struct vb_qp *qp, struct vb_batch *batch, vb_time now)
{
	return has_responses(qp) && vb_responder_emit(qp, batch, now);
}

static bool emit_one(struct vb_qp *qp, struct vb_batch *batch, vb_time now)
{
	if (qp->type == VB_QP_UD)
		return vb_ud_emit(qp, batch, now);
	if (vb_roce(qp)->requests_first)
		return emit_request(qp, batch, now) || emit_response(qp, batch, now);
	return emit_response(qp, batch, now) || emit_request(qp, batch, now);
}

/* Others may use up a shared allowance before this QP's next turn: what it sent must be acknowledged without it. Who
 * waits for its time comes again by itself, as long as there is room for a packet of anybody's. Where acks are by
 * count, they are asked for as packets are made. Who has windows to spare and goes on asks later. */
static void ask_for_ack(struct vb_qp *qp, struct vb_batch *batch, unsigned first, bool goes_on)
{
	if (!qp->is_reliable || vb_roce_lane_of(qp)->config.acks.by_count_alone)
		return;
	uint32_t anybodys = qp->large_mtu > VB_MAX_MTU ? qp->large_mtu : VB_MAX_MTU;
	if (vb_roce(qp)->congestion.is_waiting && !vb_flight_nears_end(qp, anybodys + vb_roce(qp)->overhead))
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
	return has_responses(qp) || vb_requester_has_unsent(qp);
}

/* The next packet may not leave yet. Waits for that if there is one. */
static bool wait_for_time(struct vb_qp *qp)
{
	vb_roce(qp)->congestion.is_behind = has_data(qp);
	if (vb_roce(qp)->congestion.is_behind)
		vb_congestion_wait(qp);
	assert(!vb_roce(qp)->congestion.is_behind || vb_roce(qp)->congestion.is_waiting);
	return false;
}

/* Packets of which nobody is told singly leave as a run. bytes have been sent in this turn; gives what they are
 * then. */
static uint32_t emit_run(struct vb_qp *qp, struct vb_batch *batch, unsigned budget, uint32_t bytes, vb_time now)
{
	const struct vb_packet *last = &batch->out[batch->count - 1].packet; /* as full as they are */
	uint32_t each = last->payload_length + 64, left = vb_roce_lane_of(qp)->config.turn_bytes - bytes;
	uint32_t most = budget - batch->count, places = VB_BATCH_IOV - VB_MAX_SGE - batch->iov_count;
	if (places < most)
		most = places;
	if (left / each < most)
		most = left / each;
	return bytes + each * (vb_packet_row(last)->is_response ? vb_responder_emit_middles(qp, batch, most)
								: vb_requester_emit_middles(qp, batch, most, now));
}

/* The bytes of a packet that a rate counts. */
static uint32_t bytes_of_rate(const struct vb_qp *qp, const struct vb_packet *packet)
{
	uint32_t overhead = vb_roce_lane_of(qp)->config.rate_overhead;
	return overhead ? packet->payload_length + overhead : vb_packet_wire_length(packet);
}

/* Up to a train of data. True when there may be more to send now. */
static bool emit_data(struct vb_qp *qp, struct vb_batch *batch, unsigned budget, vb_time now)
{
	uint32_t bytes = 0;
	bool is_counted = vb_congestion_counts_packets(&vb_roce(qp)->congestion);
	if (!vb_congestion_is_due(&vb_roce(qp)->congestion, now))
		return wait_for_time(qp);
	while (bytes < vb_roce_lane_of(qp)->config.turn_bytes && vb_batch_has_room(batch, budget)) {
		if (!emit_one(qp, batch, now)) {
			vb_roce(qp)->congestion.is_behind = false;
			return false;
		}
		const struct vb_packet *packet = &batch->out[batch->count - 1].packet;
		bytes += packet->payload_length + 64;
		if (!is_counted) {
			bool goes_on =
				vb_packet_row(packet)->place == VB_FIRST || vb_packet_row(packet)->place == VB_MIDDLE;
			if (goes_on && bytes < vb_roce_lane_of(qp)->config.turn_bytes &&
				vb_batch_has_room(batch, budget))
				bytes = emit_run(qp, batch, budget, bytes, now);
			continue;
		}
		if ((packet->opcode & VB_OPERATION_MASK) == VB_ACKNOWLEDGE)
			continue;
		vb_congestion_count_packet(qp, bytes_of_rate(qp, packet), now);
		if (!vb_congestion_is_due(&vb_roce(qp)->congestion, now))
			return wait_for_time(qp);
	}
	return true;
}

/* Nothing else that has bytes is under way to the peer, of this QP or another, and nothing is queued behind it. */
static bool is_alone(const struct vb_qp *qp)
{
	uint32_t queued = atomic_load_explicit(&qp->sq.tail, memory_order_acquire) - head_index(qp);
	return queued == 1 && !has_data(qp) && qp->peer &&
	       vb_roce_peer(qp->peer)->allowance.used == vb_roce(qp)->flight.out;
}

static bool is_send(const struct vb_outgoing *out)
{
	return vb_packet_row(&out->packet)->message == VB_MESSAGE_SEND;
}

#define HALVED_LEAST 32768 /* below, a datagram more costs more than it brings */

/* A receiver takes a train when all of it has been copied in. It has nothing else to take while a SEND comes that left
 * alone and in one turn, so that SEND comes in halves. A thread that polls rarely waits for a WRITE. */
static void halve(const struct vb_qp *qp, struct vb_batch *batch, unsigned first)
{
	uint32_t bytes = 0, half = 0;
	if (batch->count < first + 2 || !is_send(&batch->out[batch->count - 1]) || !is_alone(qp))
		return;
	while (!is_send(&batch->out[first]))
		first++;
	if (vb_packet_row(&batch->out[first].packet)->place != VB_FIRST)
		return;
	for (unsigned i = first; i < batch->count; i++)
		bytes += batch->out[i].packet.payload_length;
	if (bytes < HALVED_LEAST)
		return;
	for (; 2 * half < bytes; first++)
		half += batch->out[first].packet.payload_length;
	assert(first < batch->count);
	batch->out[first - 1].ends_train = true;
}

/* Before the first data to a peer, which is of another host, or was not to be met; and what is due. */
static void say_hello(struct vb_qp *qp, struct vb_batch *batch, unsigned budget)
{
	struct vb_roce_qp *roce = vb_roce(qp);
	if (roce->hellos == 0 && !roce->selective && qp->peer && qp->peer->facts.takes_hellos && qp->is_reliable &&
		!qp->local_peer && !qp->peer->is_wanted && vb_requester_has_work(qp))
		vb_hello_want(qp);
	bool is_answer_due = roce->hello_answer_is_due && !vb_roce_lane_of(qp)->replies_held;
	if ((roce->hello_is_due || is_answer_due) && vb_batch_has_room(batch, budget))
		vb_hello_emit(qp, batch);
	if (roce->selective && roce->selective->large.is_due && vb_batch_has_room(batch, budget))
		vb_hello_emit_large(qp, batch);
	if (roce->path_is_due && !vb_roce_lane_of(qp)->replies_held)
		vb_addresses_emit(qp, batch, budget);
}

/* One turn: data, then the QP's ack if one is due. True when it was cut short. */
bool vb_roce_take_turn(struct vb_qp *qp, struct vb_batch *batch, unsigned budget, vb_time now)
{
	unsigned first = batch->count;
	assert(!vb_list_linked(&qp->ready_link));

	if (vb_roce(qp)->responses.cnp_wanted && !vb_roce_lane_of(qp)->replies_held && vb_batch_has_room(batch, budget))
		vb_responder_emit_cnp(qp, batch, now);
	say_hello(qp, batch, budget);
	bool was_cut_short = emit_data(qp, batch, budget, now);
	halve(qp, batch, first);
	vb_flight_end_turn(qp);
	if (was_cut_short)
		vb_roce(qp)->requests_first = !vb_roce(qp)->requests_first;
	ask_for_ack(qp, batch, first, was_cut_short);
	if (vb_roce(qp)->echo && vb_roce(qp)->echo->is_due) {
		if (!vb_batch_has_room(batch, budget))
			return true;
		vb_echo_emit_request(qp, batch);
	}
	if (vb_roce_lane_of(qp)->replies_held)
		return was_cut_short;
	/* Responses left before the ack that was held back. */
	while (vb_roce(qp)->responses.ack.is_wanted && (vb_roce(qp)->responses.ack.is_urgent || batch->count > first)) {
		if (!vb_batch_has_room(batch, budget))
			return true;
		if (!vb_responder_emit_ack(qp, batch))
			break;
	}
	return was_cut_short || vb_roce(qp)->path_is_due; /* what found no room of that */
}

static void flush_held_acks(struct vb_lane *lane, struct vb_batch *batch, unsigned budget, vb_time now)
{
	while (!vb_list_empty(&vb_roce_lane(lane)->acks) && vb_batch_has_room(batch, budget)) {
		struct vb_qp *qp = &vb_container_of(vb_roce_lane(lane)->acks.next, struct vb_roce_qp, ack_link)->qp;
		if (!vb_roce_lane(lane)->acks_forced && !vb_time_is_due(vb_roce(qp)->responses.ack.deadline, now))
			return;
		vb_list_remove(&vb_roce(qp)->ack_link);
		vb_responder_emit_ack(qp, batch);
	}
}

/* Echo replies, and acks that are due. After the data, unless that left no room for them. */
void vb_roce_emit_replies(struct vb_lane *lane, struct vb_batch *batch, unsigned budget, vb_time now)
{
	if (vb_roce_lane(lane)->replies_held)
		return;
	while (vb_batch_has_room(batch, budget) && vb_echo_emit_reply(lane, batch))
		;
	flush_held_acks(lane, batch, budget, now);
}

/* True when nothing is left to be said of the QP. An ack that must not overtake responses leaves behind those. */
static bool emit_replies(struct vb_qp *qp, struct vb_batch *batch, unsigned budget, vb_time now)
{
	if (vb_roce(qp)->responses.cnp_wanted)
		vb_responder_emit_cnp(qp, batch, now);
	if (vb_roce(qp)->hello_answer_is_due) {
		if (!vb_batch_has_room(batch, budget))
			return false;
		vb_hello_emit(qp, batch);
	}
	if (vb_roce(qp)->path_is_due)
		vb_addresses_emit(qp, batch, budget);
	if (vb_roce(qp)->path_is_due)
		return false;
	while (vb_roce(qp)->responses.ack.is_wanted) {
		if (!vb_batch_has_room(batch, budget))
			return false;
		if (!vb_responder_emit_ack(qp, batch))
			break;
	}
	assert(!vb_roce(qp)->responses.cnp_wanted);
	return true;
}

void vb_roce_emit_first(struct vb_lane *lane, struct vb_batch *batch, unsigned budget, vb_time now)
{
	while (!vb_roce_lane(lane)->replies_held && !vb_list_empty(&vb_roce_lane(lane)->replies) &&
		vb_batch_has_room(batch, budget)) {
		struct vb_qp *qp = &vb_container_of(vb_roce_lane(lane)->replies.next, struct vb_roce_qp, ack_link)->qp;
		if (!emit_replies(qp, batch, budget, now))
			return;
		vb_list_remove(&vb_roce(qp)->ack_link);
		vb_roce(qp)->responses.is_first = false;
	}
}
