/* A lane's table of local peers: the peers that it wants, the waits that end, opening and closing. */
#include "base/invariant.h"
#include "host/peers/host_peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/* ---- Waits that end ---------------------------------------------------------------------------------------------- */

static struct vb_deadline next_wait(const struct vb_host_peers *all)
{
	struct vb_deadline next = { 0 };

	if (all->awaited_count == 0 && all->closing_count == 0)
		return next;
	for (unsigned slot = 0; slot < VB_HOST_PEER_SLOTS; slot++)
		if (all->by_slot[slot])
			next = vb_deadline_earlier(next, vb_host_peer_deadline(all->by_slot[slot]));
	return next;
}

struct vb_deadline vb_host_peers_next_deadline(const struct vb_host_lane *d)
{
	if (!d->peers)
		return (struct vb_deadline){ 0 };
	struct vb_deadline next = vb_deadline_earlier(next_wait(d->peers), d->peers->idle_at);
	return vb_deadline_earlier(next, vb_host_peers_exchange_deadline(d->peers));
}

static void end_wait(struct vb_host_peer *peer, vb_time now)
{
	switch (peer->state) {
	case VB_PEER_ASKED:
		peer->reason = VB_LOCAL_NO_ANSWER;
		if (vb_host_peers_broker_is_silent(peer->all, now))
			vb_host_peer_answer(peer, NULL);
		else
			vb_host_peer_put_off(peer, now);
		break;
	case VB_PEER_UNWILLING:
		vb_host_peer_answer(peer, NULL);
		break;
	case VB_PEER_INTRODUCED:
		peer->reason = VB_LOCAL_NO_ANSWER;
		vb_host_peer_put_off(peer, now);
		break;
	case VB_PEER_CLOSING:
		vb_host_peer_lose(peer, now);
		break;
	default:
		assert(!"no deadline in this state");
	}
}

static void end_waits(struct vb_host_peers *all, vb_time now)
{
	for (unsigned slot = 0; slot < VB_HOST_PEER_SLOTS; slot++) {
		struct vb_host_peer *peer = all->by_slot[slot];
		if (peer && vb_deadline_due(vb_host_peer_deadline(peer), now))
			end_wait(peer, now);
	}
}

void vb_host_peers_be_patient(struct vb_host_lane *d, vb_time now)
{
	struct vb_host_peers *all = d->peers;

	if (!all)
		return;
	if (all->awaited_count || all->closing_count)
		end_waits(all, now);
	if (vb_deadline_due(all->idle_at, now))
		vb_host_peers_let_idle_go(all, now);
}

/* ---- Wanted peers ------------------------------------------------------------------------------------------------ */

static void connect_to_ourselves(struct vb_host_peer *peer)
{
	if (!vb_host_peer_connect(peer, -1, 0))
		return;
	assert(peer->state == VB_PEER_INTRODUCED);
	peer->is_ours = true;
	peer->pid = (uint32_t)getpid();
	vb_host_peer_ready(peer);
}

/* The lane is answered later. */
static void wait_for(struct vb_host_peer *peer, vb_time now)
{
	if (peer->state == VB_PEER_IDLE) {
		vb_host_peer_become(peer, VB_PEER_ASKED);
		vb_host_peer_ask(peer);
	}
	vb_host_peer_await(peer, now);
}

static void answer_wanted(struct vb_host_peers *all, const struct vb_gid *gid, uint8_t slot, vb_time now)
{
	struct vb_host_lane *d = all->host_lane;
	struct vb_host_peer *peer = vb_here_has(&all->here, gid, now) ? vb_host_peer_get(all, slot) : NULL;

	if (!peer || !vb_host_peer_know_as(peer, gid) || vb_host_peer_has_refused(peer)) {
		vb_lane_set_local_peer(d->lane, gid, slot, NULL);
		return;
	}
	if (peer->state == VB_PEER_CLOSING)
		vb_host_peer_lose(peer, now); /* another process has the slot now */
	if (slot == d->slot.number && peer->state == VB_PEER_IDLE)
		connect_to_ourselves(peer);
	if (peer->state == VB_PEER_READY)
		vb_lane_set_local_peer(d->lane, gid, slot, &peer->engine);
	else if (slot == d->slot.number)
		vb_lane_set_local_peer(d->lane, gid, slot, NULL);
	else
		wait_for(peer, now);
}

void vb_host_peers_take_wanted(struct vb_host_lane *d)
{
	struct vb_gid gid;
	uint8_t slot;

	if (!d->peers)
		return;
	vb_host_peers_say_open(d->peers);
	while (vb_lane_next_wanted_peer(d->lane, &gid, &slot))
		answer_wanted(d->peers, &gid, slot, vb_host_now());
}

static bool is_still_here(struct vb_host_peers *all, struct vb_host_peer *peer, unsigned i)
{
	if (vb_here_has(&all->here, &peer->gids[i], all->here.read_at))
		return true;
	vb_lane_set_local_peer(all->host_lane->lane, &peer->gids[i], peer->slot, NULL);
	return false;
}

void vb_host_peers_address_change(struct vb_host_lane *d)
{
	struct vb_host_peers *all = d->peers;

	if (!all)
		return;
	vb_here_read(&all->here, vb_host_now());
	for (unsigned slot = 0; all->here.is_read && slot < VB_HOST_PEER_SLOTS; slot++) {
		struct vb_host_peer *peer = all->by_slot[slot];
		unsigned kept = 0;
		for (unsigned i = 0; peer && i < peer->gid_count; i++)
			if (is_still_here(all, peer, i))
				peer->gids[kept++] = peer->gids[i];
		assert(!peer || kept <= peer->gid_count);
		if (peer)
			peer->gid_count = kept;
	}
}

/* ---- Opening and closing ----------------------------------------------------------------------------------------- */

enum vb_local_reason vb_local_refusal(const struct vb_settings *settings)
{
	if (settings->local_off)
		return VB_LOCAL_IS_OFF;
	if (settings->is_given[VB_SETTING_PCAP] && *settings->text[VB_SETTING_PCAP])
		return VB_LOCAL_CAPTURES;
	if (settings->packet_faults)
		return VB_LOCAL_IS_FAULTY;
	return VB_LOCAL_IS_USED;
}

int vb_host_peers_open(struct vb_host_lane *d)
{
	struct vb_host_peers *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	all->host_lane = d;
	vb_list_init(&all->connected);
	all->challenges = vb_challenges_create();
	all->epoll_fd = all->challenges ? epoll_create1(EPOLL_CLOEXEC) : -1;
	if (all->epoll_fd < 0) {
		int error = errno;
		vb_challenges_destroy(all->challenges);
		free(all);
		return -error;
	}
	assert(!d->peers);
	d->peers = all;
	return 0;
}

void vb_host_peers_close(struct vb_host_lane *d)
{
	struct vb_host_peers *all = d->peers;

	if (!all)
		return;
	vb_list_for_each_safe (node, &all->connected) {
		struct vb_host_peer *peer = vb_container_of(node, struct vb_host_peer, link);
		vb_host_peer_settle(peer, vb_host_now());
		vb_host_peer_lose(peer, vb_host_now());
	}
	assert(all->closing_count == 0);
	assert(all->awake_count == 0);
	for (unsigned slot = 0; slot < VB_HOST_PEER_SLOTS; slot++) {
		if (all->by_slot[slot])
			free(all->by_slot[slot]->gids);
		free(all->by_slot[slot]);
	}
	close(all->epoll_fd);
	vb_challenges_destroy(all->challenges);
	vb_here_free(&all->here);
	free(all);
	d->peers = NULL;
}

/* A thread that stayed in the parent may have held the mutex, in the middle of a change of the list. The table is whole
 * at any time: a peer in it was complete before, and loses its descriptors' numbers before they are closed. */
void vb_host_peers_forked(struct vb_host_lane *d)
{
	struct vb_host_peers *all = d->peers;

	for (unsigned slot = 0; all && slot < VB_HOST_PEER_SLOTS; slot++) {
		const struct vb_host_peer *peer = all->by_slot[slot];
		if (!peer)
			continue;
		vb_host_peer_descriptor_close(peer->bell);
		vb_host_peer_descriptor_close(peer->pidfd);
	}
	if (all)
		close(all->epoll_fd);
	vb_host_peer_descriptors_forked();
}

void vb_host_peers_forget(struct vb_host_lane *d)
{
	if (!d->peers)
		return;
	vb_list_for_each (node, &d->peers->connected) {
		struct vb_host_peer *peer = vb_container_of(node, struct vb_host_peer, link);
		peer->bell = peer->pidfd = -1;
	}
	d->peers->epoll_fd = -1;
}

int vb_host_peers_fd(const struct vb_host_lane *d)
{
	return d->peers ? d->peers->epoll_fd : -1;
}
