/* Further addresses, of which two ends that fail over tell each other, and the questions by which a pair of addresses
 * is proved: failover.h.
 * Holds: a question goes to addresses alone that the peer has told over a path that was its own; an answer is no longer
 * than its question, goes back where that came from, and only if the question named our secret.
 * Not here: when a QP asks and moves (failover.c), the bytes (wire/codec.c). */
#include "roce/roce.h"
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "base/siphash.h"
#include "roce/batch.h"
#include "roce/failover.h"
#include "roce/selective.h"

#define ASKED_BACK_EVERY (1 * VB_MS) /* questions that a question of the peer's brings about */

static struct vb_failover *failover_of(const struct vb_qp *qp)
{
	return vb_roce(qp)->selective->failover;
}

static void schedule(struct vb_qp *qp)
{
	vb_roce(qp)->path_is_due = true;
	vb_schedule_reply(qp);
}

void vb_lane_set_addresses(struct vb_lane *lane, const struct vb_address *addresses, unsigned count)
{
	struct vb_roce_lane *roce = vb_roce_lane(lane);
	assert(count == 0 || addresses);
	roce->address_count = count < VB_LANE_ADDRESSES ? count : VB_LANE_ADDRESSES;
	memcpy(roce->addresses, addresses, roce->address_count * sizeof(*addresses));
}

/* ---- Ours -------------------------------------------------------------------------------------------------------- */

/* Nobody can guess it who was not told, nor tell it from that of another connection. */
static uint64_t draw_secret(const struct vb_qp *qp)
{
	const uint64_t words[] = { ~(uint64_t)qp->qpn, (uint64_t)qp->lane->now, qp->cookie };
	return vb_siphash(qp->pd->nic->keys.secret.key, words, sizeof(words) / sizeof(words[0]));
}

static void set_pairs(struct vb_failover *f, const struct vb_av *own)
{
	for (unsigned i = 0; i < VB_PAIRS; i++) {
		f->pairs[i].av = *own;
		f->pairs[i].av.sgid = f->ours[i / VB_ADDRESSES];
		f->pairs[i].av.dgid = f->theirs[i % VB_ADDRESSES];
	}
}

/* Within a host no link dies. */
static bool stays_within_the_host(const struct vb_av *own)
{
	return vb_gid_equal(&own->sgid, &own->dgid) || vb_gid_is_loopback(&own->sgid);
}

/* Those of the lane's that speak as the connection does, and whose adapters carry its packets. */
struct vb_failover *vb_addresses_create(struct vb_qp *qp)
{
	const struct vb_roce_lane *lane = vb_roce_lane_of(qp);
	const struct vb_av *own = &qp->attr.av;
	struct vb_failover *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->secret = draw_secret(qp);
	f->ours[0] = own->sgid;
	f->theirs[0] = own->dgid;
	f->our_count = f->their_count = 1;
	unsigned count = stays_within_the_host(own) ? 0 : lane->address_count;
	for (unsigned i = 0; i < count && f->our_count < VB_ADDRESSES; i++) {
		const struct vb_address *address = &lane->addresses[i];
		if (address->mtu >= qp->mtu && !vb_gid_equal(&address->gid, &own->sgid) &&
			vb_gid_is_ipv4(&address->gid) == vb_gid_is_ipv4(&own->sgid))
			f->ours[f->our_count++] = address->gid;
	}
	set_pairs(f, own);
	f->pairs[0].is_proved = true;
	return f;
}

void vb_addresses_announce(struct vb_qp *qp, bool answers)
{
	struct vb_failover *f = failover_of(qp);
	f->announces = true;
	f->announcement_answers = answers;
	f->announced = 0;
	assert(f->our_count >= 1);
	schedule(qp);
}

/* One a packet, which says how many there are; if there are none, one packet that says so. */
static void emit_announcement(struct vb_qp *qp, struct vb_batch *batch)
{
	struct vb_failover *f = failover_of(qp);
	uint8_t further = f->our_count - 1;
	struct vb_outgoing *out = vb_batch_add(batch, qp, VB_PATH_ADDRESS, &qp->attr.av);
	assert(f->announces && f->announced <= further);
	out->packet.secret = f->secret;
	out->packet.path_flags = f->announcement_answers ? VB_PATH_ANSWERS : 0;
	out->packet.path_number = further;
	if (further)
		out->packet.address = f->ours[++f->announced];
	f->announces = f->announced < further;
}

/* ---- The peer's -------------------------------------------------------------------------------------------------- */

static bool is_known(const struct vb_failover *f, const struct vb_gid *gid)
{
	for (unsigned i = 0; i < f->their_count; i++)
		if (vb_gid_equal(&f->theirs[i], gid))
			return true;
	return false;
}

static bool is_of_use(const struct vb_failover *f, const struct vb_gid *gid)
{
	return vb_gid_is_ipv4(gid) == vb_gid_is_ipv4(&f->theirs[0]) && !vb_gid_is_zero(gid) &&
	       !vb_gid_is_multicast(gid) && !vb_gid_is_loopback(gid);
}

/* The first secret counts: whoever forges a later one changes nothing. */
static bool learn(struct vb_qp *qp, const struct vb_packet *packet)
{
	struct vb_failover *f = failover_of(qp);
	if (f->knows_peer && f->peer_secret != packet->secret)
		return false;
	f->knows_peer = true;
	f->peer_secret = packet->secret;
	f->their_total = packet->path_number < VB_ADDRESSES - 1 ? (uint8_t)(packet->path_number + 1) : VB_ADDRESSES;
	if (packet->path_number && is_of_use(f, &packet->address) && !is_known(f, &packet->address) &&
		f->their_count < VB_ADDRESSES) {
		f->theirs[f->their_count++] = packet->address;
		struct vb_av own = f->pairs[0].av;
		set_pairs(f, &own);
		vb_failover_seek_second(qp, qp->lane->now);
	}
	return true;
}

static void receive_address(struct vb_qp *qp, const struct vb_packet *packet)
{
	if (!learn(qp, packet)) {
		vb_count(qp->lane, VB_DROP_PROBE, 1);
		return;
	}
	if (packet->path_flags & VB_PATH_ANSWERS)
		return;
	struct vb_failover *f = failover_of(qp);
	vb_time now = qp->lane->now;
	if (f->answered_at && vb_time_since(f->answered_at, now) < ASKED_BACK_EVERY)
		return;
	f->answered_at = now;
	vb_addresses_announce(qp, true);
}

/* ---- Questions --------------------------------------------------------------------------------------------------- */

unsigned vb_addresses_pair(const struct vb_failover *f, const struct vb_path *path)
{
	for (unsigned ours = 0; ours < f->our_count; ours++) {
		if (!vb_gid_equal(&f->ours[ours], &path->dst))
			continue;
		for (unsigned theirs = 0; theirs < f->their_count; theirs++)
			if (vb_gid_equal(&f->theirs[theirs], &path->src))
				return ours * VB_ADDRESSES + theirs;
	}
	return VB_PAIRS;
}

void vb_addresses_ask(struct vb_qp *qp, unsigned pair, vb_time now)
{
	struct vb_failover *f = failover_of(qp);
	assert(f->knows_peer && pair < VB_PAIRS);
	f->asks_due |= (uint16_t)(1u << pair);
	f->pairs[pair].was_asked = true;
	f->pairs[pair].asked_at = now;
	schedule(qp);
}

/* The pair in use is one that we have moved to, or returned to, and not the peer. */
static bool is_our_choice(const struct vb_failover *f)
{
	return !f->has_followed && (f->in_use != 0 || !f->is_agreed);
}

static void emit_question(struct vb_qp *qp, struct vb_batch *batch, unsigned pair)
{
	struct vb_failover *f = failover_of(qp);
	struct vb_outgoing *out = vb_batch_add(batch, qp, VB_PATH_PROBE, &f->pairs[pair].av);
	out->packet.secret = f->peer_secret;
	out->packet.path_number = f->number;
	out->packet.path_flags = pair == f->in_use && is_our_choice(f) ? VB_PATH_IS_USED : 0;
	f->asks_due &= (uint16_t) ~(1u << pair);
	vb_count(qp->lane, VB_PATH_PROBES, 1);
}

static void emit_answer(struct vb_qp *qp, struct vb_batch *batch, unsigned pair)
{
	struct vb_failover *f = failover_of(qp);
	struct vb_outgoing *out = vb_batch_add(batch, qp, VB_PATH_ANSWER, &f->pairs[pair].av);
	assert(f->knows_peer);
	out->packet.secret = f->peer_secret;
	out->packet.path_number = f->pairs[pair].asks;
	out->packet.path_flags = f->pairs[pair].is_proved ? VB_PATH_IS_PROVED : 0;
	f->answers_due &= (uint16_t) ~(1u << pair);
}

/* The pair in use comes first, so that a peer which was only slow answers there first. */
static unsigned first_of(const struct vb_failover *f, uint16_t due)
{
	return due >> f->in_use & 1 ? f->in_use : (unsigned)__builtin_ctz(due);
}

void vb_addresses_emit(struct vb_qp *qp, struct vb_batch *batch, unsigned budget)
{
	struct vb_failover *f = failover_of(qp);
	while (f->announces && vb_batch_has_room(batch, budget))
		emit_announcement(qp, batch);
	while (f->answers_due && vb_batch_has_room(batch, budget))
		emit_answer(qp, batch, first_of(f, f->answers_due));
	while (f->asks_due && vb_batch_has_room(batch, budget))
		emit_question(qp, batch, first_of(f, f->asks_due));
	vb_roce(qp)->path_is_due = f->announces || f->answers_due || f->asks_due;
}

/* ---- Answers ----------------------------------------------------------------------------------------------------- */

static void receive_question(struct vb_qp *qp, unsigned pair, const struct vb_packet *packet, vb_time now)
{
	struct vb_failover *f = failover_of(qp);
	struct vb_pair *p = &f->pairs[pair];
	assert(pair < VB_PAIRS && f->knows_peer);
	p->asks = packet->path_number;
	f->answers_due |= (uint16_t)(1u << pair);
	schedule(qp);
	if (!p->is_proved && (!p->was_asked || vb_time_since(p->asked_at, now) >= ASKED_BACK_EVERY))
		vb_addresses_ask(qp, pair, now);
	if ((f->is_searching || vb_failover_wants(qp, pair)) && !p->is_ready)
		vb_addresses_ask(qp, pair, now); /* the peer has our answer before that, and takes us then */
	if (p->is_proved && (packet->path_flags & VB_PATH_IS_USED))
		vb_failover_follow(qp, pair, packet->path_number, now);
}

static void receive_answer(struct vb_qp *qp, unsigned pair, const struct vb_packet *packet, vb_time now)
{
	struct vb_failover *f = failover_of(qp);
	assert(f->pairs[pair].was_asked);
	f->pairs[pair].is_proved = true;
	if (!(packet->path_flags & VB_PATH_IS_PROVED))
		return;
	f->pairs[pair].is_ready = true;
	f->pairs[pair].answered = packet->path_number;
	vb_failover_note_answer(qp, pair, packet->path_number, now);
}

/* Whether the packet names our secret, comes by one of the connection's pairs, and was asked for if it answers. */
static bool is_to_be_believed(const struct vb_failover *f, unsigned pair, const struct vb_packet *packet)
{
	if (!f->knows_peer || packet->secret != f->secret || pair == VB_PAIRS)
		return false;
	return packet->opcode == VB_PATH_PROBE ||
	       (f->pairs[pair].was_asked && vb_psn_diff(f->number, packet->path_number) >= 0);
}

void vb_addresses_receive(
	struct vb_qp *qp, const struct vb_path *path, bool is_its_path, const struct vb_packet *packet, vb_time now)
{
	if (packet->opcode == VB_PATH_ADDRESS && is_its_path && vb_roce(qp)->selective)
		vb_failover_agree(qp, false); /* its hello may have been lost */
	const struct vb_selective *s = vb_roce(qp)->selective;
	struct vb_failover *f = s ? s->failover : NULL;
	if (packet->opcode == VB_PATH_ADDRESS && f && is_its_path) {
		receive_address(qp, packet);
		return;
	}
	unsigned pair = f ? vb_addresses_pair(f, path) : VB_PAIRS;
	if (packet->opcode == VB_PATH_ADDRESS || !f || !is_to_be_believed(f, pair, packet)) {
		vb_count(qp->lane, VB_DROP_PROBE, 1);
		return;
	}
	if (packet->opcode == VB_PATH_PROBE)
		receive_question(qp, pair, packet, now);
	else
		receive_answer(qp, pair, packet, now);
}
