/* rdma_resolve_addrinfo: rdma_getaddrinfo in a thread of its own, its end an event; and events that programs write
 * themselves.
 * Holds: an id resolves one thing at a time, from the call until the answer is fetched or was an error. The thread has
 * copies of all it looks at, and the id waits for it before it goes. */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include "os/thread.h"
#include "rdmacm/later.h"
#include "rdmacm/objects.h"

/* What was asked for, and where the answer goes: owned by the id. */
struct resolution {
	struct id_object *id;
	pthread_t thread;
	char *node, *service;
	struct rdma_addrinfo hints;
	struct sockaddr_storage source, destination; /* hints' */
	bool has_hints;
	struct event_object *event;   /* made beforehand, so that the end is always told */
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

/* Route and connection data are no criteria, and stay behind. */
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

/* Is the last one's answer still to come, or to be fetched? With `calls` held. */
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
	id->resolution = NULL;
	pthread_join(resolution->thread, NULL);
	resolution_free(resolution);
}

static int begin(struct id_object *id, const char *node, const char *service, const struct rdma_addrinfo *hints)
{
	if (id->generation != vb_generation())
		return -VB_FORKED_ERRNO;
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

/* A subnet administrator, which IB has for service names, is nowhere on Ethernet. */
VB_EXPORT int later_rdma_resolve_addrinfo(
	struct rdma_cm_id *public, const char *node, const char *service, const struct rdma_addrinfo *hints)
{
	if (!public || (!node && !service && !hints))
		return vb_result(-EINVAL);
	if (hints && (hints->ai_flags & LATER_RAI_SA))
		return vb_result(-ENOTSUP);
	struct id_object *id = vb_id_of(public);
	pthread_mutex_lock(&id->calls);
	int error = begin(id, node, service, hints);
	pthread_mutex_unlock(&id->calls);
	return vb_id_complete(id, error);
}

VB_EXPORT int later_rdma_query_addrinfo(struct rdma_cm_id *public, struct rdma_addrinfo **info)
{
	if (!public || !info)
		return vb_result(-EINVAL);
	struct id_object *id = vb_id_of(public);
	struct rdma_addrinfo *answer = NULL;
	pthread_mutex_lock(&id->calls);
	if (id->resolution) {
		vb_events_lock();
		answer = id->resolution->answer;
		id->resolution->answer = NULL;
		vb_events_unlock();
	}
	pthread_mutex_unlock(&id->calls);
	if (!answer)
		return vb_result(-ENOENT);
	*info = answer;
	return 0;
}

_Static_assert(offsetof(struct rdma_cm_event, param) == LATER_EVENT_ARG, "ABI");

VB_EXPORT int later_rdma_write_cm_event(
	struct rdma_cm_id *public, enum rdma_cm_event_type type, int status, uint64_t arg)
{
	if (!public || (int)type != LATER_EVENT_USER)
		return vb_result(-EINVAL);
	if (!vb_channel_is_ours(public->channel))
		return vb_result(-VB_FORKED_ERRNO);
	struct event_object *event = vb_event_create(vb_id_of(public), type, status);
	if (!event)
		return vb_result(-ENOMEM);
	memcpy(&event->public.param, &arg, sizeof(arg));
	vb_event_queue(event);
	return 0;
}
