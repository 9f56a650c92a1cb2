/* epoll over rsockets: the kernel keeps the other descriptors, a list for each epoll instance keeps the rsockets.
 * Holds: a wait polls the rsockets of its list and, among them, the instance's own descriptor, which is readable when
 * the kernel has an event. Every wait is in the list of waiters. When the list of an instance changes during a wait, a
 * descriptor of ours in the kernel's instance becomes readable, and stays so until all waits of the instance know the
 * new list. Edge-triggered waiters get an event when there is room to send after there was none, once for the end, and
 * for data as long as there is some. */
#include "rspreload/rspreload.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "os/borrower.h"
#include "os/clock.h"

struct member {
	int fd, rsocket;
	struct epoll_event event;
	bool is_spent; /* EPOLLONESHOT, and its event was reported */
	short told;    /* EPOLLET: events reported since the last call that may have changed them */
};

struct instance {
	int fd, changed; /* changed: readable while a wait does not know the present list */
	bool is_changed; /* changed is readable */
	uint64_t version;
	struct member *members;
	size_t count, room;
	struct instance *next;
};

/* A thread's wait, from its first look at the list to its end. */
struct waiter {
	int epfd;
	uint64_t version; /* of the list that it knows; 0: there was none */
	struct waiter *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct instance *instances;
static atomic_uint instance_count;
static struct waiter *waiters;
static _Thread_local struct waiter own_waiter;

/* The data of the kernel's event for `changed`: an address that programs do not have. */
#define OUR_EVENT ((void *)&instances)

/* The child has none of its parent's other threads, one of which may have held the lock. */
static void on_fork_child(void)
{
	pthread_mutex_init(&lock, NULL);
	waiters = NULL;
	for (struct instance *instance = instances; instance; instance = instance->next)
		instance->is_changed = false; /* a set one belongs to the parent */
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, on_fork_child);
}

/* ---- The lists: with lock held ----------------------------------------------------------------------------------- */

static struct instance *find_instance(int fd)
{
	for (struct instance *instance = instances; instance; instance = instance->next) {
		if (instance->fd == fd)
			return instance;
	}
	return NULL;
}

static struct instance *make_instance(int fd)
{
	struct instance *instance = calloc(1, sizeof(*instance));
	if (!instance)
		return NULL;
	instance->fd = fd;
	instance->changed = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = OUR_EVENT };
	if (instance->changed < 0 || vb_real()->epoll_ctl(fd, EPOLL_CTL_ADD, instance->changed, &event)) {
		if (instance->changed >= 0)
			vb_real()->close(instance->changed);
		free(instance);
		return NULL;
	}
	instance->next = instances;
	instances = instance;
	instance_count++;
	return instance;
}

static struct member *find_member(struct instance *instance, int fd)
{
	for (size_t i = 0; instance && i < instance->count; i++) {
		if (instance->members[i].fd == fd)
			return &instance->members[i];
	}
	return NULL;
}

static int add_member(struct instance *instance, int fd, int rsocket, const struct epoll_event *event)
{
	if (instance->count == instance->room) {
		size_t room = instance->room ? instance->room * 2 : 16;
		struct member *members = realloc(instance->members, room * sizeof(*members));
		if (!members)
			return -ENOMEM;
		instance->members = members;
		instance->room = room;
	}
	instance->members[instance->count++] = (struct member){ .fd = fd, .rsocket = rsocket, .event = *event };
	return 0;
}

static void remove_member(struct instance *instance, struct member *member)
{
	*member = instance->members[--instance->count];
}

static int change(int epfd, int operation, int fd, int rsocket, const struct epoll_event *event)
{
	struct instance *instance = find_instance(epfd);
	struct member *member = find_member(instance, fd);

	if (operation != EPOLL_CTL_DEL && !event)
		return -EFAULT;
	if (operation == EPOLL_CTL_ADD) {
		if (member)
			return -EEXIST;
		if (!instance)
			instance = make_instance(epfd);
		return instance ? add_member(instance, fd, rsocket, event) : -ENOMEM;
	}
	if (!member)
		return -ENOENT;
	if (operation == EPOLL_CTL_DEL) {
		remove_member(instance, member);
		return 0;
	}
	if (operation != EPOLL_CTL_MOD)
		return -EINVAL;
	*member = (struct member){ .fd = fd, .rsocket = rsocket, .event = *event };
	return 0;
}

static bool has_outdated(const struct instance *instance)
{
	for (const struct waiter *waiter = waiters; waiter; waiter = waiter->next) {
		if (waiter->epfd == instance->fd && waiter->version != instance->version)
			return true;
	}
	return false;
}

/* Direct system calls: those of the C library may end a thread, which would keep the lock. */
static void wake(struct instance *instance)
{
	static const uint64_t one = 1;
	instance->version++;
	if (!instance->is_changed && has_outdated(instance))
		instance->is_changed = syscall(SYS_write, instance->changed, &one, sizeof(one)) > 0;
}

static void calm(struct instance *instance)
{
	uint64_t ignored;
	if (instance && instance->is_changed && !has_outdated(instance))
		instance->is_changed = syscall(SYS_read, instance->changed, &ignored, sizeof(ignored)) < 0;
}

VB_HOOK int epoll_ctl(int epfd, int operation, int fd, struct epoll_event *event)
{
	int rsocket = vb_rsocket_of(fd);
	if (rsocket < 0)
		return vb_real()->epoll_ctl(epfd, operation, fd, event);
	/* A forked child's copy of a parent's rsocket would never be ready, and the program would wait for ever. */
	if (operation == EPOLL_CTL_ADD && VB_INSIDE(rfcntl(rsocket, F_GETFL)) < 0)
		return -1;
	pthread_mutex_lock(&lock);
	int error = change(epfd, operation, fd, rsocket, event);
	if (!error)
		wake(find_instance(epfd));
	pthread_mutex_unlock(&lock);
	if (!error)
		return 0;
	errno = -error;
	return -1;
}

/* A closed descriptor leaves every list, as it leaves the kernel's. */
void vb_epoll_forget(int fd)
{
	if (!instance_count)
		return;
	pthread_mutex_lock(&lock);
	for (struct instance *instance = instances; instance; instance = instance->next) {
		struct member *member = find_member(instance, fd);
		if (member)
			remove_member(instance, member);
	}
	pthread_mutex_unlock(&lock);
}

void vb_epoll_close(int epfd)
{
	if (!instance_count || vb_is_borrower())
		return;
	pthread_mutex_lock(&lock);
	for (struct instance **link = &instances; *link; link = &(*link)->next) {
		struct instance *instance = *link;
		if (instance->fd != epfd)
			continue;
		*link = instance->next;
		vb_real()->close(instance->changed);
		free(instance->members);
		free(instance);
		instance_count--;
		break;
	}
	pthread_mutex_unlock(&lock);
}

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

/* The events that stay until a call changes them. */
enum { INPUT = POLLIN | POLLRDNORM, OUTPUT = POLLOUT | POLLWRNORM, LASTING = OUTPUT | POLLRDHUP | POLLHUP | POLLERR };

/* poll and epoll use the same bits. */
static short asked_of(const struct member *member)
{
	return (short)(member->event.events & (INPUT | OUTPUT | POLLPRI | POLLRDHUP));
}

/* The end of the input is always asked for: it alone says that no more data comes, so it must be noticed. poll reports
 * a full end unasked, so that is not asked for again. */
static struct pollfd poll_for(const struct member *member)
{
	struct pollfd fd = { .fd = member->is_spent ? -1 : member->fd, .events = asked_of(member) };

	if (!(member->event.events & EPOLLET))
		return fd;
	fd.events |= POLLRDHUP;
	if (member->told & POLLOUT)
		fd.events &= ~OUTPUT;
	if (member->told & POLLRDHUP)
		fd.events &= ~(INPUT | POLLRDHUP);
	if (member->told & POLLHUP || (member->told & POLLERR && member->told & POLLRDHUP))
		fd.fd = -1;
	return fd;
}

/* The events to report to the program, of those that poll found. */
static uint32_t tell(struct member *member, short found)
{
	short asked = asked_of(member) | POLLERR | POLLHUP;

	if (!(member->event.events & EPOLLET))
		return (uint32_t)found;
	member->told |= found;
	vb_told(member->rsocket, found & LASTING);
	short news = found & asked;
	/* As with the kernel, a new event comes together with those that still hold. */
	if (news && member->told & POLLRDHUP)
		news |= asked & (INPUT | POLLRDHUP);
	return (uint32_t)news;
}

void vb_epoll_expect(int rsocket, short events)
{
	if (!vb_take_told(rsocket, events))
		return;
	pthread_mutex_lock(&lock);
	for (struct instance *instance = instances; instance; instance = instance->next) {
		bool is_new = false;
		for (size_t i = 0; i < instance->count; i++) {
			struct member *member = &instance->members[i];
			if (member->rsocket != rsocket)
				continue;
			is_new |= member->told & events;
			member->told &= ~events;
		}
		if (is_new)
			wake(instance);
	}
	pthread_mutex_unlock(&lock);
}

static void remove_waiter(const struct waiter *waiter)
{
	struct waiter **link = &waiters;
	while (*link && *link != waiter)
		link = &(*link)->next;
	if (*link)
		*link = waiter->next;
}

static void enter(struct waiter *waiter, int epfd)
{
	pthread_mutex_lock(&lock);
	remove_waiter(waiter); /* a signal handler may have jumped out of the thread's last wait */
	*waiter = (struct waiter){ .epfd = epfd, .next = waiters };
	waiters = waiter;
	pthread_mutex_unlock(&lock);
}

static void leave(void *ended)
{
	struct waiter *waiter = ended;
	pthread_mutex_lock(&lock);
	remove_waiter(waiter);
	calm(find_instance(waiter->epfd));
	pthread_mutex_unlock(&lock);
}

/* Lists the instance's own descriptor and its rsockets. Returns how many; -1: there is no rsocket, or no memory for a
 * copy of the list. */
static ssize_t snapshot(struct waiter *waiter, struct pollfd **fds)
{
	pthread_mutex_lock(&lock);
	struct instance *instance = find_instance(waiter->epfd);
	ssize_t count = -1;
	*fds = NULL;
	waiter->version = instance ? instance->version : 0;
	calm(instance);
	if (instance && instance->count)
		*fds = calloc(instance->count + 1, sizeof(**fds));
	if (*fds) {
		count = 0;
		(*fds)[count++] = (struct pollfd){ .fd = waiter->epfd, .events = POLLIN };
		for (size_t i = 0; i < instance->count; i++)
			(*fds)[count++] = poll_for(&instance->members[i]);
	}
	pthread_mutex_unlock(&lock);
	return count;
}

/* Reports the events of rsockets that are still in the list. */
static int report(int epfd, const struct pollfd *fds, ssize_t count, struct epoll_event *events, int room)
{
	int told = 0;

	pthread_mutex_lock(&lock);
	struct instance *instance = find_instance(epfd);
	for (ssize_t i = 1; i < count && told < room; i++) {
		struct member *member = fds[i].revents ? find_member(instance, fds[i].fd) : NULL;
		uint32_t news = member && !member->is_spent ? tell(member, fds[i].revents) : 0;
		if (!news)
			continue;
		events[told++] = (struct epoll_event){ .events = news, .data = member->event.data };
		if (member->event.events & EPOLLONESHOT)
			member->is_spent = true;
	}
	pthread_mutex_unlock(&lock);
	return told;
}

static int left_ms(int timeout_ms, int64_t deadline_ns)
{
	return timeout_ms > 0 ? vb_clock_left_ms(deadline_ns) : timeout_ms;
}

/* Reports the kernel's events, without our own descriptor's. 0: none for now. */
static int ask_kernel(int epfd, struct epoll_event *events, int room, int timeout_ms, const sigset_t *mask)
{
	int count = vb_real()->epoll_pwait(epfd, events, room, timeout_ms, mask);
	/* Our event may take the place of another one. The kernel then puts it behind that one, unless another thread
	 * comes between. */
	for (int tries = 0; tries < 4 && count == 1 && room == 1 && events[0].data.ptr == OUR_EVENT; tries++)
		count = vb_real()->epoll_wait(epfd, events, room, 0);
	int kept = 0;
	for (int i = 0; i < count; i++) {
		if (events[i].data.ptr != OUR_EVENT)
			events[kept++] = events[i];
	}
	return count < 0 ? count : kept;
}

/* Looks once at everything; 0: nothing to report yet. */
static int wait_once(int epfd, struct pollfd *fds, ssize_t count, struct epoll_event *events, int room, int timeout_ms,
	const sigset_t *mask)
{
	if (vb_poll(fds, (nfds_t)count, timeout_ms, mask) < 0)
		return -1;
	int told = report(epfd, fds, count, events, room);
	if (fds[0].revents && told < room) {
		int others = ask_kernel(epfd, events + told, room - told, 0, NULL);
		if (others > 0)
			told += others;
	}
	return told;
}

static int wait_for_events(
	struct waiter *waiter, struct epoll_event *events, int room, int timeout_ms, const sigset_t *mask)
{
	int64_t deadline_ns = timeout_ms > 0 ? vb_clock_ns() + timeout_ms * VB_CLOCK_MS : 0;

	for (;;) {
		struct pollfd *fds;
		ssize_t count = snapshot(waiter, &fds);
		int left = left_ms(timeout_ms, deadline_ns);
		int told = count < 0 ? ask_kernel(waiter->epfd, events, room, left, mask)
				     : wait_once(waiter->epfd, fds, count, events, room, left, mask);
		int error = errno;
		free(fds);
		errno = error;
		if (told || !left)
			return told;
	}
}

VB_HOOK int epoll_pwait(int epfd, struct epoll_event *events, int room, int timeout_ms, const sigset_t *mask)
{
	int told, error;

	if (vb_is_inside() || room <= 0)
		return vb_real()->epoll_pwait(epfd, events, room, timeout_ms, mask);
	enter(&own_waiter, epfd);
	/* The thread may be cancelled while it waits. */
	pthread_cleanup_push(leave, &own_waiter);
	told = wait_for_events(&own_waiter, events, room, timeout_ms, mask);
	error = errno;
	pthread_cleanup_pop(1);
	errno = error;
	return told;
}

VB_HOOK int epoll_wait(int epfd, struct epoll_event *events, int room, int timeout_ms)
{
	return epoll_pwait(epfd, events, room, timeout_ms, NULL);
}

/* Milliseconds, rounded up as the kernel rounds its ticks, so that no wait ends early. */
VB_HOOK int epoll_pwait2(
	int epfd, struct epoll_event *events, int room, const struct timespec *timeout, const sigset_t *mask)
{
	if (timeout && (timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec >= 1000000000)) {
		errno = EINVAL;
		return -1;
	}
	int64_t ms = timeout && timeout->tv_sec < INT_MAX / 1000
			     ? timeout->tv_sec * 1000 + (timeout->tv_nsec + 999999) / 1000000
			     : INT_MAX;
	return epoll_pwait(epfd, events, room, timeout ? (int)ms : -1, mask);
}
