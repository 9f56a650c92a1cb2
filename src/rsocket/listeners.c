/* The listeners whose requests one thread answers (listen.c), and how it waits for them.
 * Holds: a listener in the list is open. Order of locks: a listener's, list_lock. */
#include "rsocket/listen.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/invariant.h"
#include "os/clock.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_list listeners = { &listeners, &listeners };
static int waiting_fd = -1; /* an epoll instance over their descriptors */

/* The child has none of the parent's threads, and one of them may have held the lock. */
static void on_fork_child(void)
{
	pthread_mutex_init(&list_lock, NULL);
	vb_list_init(&listeners);
	/* The bare system call: a preloaded close() may want a lock that a thread of the parent held. */
	if (waiting_fd >= 0)
		syscall(SYS_close, waiting_fd);
	waiting_fd = -1;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, on_fork_child);
}

int vb_rs_listeners_open(void)
{
	waiting_fd = epoll_create1(EPOLL_CLOEXEC);
	return waiting_fd < 0 ? -errno : 0;
}

void vb_rs_listeners_add(struct vb_rsocket *rs)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = rs->fd };

	pthread_mutex_lock(&list_lock);
	if (epoll_ctl(waiting_fd, EPOLL_CTL_ADD, rs->fd, &event) == 0)
		vb_list_add_tail(&listeners, &rs->answered);
	pthread_mutex_unlock(&list_lock);
}

void vb_rs_listeners_remove(struct vb_rsocket *rs)
{
	pthread_mutex_lock(&list_lock);
	if (vb_list_linked(&rs->answered))
		epoll_ctl(waiting_fd, EPOLL_CTL_DEL, rs->fd, NULL);
	vb_list_remove(&rs->answered);
	pthread_mutex_unlock(&list_lock);
}

bool vb_rs_listeners_has(const struct vb_rsocket *rs)
{
	pthread_mutex_lock(&list_lock);
	bool has = vb_list_linked(&rs->answered);
	pthread_mutex_unlock(&list_lock);
	return has;
}

struct vb_rsocket *vb_rs_listeners_wait(void)
{
	struct epoll_event event;
	struct vb_rsocket *found = NULL;

	if (vb_clock_epoll(waiting_fd, &event, 1, -1) != 1)
		return NULL;
	pthread_mutex_lock(&list_lock);
	vb_list_for_each (link, &listeners) {
		struct vb_rsocket *rs = vb_container_of(link, struct vb_rsocket, answered);
		if (rs->fd == event.data.fd)
			found = rs;
	}
	assert(!found || atomic_load(&found->references));
	if (found)
		atomic_fetch_add(&found->references, 1);
	pthread_mutex_unlock(&list_lock);
	return found;
}
