/* Finds what the client holds, and asserts what holds of it; and ends its thread. See state.h. */
#include "base/invariant.h"
#include "host/client/state.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct vb_held_binding *vb_broker_find_binding(struct vb_broker *broker, uint32_t number)
{
	vb_list_for_each (node, &broker->bindings) {
		struct vb_held_binding *binding = vb_container_of(node, struct vb_held_binding, link);
		if (binding->is.number == number)
			return binding;
	}
	return NULL;
}

struct vb_held_slot *vb_broker_find_slot(struct vb_broker *broker, uint8_t number)
{
	vb_list_for_each (node, &broker->slots) {
		struct vb_held_slot *held = vb_container_of(node, struct vb_held_slot, link);
		if (held->slot.number == number)
			return held;
	}
	return NULL;
}

void vb_held_slot_holds(const struct vb_held_slot *held)
{
	assert(held->slot.number > 0);
	assert(held->slot.number <= VB_SLOT_MAX);
	assert(held->is_said || !held->is_adopted);
}

void vb_broker_holds(const struct vb_broker *broker)
{
	assert(broker->question_count <= VB_BROKER_MOST_QUESTIONS);
	assert(broker->introduction_count <= VB_BROKER_MOST_INTRODUCTIONS);
	assert(vb_list_empty(&broker->introductions) == (broker->introduction_count == 0));
	assert(vb_list_empty(&broker->posts) == (broker->post_count == 0));
	assert(!broker->is_over || broker->fd < 0);
	assert(!broker->is_over || broker->wake_fd < 0);
}

/* A byte, for a forked child may have this end too, and then to close it tells nothing. Where the number is not ours
 * any more, the thread knows already. A program that closes all numbers closes the other end first, perhaps: then the
 * write raises SIGPIPE, which is not the program's and is taken back. */
static void write_quietly(int writer)
{
	const struct timespec at_once = { 0 };
	sigset_t pipe, before, pending;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	if (syscall(SYS_write, writer, "", 1) < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE))
		while (sigtimedwait(&pipe, NULL, &at_once) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void vb_broker_end(struct vb_broker *broker)
{
	int writer = broker->stop_writer;
	struct stat status;

	if (fstat(writer, &status) == 0 && S_ISFIFO(status.st_mode) && status.st_ino == broker->stop_inode)
		write_quietly(writer);
}
