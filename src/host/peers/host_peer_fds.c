/* How many descriptors local peers have, and how their sockets are closed.
 *
 * Holds: the peers of all lanes together have a share of the process's descriptors, and no more than MOST_DESCRIPTORS.
 * A socket is counted until it is closed. */
#include "base/invariant.h"
#include "host/peers/host_peer.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "os/thread.h"

#define MOST_DESCRIPTORS 64u
#define SHARE            16u /* one of so many that the process may have */

/* Of all lanes, and of sockets that are being closed. */
static atomic_uint descriptors;

static unsigned most_descriptors(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur / SHARE > MOST_DESCRIPTORS)
		return MOST_DESCRIPTORS;
	return (unsigned)(files.rlim_cur / SHARE);
}

bool vb_host_peer_descriptors_take(unsigned count)
{
	assert(count > 0);
	if (atomic_fetch_add(&descriptors, count) + count <= most_descriptors())
		return true;
	vb_host_peer_descriptors_give_back(count);
	return false;
}

void vb_host_peer_descriptors_give_back(unsigned count)
{
	const unsigned before = atomic_fetch_sub(&descriptors, count);

	assert(before >= count);
}

void vb_host_peer_descriptors_forked(void)
{
	atomic_store(&descriptors, 0);
}

void vb_host_peer_descriptor_close(int fd)
{
	if (fd >= 0)
		syscall(SYS_close, fd);
}

/* ---- Sockets that may not be closed here ------------------------------------------------------------------------- */

static void *close_slowly(void *argument)
{
	vb_log(VB_LOG_WARN, "a local peer has sent descriptors, which nobody asked for");
	syscall(SYS_close, (int)(intptr_t)argument);
	vb_host_peer_descriptors_give_back(1);
	return NULL;
}

/* Where no thread can be had it stays open, and counted. */
static void close_elsewhere(int bell)
{
	pthread_t thread;

	if (vb_thread_start(&thread, close_slowly, (void *)(intptr_t)bell) == 0)
		pthread_detach(thread);
}

/* Reads what another user's process has said last. False: descriptors are among it. A message without bytes reads as
 * the end does, but for its sender, which comes with every message. */
static bool throw_away_rest(int bell)
{
	const int yes = 1;
	struct vb_host_peer_message ignored;

	setsockopt(bell, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes));
	for (;;) {
		union {
			char bytes[CMSG_SPACE(sizeof(struct ucred))]; /* no room for descriptors */
			struct cmsghdr align;
		} sender;
		struct iovec io = { &ignored, sizeof(ignored) };
		struct msghdr header = { .msg_iov = &io,
			.msg_iovlen = 1,
			.msg_control = sender.bytes,
			.msg_controllen = sizeof(sender.bytes) };
		const ssize_t n = syscall(SYS_recvmsg, bell, &header, MSG_PEEK | MSG_DONTWAIT);
		if (n < 0 && errno == ECONNRESET)
			continue; /* said once, in front of what the peer said */
		if (n < 0 || (n == 0 && header.msg_controllen == 0))
			return true;
		if (header.msg_flags & MSG_CTRUNC)
			return false;
		syscall(SYS_recvfrom, bell, &ignored, sizeof(ignored), MSG_DONTWAIT | MSG_TRUNC, NULL, NULL);
	}
}

/* Another user's socket whose messages have descriptors with them may not be closed here: it would close those, and to
 * close a socket that lingers takes as long as its sender likes. False: it is one, and stays open. */
static bool close_quickly(int bell, bool is_our_users)
{
	assert(bell >= 0);
	shutdown(bell, SHUT_RDWR); /* nothing more comes */
	if (!is_our_users && !throw_away_rest(bell))
		return false;
	syscall(SYS_close, bell);
	return true;
}

void vb_host_peer_bell_close(int bell, bool is_our_users)
{
	if (close_quickly(bell, is_our_users))
		vb_host_peer_descriptors_give_back(1);
	else
		close_elsewhere(bell);
}

void vb_host_peer_bell_close_untaken(int bell)
{
	if (close_quickly(bell, false))
		return;
	atomic_fetch_add(&descriptors, 1);
	close_elsewhere(bell);
}
