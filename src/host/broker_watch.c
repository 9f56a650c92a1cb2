/* What the broker says, and who hears it: of peers the lane, of MADs the connection manager. */
#include "host/worker.h"

#include <stdlib.h>
#include <string.h>
#include "port/udp.h"

/* ---- Asking ----------------------------------------------------------------------------------------------------- */

/* An address of this machine, as far as that can be told without asking the kernel. */
static bool is_ours(const struct vb_worker *w, const struct vb_gid *gid)
{
	if (vb_gid_is_loopback(gid))
		return true;
	vb_list_for_each(node, &w->devices) {
		const struct vb_device_info *info = &vb_container_of(node, struct vb_device, link)->info;
		for (unsigned i = 0; i < info->gid_count; i++)
			if (vb_gid_equal(gid, &info->gids[i].gid))
				return true;
	}
	return false;
}

/* Until the broker has answered: on this machine everybody is one of ours. */
static void assume(struct vb_worker *w, const struct vb_gid *gid)
{
	struct vb_peer_facts facts = { .is_asked = true };

	if (is_ours(w, gid))
		facts = (struct vb_peer_facts){ .is_verbena = true, .receive_buffer = w->slot.receive_buffer };
	vb_lane_set_peer(w->lane, gid, &facts);
}

void vb_device_discover(struct vb_device *device, const struct vb_av *av)
{
	struct vb_worker *w = device->worker;

	if (vb_gid_is_multicast(&av->dgid))
		return;
	if (vb_broker_discover(w->broker, &av->sgid, &av->dgid))
		assume(w, &av->dgid); /* the answer waits for the lane's mutex, which we hold */
}

/* ---- What it says ----------------------------------------------------------------------------------------------- */

static void learn_peer(struct vb_worker *w, const struct vb_broker_notice *notice)
{
	struct vb_peer_facts facts = { .is_verbena = notice->is_verbena, .receive_buffer = notice->receive_buffer };

	vb_worker_lock(w);
	vb_lane_set_peer(w->lane, &notice->gid, &facts);
	vb_worker_unlock(w);
}

/* Whoever attends sleeps on what was behind the descriptor before. */
static void take_channel(struct vb_worker *w)
{
	vb_worker_lock(w);
	if (!w->lane) { /* it could not be started */
		pthread_mutex_unlock(&w->mutex);
		return;
	}
	vb_udp_renew_channel(w->port);
	vb_progress_watch_slot(w);
	vb_worker_unlock(w);
}

static void hear(void *worker, const struct vb_broker_notice *notice)
{
	switch (notice->kind) {
	case VB_BROKER_PEER:
		learn_peer(worker, notice);
		break;
	case VB_BROKER_MAD:
		if (!vb_host_explain_process(notice))
			vb_connections_receive(notice);
		break;
	case VB_BROKER_FAILED:
		vb_connections_undelivered(notice);
		break;
	case VB_BROKER_CHANNEL:
		take_channel(worker);
		break;
	case VB_BROKER_GONE:
		vb_log(VB_LOG_INFO, "the broker is gone; connected queue pairs go on");
		break;
	case VB_BROKER_BACK:
		vb_log(VB_LOG_INFO, "connected to a new broker");
		break;
	}
}

/* ---- Start and stop --------------------------------------------------------------------------------------------- */

int vb_broker_watch_start(struct vb_worker *w, const struct vb_settings *settings)
{
	const struct vb_broker_config config = { .accepts_any = settings->broker_any,
		.libexec = settings->text[VB_SETTING_LIBEXEC],
		.hear = hear,
		.user = w };
	char why[512] = "";

	int rc = vb_broker_connect(&config, &w->broker, why, sizeof(why));
	if (rc == 0)
		rc = vb_broker_get_slot(w->broker, settings->receive_buffer, &w->slot, why, sizeof(why));
	if (rc < 0)
		vb_log(VB_LOG_ERROR, "%s", why);
	else if (w->slot.is_carried)
		vb_log(VB_LOG_INFO, "UDP port 4791 is another user's: what is received comes by his courier, which "
				    "costs throughput; verbena broker --trust USER gives a socket instead");
	return rc;
}

void vb_broker_watch_stop(struct vb_worker *w)
{
	if (!w->broker)
		return;
	if (w->slot.fd >= 0)
		vb_broker_release_slot(w->broker, &w->slot);
	vb_broker_disconnect(w->broker);
	w->broker = NULL;
}
