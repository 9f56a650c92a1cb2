/* Half-open requests that are given up, so that the others keep within the limit. */
#include <errno.h>
#include "base/invariant.h"
#include "cm/id.h"

void vb_cm_id_forget(struct vb_cm_id *id)
{
	assert(!id->is_released);
	vb_cm_drop_events(id);
	id->is_released = true;
	vb_cm_id_enter(id, VB_CM_IDLE);
}

/* Its holder has not taken the event of the request. */
static bool is_unheard(const struct vb_cm_id *id)
{
	if (vb_list_empty(&id->events))
		return false;
	enum vb_cm_event_kind first = vb_container_of(id->events.next, struct vb_cm_pending, of_id)->event.kind;
	return first == VB_CM_EVENT_REQUEST || first == VB_CM_EVENT_SIDR_REQUEST;
}

/* In a flood most senders are not real. So an unanswered REQ gets no answer: it comes again if its sender exists. An id
 * that has sent something takes that back by one message; an RTU of a peer that does not receive it is answered by a
 * REJ. */
static void displace(struct vb_cm_id *id)
{
	struct vb_cm_message last;
	if (is_unheard(id)) {
		vb_cm_id_forget(id);
		return;
	}
	id->error = -ENOBUFS;
	switch (id->state) {
	case VB_CM_MRA_REQ_SENT:
		last = vb_cm_rejection(id, VB_CM_REJ_NO_RESOURCES);
		vb_cm_send_unkept(id->cm, &id->path, &last);
		vb_cm_post(id, VB_CM_EVENT_REJECTED, NULL);
		break;
	case VB_CM_REQ_RCVD:
		vb_cm_post(id, VB_CM_EVENT_REJECTED, NULL);
		break;
	case VB_CM_REP_SENT:
		last = vb_cm_make_dreq(id);
		vb_cm_send_unkept(id->cm, &id->path, &last);
		vb_cm_post(id, VB_CM_EVENT_UNREACHABLE, NULL);
		break;
	default: /* its user finds out when it answers */
		assert(id->state == VB_CM_SIDR_REQ_RCVD);
		break;
	}
	vb_cm_id_enter(id, VB_CM_IDLE);
}

bool vb_cm_make_room(struct vb_cm *cm, const struct vb_gid *source, vb_time now)
{
	if (cm->half_open.count < cm->half_open.limit)
		return true;
	struct vb_cm_id *victim = vb_cm_half_open_victim(cm, source);
	vb_cm_count(cm, victim ? VB_CM_DISPLACED_COUNT : VB_CM_FLOODED_COUNT);
	if (!victim)
		return false;
	displace(victim);
	assert(cm->half_open.count < cm->half_open.limit);
	return true;
}
