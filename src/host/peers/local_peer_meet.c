/* The broker's notices about local peers: introductions, and why there are none.
 *
 * A peer that comes twice is introduced by a broker that has forgotten the first time: while the first socket still
 * stands, the second is closed, by both. */
#include "base/invariant.h"
#include "host/peers/calibration.h"
#include "host/peers/local_peer.h"
#include "os/descriptor.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

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

/* ---- Introductions ---------------------------------------------------------------------------------------------- */

static bool has_ended(const struct vb_local_peer *peer)
{
	struct pollfd fds[] = { { .fd = peer->bell }, { .fd = peer->pidfd, .events = POLLIN } };

	/* Messages may wait in front of the socket's end. */
	return peer->state == VB_PEER_CLOSING || vb_descriptors_ready(fds, 2) > 0;
}

/* Another lane of this process needs no pidfd: it ends when we do. */
static int pidfd_to_watch(const struct vb_process *p, const struct vb_broker_notice *notice)
{
	if (!vb_process_has_slot(p, notice->slot))
		return notice->pidfd;
	vb_local_peer_descriptor_close(notice->pidfd);
	return -1;
}

/* The peer learns why, and the broker that another introduction may come. */
static void refuse(struct vb_neighbours *all, const struct vb_broker_notice *notice, enum vb_local_reason reason)
{
	const bool is_unable = reason == VB_LOCAL_NO_MEMORY;
	struct vb_local_peer *peer = is_unable ? vb_local_peer_get(all, notice->slot) : all->by_slot[notice->slot];

	vb_local_peer_say_refusal(notice->socket, is_unable ? VB_LOCAL_UNABLE : reason);
	vb_broker_part(all->driver->process->broker, notice->own_slot, notice->slot);
	if (!peer)
		return;
	if (reason != VB_LOCAL_UNWANTED)
		peer->reason = reason;
	vb_local_peer_stay_alone(peer);
	assert(peer->state == VB_PEER_IDLE);
}

static struct vb_local_peer *take(struct vb_neighbours *all, const struct vb_broker_notice *notice)
{
	const unsigned count = 1 + (notice->pidfd >= 0 && !vb_process_has_slot(all->driver->process, notice->slot));
	const enum vb_local_reason reason = vb_local_peers_admit(all, notice->slot, count);

	if (reason != VB_LOCAL_IS_USED) {
		refuse(all, notice, reason);
		return NULL;
	}
	struct vb_local_peer *peer = vb_local_peer_get(all, notice->slot);
	if (peer && vb_local_peer_connect(peer, notice->memory, notice->side)) {
		assert(peer->descriptors == 0);
		peer->descriptors = count;
		return peer;
	}
	vb_local_peer_descriptors_give_back(count);
	refuse(all, notice, VB_LOCAL_NO_MEMORY);
	return NULL;
}

static void greet(struct vb_local_peer *peer, const struct vb_broker_notice *notice, vb_time now)
{
	struct vb_neighbours *all = peer->all;

	peer->pid = 0;
	vb_local_peer_watch(peer, notice->socket, pidfd_to_watch(all->driver->process, notice));
	peer->pull_reason = vb_local_peer_judge(peer->pidfd, notice->is_same_user);
	peer->is_our_users = peer->pull_reason == VB_LOCAL_IS_USED;
	if (peer->is_our_users)
		peer->pull_reason = VB_LOCAL_NO_ANSWER;
	vb_local_peer_say_hello(peer);
	assert(peer->state == VB_PEER_INTRODUCED);
	peer->is_used = true; /* it has just come */
	vb_local_peers_watch_idle(all, now);
}

/* True: the descriptors are the peer's. */
static bool introduce(struct vb_neighbours *all, const struct vb_broker_notice *notice)
{
	struct vb_local_peer *peer = all->by_slot[notice->slot];
	vb_time now = vb_host_now();

	vb_local_peers_hear_broker(all, now);
	if (notice->slot == all->driver->slot.number)
		return false;
	if (peer && vb_local_peer_is_connected(peer)) {
		if (!has_ended(peer))
			return false;
		vb_local_peer_lose(peer, now);
	}
	peer = take(all, notice);
	if (peer)
		greet(peer, notice, now);
	return peer;
}

void vb_neighbours_meet(struct vb_process *p, const struct vb_broker_notice *notice)
{
	bool is_taken = false;

	vb_pull_pays_from(); /* if it is to be measured, then without the mutex */
	struct vb_driver *d = lock_driver_of(p, notice->own_slot);
	if (d) {
		if (d->neighbours)
			is_taken = introduce(d->neighbours, notice);
		else
			vb_local_peer_say_refusal(notice->socket, vb_local_refusal(vb_settings_get())); /* for good */
		vb_driver_unlock(d);
	}
	close(notice->memory);
	if (is_taken)
		return;
	vb_local_peer_bell_close_untaken(notice->socket);
	vb_local_peer_descriptor_close(notice->pidfd);
}

/* ---- None ------------------------------------------------------------------------------------------------------- */

static void stay_alone(struct vb_neighbours *all, const struct vb_broker_notice *notice)
{
	struct vb_local_peer *peer = notice->error ? vb_local_peer_get(all, notice->slot) : all->by_slot[notice->slot];

	if (!peer || vb_local_peer_is_connected(peer))
		return;
	vb_local_peers_hear_broker(all, vb_host_now());
	if (notice->error)
		peer->reason = VB_LOCAL_NO_DESCRIPTORS;
	vb_local_peer_stay_alone(peer);
}

/* A new broker says so anew, and the peer has its time from then on: the broker before may have died with the other's
 * question. */
static void stay_unwanted(struct vb_neighbours *all, const struct vb_broker_notice *notice)
{
	struct vb_local_peer *peer = all->by_slot[notice->slot];
	const vb_time now = vb_host_now();

	if (!peer || (peer->state != VB_PEER_ASKED && peer->state != VB_PEER_UNWILLING))
		return;
	vb_local_peers_hear_broker(all, now);
	if (peer->state == VB_PEER_ASKED)
		vb_local_peer_become(peer, VB_PEER_UNWILLING);
	if (peer->reason == VB_LOCAL_NO_ANSWER)
		peer->reason = VB_LOCAL_UNWANTED;
	vb_local_peer_put_off(peer, now);
	assert(peer->state == VB_PEER_UNWILLING);
}

void vb_neighbours_stay_alone(struct vb_process *p, const struct vb_broker_notice *notice)
{
	struct vb_driver *d = lock_driver_of(p, notice->own_slot);

	if (!d)
		return;
	if (d->neighbours)
		stay_alone(d->neighbours, notice);
	vb_driver_unlock(d);
}

void vb_neighbours_stay_unwanted(struct vb_process *p, const struct vb_broker_notice *notice)
{
	struct vb_driver *d = lock_driver_of(p, notice->own_slot);

	if (!d)
		return;
	if (d->neighbours)
		stay_unwanted(d->neighbours, notice);
	vb_driver_unlock(d);
}

void vb_neighbours_meet_later(struct vb_process *p, const struct vb_broker_notice *notice)
{
	struct vb_driver *d = lock_driver_of(p, notice->own_slot);

	if (!d)
		return;
	if (d->neighbours)
		vb_local_peers_hear_broker(d->neighbours, vb_host_now());
	vb_driver_unlock(d);
}

static void lose_broker(struct vb_neighbours *all)
{
	for (unsigned slot = 0; slot < VB_LOCAL_PEER_SLOTS; slot++) {
		struct vb_local_peer *peer = all->by_slot[slot];
		if (peer && peer->state == VB_PEER_UNWILLING)
			vb_local_peer_become(peer, VB_PEER_ASKED);
	}
}

void vb_neighbours_lose_broker(struct vb_process *p)
{
	for (unsigned i = 0; i < vb_process_driver_count(p); i++) {
		struct vb_driver *d = p->drivers[i];
		if (vb_driver_lock(d))
			continue;
		if (d->neighbours)
			lose_broker(d->neighbours);
		vb_driver_unlock(d);
	}
}
