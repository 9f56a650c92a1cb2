/* The two queues of the manager: events for the holders of ids, and MADs for the network.
 * Holds: an event is in the manager's queue and in its id's list, or in neither; a released id has no events. */
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "cm/id.h"

enum { MOST_OUTGOING = 16384 };

struct queued {
	struct vb_list link;
	struct vb_cm_outgoing outgoing;
};

/* ---- Events ------------------------------------------------------------------------------------------------------ */

bool vb_cm_reserve_events(struct vb_cm *cm)
{
	while (cm->spare_count < VB_CM_MOST_EVENTS) {
		struct vb_cm_pending *pending = malloc(sizeof(*pending));
		if (!pending)
			return false;
		vb_list_add_tail(&cm->spares, &pending->link);
		cm->spare_count++;
	}
	return true;
}

void vb_cm_post_request(
	struct vb_cm_id *listener, struct vb_cm_id *id, enum vb_cm_event_kind kind, const struct vb_cm_message *message)
{
	struct vb_cm *cm = id->cm;
	if (id->is_released)
		return;
	assert(cm->spare_count > 0);
	cm->spare_count--;
	struct vb_cm_pending *pending = vb_container_of(vb_list_pop(&cm->spares), struct vb_cm_pending, link);
	pending->event = (struct vb_cm_event){ .kind = kind,
		.id = id,
		.listener = listener,
		.tries = id->tries,
		.error = id->error,
		.service_id = id->service_id,
		.is_of_reply = vb_cm_awaits_confirmation(id->state) };
	if (message) {
		pending->event.has_message = true;
		pending->event.message = *message;
	}
	vb_list_add_tail(&cm->events, &pending->link);
	vb_list_add_tail(&id->events, &pending->of_id);
}

void vb_cm_post(struct vb_cm_id *id, enum vb_cm_event_kind kind, const struct vb_cm_message *message)
{
	assert(kind != VB_CM_EVENT_REQUEST && kind != VB_CM_EVENT_SIDR_REQUEST);
	vb_cm_post_request(NULL, id, kind, message);
}

void vb_cm_drop_events(struct vb_cm_id *id)
{
	for (struct vb_list *node; (node = vb_list_pop(&id->events));) {
		struct vb_cm_pending *pending = vb_container_of(node, struct vb_cm_pending, of_id);
		assert(pending->event.id == id);
		vb_list_remove(&pending->link);
		free(pending);
	}
}

bool vb_cm_next_event(struct vb_cm *cm, struct vb_cm_event *event)
{
	struct vb_list *node = vb_list_pop(&cm->events);
	if (!node)
		return false;
	struct vb_cm_pending *pending = vb_container_of(node, struct vb_cm_pending, link);
	assert(!pending->event.id->is_released);
	vb_list_remove(&pending->of_id);
	*event = pending->event;
	free(pending);
	return true;
}

/* ---- MADs -------------------------------------------------------------------------------------------------------- */

/* A MAD that cannot be queued is lost, as it might be on the wire. */
static void queue(struct vb_cm *cm, const struct vb_cm_path *path, const uint8_t mad[VB_MAD_LENGTH])
{
	struct queued *queued = cm->outgoing_count < MOST_OUTGOING ? malloc(sizeof(*queued)) : NULL;
	if (!queued)
		return;
	queued->outgoing.path = *path;
	memcpy(queued->outgoing.mad, mad, VB_MAD_LENGTH);
	vb_list_add_tail(&cm->outgoing, &queued->link);
	cm->outgoing_count++;
}

void vb_cm_send(struct vb_cm_id *id, const struct vb_cm_message *message)
{
	vb_cm_encode(message, id->sent);
	queue(id->cm, &id->path, id->sent);
}

void vb_cm_send_again(struct vb_cm_id *id)
{
	assert(vb_cm_is_waiting(id->state));
	vb_cm_count(id->cm, VB_CM_RETRIES_COUNT);
	queue(id->cm, &id->path, id->sent);
}

void vb_cm_send_kept(struct vb_cm_id *id)
{
	assert(vb_cm_kept(id) != 0); /* something was sent */
	vb_cm_count(id->cm, VB_CM_DUPLICATES_COUNT);
	queue(id->cm, &id->path, id->sent);
}

void vb_cm_send_unkept(struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *message)
{
	uint8_t mad[VB_MAD_LENGTH];
	vb_cm_encode(message, mad);
	queue(cm, path, mad);
}

enum vb_cm_kind vb_cm_kept(const struct vb_cm_id *id)
{
	struct vb_mad_header header;
	vb_mad_header_decode(&header, id->sent);
	return (enum vb_cm_kind)header.attribute_id;
}

bool vb_cm_next_outgoing(struct vb_cm *cm, struct vb_cm_outgoing *out)
{
	struct vb_list *node = vb_list_pop(&cm->outgoing);
	if (!node) {
		assert(cm->outgoing_count == 0);
		return false;
	}
	struct queued *queued = vb_container_of(node, struct queued, link);
	*out = queued->outgoing;
	free(queued);
	cm->outgoing_count--;
	vb_cm_count(cm, VB_CM_TX_MADS_COUNT);
	return true;
}
