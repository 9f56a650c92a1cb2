/* The broker's notices about local peers: introductions, and why there are none.
 *
 * A peer that comes twice is introduced by a broker that has forgotten the first time: while the first socket still
 * stands, the second is closed, by both. */
#include "base/invariant.h"
#include "host/peers/calibration.h"
#include "host/peers/host_peer.h"
#include "os/descriptor.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

/* The host lane that has slot, locked; NULL: none has. One that could not be started has no lane. */
static struct vb_host_lane *lock_host_lane_of(struct vb_process *p, uint8_t slot)
{
	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++) {
		struct vb_host_lane *d = p->host_lanes[i];
		vb_host_lane_lock(d);
		if (d->lane && d->slot.number == slot)
			return d;
		pthread_mutex_unlock(&d->mutex);
	}
	return NULL;
}

/* ---- Introductions ----------------------------------------------------------------------------------------------- */

static bool has_ended(const struct vb_host_peer *peer)
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
	vb_host_peer_descriptor_close(notice->pidfd);
	return -1;
}

/* The peer learns why, and the broker that another introduction may come. */
static void refuse(struct vb_host_peers *all, const struct vb_broker_notice *notice, enum vb_local_reason reason)
{
	const bool is_unable = reason == VB_LOCAL_NO_MEMORY;
	struct vb_host_peer *peer = is_unable ? vb_host_peer_get(all, notice->slot) : all->by_slot[notice->slot];

	vb_host_peer_say_refusal(notice->socket, is_unable ? VB_LOCAL_UNABLE : reason);
	vb_broker_part(all->host_lane->process->broker, notice->own_slot, notice->slot);
	if (!peer)
		return;
	if (reason != VB_LOCAL_UNWANTED)
		peer->reason = reason;
	vb_host_peer_stay_alone(peer);
	assert(peer->state == VB_PEER_IDLE);
}

static struct vb_host_peer *take(struct vb_host_peers *all, const struct vb_broker_notice *notice)
{
	const unsigned count = 1 + (notice->pidfd >= 0 && !vb_process_has_slot(all->host_lane->process, notice->slot));
	const enum vb_local_reason reason = vb_host_peers_admit(all, notice->slot, count);

	if (reason != VB_LOCAL_IS_USED) {
		refuse(all, notice, reason);
		return NULL;
	}
	struct vb_host_peer *peer = vb_host_peer_get(all, notice->slot);
	if (peer && vb_host_peer_connect(peer, notice->memory, notice->side)) {
		assert(peer->descriptors == 0);
		peer->descriptors = count;
		return peer;
	}
	vb_host_peer_descriptors_give_back(count);
	refuse(all, notice, VB_LOCAL_NO_MEMORY);
	return NULL;
}

static void greet(struct vb_host_peer *peer, const struct vb_broker_notice *notice, vb_time now)
{
	struct vb_host_peers *all = peer->all;

	peer->pid = 0;
	vb_host_peer_watch(peer, notice->socket, pidfd_to_watch(all->host_lane->process, notice));
	peer->pull_reason = vb_host_peer_judge(peer->pidfd, notice->is_same_user);
	peer->is_our_users = peer->pull_reason == VB_LOCAL_IS_USED;
	if (peer->is_our_users)
		peer->pull_reason = VB_LOCAL_NO_ANSWER;
	vb_host_peer_say_hello(peer);
	assert(peer->state == VB_PEER_INTRODUCED);
	peer->is_used = true; /* it has just come */
	vb_host_peers_watch_idle(all, now);
}

/* True: the descriptors are the peer's. */
static bool introduce(struct vb_host_peers *all, const struct vb_broker_notice *notice)
{
	struct vb_host_peer *peer = all->by_slot[notice->slot];
	vb_time now = vb_host_now();

	vb_host_peers_hear_broker(all, now);
	if (notice->slot == all->host_lane->slot.number)
		return false;
	if (peer && vb_host_peer_is_connected(peer)) {
		if (!has_ended(peer))
			return false;
		vb_host_peer_lose(peer, now);
	}
	peer = take(all, notice);
	if (peer)
		greet(peer, notice, now);
	return peer;
}

void vb_host_peers_meet(struct vb_process *p, const struct vb_broker_notice *notice)
{
	bool is_taken = false;

	vb_pull_pays_from(); /* if it is to be measured, then without the mutex */
	struct vb_host_lane *d = lock_host_lane_of(p, notice->own_slot);
	if (d) {
		if (d->peers)
			is_taken = introduce(d->peers, notice);
		else
			vb_host_peer_say_refusal(notice->socket, vb_local_refusal(vb_settings_get())); /* for good */
		vb_host_lane_unlock(d);
	}
	close(notice->memory);
	if (is_taken)
		return;
	vb_host_peer_bell_close_untaken(notice->socket);
	vb_host_peer_descriptor_close(notice->pidfd);
}

/* ---- None -------------------------------------------------------------------------------------------------------- */

static void stay_alone(struct vb_host_peers *all, const struct vb_broker_notice *notice)
{
	struct vb_host_peer *peer = notice->error ? vb_host_peer_get(all, notice->slot) : all->by_slot[notice->slot];

	if (!peer || vb_host_peer_is_connected(peer))
		return;
	vb_host_peers_hear_broker(all, vb_host_now());
	if (notice->error)
		peer->reason = VB_LOCAL_NO_DESCRIPTORS;
	vb_host_peer_stay_alone(peer);
}

/* A new broker says so anew, and the peer has its time from then on: the broker before may have died with the other's
 * question. */
static void stay_unwanted(struct vb_host_peers *all, const struct vb_broker_notice *notice)
{
	struct vb_host_peer *peer = all->by_slot[notice->slot];
	const vb_time now = vb_host_now();

	if (!peer || (peer->state != VB_PEER_ASKED && peer->state != VB_PEER_UNWILLING))
		return;
	vb_host_peers_hear_broker(all, now);
	if (peer->state == VB_PEER_ASKED)
		vb_host_peer_become(peer, VB_PEER_UNWILLING);
	if (peer->reason == VB_LOCAL_NO_ANSWER)
		peer->reason = VB_LOCAL_UNWANTED;
	vb_host_peer_put_off(peer, now);
	assert(peer->state == VB_PEER_UNWILLING);
}

void vb_host_peers_stay_alone(struct vb_process *p, const struct vb_broker_notice *notice)
{
	struct vb_host_lane *d = lock_host_lane_of(p, notice->own_slot);

	if (!d)
		return;
	if (d->peers)
		stay_alone(d->peers, notice);
	vb_host_lane_unlock(d);
}

void vb_host_peers_stay_unwanted(struct vb_process *p, const struct vb_broker_notice *notice)
{
	struct vb_host_lane *d = lock_host_lane_of(p, notice->own_slot);

	if (!d)
		return;
	if (d->peers)
		stay_unwanted(d->peers, notice);
	vb_host_lane_unlock(d);
}

void vb_host_peers_meet_later(struct vb_process *p, const struct vb_broker_notice *notice)
{
	struct vb_host_lane *d = lock_host_lane_of(p, notice->own_slot);

	if (!d)
		return;
	if (d->peers)
		vb_host_peers_hear_broker(d->peers, vb_host_now());
	vb_host_lane_unlock(d);
}

static void lose_broker(struct vb_host_peers *all)
{
	for (unsigned slot = 0; slot < VB_HOST_PEER_SLOTS; slot++) {
		struct vb_host_peer *peer = all->by_slot[slot];
		if (peer && peer->state == VB_PEER_UNWILLING)
			vb_host_peer_become(peer, VB_PEER_ASKED);
	}
}

void vb_host_peers_lose_broker(struct vb_process *p)
{
	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++) {
		struct vb_host_lane *d = p->host_lanes[i];
		if (vb_host_lane_lock(d))
			continue;
		if (d->peers)
			lose_broker(d->peers);
		vb_host_lane_unlock(d);
	}
}
