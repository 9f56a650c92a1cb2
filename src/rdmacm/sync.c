/* Synchronous ids, whose calls wait for their events; and moving an id from one event channel to another, or between
 * both kinds. */
#include "base/invariant.h"
#include "rdmacm/objects.h"

/* The result of a synchronous call that got this event. The peer chooses the reason of a REJ, which may be 0. */
static int outcome(const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return -ECONNREFUSED;
	return event->status < 0 ? event->status : -event->status;
}

int vb_id_complete(struct id_object *id, int error)
{
	assert(error <= 0);
	if (error || !id->is_sync)
		return vb_result(error);
	vb_id_drop_shown_event(id);
	if (rdma_get_cm_event(id->public.channel, &id->public.event)) {
		id->public.event = NULL;
		return -1;
	}
	return vb_result(outcome(id->public.event));
}

int vb_id_migrate(struct id_object *id, struct rdma_event_channel *channel)
{
	bool to_sync = channel == NULL;
	if (!vb_id_is_ours(id) || (channel && !vb_channel_is_ours(channel)))
		return vb_cm_refuse_forked();
	if (to_sync && id->is_sync)
		return 0;
	if (to_sync)
		channel = rdma_create_event_channel();
	if (!channel)
		return -errno;
	vb_id_drop_shown_event(id);
	struct rdma_event_channel *own = id->is_sync ? id->public.channel : NULL;
	vb_events_move(id, channel);
	if (own)
		rdma_destroy_event_channel(own);
	assert(id->public.channel == channel);
	id->is_sync = to_sync;
	return 0;
}

VB_EXPORT int rdma_migrate_id(struct rdma_cm_id *public, struct rdma_event_channel *channel)
{
	if (vb_call_fails(VB_CALL_rdma_migrate_id))
		return -1;
	return vb_result(vb_id_migrate(vb_id_of(public), channel));
}
