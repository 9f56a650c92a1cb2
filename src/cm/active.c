/* The active side, which asks for a connection: REQ_SENT -> [MRA_REQ_RCVD] -> REP_RCVD -> [MRA_REP_SENT] ->
 * ESTABLISHED. IBA vol. 1, 12.9.5 and 12.9.7.1. */
#include <errno.h>
#include <string.h>
#include "base/invariant.h"
#include "cm/id.h"

enum { BITS_5 = 31, BITS_4 = 15, BITS_3 = 7 };

static bool is_sendable(const struct vb_cm_path *path, const struct vb_cm_req *req)
{
	return !vb_gid_is_zero(&path->remote) && req->qpn <= VB_CM_BITS_24 && req->psn <= VB_CM_BITS_24 &&
	       req->remote_timeout <= BITS_5 && req->local_timeout <= BITS_5 && req->primary.ack_timeout <= BITS_5 &&
	       req->transport <= VB_CM_TRANSPORT_EXTENDED && req->max_cm_retries <= BITS_4 &&
	       req->retry_count <= BITS_3 && req->rnr_retry <= BITS_3;
}

int vb_cm_connect(struct vb_cm_id *id, const struct vb_cm_path *path, const struct vb_cm_req *req, vb_time now)
{
	if (id->state != VB_CM_IDLE || !is_sendable(path, req))
		return -EINVAL;
	struct vb_cm_message message = vb_cm_id_begin(id, VB_CM_REQ, path, req->service_id);
	message.req = *req;
	id->local_guid = req->ca_guid;
	id->local_qpn = req->qpn;
	id->ack_timeout = req->primary.ack_timeout;
	id->target_ack_delay = 0;
	id->reply_timeout = req->local_timeout;
	id->max_retries = req->max_cm_retries;
	id->period = vb_cm_period(req->primary.ack_timeout, req->remote_timeout);
	vb_cm_ask(id, &message, VB_CM_REQ_SENT, id->max_retries, now);
	return 0;
}

void vb_cm_req_unanswered(struct vb_cm_id *id, vb_time now)
{
	assert(vb_cm_awaits_reply(id->state));
	if (vb_cm_try_again(id, now))
		return;
	struct vb_cm_message rejection = vb_cm_rejection(id, VB_CM_REJ_TIMEOUT);
	vb_cm_send_unkept(id->cm, &id->path, &rejection);
	vb_cm_post(id, VB_CM_EVENT_UNREACHABLE, NULL);
	vb_cm_id_enter(id, VB_CM_IDLE);
}

/* 12.9.8.3.2: as far as we knew, the QP that answers belongs to another connection. */
static void refuse_stale_rep(
	struct vb_cm_id *id, struct vb_cm_id *old, const struct vb_cm_message *message, vb_time now)
{
	struct vb_cm_message rejection = vb_cm_rejection_of(message, VB_CM_REJ_STALE_CONNECTION);
	assert(old != id);
	vb_cm_count(id->cm, VB_CM_STALE_COUNT);
	vb_cm_send_unkept(id->cm, &id->path, &rejection);
	vb_cm_end_stale(old, now);
	vb_cm_post(id, VB_CM_EVENT_REJECTED, &rejection);
	vb_cm_id_enter(id, VB_CM_IDLE);
}

void vb_cm_take_rep(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	const struct vb_cm_rep *rep = &message->rep;
	assert(vb_cm_awaits_reply(id->state));
	if (message->local_id == 0) {
		vb_cm_count(id->cm, VB_CM_DROPPED_COUNT);
		return;
	}
	struct vb_cm_id *old = vb_cm_find_qp(id->cm, &id->path.remote, rep->ca_guid, rep->qpn);
	if (old) {
		refuse_stale_rep(id, old, message, now);
		return;
	}
	id->remote_id = message->local_id;
	id->remote_qpn = rep->qpn;
	id->remote_guid = rep->ca_guid;
	id->target_ack_delay = rep->target_ack_delay;
	vb_cm_id_link_qp(id);
	vb_cm_id_enter(id, VB_CM_REP_RCVD);
	id->due = vb_time_add(now, vb_cm_period(id->ack_timeout, id->reply_timeout));
	vb_cm_post(id, VB_CM_EVENT_REPLY, message);
}

void vb_cm_take_rep_unread(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	vb_cm_hold_off(id, now);
}

/* The peer has not received our answer to its REP: the RTU, or an MRA. A connection that was established from the other
 * side has sent neither. */
void vb_cm_take_rep_again(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	assert(id->state == VB_CM_MRA_REP_SENT || id->state == VB_CM_ESTABLISHED);
	if (vb_cm_kept(id) == VB_CM_RTU || vb_cm_kept(id) == VB_CM_MRA)
		vb_cm_send_kept(id);
	else
		vb_cm_count(id->cm, VB_CM_DROPPED_COUNT);
}

int vb_cm_confirm(struct vb_cm_id *id, const void *data, size_t length, vb_time now)
{
	if (!vb_cm_owes_confirmation(id->state) || length > VB_CM_RTU_PRIVATE)
		return -EINVAL;
	assert(id->remote_id != 0);
	struct vb_cm_message message = vb_cm_message_of(id, VB_CM_RTU);
	if (length)
		memcpy(message.rtu.private_data, data, length);
	vb_cm_send(id, &message);
	vb_cm_id_enter(id, VB_CM_ESTABLISHED);
	return 0;
}
