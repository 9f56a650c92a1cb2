/* A lane's turn towards another lane that shares memory with it, as a live holder's, but for what is taken at a time
 * and when. Between two parts the other side does what it likes, the lane's packets come and go, and the process stands
 * still for a while. A piece is copied in several steps, during which the lane is the copier's and the lender runs on.
 */
#include <string.h>
#include "engine/check.h"
#include "engine/qp.h"
#include "local.h"

#define RETRY (VB_US) /* the lane is another's */

void side_wake(struct side *side, vb_time at)
{
	if (vb_time_before(at, side->lane->paused_until))
		at = side->lane->paused_until;
	if (vb_time_before(at, world.now))
		at = world.now;
	if (side->is_scheduled && !vb_time_before(at, side->wake_at))
		return;
	side->is_scheduled = true;
	side->wake_at = at;
	event_add(at, EVENT_SIDE, side);
}

/* The bell: it rings after a while, and now and then for nothing. */
static void ring_within(struct side *side, bool is_news, vb_time most)
{
	side->is_rung |= is_news;
	if (side->is_met && (is_news || chance(10000)))
		side_wake(side, after((vb_time)below((uint32_t)(most / VB_NS)) * VB_NS));
}

static void ring(struct side *side, bool is_news)
{
	ring_within(side, is_news, (chance(900000) ? 500 : 50000) * VB_NS);
}

/* Late, if nobody waits for any of the answers. */
static void ring_for_answers(struct side *side, struct way *out)
{
	bool is_awaited = out->is_awaited;
	out->is_awaited = false;
	if (is_awaited)
		ring(side, way_tell_answers(out));
	else
		ring_within(side, way_tell_answers(out), side->pairing->late);
}

/* ---- In ---------------------------------------------------------------------------------------------------------- */

static struct endpoint *find_endpoint(uint32_t qpn)
{
	for (unsigned i = 0; i < world.connection_count; i++)
		for (unsigned k = 0; k < 2; k++)
			if (world.connections[i].ends[k].qp && world.connections[i].ends[k].qpn == qpn)
				return &world.connections[i].ends[k];
	return NULL;
}

static bool take_answers(struct side *side)
{
	struct ring *ring = &side->in->answers;
	struct vb_local_heap heap = { side->in->heap, side->in->heap_bytes };
	struct vb_answer answers[RING_MAX];
	unsigned waiting = ring->told - ring->taken, n = waiting ? 1 + below(waiting) : 0;
	for (unsigned i = 0; i < n; i++) {
		answers[i] = side->in->answer[(ring->taken + i) % RING_MAX];
		note((uint64_t)answers[i].kind << 56 | (uint64_t)answers[i].dest_qpn << 24 | answers[i].psn);
		if (is_verbose)
			trace("%06x hears of %06x: answer %u to psn %u, code %u, len %u", answers[i].dest_qpn,
				answers[i].src_qpn, answers[i].kind, answers[i].psn, answers[i].code,
				answers[i].length);
		progress_answered(find_endpoint(answers[i].dest_qpn), answers[i].kind == VB_ANSWER_NOT_READY);
	}
	ring->taken += n;
	local.answers += n;
	if (n)
		vb_local_answered(side->local_peer, answers, n, &heap, world.now);
	side->was_useful |= n > 0;
	return n < waiting;
}

static void note_taken(struct side *side, unsigned count)
{
	struct ring *ring = &side->in->descriptors;
	for (unsigned i = 0; i < count; i++) {
		const struct vb_descriptor *taken = &side->in->descriptor[ring->taken++ % RING_MAX];
		note((uint64_t)taken->opcode << 48 | (uint64_t)taken->dest_qpn << 24 | taken->psn);
	}
	world.packets += count;
	local.descriptors += count;
}

static bool receive(struct side *side)
{
	struct ring *ring = &side->in->descriptors;
	struct vb_local_heap heap = { side->in->heap, side->in->heap_bytes };
	struct vb_descriptor given[RING_MAX], descriptors[RING_MAX];
	struct vb_answer answers[RING_MAX];
	unsigned waiting = side->seen - ring->taken, n = waiting ? 1 + below(waiting) : 0;
	for (unsigned i = 0; i < n; i++) {
		given[i] = side->in->descriptor[(ring->taken + i) % RING_MAX];
		if (is_verbose)
			trace("%06x is asked by %06x: %s psn %u, place %u, len %u%s", given[i].dest_qpn,
				given[i].src_qpn, vb_opcodes[given[i].opcode].name, given[i].psn, given[i].place,
				given[i].length, given[i].flags & VB_LOCAL_ACKED ? ", acked" : "");
	}
	struct vb_local_room room = way_room(side->out, &side->out->answered, descriptors, answers);
	unsigned taken = vb_local_receive(side->local_peer, given, n, &heap, &room, world.now);
	if (taken > n)
		broken("%u descriptors were given, and %u taken", n, taken);
	side->was_useful |= way_put(side->out, &side->out->answered, &room) || taken || (n && side->out->has_more);
	note_taken(side, taken);
	return taken && ring->taken != side->seen && chance(700000);
}

/* ---- What is lent ------------------------------------------------------------------------------------------------ */

static bool is_dead(const struct side *side)
{
	return side->lane->host->is_dead;
}

void side_let_go(struct side *side)
{
	if (!side->copy.is_on)
		return;
	side->copy.is_on = false;
	side->lane->copier = NULL;
}

/* Whose message or READ it is; NULL: nobody's any more. */
static const struct endpoint *copier_of(const struct side *side)
{
	const struct vb_local_peer *local_peer = side->local_peer;
	const struct vb_qp *qp = local_peer->reader ? local_peer->reader : local_peer->puller;
	return qp ? vb_qp_user(qp) : NULL;
}

/* The lender's, by its name. */
static bool is_in_segment(const struct side *side, const struct vb_lent *lent)
{
	const struct block *block = block_of_segment(side->other->lane->host, lent->segment);
	const uint8_t *bytes = (const uint8_t *)(uintptr_t)lent->address;
	return block && bytes >= block->bytes && bytes + lent->length <= block->bytes + block->size;
}

/* Whoever was told of all the segments copies from what he has mapped. */
static bool is_mapped(const struct side *side)
{
	const struct vb_local_pull *pull = &side->copy.pull;
	bool has_all = side->pairing->maps;
	for (unsigned i = 0; i < pull->lent_count; i++) {
		if (pull->lent[i].segment && !is_in_segment(side, &pull->lent[i]))
			broken("%u bytes are said to lie in segment %u", pull->lent[i].length, pull->lent[i].segment);
		has_all &= pull->lent[i].segment != 0;
	}
	return has_all && chance(900000);
}

static void begin_copy(struct side *side)
{
	struct copy *copy = &side->copy;
	uint32_t length = 0, lent = 0;
	for (unsigned i = 0; i < copy->pull.iov_count; i++)
		length += (uint32_t)copy->pull.iov[i].length;
	for (unsigned i = 0; i < copy->pull.lent_count; i++)
		lent += copy->pull.lent[i].length;
	if (length != copy->pull.length || length != lent)
		broken("a piece of %u bytes has places for %u, and is of %u", copy->pull.length, length, lent);
	copy->is_on = true;
	copy->has_proof = false;
	copy->copied = 0;
	copy->outcome = chance(side->pairing->fault_ppm)     ? VB_PULL_FAULT
			: chance(side->pairing->refusal_ppm) ? VB_PULL_REFUSED
							     : VB_PULLED;
	copy->is_mapped = is_mapped(side);
	if (copy->is_mapped)
		copy->outcome = VB_PULLED;
	local.mapped += copy->is_mapped;
	side->lane->copier = side;
	local.pulls++;
	local.together += copy->pull.lent_count > 1;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void copy_some(struct copy *copy, uint32_t length)
{
	for (uint32_t end = copy->copied + length, part; copy->copied < end; copy->copied += part) {
		uint32_t from = copy->copied, to = copy->copied;
		const struct vb_lent *lent = copy->pull.lent;
		const struct vb_iov *iov = copy->pull.iov;
		for (; from >= lent->length; lent++)
			from -= lent->length;
		for (; to >= iov->length; iov++)
			to -= (uint32_t)iov->length;
		part = least(end - copy->copied, least(lent->length - from, (uint32_t)iov->length - to));
		memcpy((uint8_t *)iov->base + to, (const uint8_t *)(uintptr_t)lent->address + from, part);
	}
}

/* Read behind the bytes: what they belonged to is as it was when they were lent. */
static void read_proof(const struct side *side, struct copy *copy)
{
	copy->has_proof = true;
	const uint8_t *epochs = (const uint8_t *)side->other->lane->host->epochs;
	if (memcmp(epochs + copy->pull.proof_at, &copy->pull.proof, copy->pull.proof_bytes) == 0)
		return;
	copy->outcome = VB_PULL_STALE;
	local.stale++;
}

static void end_copy(struct side *side)
{
	struct copy *copy = &side->copy;
	if (copy->outcome == VB_PULL_FAULT && copier_of(side))
		connection_may_break(copier_of(side)->connection);
	if (is_verbose)
		trace("lane %u copies %u bytes of lane %u: outcome %u", side->lane->slot, copy->pull.length,
			side->other->lane->slot, copy->outcome);
	side_let_go(side);
	unsigned taken = vb_local_pulled(side->local_peer, copy->outcome, world.now);
	if (taken > side->seen - side->in->descriptors.taken)
		broken("%u descriptors were taken that were not given", taken);
	note_taken(side, taken);
}

static _Atomic uint32_t *proof_of_read(const struct side *side)
{
	struct vb_epochs *epochs = side->other->lane->host->epochs;
	return (_Atomic uint32_t *)(void *)((uint8_t *)epochs + side->copy.pull.proof_at);
}

/* Something happens to who lends, in the middle. What a READ asks for depends on its key, and as many others as share
 * its count. */
static void strike(const struct side *side, const struct endpoint *end)
{
	uint32_t kind = below(5);
	if (side->local_peer->reader && kind < 2)
		atomic_fetch_add(proof_of_read(side), 1);
	else if (kind < 2)
		connection_give_up(end->peer);
	else if (kind < 4)
		connection_revoke(&end->peer->target, end->connection);
	else
		local_kill(end->peer->host);
}

static bool pull(struct side *side)
{
	struct copy *copy = &side->copy;
	if (!copy->is_on) {
		if (!vb_local_pull(side->local_peer, &copy->pull, world.now))
			return false;
		begin_copy(side);
		side->was_useful = true;
		return true;
	}
	if (chance(20000)) { /* the lane is given away in the middle */
		side_let_go(side);
		return chance(500000);
	}
	if (chance(5000) && copier_of(side))
		strike(side, copier_of(side));
	if (is_dead(side->other) && !copy->is_mapped) /* there is nobody to copy from */
		side_let_go(side);
	if (!copy->is_on)
		return false;
	uint32_t left = copy->pull.length - copy->copied;
	if (copy->outcome == VB_PULLED && left)
		copy_some(copy, chance(500000) ? left : 1 + below(left));
	else if (copy->outcome == VB_PULLED && !copy->has_proof)
		read_proof(side, copy);
	else
		end_copy(side);
	return copy->is_on || chance(500000);
}

/* ---- Out --------------------------------------------------------------------------------------------------------- */

/* Answers alone may wait a little. */
static bool holds_back(struct side *side)
{
	if (vb_local_is_urgent(side->local_peer)) {
		side->is_held = false;
	} else if (!side->is_held) {
		side->is_held = true;
		side->held_until = after(
			side->pairing->hold ? (vb_time)below((uint32_t)(side->pairing->hold / VB_NS)) * VB_NS : 0);
	} else if (!vb_time_before(world.now, side->held_until)) {
		side->is_held = false;
	}
	return side->is_held;
}

static bool has_room(const struct vb_local_room *room)
{
	return room->descriptor_max > 0 && room->answer_max > 0 && room->heap_bytes >= VB_LOCAL_PART;
}

static bool transmit(struct side *side)
{
	struct vb_descriptor descriptors[RING_MAX];
	struct vb_answer answers[RING_MAX];
	if (!vb_local_wants_transmit(side->local_peer) || holds_back(side))
		return false;
	struct vb_local_room room = way_room(side->out, &side->out->requested, descriptors, answers);
	vb_local_transmit(side->local_peer, &room, world.now);
	for (unsigned i = 0; is_verbose && i < room.descriptor_count; i++)
		trace("%06x asks %06x: %s psn %u, place %u, len %u", descriptors[i].src_qpn, descriptors[i].dest_qpn,
			vb_opcodes[descriptors[i].opcode].name, descriptors[i].psn, descriptors[i].place,
			descriptors[i].length);
	bool was_useful = way_put(side->out, &side->out->requested, &room);
	side->was_useful |= was_useful || side->out->has_more;
	side->idle_transmits = was_useful || !has_room(&room) ? 0 : side->idle_transmits + 1;
	if (side->idle_transmits > 1000)
		broken("host %u lane %u wants to transmit without end, and has nothing for host %u lane %u",
			side->lane->host->index, side->lane->slot, side->other->lane->host->index,
			side->other->lane->slot);
	return was_useful && chance(300000);
}

/* ---- Turns ------------------------------------------------------------------------------------------------------- */

/* True: this part again. */
static bool do_part(struct side *side)
{
	switch (side->part) {
	case LOOK:
		side->was_useful = side->is_rung = false;
		side->seen = side->in->descriptors.told;
		return false;
	case TAKE_ANSWERS:
		return take_answers(side);
	case RECEIVE:
		return receive(side);
	case PULL:
		return pull(side);
	case TRANSMIT:
		return transmit(side);
	case TELL_ANSWERS:
		ring_for_answers(side->other, side->out);
		return false;
	case TELL_DESCRIPTORS:
		ring(side->other, way_tell_descriptors(side->out));
		return false;
	case FREE:
		ring(side->other, way_free_taken(side->in));
		return false;
	case PARTS:
		break;
	}
	return false;
}

static vb_time some_while(void)
{
	uint32_t kind = below(1000);
	vb_time least = VB_NS;
	return least + (vb_time)below(kind < 960 ? 300 : kind < 998 ? 5000 : 300000) * VB_NS;
}

/* Nothing was done, and nothing has been told or freed since it began. */
static bool may_sleep(const struct side *side)
{
	return !side->was_useful && !side->is_rung;
}

static void go_on(struct side *side, bool is_same_part)
{
	if (!is_same_part)
		side->part = (side->part + 1) % PARTS;
	bool is_over = side->part == LOOK && !is_same_part && may_sleep(side);
	if (!is_over)
		side_wake(side, after(some_while() * (side->copy.is_on && chance(200000) ? 50 : 1)));
	else if (side->is_held)
		side_wake(side, side->held_until);
}

/* After whatever may have given a lane something to say. */
static bool has_work(const struct side *side)
{
	return vb_local_is_urgent(side->local_peer) || (!side->is_held && vb_local_wants_transmit(side->local_peer));
}

void local_look(struct lane *lane, const struct side *but)
{
	for (unsigned i = 0; i < local.count; i++)
		for (unsigned k = 0; k < local.pairings[i].side_count; k++) {
			struct side *side = &local.pairings[i].sides[k];
			if (side->lane == lane && side != but && side->is_met && has_work(side)) {
				side->is_rung = true; /* it may be at the end of its turn */
				side_wake(side, after((vb_time)below(200) * VB_NS));
			}
		}
}

void side_run(struct side *side)
{
	struct lane *lane = side->lane;
	if (!side->is_scheduled || side->wake_at != world.now)
		return;
	side->is_scheduled = false;
	if (!side->is_met)
		return;
	bool is_away = lane->host->is_dead || (lane->copier && lane->copier != side);
	if (is_away || vb_time_before(world.now, lane->paused_until)) {
		side_wake(side, after(RETRY));
		return;
	}
	bool was_urgent = vb_local_is_urgent(side->local_peer);
	bool is_same_part = do_part(side);
	if (side->is_met)
		vb_local_peer_check(side->local_peer);
	lane_look_around(lane, chance(300000) || side->part == FREE);
	if (side->is_met && !was_urgent && vb_local_is_urgent(side->local_peer))
		side->is_rung = true; /* what has just been posted is not to be slept on */
	go_on(side, is_same_part);
	local_look(lane, side); /* a turn answers the bells of requests that go elsewhere, too */
}

void local_let_go(struct host *host)
{
	for (unsigned i = 0; i < host->lane_count; i++)
		if (host->lanes[i].copier)
			side_let_go(host->lanes[i].copier);
}
