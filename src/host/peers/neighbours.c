/* Who the neighbours are: from a wish to the greeting, and their end.
 *
 * Holds: an acquaintance is awaited only while the broker is to answer, whose silence is borne for PATIENCE at most,
 * or he himself, who lives; a link is in the lane's table of peers only when he has greeted, and its memory outlives
 * that.
 *
 * Who comes twice is introduced by a broker that has forgotten the first time: if his first link still stands, the
 * second is let go, by both. */
#include "host/peers/calibration.h"
#include "host/peers/neighbours_state.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A broker answers each question, and who was introduced has heard of it too. They do so when they are let, and where
 * many begin at once that takes seconds. After that long a broker's silence sends first requests over the wire. Who
 * was introduced and has not greeted is stopped, or does not get a core, and waited for as when it stood still later:
 * by the wire it would end in an error. Datagrams leave without waiting for longer, as they do where a neighbour is
 * deaf. */
#define PATIENCE (10 * VB_S)
/* Who is there, and has not asked for us, is about to: his QP comes to RTR a moment later. Else by the wire as much
 * comes of a request as by memory. */
#define GRACE (3 * VB_S)
/* What is under way to a process that has ended does not fail before. Programs leave with messages of their peers on
 * the way, when they have had all that they want (ibv_srq_pingpong), and who is told of that amid what he is still to
 * poll fails. */
#define MOURNING (500 * VB_MS)

/* ---- Acquaintances ---------------------------------------------------------------------------------------------- */

static struct vb_acquaintance *acquaint(struct vb_neighbours *all, uint8_t slot)
{
	struct vb_acquaintance *who = all->by_slot[slot];

	if (who)
		return who;
	who = calloc(1, sizeof(*who));
	if (!who)
		return NULL;
	who->slot = slot;
	who->reason = VB_LOCAL_NO_ANSWER;
	all->by_slot[slot] = who;
	return who;
}

/* False: there is no memory for it. */
static bool know_as(struct vb_acquaintance *who, const struct vb_gid *gid)
{
	for (unsigned i = 0; i < who->gid_count; i++)
		if (vb_gid_equal(&who->gids[i], gid))
			return true;
	struct vb_gid *gids = realloc(who->gids, (who->gid_count + 1) * sizeof(*gids));
	if (!gids)
		return false;
	who->gids = gids;
	gids[who->gid_count++] = *gid;
	return true;
}

/* What the lane is told; it is not awaited any more. */
static void answer(struct vb_neighbours *all, struct vb_acquaintance *who, struct vb_neighbour *neighbour)
{
	for (unsigned i = 0; i < who->gid_count; i++)
		vb_lane_set_neighbour(all->driver->lane, &who->gids[i], who->slot, neighbour);
	if (who->is_awaited)
		all->awaited_count--;
	who->is_awaited = false;
}

static void await(struct vb_neighbours *all, struct vb_acquaintance *who, vb_time now)
{
	if (who->is_awaited)
		return;
	who->is_awaited = true;
	who->awaited_since = now;
	all->awaited_count++;
}

static bool is_still_to_come(const struct vb_neighbours *all, const struct vb_acquaintance *who, vb_time now)
{
	const struct vb_deadline *silence = &all->in_touch_until;

	return who->link || (silence->is_set && !vb_deadline_due(*silence, now));
}

static void lose_patience(struct vb_neighbours *all, struct vb_acquaintance *who, vb_time now)
{
	if (!who->is_unwilling)
		who->reason = VB_LOCAL_NO_ANSWER;
	if (who->is_unwilling || !is_still_to_come(all, who, now)) {
		answer(all, who, NULL);
		return;
	}
	who->awaited_since = now;
	for (unsigned i = 0; i < who->gid_count; i++)
		vb_lane_put_off_neighbour(all->driver->lane, &who->gids[i], who->slot);
}

static void note_broker(struct vb_neighbours *all, vb_time now)
{
	all->in_touch_until = (struct vb_deadline){ vb_time_add(now, PATIENCE), true };
}

static vb_time patience_with(const struct vb_acquaintance *who)
{
	return vb_time_add(who->awaited_since, who->is_unwilling ? GRACE : PATIENCE);
}

static struct vb_deadline patience_ends(const struct vb_neighbours *all)
{
	struct vb_deadline next = { 0 };

	for (unsigned slot = 0; all->awaited_count && slot < VB_NEIGHBOUR_SLOTS; slot++) {
		const struct vb_acquaintance *who = all->by_slot[slot];
		if (who && who->is_awaited)
			next = vb_deadline_earlier(next, (struct vb_deadline){ patience_with(who), true });
	}
	return next;
}

static struct vb_deadline mourning_ends(const struct vb_neighbours *all)
{
	struct vb_deadline next = { 0 };

	if (all->ending_count == 0)
		return next;
	vb_list_for_each (node, &all->links)
		next = vb_deadline_earlier(next, vb_container_of(node, struct vb_link, link)->ends_at);
	return next;
}

struct vb_deadline vb_neighbours_next_deadline(const struct vb_driver *d)
{
	if (!d->neighbours)
		return (struct vb_deadline){ 0 };
	struct vb_deadline next = vb_deadline_earlier(patience_ends(d->neighbours), mourning_ends(d->neighbours));
	next = vb_deadline_earlier(next, d->neighbours->idle_at);
	return vb_deadline_earlier(next, vb_links_next_deadline(d->neighbours));
}

/* ---- Links ------------------------------------------------------------------------------------------------------ */

static void watch(struct vb_neighbours *all, int fd, uint32_t name)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = name };

	if (fd >= 0)
		epoll_ctl(all->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* Not cancelled: a thread of the program may be here, with the mutex. */
static void close_fd(int fd)
{
	if (fd >= 0)
		syscall(SYS_close, fd);
}

/* A child may have them too, and then to close them is not enough. */
static void unwatch_fd(struct vb_neighbours *all, int fd)
{
	if (fd >= 0)
		epoll_ctl(all->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

/* A child of that moment closes what it finds here: numbers are forgotten before they may be somebody else's. */
static void unwatch(struct vb_link *link)
{
	int bell = link->bell, pidfd = link->pidfd;

	link->bell = link->pidfd = -1;
	unwatch_fd(link->all, bell);
	unwatch_fd(link->all, pidfd);
	const bool is_closed = bell < 0 || vb_greeting_end(bell, link->is_our_users);
	close_fd(pidfd);
	if (!is_closed)
		vb_introduction_close_bell(bell);
	vb_introduction_give_back(link->descriptors - !is_closed);
	link->descriptors = 0;
}

static struct vb_link *make_link(struct vb_neighbours *all, struct vb_acquaintance *who, int memory, unsigned side)
{
	struct vb_link *link = calloc(1, sizeof(*link));

	if (!link || vb_shm_open(memory, side, &link->shm) < 0) {
		free(link);
		who->reason = VB_LOCAL_NO_MEMORY;
		return NULL;
	}
	link->all = all;
	link->who = who;
	link->bell = link->pidfd = -1;
	link->is_dozing = true; /* nothing is to be looked for yet */
	who->pull_reason = VB_LOCAL_NO_ANSWER;
	vb_neighbour_init(&link->engine, all->driver->lane, who->slot, 0);
	atomic_signal_fence(memory_order_release); /* whoever finds it finds no descriptor that is none */
	who->link = link;
	who->reason = VB_LOCAL_NO_ANSWER;
	who->is_unwilling = false;
	vb_list_add_tail(&all->links, &link->link);
	return link;
}

static void free_link(struct vb_link *link)
{
	if (!link->is_dozing)
		link->all->awake_count--;
	if (link->ends_at.is_set)
		link->all->ending_count--;
	const struct vb_driver *d = link->all->driver;

	vb_list_remove(&link->link);
	link->who->link = NULL;
	link->who->is_asked = false;
	if (!link->is_ours && d->process->broker)
		vb_broker_part(d->process->broker, d->slot.number, link->who->slot);
	unwatch(link);
	vb_shm_close(link->shm);
	vb_puller_close(&link->puller);
	free(link);
}

static void hear_the_last(struct vb_link *link, vb_time now)
{
	for (unsigned i = 0; link->is_greeted && i < VB_SHM_RING && vb_link_receive(link, now); i++)
		;
}

/* For good. */
static bool has_refused(const struct vb_acquaintance *who)
{
	return who->reason == VB_LOCAL_IS_OFF || who->reason == VB_LOCAL_CAPTURES || who->reason == VB_LOCAL_IS_FAULTY;
}

/* It said so: one that says nothing has no reason yet. */
static bool is_full(const struct vb_acquaintance *who)
{
	return who->reason == VB_LOCAL_FULL || who->reason == VB_LOCAL_UNABLE;
}

static void ask_for(struct vb_neighbours *all, struct vb_acquaintance *who)
{
	struct vb_driver *d = all->driver;

	who->is_asked = true;
	vb_broker_meet(d->process->broker, d->slot.number, &who->gids[who->gid_count - 1], who->slot);
}

/* A neighbour that lets go may be about to connect: its QP asks, and meets our question. */
static void lose(struct vb_link *link, vb_time now)
{
	struct vb_acquaintance *who = link->who;
	struct vb_neighbours *all = link->all;
	const bool is_let_go = link->is_let_go;

	hear_the_last(link, now);
	vb_local_lost(&link->engine, now);
	answer(all, who, NULL);
	if (link->is_greeted)
		who->reason = link->is_let_go ? VB_LOCAL_IDLE : VB_LOCAL_ENDED;
	else if (who->reason == VB_LOCAL_NO_ANSWER)
		who->reason = VB_LOCAL_UNABLE;
	free_link(link);
	if (is_let_go && vb_introduction_has_use(all, who))
		ask_for(all, who);
}

/* The broker may have died between telling us and telling him: the introduction was void. If they did meet, or he is
 * no more, the next answer is that we are alone. */
static void give_up_greeting(struct vb_link *link, vb_time now)
{
	struct vb_acquaintance *who = link->who;
	struct vb_neighbours *all = link->all;

	if (has_refused(who) || is_full(who) || !(who->is_awaited || vb_introduction_has_use(all, who))) {
		lose(link, now);
		return;
	}
	vb_local_lost(&link->engine, now);
	free_link(link);
	if (who->reason != VB_LOCAL_UNWANTED)
		who->reason = VB_LOCAL_UNABLE;
	ask_for(all, who);
}

void vb_link_end(struct vb_link *link, vb_time now)
{
	if (!link->is_greeted) {
		give_up_greeting(link, now);
		return;
	}
	if (link->is_let_go) {
		lose(link, now);
		return;
	}
	hear_the_last(link, now);
	unwatch(link);
	link->ends_at = (struct vb_deadline){ vb_time_add(now, MOURNING), true };
	link->all->ending_count++;
}

void vb_link_let_go(struct vb_link *link, vb_time now)
{
	link->is_let_go = true;
	vb_link_settle(link, now);
	vb_greeting_part(link);
	lose(link, now);
}

static void lose_who_ended(struct vb_neighbours *all, vb_time now)
{
	vb_list_for_each_safe (node, &all->links) {
		struct vb_link *link = vb_container_of(node, struct vb_link, link);
		if (vb_deadline_due(link->ends_at, now))
			lose(link, now);
	}
}

void vb_neighbours_be_patient(struct vb_driver *d, vb_time now)
{
	struct vb_neighbours *all = d->neighbours;

	if (all && all->ending_count)
		lose_who_ended(all, now);
	if (all && vb_deadline_due(all->idle_at, now))
		vb_introductions_let_idle_go(all, now);
	if (!all || all->awaited_count == 0)
		return;
	for (unsigned slot = 0; slot < VB_NEIGHBOUR_SLOTS; slot++) {
		struct vb_acquaintance *who = all->by_slot[slot];
		if (who && who->is_awaited && vb_time_is_due(patience_with(who), now))
			lose_patience(all, who, now);
	}
}

void vb_link_greeted(struct vb_link *link)
{
	link->is_greeted = true;
	link->who->reason = VB_LOCAL_IS_USED;
	answer(link->all, link->who, &link->engine);
	vb_link_rouse(link);
}

/* ---- With ourselves --------------------------------------------------------------------------------------------- */

static struct vb_link *link_to_ourselves(struct vb_neighbours *all, struct vb_acquaintance *who)
{
	struct vb_link *link = make_link(all, who, -1, 0);

	if (!link)
		return NULL;
	link->is_ours = true;
	who->pid = (uint32_t)getpid();
	vb_link_greeted(link);
	return link;
}

/* ---- Wishes ----------------------------------------------------------------------------------------------------- */

static void answer_wish(struct vb_neighbours *all, const struct vb_gid *gid, uint8_t slot, vb_time now)
{
	struct vb_driver *d = all->driver;
	struct vb_acquaintance *who = vb_here_has(&all->here, gid, now) ? acquaint(all, slot) : NULL;

	if (!who || !know_as(who, gid) || has_refused(who)) {
		vb_lane_set_neighbour(d->lane, gid, slot, NULL);
		return;
	}
	if (who->link && who->link->ends_at.is_set)
		lose(who->link, now); /* there is somebody new */
	if (slot == d->slot.number && !who->link)
		link_to_ourselves(all, who);
	if (slot == d->slot.number || (who->link && who->link->is_greeted)) {
		vb_lane_set_neighbour(d->lane, gid, slot, who->link ? &who->link->engine : NULL);
		return;
	}
	await(all, who, now);
	if (!who->is_asked && !who->link)
		ask_for(all, who);
}

void vb_neighbours_take_wishes(struct vb_driver *d)
{
	struct vb_gid gid;
	uint8_t slot;

	if (!d->neighbours)
		return;
	vb_introductions_say_open(d->neighbours);
	while (vb_lane_next_wish(d->lane, &gid, &slot))
		answer_wish(d->neighbours, &gid, slot, vb_host_now());
}

static bool is_still_here(struct vb_neighbours *all, struct vb_acquaintance *who, unsigned i)
{
	if (vb_here_has(&all->here, &who->gids[i], all->here.read_at))
		return true;
	vb_lane_set_neighbour(all->driver->lane, &who->gids[i], who->slot, NULL);
	return false;
}

void vb_neighbours_address_change(struct vb_driver *d)
{
	struct vb_neighbours *all = d->neighbours;

	if (!all)
		return;
	vb_here_read(&all->here, vb_host_now());
	for (unsigned slot = 0; all->here.is_read && slot < VB_NEIGHBOUR_SLOTS; slot++) {
		struct vb_acquaintance *who = all->by_slot[slot];
		unsigned kept = 0;
		for (unsigned i = 0; who && i < who->gid_count; i++)
			if (is_still_here(all, who, i))
				who->gids[kept++] = who->gids[i];
		if (who)
			who->gid_count = kept;
	}
}

/* ---- Meeting ---------------------------------------------------------------------------------------------------- */

static bool has_ended(const struct vb_link *link)
{
	struct pollfd fds[] = { { .fd = link->bell }, { .fd = link->pidfd, .events = POLLIN } };
	const struct timespec now = { 0 };

	return link->ends_at.is_set ||
	       syscall(SYS_ppoll, fds, 2, &now, NULL, 0) > 0; /* what he said before may wait in front of the end */
}

/* Another lane of ours ends with us. */
static int pidfd_to_watch(const struct vb_process *p, const struct vb_broker_notice *notice)
{
	if (!vb_process_has_slot(p, notice->slot))
		return notice->pidfd;
	close_fd(notice->pidfd);
	return -1;
}

/* It knows why, and the broker that another introduction may come. */
static void refuse(struct vb_neighbours *all, const struct vb_broker_notice *notice, enum vb_local_reason reason)
{
	const bool is_unable = reason == VB_LOCAL_NO_MEMORY;
	struct vb_acquaintance *who = is_unable ? acquaint(all, notice->slot) : all->by_slot[notice->slot];

	vb_greeting_refuse(notice->socket, is_unable ? VB_LOCAL_UNABLE : reason);
	vb_broker_part(all->driver->process->broker, notice->own_slot, notice->slot);
	if (!who)
		return;
	who->is_asked = false;
	if (reason != VB_LOCAL_UNWANTED)
		who->reason = reason;
	answer(all, who, NULL);
}

static struct vb_link *take(struct vb_neighbours *all, const struct vb_broker_notice *notice)
{
	const unsigned count = 1 + (notice->pidfd >= 0 && !vb_process_has_slot(all->driver->process, notice->slot));
	const enum vb_local_reason reason = vb_introduction_take(all, notice->slot, count);

	if (reason != VB_LOCAL_IS_USED) {
		refuse(all, notice, reason);
		return NULL;
	}
	struct vb_acquaintance *who = acquaint(all, notice->slot);
	struct vb_link *link = who ? make_link(all, who, notice->memory, notice->side) : NULL;
	if (link) {
		link->descriptors = count;
		return link;
	}
	vb_introduction_give_back(count);
	refuse(all, notice, VB_LOCAL_NO_MEMORY);
	return NULL;
}

static void greet(struct vb_link *link, const struct vb_broker_notice *notice, vb_time now)
{
	struct vb_neighbours *all = link->all;
	struct vb_acquaintance *who = link->who;

	who->pid = 0;
	link->bell = notice->socket;
	link->pidfd = pidfd_to_watch(all->driver->process, notice);
	who->pull_reason = vb_greeting_judge(link->pidfd, notice->is_same_user);
	link->is_our_users = who->pull_reason == VB_LOCAL_IS_USED;
	if (link->is_our_users)
		who->pull_reason = VB_LOCAL_NO_ANSWER;
	watch(all, link->bell, who->slot);
	watch(all, link->pidfd, who->slot + VB_NEIGHBOUR_SLOTS);
	vb_greeting_say(link);
	link->is_used = true; /* it has just come */
	vb_introductions_watch(all, now);
}

/* True: the descriptors are the link's. */
static bool introduce(struct vb_neighbours *all, const struct vb_broker_notice *notice)
{
	const struct vb_acquaintance *who = all->by_slot[notice->slot];
	vb_time now = vb_host_now();

	note_broker(all, now);
	if (notice->slot == all->driver->slot.number)
		return false;
	if (who && who->link && !has_ended(who->link))
		return false;
	if (who && who->link)
		lose(who->link, now);
	struct vb_link *link = take(all, notice);
	if (link)
		greet(link, notice, now);
	return link;
}

/* The driver that has slot, locked; NULL: none has. One that could not be started has no lane. */
static struct vb_driver *lock_driver_of(struct vb_process *p, uint8_t slot)
{
	for (unsigned i = 0; i < vb_process_driver_count(p); i++) {
		struct vb_driver *d = p->drivers[i];
		vb_driver_lock(d);
		if (d->lane && d->slot.number == slot)
			return d;
		pthread_mutex_unlock(&d->mutex);
	}
	return NULL;
}

void vb_neighbours_meet(struct vb_process *p, const struct vb_broker_notice *notice)
{
	bool is_taken = false;

	vb_pull_pays_from(); /* if it is to be measured, then while nobody waits */
	struct vb_driver *d = lock_driver_of(p, notice->own_slot);
	if (d) {
		if (d->neighbours)
			is_taken = introduce(d->neighbours, notice);
		else
			vb_greeting_refuse(notice->socket, vb_local_refusal(vb_settings_get())); /* for good */
		vb_driver_unlock(d);
	}
	close(notice->memory);
	if (is_taken)
		return;
	vb_introduction_end_untaken(notice->socket);
	close_fd(notice->pidfd);
}

void vb_neighbours_stay_alone(struct vb_process *p, const struct vb_broker_notice *notice)
{
	struct vb_driver *d = lock_driver_of(p, notice->own_slot);

	if (!d)
		return;
	struct vb_acquaintance *who = d->neighbours ? d->neighbours->by_slot[notice->slot] : NULL;
	if (!who && d->neighbours && notice->error)
		who = acquaint(d->neighbours, notice->slot);
	if (who && !who->link) {
		note_broker(d->neighbours, vb_host_now());
		who->is_asked = false;
		if (notice->error)
			who->reason = VB_LOCAL_NO_DESCRIPTORS;
		answer(d->neighbours, who, NULL);
	}
	vb_driver_unlock(d);
}

void vb_neighbours_stay_unwanted(struct vb_process *p, const struct vb_broker_notice *notice)
{
	struct vb_driver *d = lock_driver_of(p, notice->own_slot);

	if (!d)
		return;
	struct vb_acquaintance *who = d->neighbours ? d->neighbours->by_slot[notice->slot] : NULL;
	if (who && !who->link) {
		const vb_time now = vb_host_now();
		note_broker(d->neighbours, now);
		who->is_unwilling = true;
		who->awaited_since =
			now; /* a new broker says so anew: the one before may have died with the other's question */
		if (who->reason == VB_LOCAL_NO_ANSWER)
			who->reason = VB_LOCAL_UNWANTED;
		for (unsigned i = 0; i < who->gid_count; i++)
			vb_lane_put_off_neighbour(d->lane, &who->gids[i], who->slot);
	}
	vb_driver_unlock(d);
}

void vb_neighbours_lose_broker(struct vb_process *p)
{
	for (unsigned i = 0; i < vb_process_driver_count(p); i++) {
		struct vb_driver *d = p->drivers[i];
		if (vb_driver_lock(d))
			continue;
		for (unsigned slot = 0; d->neighbours && slot < VB_NEIGHBOUR_SLOTS; slot++)
			if (d->neighbours->by_slot[slot])
				d->neighbours->by_slot[slot]->is_unwilling = false;
		vb_driver_unlock(d);
	}
}

void vb_neighbours_meet_later(struct vb_process *p, const struct vb_broker_notice *notice)
{
	struct vb_driver *d = lock_driver_of(p, notice->own_slot);

	if (!d)
		return;
	if (d->neighbours)
		note_broker(d->neighbours, vb_host_now());
	vb_driver_unlock(d);
}

/* ---- Being there ------------------------------------------------------------------------------------------------ */

enum vb_local_reason vb_local_refusal(const struct vb_settings *settings)
{
	if (settings->local_off)
		return VB_LOCAL_IS_OFF;
	if (settings->is_given[VB_SETTING_PCAP] && *settings->text[VB_SETTING_PCAP])
		return VB_LOCAL_CAPTURES;
	if (settings->is_given[VB_SETTING_FAULTS] && *settings->text[VB_SETTING_FAULTS])
		return VB_LOCAL_IS_FAULTY;
	return VB_LOCAL_IS_USED;
}

int vb_neighbours_open(struct vb_driver *d)
{
	struct vb_neighbours *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	all->driver = d;
	vb_list_init(&all->links);
	all->riddles = vb_riddles_create();
	all->epoll_fd = all->riddles ? epoll_create1(EPOLL_CLOEXEC) : -1;
	if (all->epoll_fd < 0) {
		int error = errno;
		vb_riddles_destroy(all->riddles);
		free(all);
		return -error;
	}
	d->neighbours = all;
	return 0;
}

void vb_neighbours_close(struct vb_driver *d)
{
	struct vb_neighbours *all = d->neighbours;

	if (!all)
		return;
	vb_list_for_each_safe (node, &all->links) {
		struct vb_link *link = vb_container_of(node, struct vb_link, link);
		vb_link_settle(link, vb_host_now());
		lose(link, vb_host_now());
	}
	for (unsigned slot = 0; slot < VB_NEIGHBOUR_SLOTS; slot++) {
		if (all->by_slot[slot])
			free(all->by_slot[slot]->gids);
		free(all->by_slot[slot]);
	}
	close(all->epoll_fd);
	vb_riddles_destroy(all->riddles);
	vb_here_free(&all->here);
	free(all);
	d->neighbours = NULL;
}

/* The mutex may have had a holder who stayed in the parent, in the middle of a change of the list. The table is whole
 * at any
 * time: what is in it was complete before, and is taken out before it ends. */
void vb_neighbours_forked(struct vb_driver *d)
{
	struct vb_neighbours *all = d->neighbours;

	for (unsigned slot = 0; all && slot < VB_NEIGHBOUR_SLOTS; slot++) {
		const struct vb_link *link = all->by_slot[slot] ? all->by_slot[slot]->link : NULL;
		if (!link)
			continue;
		close_fd(link->bell);
		close_fd(link->pidfd);
	}
	if (all)
		close(all->epoll_fd);
	vb_introductions_forked();
}

void vb_neighbours_forget(struct vb_driver *d)
{
	if (!d->neighbours)
		return;
	vb_list_for_each (node, &d->neighbours->links) {
		struct vb_link *link = vb_container_of(node, struct vb_link, link);
		link->bell = link->pidfd = -1;
	}
	d->neighbours->epoll_fd = -1;
}

int vb_neighbours_fd(const struct vb_driver *d)
{
	return d->neighbours ? d->neighbours->epoll_fd : -1;
}
