/* The memory and the socket that this process shares with a local peer: from the introduction to the end.
 *
 * Holds: a peer is in the lane's table of local peers only when its HELLO has come, and its memory outlives that. */
#include "base/invariant.h"
#include "host/peers/host_peer.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

static void watch(struct vb_host_peers *all, int fd, uint32_t name)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = name };

	if (fd >= 0)
		epoll_ctl(all->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* A child may have it too, and then to close it is not enough. */
static void unwatch(struct vb_host_peers *all, int fd)
{
	if (fd >= 0)
		epoll_ctl(all->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

/* A child that is forked at that moment closes what it finds here: numbers are forgotten before they may be another
 * file's. */
static void hang_up(struct vb_host_peer *peer)
{
	const int bell = peer->bell, pidfd = peer->pidfd;

	peer->bell = peer->pidfd = -1;
	unwatch(peer->all, bell);
	unwatch(peer->all, pidfd);
	vb_host_peer_descriptor_close(pidfd);
	assert(bell < 0 || peer->descriptors > 0);
	vb_host_peer_descriptors_give_back(peer->descriptors - (bell >= 0)); /* the bell's when it is closed */
	if (bell >= 0)
		vb_host_peer_bell_close(bell, peer->is_our_users);
	peer->descriptors = 0;
}

bool vb_host_peer_connect(struct vb_host_peer *peer, int memory, unsigned side)
{
	struct vb_host_peers *all = peer->all;

	assert(!peer->shm);
	if (vb_shm_open(memory, side, &peer->shm) < 0) {
		peer->shm = NULL;
		peer->reason = VB_LOCAL_NO_MEMORY;
		return false;
	}
	peer->reason = peer->pull_reason = VB_LOCAL_NO_ANSWER;
	peer->is_ours = peer->is_our_users = peer->is_used = peer->awaits_memory = false;
	peer->proof = VB_PROOF_NONE;
	peer->puller = (struct vb_puller){ 0 };
	peer->exchange = (struct vb_host_peer_exchange){ .is_dozing = true }; /* nothing is to be looked for yet */
	memset(peer->told, 0, sizeof(peer->told));
	vb_local_peer_init(&peer->engine, all->host_lane->lane, peer->slot, 0);
	vb_list_add_tail(&all->connected, &peer->link);
	vb_host_peer_become(peer, VB_PEER_INTRODUCED);
	return true;
}

void vb_host_peer_watch(struct vb_host_peer *peer, int bell, int pidfd)
{
	assert(peer->state == VB_PEER_INTRODUCED);
	assert(peer->bell < 0);
	peer->bell = bell;
	peer->pidfd = pidfd;
	watch(peer->all, bell, peer->slot);
	watch(peer->all, pidfd, peer->slot + VB_HOST_PEER_SLOTS);
}

void vb_host_peer_ready(struct vb_host_peer *peer)
{
	peer->reason = VB_LOCAL_IS_USED;
	vb_host_peer_answer(peer, &peer->engine);
	vb_host_peer_become(peer, VB_PEER_READY);
	vb_host_peer_rouse(peer);
}

/* ---- The end ----------------------------------------------------------------------------------------------------- */

/* The lane has nothing more to do with it. Then it is IDLE or ASKED. */
static void disconnect(struct vb_host_peer *peer, enum vb_host_peer_state then)
{
	const struct vb_host_lane *d = peer->all->host_lane;

	if (!peer->exchange.is_dozing) {
		assert(peer->all->awake_count > 0);
		peer->all->awake_count--;
	}
	peer->exchange.is_dozing = true;
	vb_list_remove(&peer->link);
	if (!peer->is_ours && d->process->broker)
		vb_broker_part(d->process->broker, d->slot.number, peer->slot);
	hang_up(peer);
	vb_shm_close(peer->shm);
	peer->shm = NULL;
	vb_puller_close(&peer->puller);
	vb_host_peer_become(peer, then);
}

static void hear_the_last(struct vb_host_peer *peer, vb_time now)
{
	if (vb_host_peer_is_ready(peer))
		vb_host_peer_receive_all(peer, now);
}

/* why: of one that was a local peer. */
static void lose(struct vb_host_peer *peer, enum vb_local_reason why, vb_time now)
{
	assert(vb_host_peer_is_connected(peer));
	hear_the_last(peer, now);
	vb_local_lost(&peer->engine, now);
	vb_host_peer_answer(peer, NULL);
	if (vb_host_peer_is_ready(peer))
		peer->reason = why;
	else if (peer->reason == VB_LOCAL_NO_ANSWER)
		peer->reason = VB_LOCAL_UNABLE;
	disconnect(peer, VB_PEER_IDLE);
	assert(!peer->is_awaited);
}

void vb_host_peer_lose(struct vb_host_peer *peer, vb_time now)
{
	lose(peer, VB_LOCAL_ENDED, now);
}

/* A peer that lets go may be about to connect: its QP asks, and meets our question. */
void vb_host_peer_parted(struct vb_host_peer *peer, vb_time now)
{
	lose(peer, VB_LOCAL_IDLE, now);
	if (!vb_host_peer_has_use(peer))
		return;
	vb_host_peer_become(peer, VB_PEER_ASKED);
	vb_host_peer_ask(peer);
}

void vb_host_peer_let_go(struct vb_host_peer *peer, vb_time now)
{
	assert(!peer->is_awaited);
	vb_host_peer_settle(peer, now);
	vb_host_peer_say_parted(peer);
	vb_host_peer_parted(peer, now);
}

/* It said so: a peer that says nothing has no reason yet. */
static bool is_full(const struct vb_host_peer *peer)
{
	return peer->reason == VB_LOCAL_FULL || peer->reason == VB_LOCAL_UNABLE;
}

/* The broker may have died between telling us and telling the peer: the introduction was void, and is asked for again.
 * If the two did meet, or the peer is gone, the next answer is that we are alone. */
static void give_up_greeting(struct vb_host_peer *peer, vb_time now)
{
	const bool has_gid = peer->gid_count > 0; /* addresses come and go */

	if (vb_host_peer_has_refused(peer) || is_full(peer) || !has_gid ||
		!(peer->is_awaited || vb_host_peer_has_use(peer))) {
		vb_host_peer_lose(peer, now);
		return;
	}
	vb_local_lost(&peer->engine, now);
	if (peer->reason != VB_LOCAL_UNWANTED)
		peer->reason = VB_LOCAL_UNABLE;
	disconnect(peer, VB_PEER_ASKED);
	vb_host_peer_ask(peer);
}

void vb_host_peer_end(struct vb_host_peer *peer, vb_time now)
{
	if (peer->state == VB_PEER_INTRODUCED) {
		give_up_greeting(peer, now);
		return;
	}
	assert(peer->state == VB_PEER_READY);
	hear_the_last(peer, now);
	assert(!peer->is_ours);
	hang_up(peer);
	peer->since = now;
	vb_host_peer_become(peer, VB_PEER_CLOSING);
}
