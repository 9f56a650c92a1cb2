/* TIMEWAIT: for a while a connection that has ended answers late messages of its peer. A record is an id that has
 * nothing but this state: it repeats the answer to a request that made no connection. IBA vol. 1, 12.9.8.4.
 * Holds: there are at most as many records as half-open requests may be. */
#include <string.h>
#include "base/invariant.h"
#include "cm/id.h"

enum { LONGEST_TIMEWAIT = 21 /* of either of its two parts: 8.6 s */ };

static uint8_t at_most(uint8_t code, uint8_t most)
{
	return code < most ? code : most;
}

/* The round trip, and the time that the peer takes to acknowledge the packets that it has received. */
void vb_cm_enter_timewait(struct vb_cm_id *id, vb_time now)
{
	vb_cm_id_enter(id, VB_CM_TIMEWAIT);
	assert(!id->by_qp.is_linked); /* a new connection may use the peer's QP */
	vb_cm_arm(id,
		vb_cm_span(at_most(id->ack_timeout, LONGEST_TIMEWAIT)) +
			vb_cm_span(at_most(id->target_ack_delay, LONGEST_TIMEWAIT)),
		now);
}

void vb_cm_timewait_over(struct vb_cm_id *id, vb_time now)
{
	vb_cm_post(id, VB_CM_EVENT_TIMEWAIT_EXIT, NULL);
	vb_cm_id_enter(id, VB_CM_IDLE);
}

/* Our DREP was lost, or the DREQs of both sides have crossed. */
void vb_cm_take_late_dreq(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	struct vb_cm_message drep = vb_cm_answer_to(message, VB_CM_DREP);
	assert(id->state == VB_CM_TIMEWAIT);
	if (vb_cm_kept(id) == VB_CM_DREP && id->disconnect_transaction_id == message->transaction_id)
		vb_cm_send_kept(id);
	else
		vb_cm_send_unkept(id->cm, &id->path, &drep);
}

/* A peer that goes on as if it were connected has not received our REJ. */
void vb_cm_take_late(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	assert(id->state == VB_CM_TIMEWAIT);
	if (vb_cm_kept(id) == VB_CM_REJ)
		vb_cm_send_kept(id);
	else
		vb_cm_count(id->cm, VB_CM_DUPLICATES_COUNT);
}

/* ---- Records ----------------------------------------------------------------------------------------------------- */

void vb_cm_record_create(struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *request,
	bool is_sidr, const uint8_t answer[VB_MAD_LENGTH], vb_time span, vb_time now)
{
	assert(cm->records <= cm->half_open.limit);
	struct vb_cm_id *record =
		cm->records < cm->half_open.limit ? vb_cm_id_create_for(cm, path, request, is_sidr) : NULL;
	if (!record)
		return; /* a duplicate is then a new request */
	record->is_released = record->is_record = true;
	cm->records++;
	record->remote_qpn = is_sidr ? 0 : request->req.qpn;
	record->period = span;
	memcpy(record->sent, answer, sizeof(record->sent));
	vb_cm_id_enter(record, VB_CM_TIMEWAIT);
	vb_cm_arm(record, span, now);
}

void vb_cm_record_answer(struct vb_cm_id *id, vb_time span, vb_time now)
{
	const struct vb_cm_message request = {
		.transaction_id = id->transaction_id, .local_id = id->remote_id, .req.qpn = id->remote_qpn
	};
	assert(vb_cm_owes_reply(id->state) || id->state == VB_CM_SIDR_REQ_RCVD);
	vb_cm_table_remove(&id->cm->by_remote, &id->by_remote);
	vb_cm_record_create(id->cm, &id->path, &request, id->is_sidr, id->sent, span, now);
}
