/* rsockets across fork. The NIC, its queue pairs and their memory are the parent's, so a child makes its own rsockets
 * in place of its parent's. One that is not connected gets an id of the child's NIC. It is bound and listens beside the
 * parent's, both of one family. A datagram rsocket shares the kernel's socket with the parent's. A connection cannot be
 * made anew: the child sees it reset.
 * Holds: this happens at the child's first call about the rsocket. A child that only closes it opens no device. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "os/clock.h"
#include "rsocket/datagram.h"

/* ---- Messages: few, since a program may fork a child for every connection ---------------------------------------- */

static struct {
	atomic_bool has_said_reset;
	atomic_llong failed_us; /* when the other message was last printed */
} * shared;                     /* with all children */

static void before_fork(void)
{
	if (shared)
		return;
	void *page = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	shared = page == MAP_FAILED ? NULL : page;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(before_fork, NULL, NULL);
}

static void say_reset(void)
{
	static const char text[] = "a connection that was made before a fork stays the parent's, and its child sees it "
				   "reset; accept or connect in the process that uses it";

	if (!shared || !atomic_exchange(&shared->has_said_reset, true))
		fprintf(stderr, "verbena: rsockets: %s: %s\n", program_invocation_short_name, text);
}

static void say_failed(int error)
{
	long long now = vb_clock_us(), before = shared ? atomic_exchange(&shared->failed_us, now) : 0;

	if (!before || now - before > 1000000)
		fprintf(stderr, "verbena: rsockets: %s (%d): an rsocket of the parent's cannot be taken over: %s\n",
			program_invocation_short_name, getpid(), strerror(error));
}

/* ---- Taking over ------------------------------------------------------------------------------------------------- */

static void be_reset(struct vb_rsocket *rs, const struct vb_rsocket *from)
{
	rs->peer = from->peer;
	vb_rs_set_state(rs, VB_RS_CLOSED);
	rs->error = ECONNRESET;
	if (vb_rs_is_connected(from) || from->state == VB_RS_CONNECTING)
		say_reset();
}

static int inherit_stream(struct vb_rsocket *rs, const struct vb_rsocket *from)
{
	if (from->state > VB_RS_LISTENING) {
		be_reset(rs, from);
		return 0;
	}
	if (rdma_create_id(rs->channel, &rs->id, rs, RDMA_PS_TCP))
		return -errno;
	if (from->state == VB_RS_IDLE)
		return 0;
	rs->family = from->family;
	int error = vb_rs_bind_stream(rs, rdma_get_local_addr(from->id));
	if (!error && from->state == VB_RS_LISTENING)
		error = vb_rs_listen(rs, (int)from->backlog);
	return error;
}

/* The new epoll instance gets the number of the parent's. */
static int take_number(struct vb_rsocket *rs, int fd)
{
	int flags = fcntl(fd, F_GETFD);
	if (flags < 0 || dup3(rs->fd, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0) < 0)
		return -errno;
	close(rs->fd);
	rs->fd = fd;
	return 0;
}

void vb_rs_close_copies(const struct vb_rsocket *from)
{
	if (from->channel)
		close(from->channel->fd);
	if (from->completions)
		close(from->completions->fd);
	if (from->datagram)
		vb_rs_datagram_leave(from);
}

/* The descriptor stays open in any case: it is the program's. */
static void give_up(struct vb_rsocket *rs, struct vb_rsocket *from, int error)
{
	if (rs->fd == from->fd)
		rs->fd = fcntl(rs->fd, F_DUPFD_CLOEXEC, 0);
	vb_rs_put(rs);
	from->inherit_error = -error;
	say_failed(-error);
	errno = -error;
}

struct vb_rsocket *vb_rs_inherit(struct vb_rsocket *from)
{
	errno = from->inherit_error;
	if (from->inherit_error)
		return NULL;
	struct vb_rsocket *rs = vb_rs_create(from->domain, from->type, &from->options);
	if (!rs)
		return NULL;
	int error = take_number(rs, from->fd);
	if (!error)
		error = rs->type == SOCK_DGRAM ? vb_rs_datagram_inherit(rs, from) : inherit_stream(rs, from);
	if (error) {
		give_up(rs, from, error);
		return NULL;
	}
	vb_rs_close_copies(from);
	return rs;
}
