/* repoll: epoll's calls over rsockets and other descriptors, level-triggered, on top of rpoll.
 * Holds: a wait works on a copy of the list of members, and polls the instance's own descriptor, too. When the list
 * changes, that descriptor becomes readable, and stays so until all waits know the new list. It tells of changes only:
 * a program cannot poll it for events of the members.
 * Order of locks: instances_lock, an instance's. */
#include "rsocket/objects.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "os/clock.h"
#include "rsocket/later.h"

struct member {
	int fd;
	struct epoll_event event;
	bool is_spent; /* EPOLLONESHOT, and its event was reported */
};

struct instance {
	struct vb_list link;
	int fd;
	unsigned references; /* the table's and each wait's, under instances_lock */
	pthread_mutex_t lock;
	uint64_t version;
	unsigned waits, outdated; /* outdated: waits with an older version; while there are any, fd is readable */
	struct member *members;
	size_t count, room;
	bool is_closed;
};

static pthread_mutex_t instances_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_list instances = { &instances, &instances };

/* The parent's instances are copies here: threads of the parent may have held their locks. */
static void on_fork_child(void)
{
	pthread_mutex_init(&instances_lock, NULL);
	vb_list_init(&instances);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, on_fork_child);
}

/* With instances_lock held. */
static struct instance *find(int fd)
{
	vb_list_for_each (link, &instances) {
		struct instance *instance = vb_container_of(link, struct instance, link);
		if (instance->fd == fd)
			return instance;
	}
	return NULL;
}

static struct instance *get(int fd)
{
	pthread_mutex_lock(&instances_lock);
	struct instance *instance = find(fd);
	if (instance)
		instance->references++;
	pthread_mutex_unlock(&instances_lock);
	return instance;
}

static void put(struct instance *instance)
{
	pthread_mutex_lock(&instances_lock);
	bool is_last = --instance->references == 0;
	pthread_mutex_unlock(&instances_lock);
	if (!is_last)
		return;
	if (instance->fd >= 0)
		close(instance->fd);
	pthread_mutex_destroy(&instance->lock);
	free(instance->members);
	free(instance);
}

/* ---- Changes: with the instance's lock held ---------------------------------------------------------------------- */

static void set_readable(struct instance *instance, bool is_readable)
{
	uint64_t count = 1;
	ssize_t done =
		is_readable ? write(instance->fd, &count, sizeof(count)) : read(instance->fd, &count, sizeof(count));
	(void)done; /* it fails only if the descriptor is in that state already */
}

static void changed(struct instance *instance)
{
	instance->version++;
	instance->outdated = instance->waits;
	if (instance->outdated)
		set_readable(instance, true);
}

/* A wait that knew this version now knows the present one, or is over. */
static void caught_up(struct instance *instance, uint64_t known)
{
	if (known != instance->version && --instance->outdated == 0)
		set_readable(instance, false);
}

static struct member *find_member(struct instance *instance, int fd)
{
	for (size_t i = 0; i < instance->count; i++) {
		if (instance->members[i].fd == fd)
			return &instance->members[i];
	}
	return NULL;
}

static int add_member(struct instance *instance, int fd, const struct epoll_event *event)
{
	if (instance->count == instance->room) {
		size_t room = instance->room ? instance->room * 2 : 16;
		struct member *members = realloc(instance->members, room * sizeof(*members));
		if (!members)
			return -ENOMEM;
		instance->members = members;
		instance->room = room;
	}
	instance->members[instance->count++] = (struct member){ .fd = fd, .event = *event };
	return 0;
}

static void remove_member(struct instance *instance, struct member *member)
{
	*member = instance->members[--instance->count];
}

static int change(struct instance *instance, int operation, int fd, const struct epoll_event *event)
{
	struct member *member = find_member(instance, fd);
	switch (operation) {
	case EPOLL_CTL_ADD:
		return member ? -EEXIST : add_member(instance, fd, event);
	case EPOLL_CTL_MOD:
		if (!member)
			return -ENOENT;
		*member = (struct member){ .fd = fd, .event = *event };
		return 0;
	case EPOLL_CTL_DEL:
		if (!member)
			return -ENOENT;
		remove_member(instance, member);
		return 0;
	default:
		return -EINVAL;
	}
}

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

struct wait {
	struct instance *instance;
	uint64_t known;     /* version of the list that fds is a copy of */
	struct pollfd *fds; /* the instance's first */
	nfds_t count;
};

/* These bits have the same values for epoll and poll. */
#define EVENTS (EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLRDHUP)

static int copy_list(struct wait *wait)
{
	struct instance *instance = wait->instance;
	struct pollfd *fds = realloc(wait->fds, (instance->count + 1) * sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	wait->fds = fds;
	wait->count = 0;
	wait->fds[wait->count++] = (struct pollfd){ .fd = instance->fd, .events = POLLIN };
	for (size_t i = 0; i < instance->count; i++) {
		const struct member *member = &instance->members[i];
		if (!member->is_spent)
			wait->fds[wait->count++] =
				(struct pollfd){ .fd = member->fd, .events = (short)(member->event.events & EVENTS) };
	}
	caught_up(instance, wait->known);
	wait->known = instance->version;
	return 0;
}

/* Reports the members that are ready, if they are still in the list. */
static int collect(struct wait *wait, struct epoll_event *events, int max_events)
{
	int reported = 0;
	for (nfds_t i = 1; i < wait->count && reported < max_events; i++) {
		struct member *member = wait->fds[i].revents ? find_member(wait->instance, wait->fds[i].fd) : NULL;
		if (!member || member->is_spent)
			continue;
		if (wait->fds[i].revents & POLLNVAL) { /* closed, and the descriptor may be another member's by now */
			if (wait->known == wait->instance->version)
				remove_member(wait->instance, member);
			continue;
		}
		member->is_spent = member->event.events & EPOLLONESHOT;
		uint32_t ready = (uint32_t)(unsigned short)wait->fds[i].revents & EVENTS;
		events[reported++] = (struct epoll_event){ .events = ready, .data = member->event.data };
	}
	return reported;
}

static int left_ms(int timeout_ms, int64_t deadline_ns)
{
	return timeout_ms > 0 ? vb_clock_left_ms(deadline_ns) : timeout_ms;
}

static int wait_for_events(struct wait *wait, struct epoll_event *events, int max_events, int timeout_ms)
{
	struct instance *instance = wait->instance;
	int64_t deadline_ns = vb_clock_ns() + timeout_ms * VB_CLOCK_MS;
	for (;;) {
		pthread_mutex_lock(&instance->lock);
		int error = instance->is_closed ? -EBADF : copy_list(wait);
		pthread_mutex_unlock(&instance->lock);
		if (error)
			return error;
		int ms = left_ms(timeout_ms, deadline_ns);
		int ready = rpoll(wait->fds, wait->count, ms);
		if (ready < 0)
			return -errno;
		pthread_mutex_lock(&instance->lock);
		int reported = ready ? collect(wait, events, max_events) : 0;
		pthread_mutex_unlock(&instance->lock);
		if (reported || (!ready && ms == 0) ||
			(ready == 0 && timeout_ms >= 0 && !left_ms(timeout_ms, deadline_ns)))
			return reported;
	}
}

static int wait_in(struct instance *instance, struct epoll_event *events, int max_events, int timeout_ms)
{
	struct wait wait = { .instance = instance };
	pthread_mutex_lock(&instance->lock);
	instance->waits++;
	wait.known = instance->version;
	pthread_mutex_unlock(&instance->lock);
	int result = wait_for_events(&wait, events, max_events, timeout_ms);
	pthread_mutex_lock(&instance->lock);
	caught_up(instance, wait.known);
	instance->waits--;
	pthread_mutex_unlock(&instance->lock);
	free(wait.fds);
	return result;
}

/* ---- The calls --------------------------------------------------------------------------------------------------- */

VB_RS_EXPORT int later_repoll_create(int flags)
{
	if (flags & ~EPOLL_CLOEXEC)
		return vb_rs_result(-EINVAL);
	struct instance *instance = calloc(1, sizeof(*instance));
	if (!instance)
		return vb_rs_result(-ENOMEM);
	instance->fd = eventfd(0, EFD_NONBLOCK | (flags & EPOLL_CLOEXEC ? EFD_CLOEXEC : 0));
	if (instance->fd < 0) {
		free(instance);
		return -1;
	}
	instance->references = 1;
	pthread_mutex_init(&instance->lock, NULL);
	pthread_mutex_lock(&instances_lock);
	struct instance *stale = find(instance->fd); /* the program closed its descriptor with close() */
	if (stale) {
		vb_list_remove(&stale->link);
		stale->fd = -1;
	}
	vb_list_add_tail(&instances, &instance->link);
	pthread_mutex_unlock(&instances_lock);
	if (stale)
		put(stale);
	return instance->fd;
}

VB_RS_EXPORT int later_repoll_ctl(int epfd, int operation, int fd, struct epoll_event *event)
{
	if (fd < 0)
		return vb_rs_result(-EBADF);
	if (fd == epfd)
		return vb_rs_result(-EINVAL);
	if (!event && operation != EPOLL_CTL_DEL)
		return vb_rs_result(-EFAULT);
	struct instance *instance = get(epfd);
	if (!instance)
		return vb_rs_result(-EINVAL);
	pthread_mutex_lock(&instance->lock);
	int error = change(instance, operation, fd, event);
	if (!error)
		changed(instance);
	pthread_mutex_unlock(&instance->lock);
	put(instance);
	return vb_rs_result(error);
}

VB_RS_EXPORT int later_repoll_wait(int epfd, struct epoll_event *events, int max_events, int timeout_ms)
{
	if (max_events <= 0)
		return vb_rs_result(-EINVAL);
	struct instance *instance = get(epfd);
	if (!instance)
		return vb_rs_result(-EINVAL);
	int result = wait_in(instance, events, max_events, timeout_ms);
	put(instance);
	return result < 0 ? vb_rs_result(result) : result;
}

void vb_repoll_forget(int fd)
{
	pthread_mutex_lock(&instances_lock);
	vb_list_for_each (link, &instances) {
		struct instance *instance = vb_container_of(link, struct instance, link);
		pthread_mutex_lock(&instance->lock);
		struct member *member = find_member(instance, fd);
		if (member) {
			remove_member(instance, member);
			changed(instance);
		}
		pthread_mutex_unlock(&instance->lock);
	}
	pthread_mutex_unlock(&instances_lock);
}

/* Pending waits end with EBADF. */
bool vb_repoll_close(int fd)
{
	pthread_mutex_lock(&instances_lock);
	struct instance *instance = find(fd);
	if (instance)
		vb_list_remove(&instance->link);
	pthread_mutex_unlock(&instances_lock);
	if (!instance)
		return false;
	pthread_mutex_lock(&instance->lock);
	instance->is_closed = true;
	changed(instance);
	pthread_mutex_unlock(&instance->lock);
	put(instance);
	return true;
}
