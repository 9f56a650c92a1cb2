/* Fetching events. What an event means for its id is done here, by the thread that fetches it: a request gets its
 * device, a reply moves the QP, a group takes it in.
 * Not here: the queue (channel.c), where events come from (handler.c and the calls). */
#include "rdmacm/objects.h"

/* The device of a request; one whose address has gone since it was queued is rejected. */
static bool request_is_good(struct event_object *event)
{
	struct id_object *id = vb_id_of(event->public.id);
	int error = vb_request_arrive(id);
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
		vb_group_arrive(id, event);
		break;
	default:
		break;
	}
	pthread_mutex_unlock(&id->calls);
}

VB_EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **public)
{
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
