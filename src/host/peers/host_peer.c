/* One local peer: its states and their deadlines, and what the lane is told of it.
 *
 * Holds: see holds(). A peer is awaited only while an answer is to come: from the broker, whose silence is borne for
 * PATIENCE at most, or from the peer itself, which lives. */
#include "base/invariant.h"
#include "host/peers/host_peer.h"

#include <stdlib.h>

/* A broker answers each question, and a peer that was introduced has heard of it too. They do so when they are
 * scheduled, and where many processes begin at once that takes seconds. After that long a broker's silence sends first
 * requests over the wire. A peer that was introduced and has not sent its HELLO is stopped, or does not get a core, and
 * is waited for as if it stood still later: over the wire it would end in an error. Datagrams leave without waiting for
 * longer, as they do where a peer takes nothing. */
#define PATIENCE (10 * VB_S)
/* A peer that is there and has not asked for us is about to: its QP comes to RTR a moment later. Where it never asks, a
 * request gets as far over the wire as by memory. */
#define GRACE (3 * VB_S)
/* Requests under way to a process that has ended do not fail before. Programs leave with messages of their peers on the
 * way, when they have had all that they want (ibv_srq_pingpong), and a program that is told of an end in the middle of
 * what it is still to poll fails. */
#define CLOSING_LASTS (500 * VB_MS)

#define TO(state) (1u << VB_PEER_##state)

static const struct state {
	unsigned next;       /* states that may follow */
	bool may_be_awaited; /* by QPs; the deadline is then their wait's */
	bool is_connected;
	vb_time lasts; /* 0: has no deadline */
} states[VB_PEER_STATES] = {
	[VB_PEER_IDLE] = { .next = TO(ASKED) | TO(INTRODUCED) },
	[VB_PEER_ASKED] = { .next = TO(IDLE) | TO(UNWILLING) | TO(INTRODUCED),
		.may_be_awaited = true,
		.lasts = PATIENCE },
	[VB_PEER_UNWILLING] = { .next = TO(IDLE) | TO(ASKED) | TO(INTRODUCED), .may_be_awaited = true, .lasts = GRACE },
	[VB_PEER_INTRODUCED] = { .next = TO(IDLE) | TO(ASKED) | TO(READY),
		.may_be_awaited = true,
		.is_connected = true,
		.lasts = PATIENCE },
	[VB_PEER_READY] = { .next = TO(IDLE) | TO(CLOSING), .is_connected = true },
	[VB_PEER_CLOSING] = { .next = TO(IDLE), .is_connected = true, .lasts = CLOSING_LASTS },
};

bool vb_host_peer_may_become(enum vb_host_peer_state from, enum vb_host_peer_state to)
{
	return states[from].next >> to & 1;
}

/* Asserts for each state. */
static void holds(const struct vb_host_peer *peer)
{
	const struct state *state = &states[peer->state];

	assert(state->may_be_awaited || !peer->is_awaited);
	assert(!peer->shm == !state->is_connected);
	assert(vb_list_linked(&peer->link) == state->is_connected);
	assert(state->is_connected || peer->exchange.is_dozing);
	if (peer->state == VB_PEER_INTRODUCED || peer->state == VB_PEER_READY)
		return;
	assert(peer->bell < 0);
	assert(peer->pidfd < 0);
	assert(peer->descriptors == 0);
}

void vb_host_peer_become(struct vb_host_peer *peer, enum vb_host_peer_state state)
{
	struct vb_host_peers *all = peer->all;

	assert(vb_host_peer_may_become(peer->state, state));
	if (peer->state == VB_PEER_CLOSING)
		all->closing_count--;
	if (state == VB_PEER_CLOSING)
		all->closing_count++;
	peer->state = state;
	holds(peer);
}

struct vb_deadline vb_host_peer_deadline(const struct vb_host_peer *peer)
{
	const struct state *state = &states[peer->state];

	if (state->lasts == 0 || (state->may_be_awaited && !peer->is_awaited))
		return (struct vb_deadline){ 0 };
	return (struct vb_deadline){ vb_time_add(peer->since, state->lasts), true };
}

struct vb_host_peer *vb_host_peer_get(struct vb_host_peers *all, uint8_t slot)
{
	struct vb_host_peer *peer = all->by_slot[slot];

	if (peer)
		return peer;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->all = all;
	peer->slot = slot;
	peer->reason = VB_LOCAL_NO_ANSWER;
	peer->bell = peer->pidfd = -1;
	peer->exchange.is_dozing = true;
	vb_list_init(&peer->link);
	holds(peer);
	atomic_signal_fence(memory_order_release); /* a forked child that finds it finds no descriptor that is none */
	all->by_slot[slot] = peer;
	return peer;
}

bool vb_host_peer_know_as(struct vb_host_peer *peer, const struct vb_gid *gid)
{
	for (unsigned i = 0; i < peer->gid_count; i++)
		if (vb_gid_equal(&peer->gids[i], gid))
			return true;
	struct vb_gid *gids = realloc(peer->gids, (peer->gid_count + 1) * sizeof(*gids));
	if (!gids)
		return false;
	peer->gids = gids;
	gids[peer->gid_count++] = *gid;
	return true;
}

/* ---- What the lane waits for and is told ------------------------------------------------------------------------- */

void vb_host_peer_await(struct vb_host_peer *peer, vb_time now)
{
	if (peer->is_awaited)
		return;
	assert(states[peer->state].may_be_awaited);
	peer->is_awaited = true;
	peer->since = now;
	peer->all->awaited_count++;
}

void vb_host_peer_answer(struct vb_host_peer *peer, struct vb_local_peer *local_peer)
{
	assert(!local_peer || local_peer == &peer->engine);
	for (unsigned i = 0; i < peer->gid_count; i++)
		vb_lane_set_local_peer(peer->all->host_lane->lane, &peer->gids[i], peer->slot, local_peer);
	if (!peer->is_awaited)
		return;
	assert(peer->all->awaited_count > 0);
	peer->all->awaited_count--;
	peer->is_awaited = false;
}

void vb_host_peer_stay_alone(struct vb_host_peer *peer)
{
	assert(!vb_host_peer_is_connected(peer));
	vb_host_peer_answer(peer, NULL);
	if (peer->state != VB_PEER_IDLE)
		vb_host_peer_become(peer, VB_PEER_IDLE);
}

void vb_host_peers_hear_broker(struct vb_host_peers *all, vb_time now)
{
	all->in_touch_until = (struct vb_deadline){ vb_time_add(now, PATIENCE), true };
}

bool vb_host_peers_broker_is_silent(const struct vb_host_peers *all, vb_time now)
{
	return !all->in_touch_until.is_set || vb_deadline_due(all->in_touch_until, now);
}

void vb_host_peer_put_off(struct vb_host_peer *peer, vb_time now)
{
	assert(states[peer->state].may_be_awaited);
	peer->since = now;
	for (unsigned i = 0; i < peer->gid_count; i++)
		vb_lane_put_off_local_peer(peer->all->host_lane->lane, &peer->gids[i], peer->slot);
}

void vb_host_peer_ask(struct vb_host_peer *peer)
{
	const struct vb_host_lane *d = peer->all->host_lane;

	assert(peer->state == VB_PEER_ASKED);
	assert(peer->gid_count > 0);
	vb_broker_meet(d->process->broker, d->slot.number, &peer->gids[peer->gid_count - 1], peer->slot);
}

bool vb_host_peer_has_use(const struct vb_host_peer *peer)
{
	for (unsigned i = 0; i < peer->gid_count; i++)
		if (vb_lane_has_use_for(peer->all->host_lane->lane, &peer->gids[i], peer->slot))
			return true;
	return false;
}

bool vb_host_peer_has_refused(const struct vb_host_peer *peer)
{
	return peer->reason == VB_LOCAL_IS_OFF || peer->reason == VB_LOCAL_CAPTURES ||
	       peer->reason == VB_LOCAL_IS_FAULTY;
}
