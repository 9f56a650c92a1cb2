/* The reply to our request: it moves the QP, and is confirmed. Programs that move their QPs themselves confirm it by
 * rdma_establish. */
#include "base/invariant.h"
#include "rdmacm/objects.h"

static int confirm(struct id_object *id)
{
	if (!vb_id_lock_cm(id))
		return -VB_FORKED_ERRNO;
	int error = id->cm ? vb_cm_confirm(id->cm, NULL, 0, vb_connections_now()) : -EINVAL;
	if (!error)
		vb_handle_established(id->cm);
	vb_connections_unlock();
	return error;
}

static void refuse(struct id_object *id)
{
	if (!vb_id_lock_cm(id))
		return;
	if (id->cm)
		vb_cm_reject(id->cm, VB_CM_REJ_CONSUMER, NULL, 0, NULL, 0, vb_connections_now());
	vb_connections_unlock();
}

/* The resources that the peer grants bound our depth, and the other way round. */
static void take_grants(struct id_object *id, const struct vb_side *remote)
{
	uint8_t retry_count = id->local.retry_count;
	id->remote = *remote;
	id->remote.retry_count = retry_count;
	id->local.responder_resources = vb_at_most(remote->initiator_depth, id->local.responder_resources);
	id->local.initiator_depth = vb_at_most(remote->responder_resources, id->local.initiator_depth);
}

void vb_reply_arrive(struct id_object *id, struct event_object *event)
{
	assert(id->state == ID_CONNECTING);
	take_grants(id, &event->remote);
	id->state = ID_RESPONDED;
	if (!id->public.qp)
		return;
	int error = vb_id_connect_qp(id);
	if (!error)
		error = confirm(id);
	if (!error) {
		event->public.event = RDMA_CM_EVENT_ESTABLISHED;
		id->state = ID_CONNECTING;
		return;
	}
	refuse(id);
	vb_id_fail_qp(id);
	event->public.event = RDMA_CM_EVENT_CONNECT_ERROR;
	event->public.status = error;
}

VB_EXPORT int rdma_establish(struct rdma_cm_id *public)
{
	if (vb_call_fails(VB_CALL_rdma_establish))
		return -1;
	struct id_object *id = vb_id_of(public);
	if (vb_id_is_refused(id))
		return -1;
	pthread_mutex_lock(&id->calls);
	int error = id->public.qp || id->state != ID_RESPONDED ? -EINVAL : confirm(id);
	if (!error)
		id->state = ID_CONNECTING;
	pthread_mutex_unlock(&id->calls);
	return vb_result(error);
}
