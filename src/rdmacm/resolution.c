/* rdma_getaddrinfo in a thread of its own, whose end is an event.
 * Holds: an id resolves one thing at a time, from the call until the answer is fetched or was an error. The thread has
 * copies of all that it reads, and the id waits for it before it is freed.
 * Not here: the calls (resolve_addrinfo.c). */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "os/thread.h"
#include "rdmacm/later.h"
#include "rdmacm/objects.h"

/* The question, and the place for the answer; the id owns it. */
struct resolution {
	struct id_object *id;
	pthread_t thread;
	char *node, *service;
	struct rdma_addrinfo hints;
	struct sockaddr_storage source, destination; /* of hints */
	bool has_hints;
	struct event_object *event;   /* made beforehand, so that the end can always be reported */
	struct rdma_addrinfo *answer; /* under the events' lock, as is_over */
	bool is_over, is_failed;
};

static void resolution_free(struct resolution *resolution)
{
	if (!resolution)
		return;
	free(resolution->node);
	free(resolution->service);
	free(resolution->event);
	rdma_freeaddrinfo(resolution->answer);
	free(resolution);
}

/* A failed name look-up as an errno, for an event's status. */
static int errno_of(int error)
{
	switch (error) {
	case EAI_SYSTEM:
		return errno ? errno : EINVAL;
	case EAI_MEMORY:
		return ENOMEM;
	case EAI_AGAIN:
		return EAGAIN;
	case EAI_BADFLAGS:
	case EAI_FAMILY:
	case EAI_SOCKTYPE:
		return EINVAL;
	default:
		return ENOENT; /* no such name or service */
	}
}

static void *resolve(void *pointer)
{
	struct resolution *resolution = pointer;
	struct rdma_addrinfo *answer = NULL;
	int error = rdma_getaddrinfo(
		resolution->node, resolution->service, resolution->has_hints ? &resolution->hints : NULL, &answer);
	struct event_object *event = resolution->event;
	if (error) {
		event->public.event = (enum rdma_cm_event_type)LATER_EVENT_ADDRINFO_ERROR;
		event->public.status = -errno_of(error);
	}
	vb_events_lock();
	assert(!resolution->is_over);
	resolution->event = NULL;
	resolution->answer = answer;
	resolution->is_failed = error != 0;
	resolution->is_over = true;
	vb_event_queue_locked(event);
	vb_events_unlock();
	return NULL;
}

static bool copy_hint(
	const struct sockaddr *from, socklen_t length, struct sockaddr_storage *to, struct sockaddr **place)
{
	if (length > sizeof(*to))
		return false;
	if (length)
		memcpy(to, from, length);
	*place = length ? (struct sockaddr *)to : NULL;
	return true;
}

/* Route and connection data are no criteria of a look-up, and are not copied. */
static bool copy_hints(struct resolution *to, const struct rdma_addrinfo *from)
{
	to->has_hints = true;
	to->hints = *from;
	to->hints.ai_flags &= ~LATER_RAI_DNS;
	to->hints.ai_route = to->hints.ai_connect = NULL;
	to->hints.ai_route_len = to->hints.ai_connect_len = 0;
	return copy_hint(from->ai_src_addr, from->ai_src_len, &to->source, &to->hints.ai_src_addr) &&
	       copy_hint(from->ai_dst_addr, from->ai_dst_len, &to->destination, &to->hints.ai_dst_addr);
}

static struct resolution *resolution_create(
	struct id_object *id, const char *node, const char *service, const struct rdma_addrinfo *hints)
{
	struct resolution *resolution = calloc(1, sizeof(*resolution));
	if (!resolution)
		return NULL;
	resolution->id = id;
	resolution->node = node ? strdup(node) : NULL;
	resolution->service = service ? strdup(service) : NULL;
	resolution->event = vb_event_create(id, (enum rdma_cm_event_type)LATER_EVENT_ADDRINFO_RESOLVED, 0);
	if ((node && !resolution->node) || (service && !resolution->service) || !resolution->event ||
		(hints && !copy_hints(resolution, hints))) {
		resolution_free(resolution);
		return NULL;
	}
	return resolution;
}

/* The last answer is not there yet, or was not fetched. With `calls` held. */
static bool is_resolving(const struct id_object *id)
{
	if (!id->resolution)
		return false;
	vb_events_lock();
	bool is_done = id->resolution->is_over && (id->resolution->is_failed || !id->resolution->answer);
	vb_events_unlock();
	return !is_done;
}

void vb_id_end_resolution(struct id_object *id)
{
	struct resolution *resolution = id->resolution;
	if (!resolution)
		return;
	assert(resolution->id == id);
	id->resolution = NULL;
	pthread_join(resolution->thread, NULL);
	assert(resolution->is_over);
	resolution_free(resolution);
}

int vb_id_begin_resolution(
	struct id_object *id, const char *node, const char *service, const struct rdma_addrinfo *hints)
{
	if (is_resolving(id))
		return -EBUSY;
	vb_id_end_resolution(id);
	struct resolution *resolution = resolution_create(id, node, service, hints);
	if (!resolution)
		return -ENOMEM;
	int error = vb_thread_start(&resolution->thread, resolve, resolution);
	if (error) {
		resolution_free(resolution);
		return error;
	}
	id->resolution = resolution;
	return 0;
}

struct rdma_addrinfo *vb_id_take_resolution(struct id_object *id)
{
	if (!id->resolution)
		return NULL;
	vb_events_lock();
	struct rdma_addrinfo *answer = id->resolution->answer;
	id->resolution->answer = NULL;
	vb_events_unlock();
	return answer;
}
