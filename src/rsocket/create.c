/* Making an rsocket; objects.h says what it is made of.
 * Not here: its end (close.c), the call (socket.c). */
#include "rsocket/objects.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include "os/clock.h"

static int open_channel(struct vb_rsocket *rs)
{
	rs->channel = rdma_create_event_channel();
	if (!rs->channel)
		return -errno;
	int flags = fcntl(rs->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(rs->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return vb_rs_watch(rs, rs->channel->fd);
}

static void init_locks(struct vb_rsocket *rs)
{
	pthread_mutex_init(&rs->sending, NULL);
	pthread_mutex_init(&rs->receiving, NULL);
	pthread_mutex_init(&rs->lock, NULL);
	vb_clock_cond_init(&rs->changed);
}

struct vb_rsocket *vb_rs_create(int domain, int type, const struct vb_rs_options *options)
{
	struct vb_rsocket *rs = calloc(1, sizeof(*rs));
	if (!rs)
		return NULL;
	rs->domain = domain;
	rs->type = type;
	rs->generation = vb_rs_generation();
	rs->options = *options;
	rs->references = 1;
	init_locks(rs);
	vb_list_init(&rs->requests);
	vb_list_init(&rs->made);
	vb_list_init(&rs->answered);
	vb_list_init(&rs->mappings);
	vb_list_init(&rs->keepalive);
	rs->fd = epoll_create1(0);
	int error = rs->fd < 0 ? -errno : 0;
	if (!error && type == SOCK_STREAM)
		error = open_channel(rs);
	if (!error)
		return rs;
	vb_rs_put(rs);
	errno = -error;
	return NULL;
}
