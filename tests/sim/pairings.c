/* Who shares memory with whom. Lanes meet late, each of the two in its own time; they are lost, because the bell's
 * socket broke while both go on by packets, or because a process died, which may be between any two parts of its turn.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine/qp.h"
#include "local.h"

struct local local;

struct pairing *pairing_of(const struct lane *a, const struct lane *b)
{
	for (unsigned i = 0; i < local.count; i++) {
		struct pairing *pairing = &local.pairings[i];
		const struct lane *first = pairing->sides[0].lane, *second = pairing->sides[0].other->lane;
		if ((first == a && second == b) || (first == b && second == a))
			return pairing;
	}
	return NULL;
}

static void decide(struct side *side, enum fate fate, vb_time at)
{
	side->fate = fate;
	side->fate_at = at;
	event_add(at, EVENT_FATE, side);
}

static vb_time within(vb_time span)
{
	return after((vb_time)below((uint32_t)(span / VB_NS) + 1) * VB_NS);
}

/* Both are willing; each tells its lane when it has heard that. */
static void arrange(struct pairing *pairing, vb_time span)
{
	for (unsigned i = 0; i < 2; i++) {
		way_close(&pairing->ways[i]);
		way_open(&pairing->ways[i]);
	}
	pairing->generation++;
	for (unsigned i = 0; i < pairing->side_count; i++)
		decide(&pairing->sides[i], MEET, within(span));
}

static void pairing_open(struct pairing *pairing, struct lane *a, struct lane *b)
{
	static const uint32_t limits[] = { 0, 1, VB_LOCAL_LEND_MIN, 10000 };
	static const uint32_t refusals[] = { 0, 0, 0, 10000, 1000000 };
	static const uint32_t holds[] = { 0, 5, 20 }, lates[] = { 300, 20000, 1000000 };
	*pairing = (struct pairing){ .side_count = a == b ? 1 : 2,
		.lend_from = limits[below(4)],
		.pull_from = limits[below(4)],
		.fault_ppm = chance(200000) ? 1000 : 0,
		.refusal_ppm = refusals[below(5)],
		.maps = chance(400000),
		.hold = (vb_time)holds[below(3)] * VB_US,
		.late = (vb_time)lates[below(3)] * VB_US,
		.excused_until = world.now };
	for (unsigned i = 0; i < 2; i++) {
		struct side *side = &pairing->sides[i];
		unsigned other = a == b ? 0 : 1 - i;
		*side = (struct side){ .pairing = pairing,
			.other = &pairing->sides[other],
			.lane = i ? b : a,
			.in = &pairing->ways[other],
			.out = &pairing->ways[i] };
	}
	if (chance(850000))
		arrange(pairing, chance(500000) ? 0 : 3 * VB_MS);
}

void local_open(void)
{
	unsigned lanes = 0;
	struct lane *all[MAX_HOSTS * MAX_LANES];
	for (unsigned i = 0; i < world.host_count; i++)
		for (unsigned k = 0; k < world.hosts[i].lane_count; k++)
			all[lanes++] = &world.hosts[i].lanes[k];
	memset(&local, 0, sizeof(local));
	local.pairings = calloc(lanes * lanes, sizeof(*local.pairings));
	for (unsigned i = 0; i < lanes; i++) {
		vb_lane_publish_epochs(all[i]->lane, all[i]->host->epochs);
		for (unsigned k = 0; k <= i; k++)
			pairing_open(&local.pairings[local.count++], all[i], all[k]);
	}
}

/* Whoever is not met by then is not waited for, but may be met later. */
void local_hear_wanted(struct lane *lane)
{
	struct vb_gid gid;
	uint8_t slot;
	while (vb_lane_next_wanted_peer(lane->lane, &gid, &slot)) {
		for (unsigned i = 0; i < local.count; i++)
			for (unsigned k = 0; k < local.pairings[i].side_count; k++) {
				struct side *side = &local.pairings[i].sides[k];
				if (side->lane == lane && side->other->lane->slot == slot)
					event_add(within(chance(700000) ? 100 * VB_US : 3 * VB_MS), EVENT_WISH, side);
			}
	}
}

void local_answer_wanted(struct side *side)
{
	const struct lane *peer = side->other->lane;
	if (!side->is_met)
		vb_lane_set_local_peer(side->lane->lane, &peer->host->gid, peer->slot, NULL);
	lane_wake(side->lane, world.now);
}

/* ---- Fates ------------------------------------------------------------------------------------------------------- */

static void meet(struct side *side)
{
	const struct lane *peer = side->other->lane;
	side->local_peer = malloc(sizeof(*side->local_peer));
	vb_local_peer_init(side->local_peer, side->lane->lane, peer->slot, side->pairing->lend_from);
	vb_local_peer_set_pulling(side->local_peer, side->pairing->pull_from);
	vb_local_peer_set_mapping(side->local_peer, side->pairing->maps);
	if (vb_lane_set_local_peer(side->lane->lane, &peer->host->gid, peer->slot, side->local_peer))
		broken("a local peer cannot be told of");
	side->is_met = true;
	side->part = LOOK;
	side->is_held = false;
	side->idle_transmits = 0;
	side_wake(side, world.now);
	lane_wake(side->lane, world.now);
	trace("lane %u meets lane %u", side->lane->slot, peer->slot);
}

/* The end sends its waiting messages as packets from now on, and other messages may overtake these. */
static void part_from(const struct side *side, struct endpoint *end)
{
	if (end->lane != side->lane || end->peer->lane != side->other->lane)
		return;
	end->connection->lost_lender = true;
	for (unsigned i = end->peer->inbound_head; i != end->peer->inbound_tail; i++)
		end->peer->inbound[i % MAX_QUEUE].way = 0;
}

/* The first of two ends to be gone may be gone for long before the other sees it. */
static void lose(struct side *side)
{
	for (unsigned i = 0; i < world.connection_count; i++)
		for (unsigned k = 0; k < 2; k++)
			part_from(side, &world.connections[i].ends[k]);
	trace("lane %u loses lane %u", side->lane->slot, side->other->lane->slot);
	local_let_go(side->lane->host);
	side->is_met = false;
	vb_local_lost(side->local_peer, world.now);
	for (unsigned i = 0; i < world.connection_count; i++)
		for (unsigned k = 0; k < 2; k++) {
			const struct endpoint *end = &world.connections[i].ends[k];
			if (end->qp && end->qp->local_peer == side->local_peer)
				broken("qpn %06x sends to a local peer that was lost", end->qpn);
		}
	lane_look_around(side->lane, true);
	decide(side, FORGET, chance(500000) ? world.now : within(VB_MS));
}

static void forget(struct side *side)
{
	const struct lane *peer = side->other->lane;
	vb_lane_set_local_peer(side->lane->lane, &peer->host->gid, peer->slot, NULL);
	free(side->local_peer);
	side->local_peer = NULL;
	side->fate = STAY;
	if (!side->other->local_peer && side->other->fate == STAY)
		arrange(side->pairing, 5 * VB_MS);
}

void local_meet_fate(struct side *side)
{
	if (side->fate == STAY || side->fate_at != world.now)
		return;
	if (side->lane->host->is_dead || vb_time_before(world.now, side->lane->paused_until)) {
		decide(side, side->fate, after(10 * VB_US));
		return;
	}
	enum fate fate = side->fate;
	side->fate = STAY;
	if (fate == MEET)
		meet(side);
	else if (fate == LOSE)
		lose(side);
	else
		forget(side);
}

/* ---- Disasters --------------------------------------------------------------------------------------------------- */

static bool is_whole(const struct pairing *pairing)
{
	for (unsigned i = 0; i < pairing->side_count; i++)
		if (!pairing->sides[i].is_met || pairing->sides[i].fate != STAY)
			return false;
	return true;
}

static void excuse(struct pairing *pairing, vb_time span)
{
	vb_time until = after(span + 2 * VB_S);
	if (vb_time_before(pairing->excused_until, until))
		pairing->excused_until = until;
}

/* The bell's socket broke. Who has something under way cannot know what became of it; the others go on by packets. */
void local_part(void)
{
	struct pairing *pairing = local.count ? &local.pairings[below(local.count)] : NULL;
	if (!pairing || pairing->side_count == 1 || !is_whole(pairing))
		return;
	local.losses++;
	excuse(pairing, 5 * VB_MS);
	for (unsigned i = 0; i < 2; i++)
		decide(&pairing->sides[i], LOSE, within(5 * VB_MS));
}

static bool may_die(const struct host *host)
{
	for (unsigned i = 0; i < local.count; i++)
		for (unsigned k = 0; k < local.pairings[i].side_count; k++)
			if (local.pairings[i].sides[k].lane->host == host && !is_whole(&local.pairings[i]))
				return false;
	return !host->is_dead;
}

/* A process is gone, between any two parts of what it did. Others read on in what it told, until they hear of it. */
void local_kill(struct host *host)
{
	vb_time span = (vb_time)(1 + below(20000)) * VB_US;
	if (!may_die(host))
		return;
	trace("host %u dies", host->index);
	local.kills++;
	host->is_dead = true;
	for (unsigned i = 0; i < host->lane_count; i++)
		lane_pause(&host->lanes[i], span);
	for (unsigned i = 0; i < local.count; i++) {
		struct pairing *pairing = &local.pairings[i];
		struct side *own = &pairing->sides[pairing->sides[0].lane->host != host];
		if (own->lane->host != host)
			continue;
		excuse(pairing, span);
		if (own->other->lane->host != host)
			decide(own->other, LOSE, within(2 * span));
	}
	for (unsigned i = 0; i < world.connection_count; i++)
		if (world.connections[i].ends[0].host == host || world.connections[i].ends[1].host == host)
			connection_silence(&world.connections[i]);
	event_add(after(span), EVENT_REBIRTH, host);
}

/* Another comes in its place, with nothing of what it had. */
void local_rebirth(struct host *host)
{
	trace("host %u is there again", host->index);
	host->is_dead = false;
	local_let_go(host);
	for (unsigned i = 0; i < world.connection_count; i++)
		for (unsigned k = 0; k < 2; k++)
			if (world.connections[i].ends[k].host == host)
				connection_end_vanish(&world.connections[i].ends[k]);
	for (unsigned i = 0; i < local.count; i++)
		for (unsigned k = 0; k < local.pairings[i].side_count; k++)
			if (local.pairings[i].sides[k].lane->host == host)
				lose(&local.pairings[i].sides[k]);
}

bool local_excuses(const struct endpoint *end)
{
	const struct pairing *pairing = pairing_of(end->lane, end->peer->lane);
	return pairing && vb_time_before(world.now, pairing->excused_until);
}

void local_report(void)
{
	printf("  %llu descriptors, %llu answers, %llu pieces pulled (%llu stale, %llu together, %llu mapped), %llu "
	       "pairings lost, %llu deaths\n",
		(unsigned long long)local.descriptors, (unsigned long long)local.answers,
		(unsigned long long)local.pulls, (unsigned long long)local.stale, (unsigned long long)local.together,
		(unsigned long long)local.mapped, (unsigned long long)local.losses, (unsigned long long)local.kills);
}

void local_close(void)
{
	for (unsigned i = 0; i < local.count; i++) {
		struct pairing *pairing = &local.pairings[i];
		for (unsigned k = 0; k < pairing->side_count; k++) {
			struct side *side = &pairing->sides[k];
			if (side->is_met)
				vb_local_lost(side->local_peer, world.now);
			free(side->local_peer);
		}
		for (unsigned k = 0; k < 2; k++)
			way_close(&pairing->ways[k]);
	}
	free(local.pairings);
	local.pairings = NULL;
	local.count = 0;
}
