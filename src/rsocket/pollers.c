/* The threads that have called rpoll, each with a descriptor of its own. It becomes readable when another thread takes
 * what made an rsocket's descriptor readable.
 * Not here: what the calls wait for (poll.c). */
#include "rsocket/pollers.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

static pthread_mutex_t pollers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_list pollers = { &pollers, &pollers };
/* A forked child's: nobody reads it. */
static struct vb_list *of_parent __attribute__((used));

void vb_rs_wake_pollers(void)
{
	uint64_t one = 1;

	pthread_mutex_lock(&pollers_lock);
	vb_list_for_each (link, &pollers) {
		struct vb_rs_poller *poller = vb_container_of(link, struct vb_rs_poller, link);
		if (!poller->calls)
			continue;
		/* It fails only when the count is full, and then the poller is awake. */
		if (write(poller->wake_fd, &one, sizeof(one)) < 0)
			continue;
	}
	pthread_mutex_unlock(&pollers_lock);
}

/* One per thread, kept with its descriptor until the thread ends. */
static pthread_key_t poller_key;
static pthread_once_t poller_once = PTHREAD_ONCE_INIT;
static bool has_poller_key;

static void free_poller(void *pointer)
{
	struct vb_rs_poller *poller = pointer;

	pthread_mutex_lock(&pollers_lock);
	vb_list_remove(&poller->link);
	pthread_mutex_unlock(&pollers_lock);
	close(poller->wake_fd);
	free(poller);
}

static void make_poller_key(void)
{
	has_poller_key = pthread_key_create(&poller_key, free_poller) == 0;
}

struct vb_rs_poller *vb_rs_own_poller(void)
{
	pthread_once(&poller_once, make_poller_key);
	struct vb_rs_poller *poller = pthread_getspecific(poller_key);
	if (poller)
		return poller;
	poller = malloc(sizeof(*poller));
	if (!poller)
		return NULL;
	poller->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (poller->wake_fd < 0 || pthread_setspecific(poller_key, poller)) {
		if (poller->wake_fd >= 0)
			close(poller->wake_fd);
		free(poller);
		return NULL;
	}
	poller->calls = 0;
	pthread_mutex_lock(&pollers_lock);
	vb_list_add_tail(&pollers, &poller->link);
	pthread_mutex_unlock(&pollers_lock);
	return poller;
}

/* The child uses none of the parent's pollers, not this thread's either: the parent shares its descriptor. They stay in
 * reach, for tools that look for leaks. */
static void on_fork_child(void)
{
	pthread_mutex_init(&pollers_lock, NULL);
	of_parent = pollers.next;
	vb_list_init(&pollers);
	if (has_poller_key)
		pthread_setspecific(poller_key, NULL);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, on_fork_child);
}

void vb_rs_poller_enter(struct vb_rs_poller *poller)
{
	pthread_mutex_lock(&pollers_lock);
	poller->calls++;
	pthread_mutex_unlock(&pollers_lock);
}

void vb_rs_poller_leave(struct vb_rs_poller *poller)
{
	uint64_t count;

	pthread_mutex_lock(&pollers_lock);
	poller->calls--;
	pthread_mutex_unlock(&pollers_lock);
	/* Nothing to read is no error. */
	if (read(poller->wake_fd, &count, sizeof(count)) < 0)
		return;
}
