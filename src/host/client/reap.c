/* See reap.h.
 *
 * Holds: a broker is waited for by its pidfd, so that no status is taken that the program waits for, even if the
 * broker's number has become another process's. Once the program has closed that pidfd, the broker is waited for by its
 * number, which is a zombie's until then. The program's own wait() and SIGCHLD behave as with any orphan. Only the
 * parent that the kernel chooses will do: exec() gives every child an exit signal back, which a starter would see. */
#include "base/invariant.h"
#include "host/client/reap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "host/protocol.h"
#include "os/clock.h"
#include "os/thread.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static bool adopts_orphans(void)
{
	int is_subreaper = 0;

	return getpid() == 1 || (prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper, 0, 0, 0) == 0 && is_subreaper);
}

static bool is_broker(pid_t pid)
{
	char path[64], name[32] = "";

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, name, sizeof(name) - 1) : 0;
	if (fd >= 0)
		close(fd);
	return length > 0 && strncmp(name, VB_BROKER_PROGRAM "\n", (size_t)length) == 0;
}

/* The process that listens there. Older kernels tell its number alone, which may be another process's by now. */
static int open_pidfd(int connection, pid_t pid)
{
	int pidfd = -1;
	socklen_t length = sizeof(pidfd);

	if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) == 0)
		return pidfd;
	if (errno != ENOPROTOOPT)
		return -1;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd >= 0 && !is_broker(pid)) {
		close(pidfd);
		return -1;
	}
	return pidfd;
}

static _Atomic pid_t awaited; /* a thread waits for it; there is one broker at a time */

static atomic_uint losses;

void vb_broker_reap_lost(void)
{
	atomic_fetch_add(&losses, 1);
}

struct errand {
	int pidfd;
	unsigned losses; /* before pidfd was made */
	pid_t pid;
};

/* By its number, until it ends: it is its until this process, its parent, has taken the status. ECHILD: it was never
 * ours. */
static void await_by_number(pid_t pid)
{
	siginfo_t ignored;

	while (waitid(P_PID, (id_t)pid, &ignored, WEXITED) < 0 && errno == EINTR)
		;
}

static void take_status(const struct errand *errand)
{
	siginfo_t ignored; /* ECHILD: it was not ours */

	waitid((idtype_t)P_PIDFD, (id_t)errand->pidfd, &ignored, WEXITED | WNOHANG);
	close(errand->pidfd);
}

/* The kernel keeps what poll() sleeps on, but the program may have closed it before that, or meanwhile, and have a file
 * of its own there. */
static void *await_end(void *argument)
{
	struct errand errand = *(struct errand *)argument;
	struct pollfd end = { .fd = errand.pidfd, .events = POLLIN };

	assert(errand.pid > 1);
	free(argument);
	pthread_setname_np(pthread_self(), "verbena-reaper");
	while (vb_clock_poll(&end, 1, -1) < 0 && errno == EINTR)
		;
	if (end.revents & POLLNVAL || errand.losses != atomic_load(&losses))
		await_by_number(errand.pid);
	else
		take_status(&errand);
	atomic_compare_exchange_strong(&awaited, &errand.pid, 0);
	return NULL;
}

static bool start(int pidfd, pid_t pid)
{
	struct errand *errand = malloc(sizeof(*errand));
	pthread_t thread;

	if (!errand)
		return false;
	*errand = (struct errand){ pidfd, atomic_load(&losses), pid };
	if (vb_thread_start(&thread, await_end, errand) < 0) {
		free(errand);
		return false;
	}
	pthread_detach(thread);
	return true;
}

void vb_broker_reap(int connection)
{
	struct ucred broker;
	socklen_t length = sizeof(broker);

	if (!adopts_orphans() || getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &broker, &length) || broker.pid <= 1 ||
		atomic_exchange(&awaited, broker.pid) == broker.pid)
		return;
	int pidfd = open_pidfd(connection, broker.pid);
	if (pidfd >= 0 && start(pidfd, broker.pid))
		return;
	if (pidfd >= 0)
		close(pidfd);
	atomic_store(&awaited, 0);
}
