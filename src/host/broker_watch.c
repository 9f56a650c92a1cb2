/* The process's side of the broker connection once it stands: what the broker says about peers goes to the lane, and
 * when both broker processes are gone, a short-lived thread finds or starts the next. The data path knows nothing of it. */
#include "host/worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define ASK_AGAIN	 (1 * VB_S) /* a peer that did not answer may have been started since */
#define BACKOFF_FIRST_MS 20
#define BACKOFF_MAX_MS	 2000

/* ---- Asking ----------------------------------------------------------------------------------------------------- */

static struct vb_asked *find_asked(struct vb_broker_watch *watch, const struct vb_gid *dgid)
{
	for (unsigned i = 0; i < watch->asked_count; i++)
		if (vb_gid_equal(&watch->asked[i].dgid, dgid))
			return &watch->asked[i];
	return NULL;
}

/* The entry of a peer never asked about; beyond the table's size the oldest question makes room. */
static struct vb_asked *new_asked(struct vb_broker_watch *watch)
{
	struct vb_asked *oldest = &watch->asked[0];

	if (watch->asked_count < VB_ASKED_MAX)
		return &watch->asked[watch->asked_count++];
	for (unsigned i = 1; i < VB_ASKED_MAX; i++)
		if (vb_time_before(watch->asked[i].at, oldest->at))
			oldest = &watch->asked[i];
	return oldest;
}

/* With both mutexes held. */
static void send_question(struct vb_broker_watch *watch, struct vb_asked *asked)
{
	asked->is_sent = vb_broker_discover(watch->broker, &asked->sgid, &asked->dgid) == 0;
}

/* An address of this machine, as far as that can be told without asking the kernel. */
static bool is_ours(const struct vb_worker *w, const struct vb_gid *gid)
{
	static const struct vb_gid ipv6_loopback = { { [15] = 1 } };

	if ((vb_gid_is_ipv4(gid) && gid->raw[12] == 127) || vb_gid_equal(gid, &ipv6_loopback))
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
	struct vb_broker_watch *watch = &device->worker->broker;
	struct vb_asked *asked = find_asked(watch, &av->dgid);
	vb_time now = vb_host_now();

	if (vb_gid_is_multicast(&av->dgid))
		return;
	if (asked && (asked->is_verbena || vb_time_diff(now, asked->at) < ASK_AGAIN))
		return;
	if (!asked) {
		asked = new_asked(watch);
		assume(device->worker, &av->dgid);
	}
	*asked = (struct vb_asked){ .sgid = av->sgid, .dgid = av->dgid, .at = now };
	/* While the broker is being replaced its mutex is held for long; then the question goes out afterwards. */
	if (!atomic_load(&watch->is_gone) && pthread_mutex_trylock(&watch->mutex) == 0) {
		send_question(watch, asked);
		pthread_mutex_unlock(&watch->mutex);
	}
}

/* Questions that a broker which died has not answered. With the broker's mutex held. */
static void ask_again(struct vb_worker *w)
{
	struct vb_broker_watch *watch = &w->broker;

	vb_worker_lock(w);
	for (unsigned i = 0; i < watch->asked_count; i++)
		if (!watch->asked[i].is_answered)
			send_question(watch, &watch->asked[i]);
	vb_worker_unlock(w);
}

/* ---- The broker is gone ----------------------------------------------------------------------------------------- */

/* False: the worker closes. */
static bool pause_ms(struct vb_worker *w, int ms)
{
	struct pollfd stop = { .fd = w->stop_fd, .events = POLLIN };

	return poll(&stop, 1, ms) == 0;
}

static void *recover(void *argument)
{
	struct vb_worker *w = argument;
	struct vb_broker_watch *watch = &w->broker;
	char why[256] = "";
	int rc = -EAGAIN;

	for (int wait = BACKOFF_FIRST_MS; rc < 0; wait = wait * 2 < BACKOFF_MAX_MS ? wait * 2 : BACKOFF_MAX_MS) {
		/* Processes that lost the same broker at the same moment come one after the other. */
		if (!pause_ms(w, wait / 2 + rand() % (wait / 2 + 1)))
			return NULL;
		pthread_mutex_lock(&watch->mutex);
		rc = vb_broker_recover(watch->broker, &w->slot, why, sizeof(why));
		pthread_mutex_unlock(&watch->mutex);
		if (rc < 0)
			vb_log(VB_LOG_INFO, "no new broker yet: %s", why);
	}
	pthread_mutex_lock(&watch->mutex);
	atomic_store(&watch->is_gone, false);
	ask_again(w);
	vb_connections_bind_again(w);
	vb_progress_watch_broker(w, true);
	pthread_mutex_unlock(&watch->mutex);
	vb_log(VB_LOG_INFO, "connected to a new broker");
	return NULL;
}

static void start_recovery(struct vb_worker *w)
{
	struct vb_broker_watch *watch = &w->broker;
	sigset_t all, before;

	vb_log(VB_LOG_INFO, "the broker is gone; connected queue pairs go on");
	vb_progress_watch_broker(w, false);
	if (watch->is_recovering)
		pthread_join(watch->recoverer, NULL); /* of the time before; it has finished */
	atomic_store(&watch->is_gone, true);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	watch->is_recovering = pthread_create(&watch->recoverer, NULL, recover, w) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- What it says ----------------------------------------------------------------------------------------------- */

static void learn_peer(struct vb_worker *w, const struct vb_broker_notice *notice)
{
	struct vb_peer_facts facts = { .is_verbena = notice->is_verbena, .receive_buffer = notice->receive_buffer };

	vb_worker_lock(w);
	struct vb_asked *asked = find_asked(&w->broker, &notice->gid);
	if (asked) {
		asked->is_answered = true;
		asked->is_verbena = notice->is_verbena;
	}
	vb_lane_set_peer(w->lane, &notice->gid, &facts);
	vb_worker_unlock(w);
}

/* What concerns the broker itself; with its mutex held. */
static void heed(struct vb_worker *w, const struct vb_broker_notice *notice)
{
	switch (notice->kind) {
	case VB_BROKER_PEER:
		learn_peer(w, notice);
		break;
	case VB_BROKER_FORGOT:
		vb_connections_bind_again(w);
		break;
	case VB_BROKER_GONE:
		start_recovery(w);
		break;
	case VB_BROKER_NOTHING:
	case VB_BROKER_MAD:
	case VB_BROKER_FAILED:
		break;
	}
}

void vb_broker_watch_serve(struct vb_worker *w)
{
	struct vb_broker_watch *watch = &w->broker;
	struct vb_broker_notice notice;

	do {
		if (atomic_load(&watch->is_gone) || pthread_mutex_trylock(&watch->mutex) != 0)
			return;
		vb_broker_next_notice(watch->broker, &notice);
		heed(w, &notice);
		pthread_mutex_unlock(&watch->mutex);
		if (notice.kind == VB_BROKER_MAD)
			vb_connections_receive(&notice);
		else if (notice.kind == VB_BROKER_FAILED)
			vb_connections_undelivered(&notice);
	} while (notice.kind != VB_BROKER_NOTHING && notice.kind != VB_BROKER_GONE);
}

/* ---- Start and stop --------------------------------------------------------------------------------------------- */

int vb_broker_watch_start(struct vb_worker *w, const struct vb_settings *settings)
{
	struct vb_broker_watch *watch = &w->broker;
	const char *libexec = settings->text[VB_SETTING_LIBEXEC];
	char why[512] = "";

	pthread_mutex_init(&watch->mutex, NULL);
	int rc = vb_broker_connect(settings->broker_any, *libexec ? libexec : NULL, &watch->broker, why, sizeof(why));
	if (rc < 0) {
		vb_log(VB_LOG_ERROR, "%s", why);
		return rc;
	}
	rc = vb_broker_get_slot(watch->broker, settings->receive_buffer, &w->slot, why, sizeof(why));
	if (rc < 0) {
		vb_log(VB_LOG_ERROR, "%s", why);
		vb_broker_disconnect(watch->broker);
	}
	return rc;
}

/* The progress thread has ended. */
void vb_broker_watch_stop(struct vb_worker *w)
{
	struct vb_broker_watch *watch = &w->broker;

	if (watch->is_recovering)
		pthread_join(watch->recoverer, NULL);
	if (!atomic_load(&watch->is_gone))
		vb_broker_release_slot(watch->broker, &w->slot);
	vb_broker_disconnect(watch->broker);
	pthread_mutex_destroy(&watch->mutex);
}
