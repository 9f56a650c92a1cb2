/* The program has closed descriptors of ours: close_range(3, ~0), a loop over all numbers, a close() too many.
 *
 * Holds: from then on no number that was ours is used, read, written or closed, for the program may have a file of its
 * own there; connected QPs fail, with the reason, and so do all that are connected later; no thread of ours runs.
 *
 * It is noticed by an errno that our own descriptors never give, or by the broker's thread, which sleeps in poll() on
 * one end of a pipe: the kernel keeps that end while poll() lasts, and tells when the other end is closed. epoll tells
 * nothing of the kind. */
#include "base/invariant.h"
#include "host/client/reap.h"
#include "host/process.h"
#include "host/peers/segments.h"

static atomic_uint losses;

unsigned vb_host_losses(void)
{
	return atomic_load(&losses);
}

bool vb_device_has_lost_descriptors(const struct vb_device *device)
{
	return device->process->has_lost_descriptors;
}

void vb_process_lose_descriptors(struct vb_process *p)
{
	if (atomic_exchange(&p->has_lost_descriptors, true))
		return;
	atomic_fetch_add(&losses, 1);
	vb_broker_reap_lost();
	vb_log(VB_LOG_ERROR, "this program has closed descriptors that are Verbena's (by close_range(), or a loop over "
			     "all numbers?): "
			     "its queue pairs fail; close only what you have opened, or open devices afterwards");
	if (p->broker)
		vb_broker_end(p->broker);
}

static void forget_host_lane(struct vb_host_lane *d)
{
	assert(d->port);
	vb_progress_forget(d);
	vb_port_abandon(d->port, false);
	vb_host_peers_forget(d);
	vb_frames_forget(d);
	d->slot.fd = -1;
}

/* The QPs fail before the mutex is given away: vb_host_lane_unlock. */
void vb_process_forget_descriptors(struct vb_process *p)
{
	vb_process_lose_descriptors(p);
	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++) {
		struct vb_host_lane *d = p->host_lanes[i];
		pthread_mutex_lock(&d->mutex);
		if (d->lane) /* else it could not be started */
			forget_host_lane(d);
		if (i == 0)
			p->pcap = NULL;
		if (d->lane)
			vb_host_lane_unlock(d);
		else
			pthread_mutex_unlock(&d->mutex);
	}
	p->link_fd = p->connections_fd = p->silence_fd = p->alarm_fd = -1;
	vb_segments_forget(p->segments);
	assert(!p->pcap);
	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++)
		vb_progress_cancel(p->host_lanes[i]);
}
