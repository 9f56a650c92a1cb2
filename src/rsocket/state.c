/* The state of one rsocket, and the notice of its changes: to threads that sleep until something changes, to the one
 * that waits at its descriptor, and to rpoll calls. */
#include "rsocket/pollers.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include "base/invariant.h"

int vb_rs_watch(struct vb_rsocket *rs, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
	return epoll_ctl(rs->fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* ---- States ------------------------------------------------------------------------------------------------------ */

#define STATE(name) (1u << VB_RS_##name)

static const unsigned successors[] = {
	[VB_RS_IDLE] = STATE(BOUND) | STATE(CONNECTING) | STATE(CONNECTED) | STATE(CLOSED), /* CONNECTED: accepted */
	[VB_RS_BOUND] = STATE(LISTENING) | STATE(CONNECTING) | STATE(CLOSED),
	[VB_RS_LISTENING] = STATE(CLOSED),
	[VB_RS_CONNECTING] = STATE(CONNECTED) | STATE(CLOSED),
	[VB_RS_CONNECTED] = STATE(SEND_ONLY) | STATE(RECEIVE_ONLY) | STATE(CLOSED),
	[VB_RS_SEND_ONLY] = STATE(CLOSED),
	[VB_RS_RECEIVE_ONLY] = STATE(CLOSED),
	[VB_RS_CLOSED] = 0,
};

void vb_rs_set_state(struct vb_rsocket *rs, enum vb_rs_state to)
{
	assert(rs->type == SOCK_STREAM);
	assert(successors[rs->state] & 1u << to);
	rs->state = to;
}

void vb_rs_stop_reading(struct vb_rsocket *rs)
{
	assert(vb_rs_can_write(rs));
	if (rs->state == VB_RS_CONNECTED)
		vb_rs_set_state(rs, VB_RS_SEND_ONLY);
}

void vb_rs_note_peer(struct vb_rsocket *rs, enum vb_rs_peer_state reached)
{
	if (rs->peer_state < reached)
		rs->peer_state = reached;
}

void vb_rs_end(struct vb_rsocket *rs, int error)
{
	if (rs->state == VB_RS_CLOSED)
		return;
	vb_rs_set_state(rs, VB_RS_CLOSED);
	if (error)
		rs->error = error;
	vb_rs_kick(rs);
}

/* ---- Notice of changes ------------------------------------------------------------------------------------------- */

void vb_rs_changed(struct vb_rsocket *rs)
{
	pthread_cond_broadcast(&rs->changed);
}

/* An eventfd that is always readable, in forked children too. Added to an rsocket's epoll descriptor, it wakes the
 * thread that waits there. */
static int always_ready_fd = -1;

static void make_always_ready(void)
{
	always_ready_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
}

static int always_ready(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, make_always_ready);
	return always_ready_fd;
}

void vb_rs_wake(struct vb_rsocket *rs)
{
	if (!rs->is_kicked)
		rs->is_kicked = vb_rs_watch(rs, always_ready()) == 0;
}

void vb_rs_note_awake(struct vb_rsocket *rs)
{
	if (rs->is_kicked)
		epoll_ctl(rs->fd, EPOLL_CTL_DEL, always_ready(), NULL);
	rs->is_kicked = false;
}

void vb_rs_kick(struct vb_rsocket *rs)
{
	vb_rs_changed(rs);
	if (rs->is_driven)
		vb_rs_wake(rs);
	if (atomic_load(&rs->pollers))
		vb_rs_wake_pollers();
}
