/* Descriptors and answers between a host lane's lane and its local peers, by memory.
 *
 * Holds: answers are taken note of before the descriptors that were seen before them are executed; the peer is told
 * what was executed with our next descriptor, after HOLD_BACK at the latest, and before a thread of ours sleeps; when
 * the mutex is given away and no thread is awake to look, every peer knows that it is to wake us (host_lane.c). */
#include "base/invariant.h"
#include "host/peers/host_peer.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HOLD_BACK     (20 * VB_US)  /* so that it leaves with what the program answers */
#define HOLD_BACK_MAX 8             /* descriptors */
#define SENDS_A_TURN  32            /* of VB_SHM_LIST */
#define RING_BACK     (300 * VB_US) /* for what was executed, at most */
#define RING_LATE     (20 * VB_MS)  /* for what the peer does not wait for, by its word */
#define ROUNDS        8             /* with ourselves */
#define QUIET         1000          /* looks in vain; from then on one turn of RARELY looks */
#define RARELY        16
#define LOOKS         8 /* at peers, in one turn that finds nothing */

/* To wake a peer costs both more than a message's copy: while as much is still to be pulled for it as it would be told
 * of, it has work enough, and one bell may do for all. */
static bool may_wake_later(struct vb_host_peer *peer, vb_time now)
{
	if (!peer->engine.puller || peer->exchange.must_ring || peer->exchange.unrung >= peer->exchange.waiting)
		return false;
	if (!peer->exchange.rings_at.is_set)
		peer->exchange.rings_at = (struct vb_deadline){ vb_time_add(now, RING_BACK), true };
	return vb_time_before(now, peer->exchange.rings_at.at);
}

/* A peer may sleep on although requests that it does not wait for are executed. It hears of them when it wakes for
 * something else, and after RING_LATE it is woken: a drain of its queue, or an error behind them, may wait after all.
 * Without a progress thread nobody would wake it then. */
static void urge_late(struct vb_host_peer *peer, vb_time now)
{
	struct vb_deadline *late = &peer->exchange.rings_late_at;

	if (peer->is_ours || !vb_progress_has_thread(peer->all->host_lane) || vb_deadline_due(*late, now))
		vb_shm_urge(peer->shm);
	if (!vb_shm_has_told(peer->shm))
		late->is_set = false;
	else if (!late->is_set)
		*late = (struct vb_deadline){ vb_time_add(now, RING_LATE), true };
}

/* A peer that only waits for room is woken with what is sent soon. */
static void wake(struct vb_host_peer *peer, vb_time now)
{
	urge_late(peer, now);
	if ((peer->exchange.tell_at.is_set && !vb_shm_has_published(peer->shm)) || may_wake_later(peer, now))
		return;
	assert(vb_host_peer_is_ready(peer));
	peer->exchange.unrung = 0;
	peer->exchange.must_ring = peer->exchange.rings_at.is_set = false;
	if (vb_shm_must_wake(peer->shm) && peer->bell >= 0)
		syscall(SYS_sendto, peer->bell, "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
	peer->exchange.rings_late_at.is_set &= vb_shm_has_told(peer->shm);
}

/* For the summary, as all that counts here. */
static uint64_t bytes_asked(const struct vb_descriptor *descriptors, unsigned count)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < count; i++)
		if (descriptors[i].place != VB_LOCAL_NOWHERE)
			bytes += descriptors[i].length;
	return bytes;
}

static uint64_t bytes_answered(const struct vb_answer *answers, unsigned count)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < count; i++)
		if (answers[i].kind == VB_ANSWER_READ)
			bytes += answers[i].length;
	return bytes;
}

static bool counts(const struct vb_host_peer *peer)
{
	return peer->all->host_lane->paths;
}

/* ---- In ---------------------------------------------------------------------------------------------------------- */

static bool take_answers(struct vb_host_peer *peer, vb_time now)
{
	struct vb_answer *answers = peer->all->answers;
	struct vb_local_heap heap = vb_shm_heap_of_answers(peer->shm);
	unsigned count, total = 0;

	do {
		count = vb_shm_take_answers(peer->shm, answers, VB_HOST_PEER_BATCH);
		if (count == 0)
			break;
		vb_local_answered(&peer->engine, answers, count, &heap, now);
		if (counts(peer))
			peer->received += bytes_answered(answers, count);
		vb_shm_free_answers(peer->shm, count);
		total += count;
	} while (count == VB_HOST_PEER_BATCH && total < VB_SHM_RING);
	return total > 0;
}

static void owe(struct vb_host_peer *peer, unsigned count, vb_time now)
{
	peer->exchange.untold += count;
	if (!peer->exchange.tell_at.is_set)
		peer->exchange.tell_at = (struct vb_deadline){ vb_time_add(now, HOLD_BACK), true };
}

/* One look at the ring. It pulls once, so that the peer learns of the room that this made, and asks for more, while
 * the next is pulled. */
struct look {
	const struct vb_descriptor *descriptors;
	unsigned seen, taken;
};

static void take(struct vb_host_peer *peer, struct look *look, unsigned count, vb_time now)
{
	if (count == 0)
		return;
	assert(look->taken + count <= look->seen);
	vb_shm_free_descriptors(peer->shm, count);
	owe(peer, count, now);
	if (counts(peer))
		peer->received += bytes_asked(&look->descriptors[look->taken], count);
	look->taken += count;
}

static bool execute(struct vb_host_peer *peer, struct look *look, vb_time now)
{
	struct vb_local_heap heap = vb_shm_heap_of_descriptors(peer->shm);
	struct vb_local_room room;

	if (look->taken == look->seen)
		return false;
	uint64_t lent_before = peer->engine.lent_bytes;
	vb_shm_room(peer->shm, VB_SHM_ANSWERING, &room);
	unsigned taken = vb_local_receive(
		&peer->engine, &look->descriptors[look->taken], look->seen - look->taken, &heap, &room, now);
	if (room.answer_count) {
		vb_shm_publish(peer->shm, VB_SHM_ANSWERING, &room);
		peer->exchange.must_ring |= room.is_awaited;
	}
	take(peer, look, taken, now);
	if (counts(peer))
		peer->sent += bytes_answered(room.answers, room.answer_count) + (peer->engine.lent_bytes - lent_before);
	return taken + room.answer_count > 0;
}

static bool pull(struct vb_host_peer *peer, struct look *look, vb_time now)
{
	struct vb_local_pull pull;

	assert(look->taken <= look->seen);
	uint64_t read_before = peer->engine.read_bytes;
	enum vb_local_outcome outcome = VB_PULL_REFUSED;

	if (peer->state == VB_PEER_CLOSING || !vb_local_pull(&peer->engine, &pull, now))
		return false; /* there is no process to pull from, or nothing to pull */
	if (peer->pull_reason == VB_LOCAL_IS_USED)
		outcome = vb_pull(&peer->puller, &pull);
	peer->is_mapped |= peer->puller.has_mapped;
	take(peer, look, vb_local_pulled(&peer->engine, outcome, now), now);
	if (counts(peer))
		peer->received += peer->engine.read_bytes - read_before;
	peer->exchange.tell_at = (struct vb_deadline){ now, true }; /* the peer waits for long messages */
	return true;
}

bool vb_host_peer_receive(struct vb_host_peer *peer, vb_time now)
{
	struct look look = { .descriptors = peer->all->descriptors };

	look.seen = vb_shm_see_descriptors(peer->shm, peer->all->descriptors, VB_HOST_PEER_BATCH);
	bool is_busy = take_answers(peer, now);
	is_busy |= execute(peer, &look, now);
	peer->is_used |= is_busy;
	if (!vb_local_wants_pull(&peer->engine) || !pull(peer, &look, now))
		return is_busy;
	execute(peer, &look, now);
	assert(look.seen <= VB_HOST_PEER_BATCH);
	peer->exchange.waiting = look.seen - look.taken + 1;
	return true;
}

static bool has_work(const struct vb_host_peer *peer)
{
	return vb_local_wants_pull(&peer->engine) || vb_local_is_urgent(&peer->engine);
}

static bool is_looked_at(const struct vb_host_peer *peer)
{
	return !peer->exchange.is_dozing &&
	       (peer->exchange.quiet < QUIET || (peer->all->turns + peer->slot) % RARELY == 0);
}

/* To look again is cheaper than to come again, and the next descriptor is likely to come soon. */
bool vb_host_peers_have_news(struct vb_host_lane *d)
{
	struct vb_host_peers *all = d->peers;

	all->turns++;
	vb_list_for_each (node, &all->connected)
		if (has_work(vb_container_of(node, struct vb_host_peer, link)))
			return true;
	for (unsigned looks = 0; looks < LOOKS; looks += all->awake_count)
		vb_list_for_each (node, &all->connected) {
			const struct vb_host_peer *peer = vb_container_of(node, struct vb_host_peer, link);
			if (is_looked_at(peer) && vb_shm_has_news(peer->shm))
				return true;
		}
	return false;
}

bool vb_host_peers_receive(struct vb_host_lane *d, vb_time now)
{
	struct vb_host_peers *all = d->peers;
	bool is_busy = false;

	if (!all || all->awake_count == 0)
		return false;
	vb_list_for_each (node, &all->connected) {
		struct vb_host_peer *peer = vb_container_of(node, struct vb_host_peer, link);
		if (!is_looked_at(peer))
			continue;
		bool has_news = vb_host_peer_receive(peer, now);
		peer->exchange.quiet = has_news ? 0 : peer->exchange.quiet + 1;
		is_busy |= has_news;
	}
	return is_busy;
}

/* Bounded by what the rings hold: the peer goes on sending. */
void vb_host_peer_receive_all(struct vb_host_peer *peer, vb_time now)
{
	assert(vb_host_peer_is_ready(peer));
	for (unsigned i = 0; i < VB_SHM_RING && vb_host_peer_receive(peer, now); i++)
		;
}

static struct vb_host_peer *ready_peer(const struct vb_host_lane *d, uint8_t slot)
{
	struct vb_host_peer *peer = d->peers ? d->peers->by_slot[slot] : NULL;

	return peer && vb_host_peer_is_ready(peer) ? peer : NULL;
}

void vb_host_peers_take_answers(struct vb_host_lane *d, uint8_t slot, vb_time now)
{
	struct vb_host_peer *peer = ready_peer(d, slot);

	if (peer)
		take_answers(peer, now);
}

void vb_host_peers_catch_up(struct vb_host_lane *d, uint8_t slot, vb_time now)
{
	struct vb_host_peer *peer = ready_peer(d, slot);

	if (peer)
		vb_host_peer_receive_all(peer, now);
}

/* ---- Out --------------------------------------------------------------------------------------------------------- */

static bool is_held_back(const struct vb_host_peer *peer, vb_time now)
{
	return peer->exchange.untold < HOLD_BACK_MAX && peer->exchange.tell_at.is_set &&
	       vb_time_before(now, peer->exchange.tell_at.at);
}

/* False: there is no more, for the moment. */
static bool send_batch(struct vb_host_peer *peer, vb_time now, bool *is_busy)
{
	struct vb_local_room room;

	vb_shm_room(peer->shm, VB_SHM_ASKING, &room);
	vb_local_transmit(&peer->engine, &room, now);
	vb_shm_publish(peer->shm, VB_SHM_ASKING, &room);
	peer->exchange.must_ring |= room.descriptor_count > 0;
	peer->exchange.unrung += peer->exchange.untold;
	if (counts(peer))
		peer->sent += bytes_asked(room.descriptors, room.descriptor_count);
	peer->exchange.untold = 0;
	peer->exchange.tell_at.is_set = false;
	peer->exchange.lacks_room = vb_local_wants_transmit(&peer->engine);
	*is_busy |= room.descriptor_count + room.answer_count > 0;
	peer->is_used |= *is_busy;
	return (room.descriptor_count && room.descriptor_count == room.descriptor_max) ||
	       room.answer_count == VB_SHM_BATCH;
}

static bool send_all(struct vb_host_peer *peer, vb_time now)
{
	bool is_busy = false;
	unsigned count = 0;

	while (send_batch(peer, now, &is_busy) && ++count < SENDS_A_TURN)
		;
	return is_busy;
}

/* The lane is both ends: no other thread would drive the other. */
static bool talk_to_ourselves(struct vb_host_peer *peer, vb_time now)
{
	unsigned rounds = 0;

	assert(peer->bell < 0);
	while (rounds < ROUNDS &&
		((vb_local_wants_transmit(&peer->engine) && send_all(peer, now)) | vb_host_peer_receive(peer, now)))
		rounds++;
	peer->all->has_more = rounds == ROUNDS;
	if (!vb_local_wants_transmit(&peer->engine)) /* datagrams were executed, which need no answer */
		peer->exchange.tell_at.is_set = false;
	return rounds > 0;
}

static bool transmit(struct vb_host_peer *peer, vb_time now)
{
	if (peer->is_ours)
		return talk_to_ourselves(peer, now);
	if (!vb_local_wants_transmit(&peer->engine)) {
		peer->exchange.tell_at.is_set = peer->exchange.lacks_room = false;
		return false;
	}
	if (!vb_local_is_urgent(&peer->engine) && is_held_back(peer, now))
		return false;
	return send_all(peer, now);
}

/* Something waits for room that only the peer makes: our requests, its requests, or our answers to them. */
static bool lacks_room(const struct vb_host_peer *peer)
{
	return peer->exchange.lacks_room || vb_local_is_urgent(&peer->engine) || vb_shm_has_news(peer->shm);
}

bool vb_host_peer_transmit(struct vb_host_peer *peer, vb_time now)
{
	if (!vb_host_peer_is_ready(peer))
		return false;
	bool is_busy = transmit(peer, now);
	assert(peer->shm);
	if (peer->exchange.is_dozing && peer->exchange.lacks_room && !peer->exchange.awaits_room)
		vb_host_peer_rouse(peer); /* the thread that gives the mutex away lets it doze for room */
	wake(peer, now);
	return is_busy;
}

void vb_host_peer_settle(struct vb_host_peer *peer, vb_time now)
{
	peer->exchange.tell_at.at = now;
	peer->exchange.must_ring = true;
	vb_host_peer_transmit(peer, now);
}

bool vb_host_peers_transmit(struct vb_host_lane *d, vb_time now)
{
	bool is_busy = false;

	if (!d->peers)
		return false;
	vb_list_for_each (node, &d->peers->connected)
		is_busy |= vb_host_peer_transmit(vb_container_of(node, struct vb_host_peer, link), now);
	return is_busy;
}

bool vb_host_peers_transmit_to(struct vb_local_peer *local_peer, vb_time now)
{
	return vb_host_peer_transmit(vb_container_of(local_peer, struct vb_host_peer, engine), now);
}

bool vb_host_peers_are_urgent(const struct vb_host_lane *d)
{
	if (!d->peers)
		return false;
	vb_list_for_each (node, &d->peers->connected)
		if (vb_local_is_urgent(&vb_container_of(node, struct vb_host_peer, link)->engine))
			return true;
	return false;
}

bool vb_host_peers_have_more(const struct vb_host_lane *d)
{
	return d->peers && d->peers->has_more;
}

void vb_host_peers_settle(struct vb_host_lane *d, vb_time now)
{
	if (!d->peers)
		return;
	vb_list_for_each (node, &d->peers->connected)
		vb_host_peer_settle(vb_container_of(node, struct vb_host_peer, link), now);
}

void vb_host_peers_part(struct vb_host_lane *d, vb_time now)
{
	if (!d->peers)
		return;
	vb_list_for_each (node, &d->peers->connected) {
		struct vb_host_peer *peer = vb_container_of(node, struct vb_host_peer, link);
		if (!peer->exchange.untold || vb_shm_dozes(peer->shm))
			continue;
		peer->exchange.tell_at.at = now;
		vb_host_peer_transmit(peer, now);
	}
}

struct vb_deadline vb_host_peers_exchange_deadline(const struct vb_host_peers *all)
{
	struct vb_deadline next = { 0 };

	vb_list_for_each (node, &all->connected) {
		const struct vb_host_peer *peer = vb_container_of(node, struct vb_host_peer, link);
		next = vb_deadline_earlier(next, peer->exchange.tell_at);
		next = vb_deadline_earlier(next, peer->exchange.rings_late_at);
	}
	return next;
}

/* ---- Sleeping ---------------------------------------------------------------------------------------------------- */

bool vb_host_peers_are_awake(const struct vb_host_lane *d)
{
	return d->peers && d->peers->awake_count > 0;
}

void vb_host_peer_rouse(struct vb_host_peer *peer)
{
	if (!peer->exchange.is_dozing || peer->is_ours)
		return;
	peer->exchange.is_dozing = false;
	peer->exchange.quiet = 0;
	peer->all->awake_count++;
	assert(peer->shm);
	vb_shm_rouse(peer->shm);
}

static void doze(struct vb_host_peer *peer)
{
	assert(!peer->exchange.is_dozing);
	assert(peer->all->awake_count > 0);
	peer->exchange.awaits_room = lacks_room(peer);
	vb_shm_doze(peer->shm, peer->exchange.awaits_room);
	peer->exchange.is_dozing = true;
	peer->all->awake_count--;
}

/* Of a peer that was told to wake us: something may have come before it knew. */
static bool has_something(struct vb_host_peer *peer, vb_time now)
{
	bool is_busy = vb_host_peer_receive(peer, now);

	is_busy |= vb_host_peer_transmit(peer, now);
	return is_busy || (!peer->is_ours && lacks_room(peer) && !peer->exchange.awaits_room);
}

bool vb_host_peers_doze(struct vb_host_lane *d, vb_time now)
{
	bool is_quiet = true;

	if (!vb_host_peers_are_awake(d))
		return true;
	vb_list_for_each (node, &d->peers->connected) {
		struct vb_host_peer *peer = vb_container_of(node, struct vb_host_peer, link);
		if (!peer->exchange.is_dozing)
			doze(peer);
	}
	vb_list_for_each (node, &d->peers->connected) {
		struct vb_host_peer *peer = vb_container_of(node, struct vb_host_peer, link);
		if (vb_host_peer_is_ready(peer) && has_something(peer, now)) {
			vb_host_peer_rouse(peer);
			is_quiet = false;
		}
	}
	return is_quiet;
}

void vb_host_peers_rouse(struct vb_host_lane *d)
{
	if (!d->peers)
		return;
	vb_list_for_each (node, &d->peers->connected)
		vb_host_peer_rouse(vb_container_of(node, struct vb_host_peer, link));
}
