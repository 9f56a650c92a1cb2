/* Fetching events. The thread that fetches an event also does what the event means for its id: a request gets its
 * device, a reply moves the QP (reply.c), a group is attached (groups.c). Not here: the queue (channel.c), the sources
 * of events (handler.c and the calls). */
#include "base/invariant.h"
#include "rdmacm/objects.h"

/* Chooses the values to be answered unless the program gives others: a program that moves its QP itself asks for
 * attributes before it accepts. */
static void propose(struct id_object *id)
{
	id->local.psn = vb_random_psn();
	id->local.responder_resources = vb_at_most(id->remote.initiator_depth, id->device->max_responder_resources);
	id->local.initiator_depth = vb_at_most(id->remote.responder_resources, id->device->max_initiator_depth);
}

static int request_arrive(struct id_object *id)
{
	struct device_entry *device;

	pthread_mutex_lock(&id->calls);
	assert(id->state == ID_REQUESTED);
	int error = vb_device_of_gid(&id->way.local, &device, &id->way.gid_index);
	if (!error) {
		vb_id_set_device(id, device, &id->way.local);
		propose(id);
	}
	pthread_mutex_unlock(&id->calls);
	return error;
}

/* A request whose address has gone since it was queued is rejected, and the program never sees it. */
static bool request_is_good(struct event_object *event)
{
	struct id_object *id = vb_id_of(event->public.id);
	int error = request_arrive(id);
	if (!error)
		return true;
	rdma_ack_cm_event(&event->public);
	rdma_destroy_id(&id->public);
	return false;
}

/* The id's state and QP follow its connection. */
static void apply(struct event_object *event)
{
	struct id_object *id = vb_id_of(event->public.id);

	pthread_mutex_lock(&id->calls);
	switch (event->public.event) {
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		assert(event->is_reply);
		vb_reply_arrive(id, event);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (event->is_reply)
			vb_way_ah_attr(&id->way, &event->public.param.ud.ah_attr);
		break;
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_UNREACHABLE:
		if (!vb_id_is_datagram(id))
			vb_id_fail_qp(id);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		id->is_disconnected = true;
		break;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		assert(event->group);
		vb_group_arrive(id, event);
		break;
	default:
		break;
	}
	pthread_mutex_unlock(&id->calls);
}

VB_EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **public)
{
	if (vb_call_fails(VB_CALL_rdma_get_cm_event))
		return -1;
	struct event_object *event;

	if (!channel || !public)
		return vb_result(-EINVAL);
	do {
		int error = vb_channel_take(channel, &event);
		if (error)
			return vb_result(error);
	} while (event->public.event == RDMA_CM_EVENT_CONNECT_REQUEST && !request_is_good(event));
	if (event->public.event != RDMA_CM_EVENT_CONNECT_REQUEST)
		apply(event);
	*public = &event->public;
	return 0;
}
