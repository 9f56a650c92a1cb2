/* The responder's requests that came before their turn, where both ends recover selectively: they are held, told of by
 * bitmaps, and executed when what is missing has come.
 * Holds: requests are executed in the order of PSNs, each once; what a bitmap tells of is held until its turn. Not
 * here: how a request is executed (responder.c), when acks leave (responses.c). */
#include <string.h>
#include "roce/roce.h"
#include "base/invariant.h"
#include "roce/batch.h"
#include "roce/large.h"
#include "roce/responder.h"
#include "roce/selective.h"

enum {
	TOLD_AGAIN = 8,
	TELL_EVERY = 64, /* packets that are held before the peer hears of them, though it does not ask */
	PIECE = 64,      /* packets that are executed at once, and twice as many as have come since the last time */
};

static struct vb_selective *selective_of(const struct vb_qp *qp)
{
	return vb_roce(qp)->selective;
}

/* ---- What is told ------------------------------------------------------------------------------------------------ */

static uint32_t newest_executed(const struct vb_qp *qp)
{
	return vb_psn_add(qp->responder.expected_psn, VB_PSN_MASK);
}

static void tell(struct vb_selective *s, uint32_t psn)
{
	vb_psn_set(s->untold, VB_BITMAPS - 1, psn / VB_BITMAP_PSNS);
}

/* A bitmap may be lost, and when the next begins nothing of it changes any more: so it is told of again then. */
static void tell_of(struct vb_qp *qp, uint32_t psn, uint32_t span)
{
	struct vb_selective *s = selective_of(qp);
	uint32_t before = vb_psn_add(psn, VB_PSN_MASK + 1 - VB_BITMAP_PSNS);
	tell(s, psn);
	if (psn % VB_BITMAP_PSNS < TELL_EVERY / 2 + span && vb_psn_diff(before, qp->responder.expected_psn) > 0)
		tell(s, before);
}

static bool is_anything_untold(const struct vb_selective *s)
{
	uint64_t any = 0;
	for (unsigned i = 0; i < VB_BITMAPS / 64; i++)
		any |= s->untold[i];
	return any;
}

bool vb_early_is_told(const struct vb_qp *qp)
{
	const struct vb_selective *s = selective_of(qp);
	uint8_t type = vb_roce(qp)->responses.ack.syndrome & VB_AETH_TYPE_MASK;
	return s && type == VB_AETH_ACK &&
	       (s->trimmed_count > 0 || s->duplicate != s->told_duplicate || is_anything_untold(s));
}

void vb_early_note_duplicate(struct vb_qp *qp, uint32_t psn)
{
	struct vb_selective *s = selective_of(qp);
	if (!s)
		return;
	s->duplicate = ((s->duplicate + (1u << 24)) & ~VB_PSN_MASK) | psn;
	if (s->requests.count == 0)
		return;
	psn = qp->responder.expected_psn;
	for (int i = 0; i < TOLD_AGAIN && vb_psn_diff(s->requests.end_psn, psn) > 0; i++) {
		tell(s, psn);
		psn = vb_psn_add(psn, VB_BITMAP_PSNS);
	}
	tell(s, vb_psn_add(s->requests.end_psn, VB_PSN_MASK));
}

/* The oldest that is to be told of: the furthest ones are told of again, whatever happens to this one. */
static uint32_t next_untold(const struct vb_qp *qp)
{
	const struct vb_selective *s = selective_of(qp);
	uint32_t first = newest_executed(qp) / VB_BITMAP_PSNS;
	for (uint32_t i = 0; i < VB_BITMAPS; i++)
		if (vb_psn_bit(s->untold, VB_BITMAPS - 1, first + i))
			return ((first + i) * VB_BITMAP_PSNS) & VB_PSN_MASK;
	return qp->responder.expected_psn;
}

/* What was executed behind a READ that is still being answered cannot be acknowledged yet. */
static uint16_t executed_ahead(const struct vb_qp *qp, uint32_t answered)
{
	int32_t ahead = vb_psn_diff(qp->responder.expected_psn, answered);
	assert(ahead >= 0);
	return ahead < UINT16_MAX ? (uint16_t)ahead : UINT16_MAX;
}

static void tell_overflow(struct vb_qp *qp, struct vb_packet *bitmap)
{
	struct vb_selective *s = selective_of(qp);
	uint32_t overflow = vb_roce_lane_of(qp)->overflow;
	if (overflow != s->told_overflow)
		bitmap->told |= VB_TOLD_OVERFLOW;
	s->told_overflow = overflow;
}

static void name_a_packet(struct vb_selective *s, struct vb_packet *bitmap)
{
	if (s->trimmed_count == 0) {
		bitmap->named = s->told_duplicate = s->duplicate;
		return;
	}
	bitmap->told |= VB_TOLD_TRIMMED;
	bitmap->named = s->trimmed[(s->trimmed_next + VB_TRIMMED - s->trimmed_count) % VB_TRIMMED];
	s->trimmed_count--;
}

void vb_early_emit_bitmap(struct vb_qp *qp, struct vb_batch *batch, uint32_t expected_psn, uint32_t msn)
{
	struct vb_selective *s = selective_of(qp);
	uint32_t psn = next_untold(qp);
	struct vb_outgoing *out = vb_batch_add(batch, qp, VB_BITMAP, &qp->attr.av);
	vb_batch_set_psn(out, qp, psn);
	vb_multipath_go_by_another(qp, out, psn);
	out->packet.syndrome = vb_responder_ack_syndrome(qp);
	out->packet.msn = msn;
	out->packet.expected_psn = expected_psn;
	out->packet.told = 0;
	tell_overflow(qp, &out->packet);
	name_a_packet(s, &out->packet);
	out->packet.holder = vb_roce(qp)->responses.ack.holder;
	out->packet.becn = vb_responder_tells_marks(qp);
	vb_hold_bitmap(&s->requests, qp->responder.expected_psn, psn, out->packet.bits);
	out->packet.executed_ahead = executed_ahead(qp, expected_psn);
	assert(expected_psn <= VB_PSN_MASK);
	vb_psn_clear(s->untold, VB_BITMAPS - 1, psn / VB_BITMAP_PSNS);
	s->held_untold = 0;
	vb_count(qp->lane, VB_BITMAP_SENT, 1);
}

/* Unless a NAK that says more is about to leave. */
static void say(struct vb_qp *qp, vb_time now)
{
	const struct vb_ack *ack = &vb_roce(qp)->responses.ack;
	if (ack->is_wanted && (ack->syndrome & VB_AETH_TYPE_MASK) != VB_AETH_ACK)
		return;
	vb_responder_ack(qp, vb_responder_ack_syndrome(qp), newest_executed(qp), true, now);
}

/* Where packets do get lost the newest acknowledgement may have been one: a peer that waits for it would ask until its
 * retries run out. */
bool vb_early_takes_leave(struct vb_qp *qp, vb_time now)
{
	const struct vb_selective *s = selective_of(qp);
	const bool has_executed = qp->responder.expected_psn != (qp->attr.rq_psn & VB_PSN_MASK);
	if (!s || !has_executed || (!s->has_held && s->again == 0 && s->duplicate == 0))
		return false;
	say(qp, now);
	return true;
}

/* ---- What comes -------------------------------------------------------------------------------------------------- */

bool vb_early_has_any(const struct vb_qp *qp)
{
	const struct vb_selective *s = selective_of(qp);
	return s && s->requests.count > 0;
}

/* Where a hole begins, for the peer is to fill it, and where the peer asks, as it does with the last that it sends. */
static bool is_to_be_told_now(const struct vb_qp *qp, const struct vb_packet *packet, uint32_t end_before)
{
	const struct vb_selective *s = selective_of(qp);
	bool begins_a_hole = s->requests.count == 1 || packet->psn != end_before;
	bool is_asked = packet->ackreq || vb_is_answered_by_a_response(vb_packet_row(packet));
	return begins_a_hole || is_asked || s->held_untold >= TELL_EVERY;
}

static void note_held(struct vb_qp *qp, const struct vb_packet *packet, uint32_t span, uint32_t end_before, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	vb_count(qp->lane, VB_HELD, 1);
	s->has_held = true;
	vb_roce_lane_of(qp)->early_came++;
	tell_of(qp, packet->psn, span);
	s->held_untold++;
	if (is_to_be_told_now(qp, packet, end_before))
		say(qp, now);
}

bool vb_early_receive(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	bool is_read = vb_packet_row(packet)->message == VB_MESSAGE_READ;
	uint32_t span = is_read ? vb_large_span(qp, packet) : 1, end_before = s->requests.end_psn;
	switch (vb_hold_put(&s->requests, qp->responder.expected_psn, packet, span, vb_roce_hold_of(qp))) {
	case VB_HOLD_TAKEN:
		note_held(qp, packet, span, end_before, now);
		break;
	case VB_HOLD_HAD:
		vb_count(qp->lane, VB_DUPLICATES, 1);
		tell_of(qp, packet->psn, span);
		vb_early_note_duplicate(qp, packet->psn);
		say(qp, now);
		break;
	case VB_HOLD_FULL:
		if (s->requests.count == 0)
			return false;
		vb_count(qp->lane, VB_DROP_OUT_OF_ORDER, 1);
		say(qp, now);
		break;
	}
	vb_count(qp->lane, VB_OUT_OF_ORDER, 1);
	return true;
}

void vb_early_note_trimmed(struct vb_qp *qp, uint32_t psn, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	s->trimmed[s->trimmed_next] = psn;
	s->trimmed_next = (s->trimmed_next + 1) % VB_TRIMMED;
	if (s->trimmed_count < VB_TRIMMED)
		s->trimmed_count++;
	say(qp, now);
}

static void pass(struct vb_qp *qp, uint32_t from)
{
	struct vb_selective *s = selective_of(qp);
	vb_hold_pass(&s->requests, from, qp->responder.expected_psn, vb_roce_hold_of(qp));
	if (s->requests.count == 0)
		memset(s->untold, 0, sizeof(s->untold));
}

void vb_early_stop(struct vb_qp *qp)
{
	struct vb_selective *s = selective_of(qp);
	if (!s)
		return;
	vb_hold_clear(&s->requests, vb_roce_hold_of(qp));
	vb_list_remove(&s->early_link);
	assert(!vb_early_has_any(qp));
	memset(s->untold, 0, sizeof(s->untold));
}

/* False: it is not its turn, there is no receive for it, or it is refused and comes again. */
static bool execute_next(struct vb_qp *qp, vb_time now)
{
	const uint32_t psn = qp->responder.expected_psn;
	const struct vb_held *held = vb_hold_at(&selective_of(qp)->requests, psn);
	if (!held || vb_is_failing(qp))
		return false;
	vb_responder_execute(qp, &held->packet, now);
	if (qp->responder.expected_psn == psn)
		return false;
	pass(qp, psn);
	return true;
}

static void execute_piece(struct vb_qp *qp, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	unsigned executed = 0;
	assert(vb_state(qp) != VB_QPS_RESET && vb_state(qp) != VB_QPS_INIT);
	while (executed < PIECE && execute_next(qp, now))
		executed++;
	if (vb_is_failing(qp))
		return;
	if (executed == PIECE && !vb_list_linked(&s->early_link))
		vb_list_add_tail(&vb_roce_lane_of(qp)->early, &s->early_link);
	say(qp, now);
}

void vb_early_proceed(struct vb_qp *qp, uint32_t from, vb_time now)
{
	pass(qp, from);
	execute_piece(qp, now);
}

void vb_early_advance(struct vb_lane *lane, vb_time now)
{
	struct vb_roce_lane *roce = vb_roce_lane(lane);
	const uint32_t pieces = 1 + 2 * roce->early_came / PIECE;
	struct vb_list *node;
	roce->early_came = 0;
	for (uint32_t i = 0; i < pieces && (node = vb_list_pop(&roce->early)); i++)
		execute_piece(vb_container_of(node, struct vb_selective, early_link)->qp, now);
}
