/* Event channels: the queue of events that wait to be fetched, and the counts of those fetched and not yet
 * acknowledged.
 * Holds: a channel's descriptor is readable exactly while an event waits in it. So both change under the events' lock:
 * queueing an event writes a count, taking one reads it, and a blocked reader sleeps outside the lock.
 * Not here: the meaning of events (handler.c makes them, events.c hands them out). */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/invariant.h"
#include "os/clock.h"
#include "rdmacm/family.h"
#include "rdmacm/objects.h"
#include "verbs/wait.h"

struct channel_object {
	struct rdma_event_channel public;
	uint32_t generation; /* of the process that made it: a child's copy shares the count behind the descriptor */
	struct vb_list waiting;
};

static pthread_mutex_t events_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t acknowledged = PTHREAD_COND_INITIALIZER; /* signalled at every acknowledgement */

void vb_events_lock(void)
{
	pthread_mutex_lock(&events_lock);
}

void vb_events_unlock(void)
{
	pthread_mutex_unlock(&events_lock);
}

/* The parent's lock may be held by a thread that this process does not have. */
static void on_fork_child(void)
{
	pthread_mutex_init(&events_lock, NULL);
	pthread_cond_init(&acknowledged, NULL);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, on_fork_child);
}

static struct channel_object *channel_of(struct rdma_event_channel *channel)
{
	return (struct channel_object *)channel;
}

VB_EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	if (vb_call_fails(VB_CALL_rdma_create_event_channel))
		return NULL;
	struct channel_object *channel = malloc(sizeof(*channel));
	if (!channel)
		return vb_result_null(-ENOMEM);
	channel->public.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (channel->public.fd < 0) {
		free(channel);
		return NULL;
	}
	vb_list_init(&channel->waiting);
	channel->generation = vb_generation();
	return &channel->public;
}

VB_EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *public)
{
	struct channel_object *channel = channel_of(public);
	for (struct vb_list *link; (link = vb_list_pop(&channel->waiting));)
		free(vb_container_of(link, struct event_object, link));
	close(public->fd);
	free(channel);
}

bool vb_channel_is_ours(struct rdma_event_channel *channel)
{
	return channel_of(channel)->generation == vb_generation();
}

/* ---- Counts ------------------------------------------------------------------------------------------------------ */

/* Direct system calls, because the C library's functions are cancellation points: a thread cancelled here would keep
 * the lock. They fail only if the program closed our descriptor. */
static void count_up(const struct channel_object *channel)
{
	uint64_t one = 1;
	syscall(SYS_write, channel->public.fd, &one, sizeof(one));
}

static void count_down(const struct channel_object *channel)
{
	uint64_t one;
	syscall(SYS_read, channel->public.fd, &one, sizeof(one));
}

static void append(struct channel_object *channel, struct event_object *event)
{
	assert(!vb_list_linked(&event->link));
	vb_list_add_tail(&channel->waiting, &event->link);
	count_up(channel);
}

static void withdraw(struct channel_object *channel, struct event_object *event)
{
	assert(vb_list_linked(&event->link)); /* so that the descriptor's count is not 0 */
	vb_list_remove(&event->link);
	count_down(channel);
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

static struct event_object *event_init(
	struct event_object *event, struct id_object *id, enum rdma_cm_event_type type, int status)
{
	if (!event)
		return NULL;
	memset(event, 0, sizeof(*event));
	vb_list_init(&event->link);
	event->owner = id;
	event->public.id = &id->public;
	event->public.event = type;
	event->public.status = status;
	return event;
}

struct event_object *vb_event_create(struct id_object *id, enum rdma_cm_event_type type, int status)
{
	return event_init(malloc(sizeof(struct event_object)), id, type, status);
}

struct event_object *vb_event_take_spare(struct id_object *id, enum rdma_cm_event_type type, int status)
{
	struct vb_list *link = vb_list_pop(&id->spare);
	return event_init(link ? vb_container_of(link, struct event_object, link) : NULL, id, type, status);
}

void vb_event_set_data(struct event_object *event, const uint8_t *data, uint8_t length)
{
	memcpy(event->private_data, data, length);
	/* Both kinds of parameters begin with the same fields. */
	event->public.param.conn.private_data = event->private_data;
	event->public.param.conn.private_data_len = length;
}

_Static_assert(offsetof(struct rdma_conn_param, private_data_len) == offsetof(struct rdma_ud_param, private_data_len),
	"private data lies at the same place in both");

void vb_event_queue_locked(struct event_object *event)
{
	append(channel_of(event->owner->public.channel), event);
}

void vb_event_queue(struct event_object *event)
{
	vb_events_lock();
	vb_event_queue_locked(event);
	vb_events_unlock();
}

int vb_event_post(struct id_object *id, enum rdma_cm_event_type type, int status)
{
	if (!vb_channel_is_ours(id->public.channel))
		return vb_cm_refuse_forked();
	struct event_object *event = vb_event_create(id, type, status);
	if (!event)
		return -ENOMEM;
	vb_event_queue(event);
	return 0;
}

/* ---- Fetching ---------------------------------------------------------------------------------------------------- */

/* A request's id belongs to the program from here on. */
static void on_taken(struct channel_object *channel, struct event_object *event)
{
	struct id_object *id = vb_id_of(event->public.id);
	event->owner->fetched++;
	if (id->listener) {
		assert(event->owner == id->listener);
		id->listener->backlog++;
		id->listener = NULL;
		id->public.channel = &channel->public;
	}
}

static struct event_object *take(struct channel_object *channel)
{
	vb_events_lock();
	struct event_object *event = NULL;
	if (!vb_list_empty(&channel->waiting)) {
		event = vb_container_of(channel->waiting.next, struct event_object, link);
		withdraw(channel, event);
		on_taken(channel, event);
	}
	vb_events_unlock();
	return event;
}

bool vb_channel_has_event(struct rdma_event_channel *public)
{
	struct channel_object *channel = channel_of(public);
	vb_events_lock();
	bool has_event = !vb_list_empty(&channel->waiting);
	vb_events_unlock();
	return has_event;
}

static bool is_nonblocking(const struct channel_object *channel)
{
	int flags = fcntl(channel->public.fd, F_GETFL);
	return flags < 0 || (flags & O_NONBLOCK);
}

int vb_channel_take(struct rdma_event_channel *public, struct event_object **event)
{
	struct channel_object *channel = channel_of(public);
	if (!vb_channel_is_ours(public))
		return vb_cm_refuse_forked();
	while (!(*event = take(channel))) {
		if (is_nonblocking(channel))
			return -EAGAIN;
		struct pollfd wait = { .fd = public->fd, .events = POLLIN };
		if (vb_clock_poll(&wait, 1, -1) < 0 && (errno != EINTR || vb_signal_ends_wait()))
			return -errno;
	}
	return 0;
}

VB_EXPORT int rdma_ack_cm_event(struct rdma_cm_event *public)
{
	if (vb_call_fails(VB_CALL_rdma_ack_cm_event))
		return -1;
	if (!public)
		return vb_result(-EINVAL);
	struct event_object *event = (struct event_object *)public;
	vb_events_lock();
	event->owner->acknowledged++;
	pthread_cond_broadcast(&acknowledged);
	vb_events_unlock();
	free(event);
	return 0;
}

static void wait_for_acknowledgements(struct id_object *id)
{
	while (id->acknowledged != id->fetched)
		pthread_cond_wait(&acknowledged, &events_lock);
}

/* ---- The events of an id ----------------------------------------------------------------------------------------- */

void vb_events_finish(struct id_object *id)
{
	vb_events_lock();
	struct channel_object *channel = channel_of(id->public.channel);
	vb_list_for_each_safe (link, &channel->waiting) {
		struct event_object *event = vb_container_of(link, struct event_object, link);
		if (event->public.id != &id->public)
			continue;
		withdraw(channel, event);
		free(event);
	}
	wait_for_acknowledgements(id);
	vb_events_unlock();
}

struct id_object *vb_events_take_request(struct id_object *listener)
{
	struct id_object *request = NULL;
	vb_events_lock();
	struct channel_object *channel = channel_of(listener->public.channel);
	vb_list_for_each_safe (link, &channel->waiting) {
		struct event_object *event = vb_container_of(link, struct event_object, link);
		struct id_object *id = vb_id_of(event->public.id);
		if (id->listener != listener || (request && id != request))
			continue;
		request = id;
		withdraw(channel, event);
		free(event);
	}
	if (request) {
		assert(request->state == ID_REQUESTED);
		request->listener = NULL;
	}
	vb_events_unlock();
	return request;
}

void vb_events_forget_group(struct id_object *id, const struct group *group)
{
	vb_events_lock();
	struct channel_object *channel = channel_of(id->public.channel);
	vb_list_for_each_safe (link, &channel->waiting) {
		struct event_object *event = vb_container_of(link, struct event_object, link);
		if (event->group != group)
			continue;
		withdraw(channel, event);
		free(event);
	}
	vb_events_unlock();
}

/* An event of id, or of one of its requests that was not fetched. */
static bool is_of(const struct event_object *event, const struct id_object *id)
{
	return event->public.id == &id->public || vb_id_of(event->public.id)->listener == id;
}

void vb_events_move(struct id_object *id, struct rdma_event_channel *public)
{
	struct channel_object *to = channel_of(public);
	vb_events_lock();
	struct channel_object *from = channel_of(id->public.channel);
	vb_list_for_each_safe (link, &from->waiting) {
		struct event_object *event = vb_container_of(link, struct event_object, link);
		if (from == to || !is_of(event, id))
			continue;
		vb_id_of(event->public.id)->public.channel = public;
		withdraw(from, event);
		append(to, event);
	}
	id->public.channel = public;
	wait_for_acknowledgements(id);
	vb_events_unlock();
}
