/* See passing.h. */
#include "os/passing.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

union control {
	char bytes[CMSG_SPACE(VB_PASS_MAX * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
	struct cmsghdr align;
};

static void add_control(struct msghdr *header, int type, const void *bytes, size_t length)
{
	struct cmsghdr *part = (struct cmsghdr *)((char *)header->msg_control + header->msg_controllen);

	part->cmsg_level = SOL_SOCKET;
	part->cmsg_type = type;
	part->cmsg_len = CMSG_LEN(length);
	memcpy(CMSG_DATA(part), bytes, length);
	header->msg_controllen += CMSG_SPACE(length);
}

int vb_pass_send(int to, const void *bytes, size_t length, const int *fds, unsigned count, int flags)
{
	union control control = { 0 };
	struct iovec io = { (void *)bytes, length };
	struct msghdr header = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes };

	if (count > VB_PASS_MAX)
		return -EINVAL;
	if (count)
		add_control(&header, SCM_RIGHTS, fds, count * sizeof(int));
	if (getuid() != geteuid()) {
		const struct ucred self = { getpid(), geteuid(), getegid() };
		add_control(&header, SCM_CREDENTIALS, &self, sizeof(self));
	}
	ssize_t sent;
	do
		sent = syscall(SYS_sendmsg, to, &header, flags | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent == (ssize_t)length ? 0 : -EMSGSIZE;
}

static void close_all(const int *fds, unsigned *count)
{
	while (*count)
		syscall(SYS_close, fds[--*count]);
}

/* Takes up to max of one part's descriptors, and closes the others: false. */
static bool take_rights(const struct cmsghdr *part, int *fds, unsigned max, unsigned *count)
{
	const unsigned n = (unsigned)((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	bool takes_all = true;

	for (unsigned i = 0; i < n; i++) {
		int fd;
		memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
		if (*count < max) {
			fds[(*count)++] = fd;
		} else {
			syscall(SYS_close, fd);
			takes_all = false;
		}
	}
	return takes_all;
}

ssize_t vb_pass_receive_any(
	int from, void *bytes, size_t size, int *fds, unsigned max, unsigned *count, enum vb_passed *passed, int flags)
{
	union control control;
	struct iovec io = { bytes, size };
	struct msghdr header = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)
	};
	ssize_t got;

	do
		got = syscall(SYS_recvmsg, from, &header, flags | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	*count = 0;
	*passed = VB_PASSED_ALL;
	if (got < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	if (header.msg_flags & MSG_CTRUNC)
		*passed = VB_PASSED_LOST;
	for (struct cmsghdr *part = CMSG_FIRSTHDR(&header); part; part = CMSG_NXTHDR(&header, part))
		if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS &&
			!take_rights(part, fds, max, count))
			*passed = VB_PASSED_SURPLUS;
	if (*passed != VB_PASSED_ALL)
		close_all(fds, count);
	return got;
}

int vb_pass_receive(int from, void *bytes, size_t length, int *fds, unsigned max, unsigned *count, int flags)
{
	enum vb_passed passed;
	const ssize_t got = vb_pass_receive_any(from, bytes, length, fds, max, count, &passed, flags);

	if (got < 0)
		return (int)got;
	const bool is_whole = got == (ssize_t)length;
	if (is_whole && passed == VB_PASSED_ALL)
		return 0;
	close_all(fds, count);
	if (got == 0)
		return -ECONNRESET;
	return is_whole && passed == VB_PASSED_LOST ? -EMFILE : -EPROTO;
}
