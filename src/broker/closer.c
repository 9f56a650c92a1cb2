/* See closer.h. */
#include "broker/closer.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/invariant.h"
#include "broker/child.h"
#include "host/protocol.h"

#define NAME      "verbena-close"
#define WAIT_MS   20    /* until the worker, and a child just forked, have closed their copies */
#define UNTAKEN   32768 /* bytes of the link's queue: when it is full, the process is stuck */
#define AT_A_TIME 64

/* The control buffer has room for the sender's credentials and none for a descriptor. */
int closer_look(int connection, bool *has_descriptors, struct ucred *sender)
{
	char byte;
	union {
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct iovec io = { &byte, 1 };
	struct msghdr header = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)
	};
	ssize_t n;
	*sender = (struct ucred){ .uid = (uid_t)-1 };
	do
		n = recvmsg(connection, &header, MSG_PEEK | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	const struct cmsghdr *part = CMSG_FIRSTHDR(&header);
	if (n > 0 && part && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS)
		memcpy(sender, CMSG_DATA(part), sizeof(*sender));
	*has_descriptors = header.msg_flags & MSG_CTRUNC;
	return 0;
}

static _Noreturn void live(int link)
{
	for (;;) {
		int fds[AT_A_TIME];
		unsigned count = 0, got = 0;
		char byte;
		struct pollfd wait = { .fd = link, .events = POLLIN };
		if (poll(&wait, 1, -1) < 0)
			continue;
		int rc = 0;
		while (count < AT_A_TIME &&
			(rc = vb_pass_receive(link, &byte, 1, &fds[count], 1, &got, MSG_DONTWAIT)) == 0)
			count += got;
		poll(NULL, 0, WAIT_MS);
		while (count)
			close(fds[--count]);
		if (rc && rc != -EAGAIN)
			_exit(0);
	}
}

static bool start(struct closer *closer)
{
	assert(closer->link < 0);
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
		return false;
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &(int){ UNTAKEN }, sizeof(int));
	closer->pid = fork();
	if (closer->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		live(child_begin(NAME, ends[1]));
	}
	close(ends[1]);
	closer->link = ends[0];
	if (closer->pid < 0)
		closer_dismiss(closer);
	return closer->link >= 0;
}

/* Its descriptors, and those in flight to it, close with it: a killed process waits for nothing. */
void closer_dismiss(struct closer *closer)
{
	if (closer->link < 0)
		return;
	if (closer->pid > 0)
		kill(closer->pid, SIGKILL);
	close(closer->link);
	closer->link = -1;
}

void closer_take(struct closer *closer, int fd)
{
	assert(fd >= 0);
	const char byte = 0;
	for (unsigned attempt = 0; attempt < 2; attempt++) {
		if ((closer->link >= 0 || start(closer)) &&
			vb_pass_send(closer->link, &byte, 1, &fd, 1, MSG_DONTWAIT) == 0)
			break;
		closer_dismiss(closer);
	}
	close(fd);
}
