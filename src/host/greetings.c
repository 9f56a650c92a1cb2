/* What two neighbours say to each other by the socket that the broker gave them: a greeting each, what may be lent, and
 * bells.
 *
 * Holds: nothing goes by memory before a greeting has come; what comes in another shape, or out of turn, ends it. */
#include "host/calibration.h"
#include "host/neighbours_state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HEARD_AT_A_TIME 16

enum greeting_kind { GREETING_HELLO = 1, GREETING_VERDICT };

struct greeting {
	uint8_t kind;
	uint8_t reason; /* HELLO: why not, or IS_USED; VERDICT: why nothing is pulled */
	uint16_t spare;
	uint32_t pid;	    /* HELLO: his, where he is */
	uint32_t lend_from; /* VERDICT: from how many bytes on he pulls; 0: never */
	uint32_t spare_too;
	uint64_t nonce, lives; /* HELLO */
};
_Static_assert(sizeof(struct greeting) == 32, "no padding in a greeting");

static void say(int bell, const struct greeting *greeting)
{
	syscall(SYS_sendto, bell, greeting, sizeof(*greeting), MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
}

void vb_greeting_refuse(int bell, enum vb_local_reason reason)
{
	const struct greeting hello = { .kind = GREETING_HELLO, .reason = (uint8_t)reason };

	say(bell, &hello);
}

void vb_greeting_say(const struct vb_link *link)
{
	const struct vb_lives *lives = link->all->driver->process->lives;
	const struct greeting hello = { .kind = GREETING_HELLO,
		.pid = (uint32_t)getpid(),
		.nonce = lives->nonce,
		.lives = (uintptr_t)lives };

	say(link->bell, &hello);
}

static void say_verdict(const struct vb_link *link)
{
	enum vb_local_reason reason = link->who->pull_reason;
	const struct greeting verdict = { .kind = GREETING_VERDICT,
		.reason = (uint8_t)reason,
		.lend_from = reason == VB_LOCAL_IS_USED ? vb_pull_pays_from() : 0 };

	say(link->bell, &verdict);
}

/* ---- Hearing ---------------------------------------------------------------------------------------------------- */

/* What the process has for a number here to which we were introduced: his word could send us to another's memory, which
 * we may read and he may not. 0: none is known. Not cancelled, as no call here is: the mutex is held. */
static pid_t pid_of(int pidfd)
{
	char path[64], text[512];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = syscall(SYS_read, fd, text, sizeof(text) - 1);
	syscall(SYS_close, fd);
	text[n > 0 ? n : 0] = '\0';
	const char *line = strstr(text, "\nPid:");
	long pid = line ? strtol(line + strlen("\nPid:"), NULL, 10) : 0;
	return pid > 0 ? (pid_t)pid : 0;
}

static enum vb_local_reason try_to_pull(struct vb_link *link)
{
	if (!link->is_our_users)
		return VB_LOCAL_OTHER_USER; /* his memory might keep us waiting */
	if (link->puller.pid != pid_of(link->pidfd))
		return VB_LOCAL_UNSEEN;
	switch (vb_puller_try(&link->puller)) {
	case 0:
		return VB_LOCAL_IS_USED;
	case -ESRCH:
	case -EFAULT:
		return VB_LOCAL_UNSEEN;
	default:
		return VB_LOCAL_FORBIDDEN;
	}
}

static bool is_known_reason(uint8_t reason)
{
	return reason < VB_LOCAL_REASONS;
}

/* False: he is none. */
static bool take_hello(struct vb_link *link, const struct greeting *hello)
{
	struct vb_acquaintance *who = link->who;

	if (hello->reason != VB_LOCAL_IS_USED || link->is_greeted) {
		who->reason = hello->reason;
		return false;
	}
	link->puller = (struct vb_puller){ .pid = (pid_t)hello->pid, .nonce = hello->nonce, .lives = hello->lives };
	who->pid = hello->pid;
	who->pull_reason = try_to_pull(link);
	vb_neighbour_set_pulling(&link->engine, who->pull_reason == VB_LOCAL_IS_USED ? vb_pull_pays_from() : 0);
	say_verdict(link);
	vb_link_greeted(link);
	return true;
}

static bool take_greeting(struct vb_link *link, const struct greeting *greeting)
{
	if (!is_known_reason(greeting->reason))
		return false;
	if (greeting->kind == GREETING_HELLO)
		return take_hello(link, greeting);
	if (greeting->kind != GREETING_VERDICT || !link->is_greeted)
		return false;
	if (link->is_our_users) /* else our addresses are not his business */
		vb_neighbour_set_lending(&link->engine, greeting->lend_from);
	return true;
}

/* Has the next message descriptors with it? Whoever reads it without taking them closes them, and to close a socket that
 * lingers takes as long as its sender likes (broker/undertaker.h; before Linux 6.16 nobody can refuse them). */
static bool has_descriptors(int bell)
{
	char byte;
	struct iovec io = { &byte, 1 };
	struct msghdr header = { .msg_iov = &io, .msg_iovlen = 1 };

	return syscall(SYS_recvmsg, bell, &header, MSG_PEEK | MSG_DONTWAIT) >= 0 && header.msg_flags & MSG_CTRUNC;
}

static ssize_t hear(int bell, struct greeting *greeting)
{
	return syscall(SYS_recvfrom, bell, greeting, sizeof(*greeting), MSG_DONTWAIT | MSG_TRUNC, NULL, NULL);
}

/* A bell whose messages nobody dares to throw away stays open as long as we live. */
void vb_greeting_end(int bell)
{
	struct greeting ignored;

	shutdown(bell, SHUT_RDWR); /* nothing more comes */
	while (!has_descriptors(bell))
		if (hear(bell, &ignored) <= 0) {
			syscall(SYS_close, bell);
			return;
		}
	vb_log(VB_LOG_WARN, "a neighbour has sent descriptors, which nobody asked for: its socket is not closed");
}

/* False: it is his end. */
static bool hear_link(struct vb_link *link)
{
	struct greeting greeting;

	for (unsigned i = 0; i < HEARD_AT_A_TIME; i++) {
		if (!link->is_our_users && has_descriptors(link->bell))
			return false;
		ssize_t n = hear(link->bell, &greeting);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		if (n == sizeof(greeting) && take_greeting(link, &greeting))
			continue;
		if (n != 1)
			return false;
		if (link->is_greeted)
			vb_link_rouse(link);
	}
	return true;
}

static bool has_died(const struct vb_link *link)
{
	struct pollfd p = { .fd = link->pidfd, .events = POLLIN };
	const struct timespec now = { 0 };

	return link->pidfd >= 0 && syscall(SYS_ppoll, &p, 1, &now, NULL, 0) > 0;
}

void vb_neighbours_hear(struct vb_driver *d)
{
	struct vb_neighbours *all = d->neighbours;
	struct epoll_event events[HEARD_AT_A_TIME];

	if (!all)
		return;
	/* Not cancelled: the mutex is held. */
	int count = (int)syscall(SYS_epoll_pwait, all->epoll_fd, events, HEARD_AT_A_TIME, 0, NULL, 0);
	for (int i = 0; i < count; i++) {
		struct vb_acquaintance *who = all->by_slot[events[i].data.u32 % VB_NEIGHBOUR_SLOTS];
		if (who && who->link && (!hear_link(who->link) || has_died(who->link)))
			vb_link_end(who->link, vb_host_now());
	}
}

