/* The end of an id whose holder lets go: in every state the peer is told what the specification asks for, and the id
 * lives on without its holder until that is done. */
#include "base/invariant.h"
#include "cm/id.h"

/* Destroys the ids of requests whose event the holder has not taken. */
static void drop_requests_of(struct vb_cm_id *listener, vb_time now)
{
	struct vb_list *head = &listener->cm->events;
	for (struct vb_list *node = head->next, *before; node != head; node = before->next) {
		struct vb_cm_event *event = &vb_container_of(node, struct vb_cm_pending, link)->event;
		/* A request is the first event of its id: the events before it belong to other ids, and stay. */
		before = node->prev;
		if (event->listener == listener)
			vb_cm_id_destroy(event->id, now);
		else
			before = node;
	}
}

static void give_up_request(struct vb_cm_id *id)
{
	struct vb_cm_message rejection = vb_cm_rejection(id, VB_CM_REJ_TIMEOUT);
	vb_cm_send_unkept(id->cm, &id->path, &rejection);
	vb_cm_id_enter(id, VB_CM_IDLE);
}

static void refuse_sidr(struct vb_cm_id *id, vb_time now)
{
	const struct vb_cm_sidr_rep refused = { .status = VB_CM_SIDR_REJECTED, .service_id = id->service_id };
	vb_cm_sidr_reply(id, &refused, now);
}

void vb_cm_id_destroy(struct vb_cm_id *id, vb_time now)
{
	assert(!id->is_released);
	if (id->state == VB_CM_LISTEN)
		drop_requests_of(id, now);
	vb_cm_drop_events(id);
	id->is_released = true;
	id->user = NULL;
	switch (id->state) {
	case VB_CM_IDLE:
	case VB_CM_LISTEN:
	case VB_CM_SIDR_REQ_SENT:
		vb_cm_id_enter(id, VB_CM_IDLE);
		break;
	case VB_CM_REQ_SENT:
	case VB_CM_MRA_REQ_RCVD:
		give_up_request(id);
		break;
	case VB_CM_REQ_RCVD:
	case VB_CM_MRA_REQ_SENT:
	case VB_CM_REP_RCVD:
	case VB_CM_MRA_REP_SENT:
		vb_cm_reject(id, VB_CM_REJ_CONSUMER, NULL, 0, NULL, 0, now);
		break;
	case VB_CM_REP_SENT:
	case VB_CM_MRA_REP_RCVD:
		vb_cm_abandon_reply(id, VB_CM_REJ_CONSUMER, now);
		break;
	case VB_CM_ESTABLISHED:
	case VB_CM_DREQ_RCVD:
		vb_cm_disconnect(id, NULL, 0, now);
		break;
	case VB_CM_SIDR_REQ_RCVD:
		refuse_sidr(id, now);
		break;
	case VB_CM_DREQ_SENT:
	case VB_CM_TIMEWAIT:
		break;
	}
}
