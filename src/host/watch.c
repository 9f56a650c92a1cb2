/* Hands the broker's notices to lanes, local peers and the connection manager. */
#include "base/invariant.h"
#include "host/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "port/udp.h"

/* ---- Asking ------------------------------------------------------------------------------------------------------ */

/* An address of this machine, as far as that can be told without asking the kernel. */
static bool is_ours(const struct vb_process *p, const struct vb_gid *gid)
{
	if (vb_gid_is_loopback(gid))
		return true;
	vb_list_for_each (node, &p->devices) {
		const struct vb_device_info *info = &vb_container_of(node, struct vb_device, link)->info;
		for (unsigned i = 0; i < info->gid_count; i++)
			if (vb_gid_equal(gid, &info->gids[i].gid))
				return true;
	}
	return false;
}

static struct vb_peer_facts facts_of(const struct vb_broker_peer *peer)
{
	return (struct vb_peer_facts){ .is_verbena = peer->is_verbena,
		.takes_hellos = peer->takes_hellos,
		.receive_buffer = peer->receive_buffer };
}

/* Assumed until the broker has answered: every process of this machine has Verbena. */
static struct vb_peer_facts assumption(const struct vb_process *p, const struct vb_gid *gid)
{
	if (is_ours(p, gid))
		return (struct vb_peer_facts){ .is_verbena = true,
			.takes_hellos = true,
			.receive_buffer = vb_process_home(p)->slot.receive_buffer };
	return (struct vb_peer_facts){ .is_asked = true };
}

/* The answer waits for the mutexes, which we hold. A peer that another lane asked about may be known already. */
void vb_device_discover(struct vb_device *device, unsigned lanes, const struct vb_av *av)
{
	struct vb_process *p = device->process;

	if (vb_gid_is_multicast(&av->dgid))
		return;
	bool is_new = vb_broker_discover(p->broker, &av->sgid, &av->dgid);
	struct vb_peer_facts facts = assumption(p, &av->dgid);
	struct vb_broker_peer peer;
	if (vb_broker_knows(p->broker, &av->dgid, &peer))
		facts = facts_of(&peer);
	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++)
		if ((lanes >> i & 1) && (is_new || !vb_lane_has_peer(p->host_lanes[i]->lane, &av->dgid)))
			vb_lane_set_peer(p->host_lanes[i]->lane, &av->dgid, &facts);
}

/* ---- Notices ----------------------------------------------------------------------------------------------------- */

static void learn_peer(struct vb_process *p, const struct vb_broker_notice *notice)
{
	struct vb_peer_facts facts = facts_of(&notice->peer);

	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++) {
		vb_host_lane_lock(p->host_lanes[i]);
		vb_lane_set_peer(p->host_lanes[i]->lane, &notice->gid, &facts);
		vb_host_lane_unlock(p->host_lanes[i]);
	}
}

static void take_channel(struct vb_host_lane *d)
{
	vb_host_lane_lock(d);
	if (!d->lane) { /* it could not be started */
		pthread_mutex_unlock(&d->mutex);
		return;
	}
	if (d->slot.is_carried)
		vb_udp_renew_channel(d->port);
	vb_host_lane_unlock(d);
}

/* The notice does not tell which host lane's channel is new; to look at the others' ports anew does no harm. */
static void take_channels(struct vb_process *p)
{
	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++)
		take_channel(p->host_lanes[i]);
}

static void hear(void *process, const struct vb_broker_notice *notice)
{
	switch (notice->kind) {
	case VB_BROKER_PEER:
		learn_peer(process, notice);
		break;
	case VB_BROKER_MAD:
		if (!vb_host_explain_process(process, notice))
			vb_connections_receive(notice);
		break;
	case VB_BROKER_FAILED:
		if (!vb_host_explain_unasked(process, notice))
			vb_connections_undelivered(notice);
		break;
	case VB_BROKER_CHANNEL:
		take_channels(process);
		break;
	case VB_BROKER_INTRODUCTION:
		vb_host_peers_meet(process, notice);
		break;
	case VB_BROKER_ALONE:
		vb_host_peers_stay_alone(process, notice);
		break;
	case VB_BROKER_AWAITED:
		vb_host_peers_stay_unwanted(process, notice);
		break;
	case VB_BROKER_LATER:
		vb_host_peers_meet_later(process, notice);
		break;
	case VB_BROKER_GONE:
		vb_host_peers_lose_broker(process);
		vb_log(VB_LOG_INFO, "the broker is gone; connected queue pairs go on");
		break;
	case VB_BROKER_LOST:
		vb_process_forget_descriptors(process);
		break;
	case VB_BROKER_BACK:
		vb_log(VB_LOG_INFO, "connected to a new broker");
		break;
	}
}

/* ---- Start and stop ---------------------------------------------------------------------------------------------- */

int vb_broker_watch_start(struct vb_process *p, const struct vb_settings *settings)
{
	const struct vb_broker_config config = { .accepts_any = settings->broker_any,
		.libexec = settings->text[VB_SETTING_LIBEXEC],
		.hear = hear,
		.user = p };
	char why[512] = "";
	assert(!p->broker);
	int rc = vb_broker_connect(&config, &p->broker, why, sizeof(why));

	if (rc < 0)
		vb_log(VB_LOG_ERROR, "%s", why);
	else
		p->alarm_fd = vb_broker_alarm_fd(p->broker);
	return rc;
}

int vb_broker_watch_get_slot(struct vb_host_lane *d, const struct vb_settings *settings)
{
	char why[512] = "";
	bool is_further = d->index > 0;

	assert(d->slot.fd < 0);
	int rc = vb_broker_get_slot(
		d->process->broker, settings->receive_buffer, is_further, &d->slot, why, sizeof(why));

	if (rc < 0)
		vb_log(is_further && rc == -EUSERS ? VB_LOG_INFO : VB_LOG_ERROR, "%s", why);
	else if (vb_local_refusal(settings) != VB_LOCAL_IS_USED)
		vb_broker_open(d->process->broker, d->slot.number, true); /* each process that asks is told why not */
	assert((rc == 0) == (d->slot.fd >= 0));
	if (rc == 0 && d->slot.is_carried)
		vb_log(VB_LOG_INFO, "UDP port 4791 is another user's: what is received comes by his forwarder, which "
				    "costs throughput; verbena broker --trust USER gives a socket instead");
	return rc;
}

void vb_broker_watch_stop(struct vb_process *p)
{
	if (!p->broker)
		return;
	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++)
		if (p->host_lanes[i]->slot.fd >= 0)
			vb_broker_release_slot(p->broker, &p->host_lanes[i]->slot);
	p->alarm_fd = -1;
	vb_broker_disconnect(p->broker);
	p->broker = NULL;
}
