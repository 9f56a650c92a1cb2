/* What goes between a driver's lane and its neighbours.
 *
 * Holds: answers are taken note of before the descriptors that were seen before them are executed; what was executed
 * is said with our next descriptor, after HOLD_BACK at the latest, and before anybody sleeps; when the mutex is given
 * away and nobody is awake to look, every neighbour knows that he is to wake us (vb_driver_unlock). */
#include "host/peers/neighbours_state.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HOLD_BACK     (20 * VB_US)  /* so that it leaves with what the program answers */
#define HOLD_BACK_MAX 8             /* descriptors */
#define SENDS_A_TURN  32            /* of VB_SHM_LIST */
#define RING_BACK     (300 * VB_US) /* for what was executed, at most */
#define ROUNDS        8             /* with ourselves */
#define QUIET         1000          /* looks in vain; from then on one turn of RARELY looks */
#define RARELY        16
#define LOOKS         8 /* at neighbours, in one turn that finds nothing */

/* To wake him costs both more than a message's copy: while as much is still to be pulled for him as he would be told
 * of, he does not lack for work, and one bell may say it all. */
static bool may_wake_later(struct vb_link *link, vb_time now)
{
	if (!link->engine.puller || link->must_ring || link->unrung >= link->waiting)
		return false;
	if (!link->rings_at.is_set)
		link->rings_at = (struct vb_deadline){ vb_time_add(now, RING_BACK), true };
	return vb_time_before(now, link->rings_at.at);
}

/* Whoever only waits for room is woken with what is said soon. */
static void wake(struct vb_link *link, vb_time now)
{
	if ((link->tell_at.is_set && !vb_shm_has_published(link->shm)) || may_wake_later(link, now))
		return;
	link->unrung = 0;
	link->must_ring = link->rings_at.is_set = false;
	if (vb_shm_must_wake(link->shm) && link->bell >= 0)
		syscall(SYS_sendto, link->bell, "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
}

/* ---- Counting, for the summary ---------------------------------------------------------------------------------- */

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

static bool counts(const struct vb_link *link)
{
	return link->all->driver->paths;
}

/* ---- In --------------------------------------------------------------------------------------------------------- */

static bool take_answers(struct vb_link *link, vb_time now)
{
	struct vb_answer *answers = link->all->answers;
	struct vb_local_heap heap = vb_shm_heap_of_answers(link->shm);
	unsigned count, total = 0;

	do {
		count = vb_shm_take_answers(link->shm, answers, VB_NEIGHBOUR_BATCH);
		if (count == 0)
			break;
		vb_local_answered(&link->engine, answers, count, &heap, now);
		if (counts(link))
			link->who->received += bytes_answered(answers, count);
		vb_shm_free_answers(link->shm, count);
		total += count;
	} while (count == VB_NEIGHBOUR_BATCH && total < VB_SHM_RING);
	return total > 0;
}

static void owe(struct vb_link *link, unsigned count, vb_time now)
{
	link->untold += count;
	if (!link->tell_at.is_set)
		link->tell_at = (struct vb_deadline){ vb_time_add(now, HOLD_BACK), true };
}

/* What one look sees. It pulls once, so that what it has made room for is said, and asked, while the next is pulled. */
struct look {
	const struct vb_descriptor *descriptors;
	unsigned seen, taken;
};

static void take(struct vb_link *link, struct look *look, unsigned count, vb_time now)
{
	if (count == 0)
		return;
	vb_shm_free_descriptors(link->shm, count);
	owe(link, count, now);
	if (counts(link))
		link->who->received += bytes_asked(&look->descriptors[look->taken], count);
	look->taken += count;
}

static bool execute(struct vb_link *link, struct look *look, vb_time now)
{
	struct vb_local_heap heap = vb_shm_heap_of_descriptors(link->shm);
	struct vb_local_room room;

	if (look->taken == look->seen)
		return false;
	uint64_t lent_before = link->engine.lent_bytes;
	vb_shm_room(link->shm, VB_SHM_ANSWERING, &room);
	unsigned taken = vb_local_receive(
		&link->engine, &look->descriptors[look->taken], look->seen - look->taken, &heap, &room, now);
	if (room.answer_count) {
		vb_shm_publish(link->shm, VB_SHM_ANSWERING, &room);
		link->must_ring = true;
	}
	take(link, look, taken, now);
	if (counts(link))
		link->who->sent +=
			bytes_answered(room.answers, room.answer_count) + (link->engine.lent_bytes - lent_before);
	return taken + room.answer_count > 0;
}

static bool pull(struct vb_link *link, struct look *look, vb_time now)
{
	struct vb_local_pull pull;
	uint64_t read_before = link->engine.read_bytes;
	enum vb_local_outcome outcome = VB_PULL_REFUSED;

	if (link->ends_at.is_set || !vb_local_pull(&link->engine, &pull, now))
		return false; /* from nobody, or nothing */
	if (link->who->pull_reason == VB_LOCAL_IS_USED)
		outcome = vb_pull(&link->puller, &pull);
	link->who->is_mapped |= link->puller.has_mapped;
	take(link, look, vb_local_pulled(&link->engine, outcome, now), now);
	if (counts(link))
		link->who->received += link->engine.read_bytes - read_before;
	link->tell_at = (struct vb_deadline){ now, true }; /* what is long is waited for */
	return true;
}

bool vb_link_receive(struct vb_link *link, vb_time now)
{
	struct look look = { .descriptors = link->all->descriptors };

	look.seen = vb_shm_see_descriptors(link->shm, link->all->descriptors, VB_NEIGHBOUR_BATCH);
	bool is_busy = take_answers(link, now);
	is_busy |= execute(link, &look, now);
	link->is_used |= is_busy;
	if (!vb_local_wants_pull(&link->engine) || !pull(link, &look, now))
		return is_busy;
	execute(link, &look, now);
	link->waiting = look.seen - look.taken + 1;
	return true;
}

static bool has_work(const struct vb_link *link)
{
	return vb_local_wants_pull(&link->engine) || vb_local_is_urgent(&link->engine);
}

static bool is_looked_at(const struct vb_link *link)
{
	return !link->is_dozing && (link->quiet < QUIET || (link->all->turns + link->who->slot) % RARELY == 0);
}

/* To look again is cheaper than to come again, and what comes next is likely to come soon. */
bool vb_neighbours_have_news(struct vb_driver *d)
{
	struct vb_neighbours *all = d->neighbours;

	all->turns++;
	vb_list_for_each (node, &all->links)
		if (has_work(vb_container_of(node, struct vb_link, link)))
			return true;
	for (unsigned looks = 0; looks < LOOKS; looks += all->awake_count)
		vb_list_for_each (node, &all->links) {
			const struct vb_link *link = vb_container_of(node, struct vb_link, link);
			if (is_looked_at(link) && vb_shm_has_news(link->shm))
				return true;
		}
	return false;
}

bool vb_neighbours_receive(struct vb_driver *d, vb_time now)
{
	struct vb_neighbours *all = d->neighbours;
	bool is_busy = false;

	if (!all || all->awake_count == 0)
		return false;
	vb_list_for_each (node, &all->links) {
		struct vb_link *link = vb_container_of(node, struct vb_link, link);
		if (!is_looked_at(link))
			continue;
		bool has_news = vb_link_receive(link, now);
		link->quiet = has_news ? 0 : link->quiet + 1;
		is_busy |= has_news;
	}
	return is_busy;
}

/* Bounded by what the rings hold: others go on to speak. */
void vb_neighbours_catch_up(struct vb_driver *d, uint8_t slot, vb_time now)
{
	struct vb_acquaintance *who = d->neighbours ? d->neighbours->by_slot[slot] : NULL;
	struct vb_link *link = who ? who->link : NULL;

	for (unsigned i = 0; link && link->is_greeted && i < VB_SHM_RING && vb_link_receive(link, now); i++)
		;
}

/* ---- Out -------------------------------------------------------------------------------------------------------- */

static bool is_held_back(const struct vb_link *link, vb_time now)
{
	return link->untold < HOLD_BACK_MAX && link->tell_at.is_set && vb_time_before(now, link->tell_at.at);
}

/* False: there is no more, for the moment. */
static bool send_batch(struct vb_link *link, vb_time now, bool *is_busy)
{
	struct vb_local_room room;

	vb_shm_room(link->shm, VB_SHM_ASKING, &room);
	vb_local_transmit(&link->engine, &room, now);
	vb_shm_publish(link->shm, VB_SHM_ASKING, &room);
	link->must_ring |= room.descriptor_count > 0;
	link->unrung += link->untold;
	if (counts(link))
		link->who->sent += bytes_asked(room.descriptors, room.descriptor_count);
	link->untold = 0;
	link->tell_at.is_set = false;
	link->lacks_room = vb_local_wants_transmit(&link->engine);
	*is_busy |= room.descriptor_count + room.answer_count > 0;
	link->is_used |= *is_busy;
	return (room.descriptor_count && room.descriptor_count == room.descriptor_max) ||
	       room.answer_count == VB_SHM_BATCH;
}

static bool send_all(struct vb_link *link, vb_time now)
{
	bool is_busy = false;
	unsigned count = 0;

	while (send_batch(link, now, &is_busy) && ++count < SENDS_A_TURN)
		;
	return is_busy;
}

static bool says_something(struct vb_link *link, vb_time now)
{
	return vb_local_wants_transmit(&link->engine) && send_all(link, now);
}

/* The lane is both ends: nobody else would drive the other. */
static bool talk_to_ourselves(struct vb_link *link, vb_time now)
{
	unsigned rounds = 0;

	while (rounds < ROUNDS && (says_something(link, now) | vb_link_receive(link, now)))
		rounds++;
	link->all->has_more = rounds == ROUNDS;
	if (!vb_local_wants_transmit(&link->engine)) /* datagrams were executed, of which nothing is said */
		link->tell_at.is_set = false;
	return rounds > 0;
}

static bool transmit(struct vb_link *link, vb_time now)
{
	if (link->is_ours)
		return talk_to_ourselves(link, now);
	if (!vb_local_wants_transmit(&link->engine)) {
		link->tell_at.is_set = link->lacks_room = false;
		return false;
	}
	if (!vb_local_is_urgent(&link->engine) && is_held_back(link, now))
		return false;
	return send_all(link, now);
}

/* Something waits for room that only he makes: what we ask, what he asked, or what we have to say of it. */
static bool lacks_room(const struct vb_link *link)
{
	return link->lacks_room || vb_local_is_urgent(&link->engine) || vb_shm_has_news(link->shm);
}

bool vb_link_transmit(struct vb_link *link, vb_time now)
{
	if (!link->is_greeted)
		return false;
	bool is_busy = transmit(link, now);
	if (link->is_dozing && link->lacks_room && !link->awaits_room)
		vb_link_rouse(link); /* and whoever gives the mutex away lets it doze for room */
	wake(link, now);
	return is_busy;
}

void vb_link_settle(struct vb_link *link, vb_time now)
{
	link->tell_at.at = now;
	link->must_ring = true;
	vb_link_transmit(link, now);
}

bool vb_neighbours_transmit(struct vb_driver *d, vb_time now)
{
	bool is_busy = false;

	if (!d->neighbours)
		return false;
	vb_list_for_each (node, &d->neighbours->links)
		is_busy |= vb_link_transmit(vb_container_of(node, struct vb_link, link), now);
	return is_busy;
}

bool vb_neighbours_transmit_to(struct vb_neighbour *neighbour, vb_time now)
{
	return vb_link_transmit(vb_container_of(neighbour, struct vb_link, engine), now);
}

bool vb_neighbours_are_urgent(const struct vb_driver *d)
{
	if (!d->neighbours)
		return false;
	vb_list_for_each (node, &d->neighbours->links)
		if (vb_local_is_urgent(&vb_container_of(node, struct vb_link, link)->engine))
			return true;
	return false;
}

bool vb_neighbours_have_more(const struct vb_driver *d)
{
	return d->neighbours && d->neighbours->has_more;
}

void vb_neighbours_settle(struct vb_driver *d, vb_time now)
{
	if (!d->neighbours)
		return;
	vb_list_for_each (node, &d->neighbours->links)
		vb_link_settle(vb_container_of(node, struct vb_link, link), now);
}

void vb_neighbours_part(struct vb_driver *d, vb_time now)
{
	if (!d->neighbours)
		return;
	vb_list_for_each (node, &d->neighbours->links) {
		struct vb_link *link = vb_container_of(node, struct vb_link, link);
		if (!link->untold || vb_shm_dozes(link->shm))
			continue;
		link->tell_at.at = now;
		vb_link_transmit(link, now);
	}
}

struct vb_deadline vb_links_next_deadline(const struct vb_neighbours *all)
{
	struct vb_deadline next = { 0 };

	vb_list_for_each (node, &all->links)
		next = vb_deadline_earlier(next, vb_container_of(node, struct vb_link, link)->tell_at);
	return next;
}

/* ---- Sleeping --------------------------------------------------------------------------------------------------- */

bool vb_neighbours_are_awake(const struct vb_driver *d)
{
	return d->neighbours && d->neighbours->awake_count > 0;
}

void vb_link_rouse(struct vb_link *link)
{
	if (!link->is_dozing || link->is_ours)
		return;
	link->is_dozing = false;
	link->quiet = 0;
	link->all->awake_count++;
	vb_shm_rouse(link->shm);
}

static void doze(struct vb_link *link)
{
	link->awaits_room = lacks_room(link);
	vb_shm_doze(link->shm, link->awaits_room);
	if (link->is_dozing)
		return;
	link->is_dozing = true;
	link->all->awake_count--;
}

/* Of a link that dozes: either it has come before he knew, or he will wake us. */
static bool has_something(struct vb_link *link, vb_time now)
{
	bool is_busy = vb_link_receive(link, now);

	is_busy |= vb_link_transmit(link, now);
	return is_busy || (!link->is_ours && lacks_room(link) && !link->awaits_room);
}

bool vb_neighbours_doze(struct vb_driver *d, vb_time now)
{
	bool is_quiet = true;

	if (!vb_neighbours_are_awake(d))
		return true;
	vb_list_for_each (node, &d->neighbours->links) {
		struct vb_link *link = vb_container_of(node, struct vb_link, link);
		if (!link->is_dozing)
			doze(link);
	}
	vb_list_for_each (node, &d->neighbours->links) {
		struct vb_link *link = vb_container_of(node, struct vb_link, link);
		if (link->is_greeted && has_something(link, now)) {
			vb_link_rouse(link);
			is_quiet = false;
		}
	}
	return is_quiet;
}

void vb_neighbours_rouse(struct vb_driver *d)
{
	if (!d->neighbours)
		return;
	vb_list_for_each (node, &d->neighbours->links)
		vb_link_rouse(vb_container_of(node, struct vb_link, link));
}
