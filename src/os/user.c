/* See user.h. */
#include "os/user.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "os/descriptor.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

#define USUAL_OVERFLOW 65534
#define ALL_IDS        UINT32_MAX /* -1 is none */

static bool read_file(const char *path, char *text, size_t size)
{
	int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	ssize_t length = -1;

	text[0] = '\0';
	if (file < 0)
		return false;
	length = syscall(SYS_read, file, text, size - 1);
	syscall(SYS_close, file);
	text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

/* Only a map of one line is taken to map all ids: the kernel shows ranges as they were written, and all ids are never
 * written in pieces. */
static bool maps_all_ids(void)
{
	char text[256];
	unsigned inside, outside, count;

	return read_file("/proc/self/uid_map", text, sizeof(text)) &&
	       sscanf(text, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 && count == ALL_IDS;
}

struct vb_users vb_users_read(void)
{
	char text[32];
	bool is_read = read_file("/proc/sys/kernel/overflowuid", text, sizeof(text));

	return (struct vb_users){ .maps_all = maps_all_ids(),
		.overflow = is_read ? (uid_t)strtoul(text, NULL, 10) : USUAL_OVERFLOW };
}

/* The kernel compares its own present ids, not a namespace's numbers. A capability to signal others covers only
 * processes of our own user namespace. */
static bool may_be_signalled(int pidfd)
{
	return pidfd >= 0 && syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0;
}

uid_t vb_user_of(const struct vb_users *users, uid_t shown, int pidfd)
{
	if (users->maps_all || shown != users->overflow)
		return shown;
	return shown == geteuid() && may_be_signalled(pidfd) ? shown : VB_USER_UNKNOWN;
}

int vb_peer_pidfd(int socket, pid_t pid)
{
	int pidfd = -1;
	socklen_t length = sizeof(pidfd);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) == 0)
		return pidfd;
	return errno == ENOPROTOOPT && pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

uid_t vb_user_of_peer(const struct vb_users *users, int socket, struct ucred *shown)
{
	struct ucred peer = { .uid = VB_USER_UNKNOWN };
	socklen_t length = sizeof(peer);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length))
		peer.uid = VB_USER_UNKNOWN;
	if (shown)
		*shown = peer;
	if (users->maps_all || peer.uid != users->overflow)
		return peer.uid;
	int pidfd = vb_peer_pidfd(socket, peer.pid);
	uid_t user = vb_user_of(users, peer.uid, pidfd);
	if (pidfd >= 0)
		syscall(SYS_close, pidfd);
	return user;
}

/* The /proc that a process sees may be of another pid namespace, with numbers that mean nothing in its own. */
static bool shows_our_pid_namespace(void)
{
	char text[32] = "";

	return syscall(SYS_readlinkat, AT_FDCWD, "/proc/self", text, sizeof(text) - 1) > 0 &&
	       strtol(text, NULL, 10) == getpid();
}

pid_t vb_pid_of(int pidfd)
{
	char path[64], text[512];

	if (!shows_our_pid_namespace())
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	const char *line = read_file(path, text, sizeof(text)) ? strstr(text, "\nPid:") : NULL;
	long pid = line ? strtol(line + strlen("\nPid:"), NULL, 10) : 0;
	return pid > 0 ? (pid_t)pid : 0;
}

static bool is_alive(int pidfd)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };

	return vb_descriptors_ready(&end, 1) == 0;
}

uid_t vb_user_of_process(const struct vb_users *users, int pidfd)
{
	char path[64], text[4096];
	uid_t real, effective, saved;
	pid_t pid = vb_pid_of(pidfd);

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	const char *line = pid && read_file(path, text, sizeof(text)) ? strstr(text, "\nUid:") : NULL;
	if (!line || sscanf(line, "\nUid: %u %u %u", &real, &effective, &saved) != 3)
		return VB_USER_UNKNOWN;
	if (real != effective || real != saved || !is_alive(pidfd)) /* else the number may be another process's */
		return VB_USER_UNKNOWN;
	return vb_user_of(users, real, pidfd);
}
