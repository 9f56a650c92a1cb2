/* rdma_resolve_addrinfo, and events that programs write themselves.
 * Not here: the thread that resolves (resolution.c). */
#include <string.h>
#include "rdmacm/later.h"
#include "rdmacm/objects.h"

/* Ethernet has no subnet administrator, which resolves service names on InfiniBand. */
VB_EXPORT int later_rdma_resolve_addrinfo(
	struct rdma_cm_id *public, const char *node, const char *service, const struct rdma_addrinfo *hints)
{
	if (vb_call_fails(VB_CALL_rdma_resolve_addrinfo))
		return -1;
	if (!public || (!node && !service && !hints))
		return vb_result(-EINVAL);
	if (hints && (hints->ai_flags & LATER_RAI_SA))
		return vb_result(-ENOTSUP);
	struct id_object *id = vb_id_of(public);
	if (vb_id_is_refused(id))
		return -1;
	pthread_mutex_lock(&id->calls);
	int error = vb_id_begin_resolution(id, node, service, hints);
	pthread_mutex_unlock(&id->calls);
	return vb_id_complete(id, error);
}

VB_EXPORT int later_rdma_query_addrinfo(struct rdma_cm_id *public, struct rdma_addrinfo **info)
{
	if (vb_call_fails(VB_CALL_rdma_query_addrinfo))
		return -1;
	if (!public || !info)
		return vb_result(-EINVAL);
	struct id_object *id = vb_id_of(public);
	if (vb_id_is_refused(id))
		return -1;
	pthread_mutex_lock(&id->calls);
	struct rdma_addrinfo *answer = vb_id_take_resolution(id);
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
	if (vb_call_fails(VB_CALL_rdma_write_cm_event))
		return -1;
	if (!public || (int)type != LATER_EVENT_USER)
		return vb_result(-EINVAL);
	if (!vb_channel_is_ours(public->channel))
		return vb_result(vb_cm_refuse_forked());
	struct event_object *event = vb_event_create(vb_id_of(public), type, status);
	if (!event)
		return vb_result(-ENOMEM);
	memcpy(&event->public.param, &arg, sizeof(arg));
	vb_event_queue(event);
	return 0;
}
