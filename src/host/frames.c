/* Frames of raw packet QPs: one socket to send, one tap an interface that flows look at, and the flows.
 *
 * Holds: a process without raw packet QPs has none of this; a tap lives as long as it has flows. Raw packet QPs get the
 * frames that this machine sends by the same interface as with an adapter's loopback: multicast frames, and those to
 * the interface's own address. Over the loopback interface every frame comes back by itself.
 *
 * Not here: which flow takes a frame (roce/steering.c), the system calls (port/ethernet.c). */
#include "base/invariant.h"
#include "host/process.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "port/ethernet.h"

#define FRAMES_AT_A_TIME 64
#define BUFFER_BYTES     (VB_FRAME_MAX + 512)

struct tap {
	struct vb_list link;
	uint32_t ifindex;
	bool is_loopback;
	uint8_t mac[VB_MAC_LENGTH];
	int fd;
	struct vb_steering steering;
};

struct vb_frames {
	int send_fd;
	int epoll_fd; /* of the taps: readable when a frame waits; and of send_fd, while that is full */
	bool is_full;
	struct vb_list taps;
	uint8_t buffer[BUFFER_BYTES];
};

struct vb_device_flow {
	struct vb_frame_flow flow;
	struct tap *tap;
	struct vb_ethernet_filter filter;
};

/* ---- Being there ------------------------------------------------------------------------------------------------- */

/* The thread's effective capabilities; 0: none. */
static unsigned long long capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &header, data))
		return 0;
	return (unsigned long long)data[1].effective << 32 | data[0].effective;
}

/* With the same capabilities it stays allowed: the kernel takes milliseconds to close such a socket, and programs ask
 * for each connection. */
bool vb_host_may_use_frames(void)
{
	static atomic_ullong allowed_with;
	unsigned long long now = capabilities();

	if (now && now == atomic_load(&allowed_with))
		return true;
	int fd = vb_ethernet_open_sender();
	if (fd < 0)
		return false;
	close(fd);
	atomic_store(&allowed_with, now);
	return true;
}

static int open_frames(struct vb_frames **opened)
{
	int fd = vb_ethernet_open_sender();
	struct vb_frames *frames = fd < 0 ? NULL : calloc(1, sizeof(*frames));

	if (!frames) {
		if (fd >= 0)
			close(fd);
		return fd < 0 ? fd : -ENOMEM;
	}
	frames->send_fd = fd;
	frames->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (frames->epoll_fd < 0) {
		int error = errno;
		close(fd);
		free(frames);
		return -error;
	}
	vb_list_init(&frames->taps);
	assert(!frames->is_full);
	*opened = frames;
	return 0;
}

int vb_device_open_frames(struct vb_device *device)
{
	struct vb_host_lane *d = vb_process_home(device->process);
	int rc = vb_host_lane_lock(d);

	if (rc < 0)
		return rc;
	if (!d->frames) {
		rc = open_frames(&d->frames);
		if (rc == 0)
			vb_progress_watch(d, (struct vb_chore){ .fd = d->frames->epoll_fd }); /* the turn looks at it */
	} else if (!vb_host_may_use_frames()) {
		rc = -EPERM; /* the right may have been given up since */
	}
	vb_host_lane_unlock(d);
	return rc;
}

int vb_frames_fd(const struct vb_host_lane *d)
{
	return d->frames ? d->frames->epoll_fd : -1;
}

static void close_tap(struct tap *tap)
{
	vb_list_remove(&tap->link);
	close(tap->fd);
	free(tap);
}

void vb_frames_close(struct vb_host_lane *d)
{
	struct vb_frames *frames = d->frames;

	if (!frames)
		return;
	while (!vb_list_empty(&frames->taps))
		close_tap(vb_container_of(frames->taps.next, struct tap, link));
	close(frames->epoll_fd);
	close(frames->send_fd);
	free(frames);
	d->frames = NULL;
}

void vb_frames_forget(struct vb_host_lane *d)
{
	if (!d->frames)
		return;
	vb_list_for_each (node, &d->frames->taps)
		vb_container_of(node, struct tap, link)->fd = -1;
	d->frames->epoll_fd = d->frames->send_fd = -1;
}

/* ---- Flows ------------------------------------------------------------------------------------------------------- */

static struct tap *find_tap(struct vb_frames *frames, uint32_t ifindex)
{
	vb_list_for_each (node, &frames->taps) {
		struct tap *tap = vb_container_of(node, struct tap, link);
		if (tap->ifindex == ifindex)
			return tap;
	}
	return NULL;
}

static int open_tap(struct vb_device *device, struct tap **opened)
{
	struct vb_frames *frames = vb_process_home(device->process)->frames;
	struct tap *tap = calloc(1, sizeof(*tap));

	if (!tap)
		return -ENOMEM;
	tap->ifindex = device->info.ifindex;
	tap->is_loopback = device->info.is_loopback;
	tap->fd = vb_ethernet_open_receiver(tap->ifindex);
	struct epoll_event event = { .events = EPOLLIN };
	int rc = tap->fd < 0 ? tap->fd : epoll_ctl(frames->epoll_fd, EPOLL_CTL_ADD, tap->fd, &event);
	if (rc < 0) {
		if (tap->fd >= 0) {
			rc = -errno;
			close(tap->fd);
		}
		free(tap);
		return rc;
	}
	vb_ethernet_address(tap->fd, device->info.ifname, tap->mac);
	vb_steering_init(&tap->steering, vb_process_home(device->process)->lane);
	assert(vb_list_empty(&tap->steering.flows));
	vb_list_add_tail(&frames->taps, &tap->link);
	*opened = tap;
	return 0;
}

static bool is_whole_address(const uint8_t mask[VB_MAC_LENGTH])
{
	static const uint8_t ones[VB_MAC_LENGTH] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

	return memcmp(mask, ones, VB_MAC_LENGTH) == 0;
}

/* The frames that the interface must not filter away. */
static struct vb_ethernet_filter filter_of(const struct vb_frame_flow *flow)
{
	struct vb_ethernet_filter filter = { .interest = VB_ETHERNET_OWN };

	switch (flow->kind) {
	case VB_FLOW_SNIFFER:
	case VB_FLOW_ALL_DEFAULT:
		filter.interest = VB_ETHERNET_EVERYTHING;
		break;
	case VB_FLOW_MC_DEFAULT:
		filter.interest = VB_ETHERNET_ALL_MULTICAST;
		break;
	case VB_FLOW_NORMAL:
		if (!is_whole_address(flow->mask.dst_mac))
			break;
		filter.interest = VB_ETHERNET_ADDRESS;
		memcpy(filter.mac, flow->value.dst_mac, VB_MAC_LENGTH);
		break;
	}
	return filter;
}

static int add_flow(struct vb_device *device, struct vb_device_flow *flow)
{
	assert(vb_process_home(device->process)->frames);
	struct tap *tap = find_tap(vb_process_home(device->process)->frames, device->info.ifindex);
	int rc = tap ? 0 : open_tap(device, &tap);

	if (rc < 0)
		return rc;
	assert(tap->ifindex == device->info.ifindex);
	flow->tap = tap;
	rc = vb_ethernet_listen(tap->fd, tap->ifindex, &flow->filter);
	if (rc == 0)
		vb_steering_add(&tap->steering, &flow->flow);
	else if (vb_list_empty(&tap->steering.flows))
		close_tap(tap);
	return rc;
}

int vb_device_steer(struct vb_device *device, const struct vb_frame_flow *wanted, struct vb_device_flow **made)
{
	struct vb_device_flow *flow = malloc(sizeof(*flow));

	if (!flow)
		return -ENOMEM;
	*flow = (struct vb_device_flow){ .flow = *wanted, .filter = filter_of(wanted) };
	vb_list_init(&flow->flow.link);
	int rc = vb_host_lane_lock(vb_process_home(device->process));
	if (rc == 0) {
		rc = add_flow(device, flow);
		vb_host_lane_unlock(vb_process_home(device->process));
	}
	if (rc < 0) {
		free(flow);
		return rc;
	}
	*made = flow;
	return 0;
}

int vb_device_unsteer(struct vb_device *device, struct vb_device_flow *flow)
{
	int rc = vb_host_lane_lock(vb_process_home(device->process));

	if (rc < 0)
		return rc;
	assert(flow->tap);
	vb_steering_remove(&flow->flow);
	vb_ethernet_ignore(flow->tap->fd, flow->tap->ifindex, &flow->filter);
	if (vb_list_empty(&flow->tap->steering.flows))
		close_tap(flow->tap);
	vb_host_lane_unlock(vb_process_home(device->process));
	free(flow);
	return 0;
}

/* ---- A turn ------------------------------------------------------------------------------------------------------ */

static bool comes_back(const struct tap *tap, const struct vb_ethernet_frame *frame)
{
	return (frame->bytes[0] & 1) || memcmp(frame->bytes, tap->mac, VB_MAC_LENGTH) == 0;
}

static unsigned receive(struct tap *tap, uint8_t *buffer, vb_time now)
{
	struct vb_ethernet_frame frame;
	unsigned count = 0;

	for (; count < FRAMES_AT_A_TIME && vb_ethernet_receive(tap->fd, buffer, BUFFER_BYTES, &frame); count++) {
		if (frame.is_outgoing && tap->is_loopback) /* it comes in as well */
			continue;
		bool only_sniffers = frame.is_outgoing && !comes_back(tap, &frame);
		vb_steering_receive(&tap->steering, frame.bytes, frame.length, only_sniffers, now);
	}
	return count;
}

bool vb_frames_receive(struct vb_host_lane *d, vb_time now)
{
	unsigned count = 0;

	assert(d->frames);
	vb_list_for_each (node, &d->frames->taps)
		count += receive(vb_container_of(node, struct tap, link), d->frames->buffer, now);
	return count > 0;
}

/* A full socket is not asked again and again: an interface may be slow, or held up, for as long as it likes. */
static void watch_room(struct vb_frames *frames, bool is_full)
{
	struct epoll_event event = { .events = EPOLLOUT };

	assert(frames->send_fd >= 0 || frames->epoll_fd < 0);
	if (frames->is_full == is_full)
		return;
	frames->is_full = is_full;
	epoll_ctl(frames->epoll_fd, is_full ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, frames->send_fd, &event);
}

bool vb_frames_transmit(struct vb_host_lane *d, vb_time now)
{
	struct vb_frame frame;
	unsigned count = 0;

	for (; count < FRAMES_AT_A_TIME && vb_lane_next_frame(d->lane, &frame, now); count++) {
		const struct vb_device *device = vb_process_device_of(d->process, vb_qp_nic(frame.qp));
		int error =
			device ? vb_ethernet_send(d->frames->send_fd, device->info.ifindex, frame.iov, frame.iov_count)
			       : ENODEV;
		if (error == EAGAIN) {
			vb_lane_frame_waits(&frame);
			watch_room(d->frames, true);
			return count > 0;
		}
		vb_lane_frame_sent(d->lane, &frame, error, now);
	}
	watch_room(d->frames, false);
	d->has_more |= count == FRAMES_AT_A_TIME;
	return count > 0;
}
