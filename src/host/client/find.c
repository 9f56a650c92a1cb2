/* See find.h. Of the processes that find no broker one starts it (start.c), the others wait. */
#include "base/invariant.h"
#include "host/client/find.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "host/client/start.h"
#include "host/protocol.h"
#include "os/clock.h"
#include "os/user.h"

#define PATIENCE_MS      10000 /* for a broker to answer */
#define LOCK_PATIENCE_MS 2000  /* for another process that is starting one */
#define RETRY_MS         2
#define RETRY_SPREAD_MS  3 /* a little different for each, so that many do not come at once */

bool vb_broker_pause(const struct vb_broker_finder *finder, int ms)
{
	struct pollfd stop = { .fd = finder->stop_fd, .events = POLLIN };

	return vb_clock_poll(&stop, 1, ms) <= 0;
}

static int wait_readable(const struct vb_broker_finder *finder, int fd, int64_t until)
{
	struct pollfd waits[2] = { { .fd = fd, .events = POLLIN }, { .fd = finder->stop_fd, .events = POLLIN } };

	for (;;) {
		int64_t left = until - vb_clock_ms();
		int rc = vb_clock_poll(waits, 2, left > 0 ? (int)left : 0);
		if (rc > 0 && waits[1].revents)
			return -ECANCELED;
		if (rc > 0)
			return 0;
		if (rc == 0 && left <= 0)
			return -ETIMEDOUT;
		if (rc < 0 && errno != EINTR)
			return -errno;
	}
}

/* Is the user that made the socket at the other end one whose broker we use? */
static int check_owner(const struct vb_broker_finder *finder, int fd, char *why, size_t why_size)
{
	const struct vb_users users = vb_users_read();
	struct ucred owner;
	const uid_t user = vb_user_of_peer(&users, fd, &owner);

	if (user == 0 || user == geteuid() || finder->accepts_any)
		return 0;
	if (user == VB_USER_UNKNOWN)
		return vb_broker_fail(EPERM, why, why_size,
			"UDP port 4791 is held by the broker of a user whom this user namespace does not map (pid %d). "
			"To share it, "
			"trust that user and set VERBENA_BROKER=any, there and here; or have root run: verbena broker",
			owner.pid);
	return vb_broker_fail(EPERM, why, why_size,
		"UDP port 4791 is held by the broker of another user, uid %u (pid %d). To "
		"share it, trust that user and set VERBENA_BROKER=any, there and here; or, once it has left, a second "
		"after its last client, have root run: verbena broker",
		owner.uid, owner.pid);
}

/* -EAGAIN: the broker has just gone; any other error is its answer. */
static int greet(const struct vb_broker_finder *finder, int fd, int64_t until, char *why, size_t why_size)
{
	struct vb_message message = { .kind = VB_MESSAGE_HELLO };
	int passed = -1;
	int rc = vb_message_send(fd, &message, NULL);

	while (rc == 0) {
		rc = wait_readable(finder, fd, until);
		if (rc == 0)
			rc = vb_message_receive(fd, &message, &passed);
		if (rc == 0 && passed >= 0)
			close(passed);
		if (rc == 0 && message.kind == VB_MESSAGE_WELCOME)
			return 0;
		if (rc == 0 && message.kind == VB_MESSAGE_REFUSED)
			return vb_broker_fail(
				message.error > 0 ? message.error : EPROTO, why, why_size, "%s", message.why);
		if (rc == 0 && message.kind == VB_MESSAGE_RESTARTED) {
			message = (struct vb_message){ .kind = VB_MESSAGE_HELLO };
			rc = vb_message_send(fd, &message, NULL);
		}
	}
	if (rc == -ETIMEDOUT)
		return vb_broker_fail(ETIMEDOUT, why, why_size, "the broker does not answer");
	return rc == -ECANCELED ? rc : -EAGAIN;
}

/* *fd is connected and greeted. -ECONNREFUSED: there is no broker; -EAGAIN: it is busy or just left. */
static int try_connect(const struct vb_broker_finder *finder, int64_t until, int *fd, char *why, size_t why_size)
{
	struct sockaddr_un address;
	socklen_t length = vb_abstract_address(&address, VB_BROKER_NAME);
	int rc;

	int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (connection < 0)
		return vb_broker_fail(errno, why, why_size, "cannot make a Unix socket: %s", strerror(errno));
	if (connect(connection, (struct sockaddr *)&address, length))
		rc = vb_broker_fail(errno, why, why_size, "cannot connect to the broker: %s", strerror(errno));
	else
		rc = check_owner(finder, connection, why, why_size) ?: greet(finder, connection, until, why, why_size);
	if (rc)
		close(connection);
	else
		*fd = connection;
	return rc;
}

/* The name is held as long as the socket; -1: another process has it. */
static int take_start_lock(void)
{
	char name[64];
	struct sockaddr_un address;

	snprintf(name, sizeof(name), VB_BROKER_START_NAME ".%u", (unsigned)geteuid());
	socklen_t length = vb_abstract_address(&address, name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, length)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* There is none: starts one, unless another process does. -EAGAIN: look again. */
static int start_one(
	const struct vb_broker_finder *finder, bool is_impatient, int64_t until, int *fd, char *why, size_t why_size)
{
	int lock = take_start_lock();

	if (lock < 0 && !is_impatient)
		return -EAGAIN;
	int rc = try_connect(finder, until, fd, why, why_size);
	if (rc == -ECONNREFUSED)
		rc = vb_broker_start(finder->libexec, why, why_size) ?: -EAGAIN;
	if (lock >= 0)
		close(lock);
	return rc;
}

int vb_broker_find(const struct vb_broker_finder *finder, int *fd, char *why, size_t why_size)
{
	int64_t begin = vb_clock_ms(), until = begin + PATIENCE_MS;

	while (vb_clock_ms() < until) {
		int rc = try_connect(finder, until, fd, why, why_size);
		if (rc == -ECONNREFUSED)
			rc = start_one(finder, vb_clock_ms() - begin > LOCK_PATIENCE_MS, until, fd, why, why_size);
		assert(rc <= 0);
		if (rc != -EAGAIN)
			return rc;
		if (!vb_broker_pause(finder, RETRY_MS + getpid() % RETRY_SPREAD_MS))
			return -ECANCELED;
	}
	return vb_broker_fail(ETIMEDOUT, why, why_size, "no broker could be reached within %d s", PATIENCE_MS / 1000);
}
