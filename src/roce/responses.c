/* The responder's packets: READ responses, atomic replies, acks, NAKs and congestion notifications, and the memory of
 * READs and atomics from which duplicates are answered again.
 * Holds: responses leave in PSN order; an ack never overtakes the response to an earlier READ. IBA vol. 1, 9.7.5. */
#include <stdlib.h>
#include "roce/roce.h"
#include "base/invariant.h"
#include "roce/batch.h"
#include "core/events.h"
#include "roce/large.h"
#include "core/memory.h"
#include "roce/peers.h"
#include "core/queues.h"
#include "roce/responder.h"
#include "roce/selective.h"

#define ACK_AT_ONCE_PACKETS 4
#define ACK_AT_ONCE_BYTES   4096

/* ---- Acks -------------------------------------------------------------------------------------------------------- */

/* 9.7.7.2.2, table 46. */
static const uint16_t credit_count[31] = { 0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512,
	768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768 };

uint32_t vb_credits_of_code(uint8_t code)
{
	return credit_count[code];
}

/* The largest code that promises no more than is there. */
static uint8_t credit_code(uint32_t receives)
{
	uint8_t code = 0;
	while (code < 30 && credit_count[code + 1] <= receives)
		code++;
	return code;
}

uint8_t vb_responder_ack_syndrome(const struct vb_qp *qp)
{
	if (!qp->pd->nic->config.advertise_credits || !qp->rq.slots)
		return VB_AETH_ACK | VB_AETH_NO_CREDITS;
	return (uint8_t)(VB_AETH_ACK | credit_code(vb_recv_ring_count(&qp->rq)));
}

/* Notes what is to be said next; a later answer replaces one that has not left. Small messages' acks are held back for
 * a while so that data can leave first; anything more is answered at once. */
void vb_responder_ack(struct vb_qp *qp, uint8_t syndrome, uint32_t psn, bool urgent, vb_time now)
{
	struct vb_ack *ack = &vb_roce(qp)->responses.ack;
	struct vb_lane *lane = qp->lane;

	ack->syndrome = syndrome;
	ack->psn = psn;
	ack->holder = vb_roce_lane(lane)->holder;
	if (urgent || ack->packets >= ACK_AT_ONCE_PACKETS || ack->bytes >= ACK_AT_ONCE_BYTES ||
		vb_roce_lane(lane)->config.ack_delay <= 0)
		ack->is_urgent = true;
	if (!ack->is_wanted) {
		ack->is_wanted = true;
		ack->deadline = vb_time_add(now, vb_roce_lane(lane)->config.ack_delay);
		if (!ack->is_urgent && !vb_roce(qp)->responses.is_first)
			vb_list_add_tail(&vb_roce_lane(lane)->acks, &vb_roce(qp)->ack_link);
	}
	if (ack->is_urgent) {
		vb_schedule_no_ack(qp);
		vb_schedule_reply(qp);
	}
	assert(ack->is_wanted);
}

/* A fatal NAK, the last that this QP has to say: it is in ERR. It is remembered, for should it be lost, the peer would
 * ask until its retries are used up, and never hear why. */
void vb_responder_refuse(struct vb_qp *qp, uint8_t nak, uint32_t psn, vb_time now)
{
	vb_roce(qp)->responses.refusal = nak;
	vb_roce(qp)->responses.refusal_psn = psn;
	vb_count(qp->lane, VB_NAK_SENT, 1);
	vb_responder_ack(qp, nak, psn, true, now);
	assert(vb_roce(qp)->responses.ack.is_urgent);
}

static struct vb_resource *oldest_active(struct vb_responses *rs)
{
	struct vb_resource *oldest = NULL;
	assert(rs->active_resources > 0);
	for (uint8_t i = 0; i < rs->resource_count; i++) {
		struct vb_resource *resource = &rs->resources[i];
		if (resource->is_active && (!oldest || vb_psn_diff(resource->next_psn, oldest->next_psn) < 0))
			oldest = resource;
	}
	return oldest;
}

/* After a bitmap: another, or the ACK, unless the bitmap has said as much. */
static void say_the_rest(struct vb_qp *qp, bool waits)
{
	struct vb_ack *ack = &vb_roce(qp)->responses.ack;
	if (!waits && !vb_early_is_told(qp)) {
		*ack = (struct vb_ack){ 0 };
		return;
	}
	ack->is_urgent = true;
	ack->is_marked = false;
	if (!waits)
		vb_schedule_reply(qp);
}

bool vb_responder_tells_marks(const struct vb_qp *qp)
{
	return vb_roce(qp)->responses.ack.is_marked && vb_roce_lane_of(qp)->config.acks.tells_marks;
}

bool vb_responder_emit_ack(struct vb_qp *qp, struct vb_batch *batch)
{
	struct vb_responses *rs = &vb_roce(qp)->responses;
	struct vb_ack *ack = &rs->ack;

	vb_schedule_no_ack(qp);
	if (!ack->is_wanted)
		return false;
	uint32_t msn = qp->responder.msn, answered = qp->responder.expected_psn;
	bool waits = vb_responder_has_repeats(qp);
	if (rs->active_resources) {
		const struct vb_resource *resource = oldest_active(rs);
		waits |= vb_psn_diff(ack->psn, resource->next_psn) >= 0;
		msn = vb_psn_add(resource->msn, VB_PSN_MASK); /* of what is answered nothing is done yet */
		answered = resource->next_psn;
	}
	if (vb_early_is_told(qp)) {
		vb_early_emit_bitmap(qp, batch, answered, msn);
		say_the_rest(qp, waits);
		return true;
	}
	if (waits) { /* comes after the responses; they schedule the QP until they are through */
		ack->is_urgent = true;
		return false;
	}
	struct vb_outgoing *out = vb_batch_add(batch, qp, qp->service | VB_ACKNOWLEDGE, &qp->attr.av);
	vb_batch_set_psn(out, qp, ack->psn);
	out->packet.syndrome = ack->syndrome;
	out->packet.msn = msn;
	out->packet.holder = ack->holder;
	out->packet.becn = vb_responder_tells_marks(qp);
	*ack = (struct vb_ack){ 0 };
	vb_count(qp->lane, VB_ACK_SENT, 1);
	assert(!ack->is_wanted);
	return true;
}

static struct vb_cnp_clock *cnp_clock_of(struct vb_qp *qp)
{
	switch (vb_roce_lane_of(qp)->config.cnps.scope) {
	case VB_CNP_PER_DESTINATION:
		return &vb_roce(qp)->destination->cnp_clock;
	case VB_CNP_PER_PORT:
		return &vb_roce_lane_of(qp)->cnp_clock;
	default:
		return &vb_roce(qp)->cnp_clock;
	}
}

bool vb_responder_emit_cnp(struct vb_qp *qp, struct vb_batch *batch, vb_time now)
{
	struct vb_cnp_clock *clock = cnp_clock_of(qp);
	vb_roce(qp)->responses.cnp_wanted = false;
	if (clock->was_sent && vb_time_since(clock->sent_at, now) < vb_roce_lane_of(qp)->config.cnps.interval)
		return false;
	*clock = (struct vb_cnp_clock){ .sent_at = now, .was_sent = true };
	struct vb_outgoing *out = vb_batch_add(batch, qp, VB_CNP, &qp->attr.av);
	out->packet.becn = true;
	vb_count(qp->lane, VB_CNP_SENT, 1);
	vb_roce(qp)->congestion.tally.cnps_sent++;
	assert(!vb_roce(qp)->responses.cnp_wanted);
	return true;
}

/* ---- Resources --------------------------------------------------------------------------------------------------- */

static void deactivate(struct vb_responses *rs, struct vb_resource *resource)
{
	if (resource->is_active)
		rs->active_resources--;
	resource->is_active = false;
	assert(!resource->is_active);
}

static void activate(struct vb_responses *rs, struct vb_resource *resource, uint32_t first, uint32_t end)
{
	if (!resource->is_active)
		rs->active_resources++;
	resource->is_active = true;
	resource->start_psn = resource->next_psn = first;
	resource->end_psn = end;
	assert(resource->is_active && rs->active_resources > 0);
}

/* As many as the peer is granted now; twice as many where it may go on behind one whose responses are missing: once we
 * have said hello, though its answer may be lost. */
static uint8_t granted(const struct vb_qp *qp)
{
	bool may_go_on = vb_roce(qp)->selective || vb_roce(qp)->hellos > 0;
	return (uint8_t)(qp->attr.max_dest_rd_atomic * (may_go_on ? VB_GRANTED_BEHIND : 1));
}

/* Those that there are stay, the oldest first. */
static bool make_resources(struct vb_qp *qp)
{
	struct vb_responses *rs = &vb_roce(qp)->responses;
	struct vb_resource *made = calloc(granted(qp), sizeof(*made));
	if (!made)
		return false;
	for (uint8_t i = 0; i < rs->resource_count; i++)
		made[i] = rs->resources[(rs->resource_next + i) % rs->resource_count];
	free(rs->resources);
	rs->resources = made;
	rs->resource_next = rs->resource_count;
	rs->resource_count = granted(qp);
	assert(rs->resource_count <= VB_GRANTED_BEHIND * VB_MAX_RD_ATOMIC);
	return true;
}

/* The oldest one's place, made at first use. Its reply must have left once: the peer may have no more outstanding than
 * it was granted. A replay of it that is still going on answers a duplicate that the peer no longer waits for. */
bool vb_responder_has_room(const struct vb_qp *qp)
{
	struct vb_responses *rs = &vb_roce(qp)->responses;
	if (rs->resource_count < granted(qp) && !make_resources((struct vb_qp *)qp))
		return false;
	if (rs->resource_count == 0)
		return false;
	const struct vb_resource *oldest = &rs->resources[rs->resource_next];
	return !oldest->is_active || oldest->was_answered;
}

void vb_responder_answer(struct vb_qp *qp, const struct vb_packet *packet, uint32_t psn_count, uint64_t before)
{
	const struct vb_opcode *row = vb_packet_row(packet);
	bool is_read = row->message == VB_MESSAGE_READ;
	struct vb_responses *rs = &vb_roce(qp)->responses;
	struct vb_resource *resource = &rs->resources[rs->resource_next];
	deactivate(rs, resource);
	rs->resource_next = (uint8_t)((rs->resource_next + 1) % rs->resource_count);
	*resource = (struct vb_resource){
		.is_used = true,
		.is_atomic = !is_read,
		.is_write = !is_read && row->message != VB_MESSAGE_ATOMIC,
		.mtu = vb_large_of_read(qp, packet),
		.first_psn = packet->psn,
		.psn_count = psn_count,
		.va = packet->va,
		.rkey = packet->rkey,
		.length = is_read ? packet->dma_length : 0,
		.end_length = is_read ? packet->dma_length : 0,
		.result = before,
		.msn = qp->responder.msn,
		.pd = qp->target.pd,
		.srq = qp->target.srq,
	};
	activate(rs, resource, packet->psn, vb_psn_add(packet->psn, psn_count));
	vb_roce_schedule(qp);
}

/* Responses of the QP that have not left are dropped: it is failing. */
void vb_responder_drop_resources(struct vb_qp *qp)
{
	struct vb_responses *rs = &vb_roce(qp)->responses;
	for (uint8_t i = 0; i < rs->resource_count; i++)
		deactivate(rs, &rs->resources[i]);
	if (vb_roce(qp)->selective)
		vb_roce(qp)->selective->repeat_count = 0;
	assert(rs->active_resources == 0);
}

/* Bytes of its responses before that one. */
static uint32_t offset_of(const struct vb_resource *resource, uint32_t psn)
{
	return ((psn - resource->first_psn) & VB_PSN_MASK) * resource->mtu;
}

/* The READ that was executed, and has a response of that PSN. */
static const struct vb_resource *of_psn(const struct vb_qp *qp, uint32_t psn)
{
	const struct vb_responses *rs = &vb_roce(qp)->responses;
	for (uint8_t i = 0; i < rs->resource_count; i++) {
		const struct vb_resource *resource = &rs->resources[i];
		bool is_read = resource->is_used && !resource->is_atomic;
		if (is_read && ((psn - resource->first_psn) & VB_PSN_MASK) < resource->psn_count)
			return resource;
	}
	return NULL;
}

/* The remembered request that this duplicate repeats: same key, beginning within its range of PSNs and memory. */
static struct vb_resource *remembered(struct vb_qp *qp, const struct vb_packet *packet, bool is_atomic)
{
	struct vb_responses *rs = &vb_roce(qp)->responses;
	for (uint8_t i = 0; i < rs->resource_count; i++) {
		struct vb_resource *resource = &rs->resources[i];
		uint32_t index = (packet->psn - resource->first_psn) & VB_PSN_MASK;
		if (!resource->is_used || resource->is_atomic != is_atomic || index >= resource->psn_count)
			continue;
		if (is_atomic)
			return resource;
		if (packet->rkey == resource->rkey && packet->va == resource->va + offset_of(resource, packet->psn))
			return resource;
	}
	return NULL;
}

/* Responses of the present round that have not left stay to be sent: a duplicate rewinds it, never cuts it short. */
static bool add_repeat(struct vb_qp *qp, uint32_t psn, uint32_t end)
{
	struct vb_selective *s = vb_roce(qp)->selective;
	if (!s || s->repeat_count == VB_REPEATS)
		return false;
	s->repeats[(s->repeat_first + s->repeat_count++) % VB_REPEATS] = (struct vb_repeat){ psn, end };
	return true;
}

bool vb_responder_has_repeats(const struct vb_qp *qp)
{
	const struct vb_selective *s = vb_roce(qp)->selective;
	return s && s->repeat_count > 0;
}

static void repeat_read(struct vb_qp *qp, struct vb_resource *resource, const struct vb_packet *packet)
{
	uint32_t offset = offset_of(resource, packet->psn);
	/* Of a longer one the part is answered that is remembered: the peer had asked for a piece of it by itself. */
	uint32_t rest = resource->length - offset, length = packet->dma_length < rest ? packet->dma_length : rest;
	uint32_t end = vb_psn_add(packet->psn, vb_packets_of(length, resource->mtu));

	/* What has not left for the first time leaves in its turn. */
	bool has_left = !resource->is_active || vb_psn_diff(resource->next_psn, end) >= 0;
	if (has_left && add_repeat(qp, packet->psn, end))
		return;
	bool is_going_on = resource->is_active && vb_psn_diff(packet->psn, resource->next_psn) >= 0;
	if (!resource->is_active || vb_psn_diff(end, resource->end_psn) > 0)
		resource->end_length = offset + length;
	else
		end = resource->end_psn;
	if (is_going_on) {
		resource->end_psn = end;
		return;
	}
	activate(&vb_roce(qp)->responses, resource, packet->psn, end);
	resource->is_repeat = resource->was_answered;
}

void vb_responder_duplicate(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	struct vb_responses *rs = &vb_roce(qp)->responses;
	const struct vb_opcode *row = vb_packet_row(packet);
	bool is_atomic = row->message != VB_MESSAGE_READ; /* was answered by one packet, and is again */

	vb_count(qp->lane, VB_DUPLICATES, 1);
	if (row->message == VB_MESSAGE_SEND || row->message == VB_MESSAGE_WRITE) {
		/* Acknowledge the newest completed packet again, unless a NAK that says as much is about to leave. */
		vb_early_note_duplicate(qp, packet->psn);
		vb_multipath_leave(qp, packet->psn); /* the acknowledgement that went by it may be lost */
		if (!rs->ack.is_wanted || (rs->ack.syndrome & VB_AETH_TYPE_MASK) == VB_AETH_ACK)
			vb_responder_ack(qp, vb_responder_ack_syndrome(qp),
				vb_psn_add(qp->responder.expected_psn, VB_PSN_MASK), true, now);
		return;
	}
	struct vb_resource *resource = remembered(qp, packet, is_atomic);
	if (!resource) {
		vb_count(qp->lane, VB_DROP_DUPLICATE, 1);
		return;
	}
	if (is_atomic)
		activate(rs, resource, packet->psn, vb_psn_add(packet->psn, 1));
	else
		repeat_read(qp, resource, packet);
	vb_roce_schedule(qp);
}

/* ---- Responses --------------------------------------------------------------------------------------------------- */

/* A First's AETH would make it longer than the Middles, and so no part of their train. No requester of ours needs it.
 */
static bool goes_without_first(const struct vb_qp *qp, const struct vb_resource *resource)
{
	return resource->mtu > qp->mtu;
}

static uint8_t read_response_opcode(bool is_first, bool is_last)
{
	if (is_last)
		return is_first ? VB_READ_RESPONSE_ONLY : VB_READ_RESPONSE_LAST;
	return is_first ? VB_READ_RESPONSE_FIRST : VB_READ_RESPONSE_MIDDLE;
}

/* The key died in the middle of the response: the rest is refused where it stands. */
static void refuse_rest(struct vb_qp *qp, uint32_t psn, uint8_t nak, enum vb_cause_kind cause, vb_time now)
{
	vb_responder_drop_resources(qp);
	vb_qp_fail_read(qp, psn, cause, now);
	vb_responder_refuse(qp, nak, psn, now);
}

void vb_responder_fault(struct vb_qp *qp, uint32_t psn, vb_time now)
{
	if (vb_state(qp) != VB_QPS_ERR)
		refuse_rest(qp, psn, VB_NAK_REMOTE_OPERATION, VB_CAUSE_LOCAL_FAULT, now);
}

/* Where the bytes of responses from that PSN on lie: NULL if there are none, or the memory has none. False: the peer
 * may not read them. */
static bool reach_response(const struct vb_qp *qp, const struct vb_resource *resource, uint32_t psn, uint32_t length,
	const uint8_t **bytes)
{
	struct vb_reach reach;
	*bytes = NULL;
	if (length == 0)
		return true;
	if (vb_reach_remote(resource->pd, qp->qpn, resource->rkey, resource->va + offset_of(resource, psn), length,
		    VB_ACCESS_REMOTE_READ, &reach))
		return false;
	*bytes = vb_load(&reach, length);
	return true;
}

static void add_read_response(struct vb_qp *qp, struct vb_batch *batch, const struct vb_resource *resource,
	uint8_t opcode, uint32_t psn, const void *bytes, uint32_t length)
{
	struct vb_outgoing *out = vb_batch_add(batch, qp, opcode, &qp->attr.av);
	vb_batch_set_psn(out, qp, psn);
	vb_rails_respond(qp);
	out->packet.syndrome = VB_AETH_ACK | VB_AETH_NO_CREDITS;
	out->packet.msn = resource->msn;
	out->packet.payload_length = length;
	vb_batch_is_response(batch);
	vb_batch_add_iov(batch, out, bytes, length);
}

/* A response leaves again. False: its memory is gone, and it does not. */
static bool again(struct vb_qp *qp, struct vb_batch *batch, uint32_t psn)
{
	struct vb_outgoing *out = &batch->out[batch->count - 1];
	if (!vb_batch_is_present(qp->lane, batch)) {
		vb_batch_undo(batch);
		return false;
	}
	out->again = VB_SENT_ASKED;
	vb_multipath_go_by_another(qp, out, psn);
	return true;
}

/* One packet of what the peer has missed; if its memory is gone, as of drop_repeat(), the rest is dropped. */
static bool emit_repeat(struct vb_qp *qp, struct vb_batch *batch)
{
	struct vb_selective *s = vb_roce(qp)->selective;
	struct vb_repeat *repeat = &s->repeats[s->repeat_first];
	const struct vb_resource *resource = of_psn(qp, repeat->psn);
	const uint8_t *bytes = NULL;
	uint32_t rest = resource ? resource->length - offset_of(resource, repeat->psn) : 0;
	uint32_t length = resource && rest > resource->mtu ? resource->mtu : rest;
	bool is_gone = !resource || !reach_response(qp, resource, repeat->psn, length, &bytes);
	if (!is_gone) {
		vb_multipath_leave(qp, repeat->psn);
		vb_rails_note_loss(qp, repeat->psn, true);
		add_read_response(qp, batch, resource, qp->service | VB_READ_RESPONSE_ONLY, repeat->psn, bytes, length);
		is_gone = !again(qp, batch, repeat->psn);
	}
	if (is_gone)
		vb_count(qp->lane, VB_DROP_DUPLICATE, 1);
	repeat->psn = is_gone ? repeat->end_psn : vb_psn_add(repeat->psn, 1);
	if (repeat->psn == repeat->end_psn) {
		s->repeat_first = (s->repeat_first + 1) % VB_REPEATS;
		s->repeat_count--;
	}
	return !is_gone;
}

/* The peer may have had its data, and its program told ours, which revoked the key or unmapped the memory in good
 * faith. */
static bool drop_repeat(struct vb_qp *qp, struct vb_resource *resource, struct vb_batch *batch, vb_time now)
{
	deactivate(&vb_roce(qp)->responses, resource);
	vb_count(qp->lane, VB_DROP_DUPLICATE, 1);
	return vb_responder_emit(qp, batch, now);
}

static bool emit_read_response(struct vb_qp *qp, struct vb_resource *resource, struct vb_batch *batch, vb_time now)
{
	uint32_t psn = resource->next_psn;
	bool is_last = vb_psn_add(psn, 1) == resource->end_psn;
	uint32_t length = is_last ? resource->end_length - offset_of(resource, psn) : resource->mtu;
	const uint8_t *bytes;

	if (!reach_response(qp, resource, psn, length, &bytes)) {
		if (resource->is_repeat)
			return drop_repeat(qp, resource, batch, now);
		refuse_rest(qp, psn, VB_NAK_REMOTE_ACCESS, VB_CAUSE_REMOTE_BAD_RKEY, now);
		return false;
	}
	bool is_first = psn == resource->start_psn && (is_last || !goes_without_first(qp, resource));
	uint8_t opcode = qp->service | read_response_opcode(is_first, is_last);
	add_read_response(qp, batch, resource, opcode, psn, bytes, length);
	if (resource->is_repeat && !again(qp, batch, psn))
		return drop_repeat(qp, resource, batch, now);
	resource->next_psn = vb_psn_add(psn, 1);
	if (is_last) {
		deactivate(&vb_roce(qp)->responses, resource);
		resource->was_answered = true;
	}
	return true;
}

uint32_t vb_responder_emit_middles(struct vb_qp *qp, struct vb_batch *batch, uint32_t most)
{
	struct vb_responses *rs = &vb_roce(qp)->responses;
	struct vb_resource *resource = rs->active_resources > 0 ? oldest_active(rs) : NULL;
	if (!resource || resource->is_atomic || resource->is_repeat || vb_responder_has_repeats(qp) ||
		batch->out[batch->count - 1].packet.psn != vb_psn_add(resource->next_psn, VB_PSN_MASK))
		return 0;
	const uint32_t left = ((resource->end_psn - resource->next_psn) & VB_PSN_MASK) - 1;
	const uint32_t n = left < most ? left : most, length = n * resource->mtu;
	const uint8_t opcode = qp->service | VB_READ_RESPONSE_MIDDLE, *bytes;
	if (!reach_response(qp, resource, resource->next_psn, length, &bytes))
		return 0;
	for (uint32_t i = 0; i < n; i++)
		add_read_response(qp, batch, resource, opcode, vb_psn_add(resource->next_psn, i),
			bytes ? bytes + i * resource->mtu : NULL, resource->mtu);
	resource->next_psn = vb_psn_add(resource->next_psn, n);
	return n;
}

static bool emit_atomic_response(struct vb_qp *qp, struct vb_resource *resource, struct vb_batch *batch)
{
	uint8_t operation = resource->is_write ? VB_READ_RESPONSE_ONLY : VB_ATOMIC_ACKNOWLEDGE;
	struct vb_outgoing *out = vb_batch_add(batch, qp, qp->service | operation, &qp->attr.av);
	vb_batch_set_psn(out, qp, resource->first_psn);
	out->packet.syndrome = VB_AETH_ACK | VB_AETH_NO_CREDITS;
	out->packet.msn = resource->msn;
	out->packet.atomic_result = resource->result;
	deactivate(&vb_roce(qp)->responses, resource);
	resource->was_answered = true;
	return true;
}

bool vb_responder_emit(struct vb_qp *qp, struct vb_batch *batch, vb_time now)
{
	struct vb_responses *rs = &vb_roce(qp)->responses;
	while (vb_responder_has_repeats(qp))
		if (emit_repeat(qp, batch))
			return true;
	if (rs->active_resources == 0)
		return false;
	struct vb_resource *resource = oldest_active(rs);
	/* Responses acknowledge what came before them; an ack that waits for less says nothing new. */
	if (rs->ack.is_wanted && (rs->ack.syndrome & VB_AETH_TYPE_MASK) == VB_AETH_ACK &&
		vb_psn_diff(rs->ack.psn, resource->next_psn) < 0 && !vb_early_is_told(qp)) {
		rs->ack = (struct vb_ack){ 0 };
		vb_schedule_no_ack(qp);
	}
	if (resource->is_atomic)
		return emit_atomic_response(qp, resource, batch);
	return emit_read_response(qp, resource, batch, now);
}

void vb_responses_check(const struct vb_qp *qp)
{
	const struct vb_responses *rs = &vb_roce(qp)->responses;
	uint8_t active = 0;
	assert(rs->resource_next < rs->resource_count || rs->resource_count == 0);
	for (uint8_t i = 0; i < rs->resource_count; i++) {
		const struct vb_resource *resource = &rs->resources[i];
		if (!resource->is_active)
			continue;
		active++;
		uint32_t next = (resource->next_psn - resource->first_psn) & VB_PSN_MASK;
		uint32_t end = (resource->end_psn - resource->first_psn) & VB_PSN_MASK;
		assert(resource->is_used && resource->pd);
		assert(next < end && end <= resource->psn_count);
		assert(resource->end_length <= resource->length || resource->is_atomic);
	}
	assert(active == rs->active_resources);
	/* An ack that waits is in one of the lane's lists, or its QP is to send. */
	assert(!vb_list_linked(&vb_roce(qp)->ack_link) || rs->is_first || (rs->ack.is_wanted && !rs->ack.is_urgent));
	assert(!rs->is_first || vb_list_linked(&vb_roce(qp)->ack_link)); /* what it had to say may have left since */
}
