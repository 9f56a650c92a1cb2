/* Multicast membership of slots' sockets, counted: QPs of several devices and contexts may be attached to one group. */
#include "base/invariant.h"
#include "host/process.h"

#include <errno.h>
#include <stdlib.h>
#include "port/receive_socket.h"

struct membership {
	struct vb_list link;
	const struct vb_host_lane *host_lane;
	struct vb_gid group;
	uint32_t ifindex;
	unsigned count;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct vb_list memberships = { &memberships, &memberships };

static int change(const struct vb_host_lane *d, const struct vb_gid *group, uint32_t ifindex, bool join)
{
	if (d->slot.is_carried)
		return vb_broker_join(d->process->broker, &d->slot, group, ifindex, join);
	return vb_change_membership(d->slot.fd, group, ifindex, join);
}

static struct membership *find(const struct vb_host_lane *d, const struct vb_gid *group, uint32_t ifindex)
{
	vb_list_for_each (node, &memberships) {
		struct membership *m = vb_container_of(node, struct membership, link);
		if (m->host_lane == d && m->ifindex == ifindex && vb_gid_equal(&m->group, group))
			return m;
	}
	return NULL;
}

static int join_first(const struct vb_host_lane *d, const struct vb_gid *group, uint32_t ifindex)
{
	struct membership *m = malloc(sizeof(*m));

	if (!m)
		return -ENOMEM;
	int rc = change(d, group, ifindex, true);
	if (rc == -EADDRINUSE) /* joined already, by something that is not counted here */
		rc = 0;
	if (rc < 0) {
		if (rc == -ENOBUFS)
			vb_log(VB_LOG_WARN, "no more multicast groups on this socket: net.ipv4.igmp_max_memberships");
		free(m);
		return rc;
	}
	*m = (struct membership){ .host_lane = d, .group = *group, .ifindex = ifindex, .count = 1 };
	vb_list_add_tail(&memberships, &m->link);
	return 0;
}

/* An interface that went and came back has another index. */
static uint32_t interface_of(struct vb_device *device, struct vb_host_lane *d)
{
	vb_host_lane_lock(d);
	uint32_t ifindex = device->info.ifindex;
	vb_host_lane_unlock(d);
	return ifindex;
}

int vb_device_join(struct vb_device *device, struct vb_host_lane *d, const struct vb_gid *group)
{
	int rc = 0;

	if (device->process->is_forked)
		return -VB_FORKED_ERRNO;
	if (!vb_gid_is_multicast(group))
		return -EINVAL;
	uint32_t ifindex = interface_of(device, d);
	pthread_mutex_lock(&mutex);
	struct membership *m = find(d, group, ifindex);
	if (m)
		m->count++;
	else
		rc = join_first(d, group, ifindex);
	pthread_mutex_unlock(&mutex);
	return rc;
}

int vb_device_leave(struct vb_device *device, struct vb_host_lane *d, const struct vb_gid *group)
{
	int rc = -EINVAL;

	if (device->process->is_forked)
		return -VB_FORKED_ERRNO;
	uint32_t ifindex = interface_of(device, d);
	pthread_mutex_lock(&mutex);
	struct membership *m = find(d, group, ifindex);
	if (m) {
		rc = 0;
		assert(m->count > 0);
		if (--m->count == 0) {
			change(d, group, m->ifindex, false);
			vb_list_remove(&m->link);
			free(m);
		}
	}
	pthread_mutex_unlock(&mutex);
	return rc;
}

/* A thread that stayed in the parent may have held the mutex, in the middle of a change of the list: the list is left
 * alone. */
void vb_multicast_forked(void)
{
	pthread_mutex_init(&mutex, NULL);
	vb_list_init(&memberships);
}

/* The broker keeps the socket itself open, and leaves the groups that are left. */
void vb_multicast_forget(void)
{
	pthread_mutex_lock(&mutex);
	for (struct vb_list *node; (node = vb_list_pop(&memberships));)
		free(vb_container_of(node, struct membership, link));
	pthread_mutex_unlock(&mutex);
}
