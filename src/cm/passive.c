/* The passive side, which is asked for a connection: LISTEN; REQ_RCVD -> [MRA_REQ_SENT] -> REP_SENT -> [MRA_REP_RCVD]
 * -> ESTABLISHED. IBA vol. 1, 12.9.7.2; a REQ that collides with an existing connection: 12.9.8.3. */
#include <errno.h>
#include <string.h>
#include "base/invariant.h"
#include "cm/id.h"

int vb_cm_listen(struct vb_cm_id *id, uint64_t service_id, const struct vb_gid *address)
{
	if (id->state != VB_CM_IDLE)
		return -EINVAL;
	struct vb_cm_id *other = vb_cm_find_listener(id->cm, service_id, address);
	if (other && vb_gid_equal(&other->path.local, address))
		return -EADDRINUSE;
	id->path = (struct vb_cm_path){ .local = *address };
	id->service_id = service_id;
	vb_cm_id_enter(id, VB_CM_LISTEN);
	vb_cm_id_link_service(id);
	return 0;
}

static void refuse(struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *req, uint16_t reason)
{
	struct vb_cm_message rejection = vb_cm_rejection_of(req, reason);
	vb_cm_send_unkept(cm, path, &rejection);
	vb_cm_count(cm, reason == VB_CM_REJ_STALE_CONNECTION ? VB_CM_STALE_COUNT : VB_CM_REJECTED_COUNT);
}

/* How long a REJ is recorded: until the REQ has come twice again. */
static vb_time memory_of(const struct vb_cm_req *req)
{
	return 2 * vb_cm_period(req->primary.ack_timeout, req->remote_timeout);
}

/* For a reason that may be gone when the REQ comes again: its sender acts on the first answer, and must not get a
 * different second one. */
static void refuse_for_good(
	struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *req, uint16_t reason, vb_time now)
{
	struct vb_cm_message rejection = vb_cm_rejection_of(req, reason);
	uint8_t mad[VB_MAD_LENGTH];
	refuse(cm, path, req, reason);
	vb_cm_encode(&rejection, mad);
	vb_cm_record_create(cm, path, req, false, mad, memory_of(&req->req), now);
}

/* ---- The same communication ID as before ------------------------------------------------------------------------- */

static bool has_answer(const struct vb_cm_id *id)
{
	switch (id->state) {
	case VB_CM_MRA_REQ_SENT:
	case VB_CM_REP_SENT:
		return true;
	case VB_CM_TIMEWAIT:
		return vb_cm_kept(id) == VB_CM_REJ;
	default: /* the request is an old one: its sender has our REP */
		return false;
	}
}

static void answer_again(struct vb_cm_id *id, vb_time now)
{
	if (id->state == VB_CM_REQ_RCVD) {
		vb_cm_hold_off(id, now);
		return;
	}
	if (!has_answer(id)) {
		vb_cm_count(id->cm, VB_CM_DUPLICATES_COUNT);
		return;
	}
	vb_cm_send_kept(id);
	if (id->is_record)
		vb_cm_arm(id, id->period, now);
}

/* True: the request is a duplicate, or uses an ID that is taken, and is dealt with. An id that has ended makes room for
 * a new request with the same ID. */
static bool is_known(struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *message, vb_time now)
{
	struct vb_cm_id *id = vb_cm_find_remote(cm, &path->remote, message->local_id, false);
	if (!id)
		return false;
	if (id->transaction_id == message->transaction_id && id->remote_qpn == message->req.qpn) {
		answer_again(id, now);
		return true;
	}
	if (id->state == VB_CM_TIMEWAIT) {
		vb_cm_table_remove(&cm->by_remote, &id->by_remote);
		return false;
	}
	refuse(cm, path, message, VB_CM_REJ_DUPLICATE_COMM_ID);
	return true;
}

/* ---- A new one --------------------------------------------------------------------------------------------------- */

static struct vb_cm_id *create_for(
	struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *message, vb_time now)
{
	const struct vb_cm_req *req = &message->req;
	struct vb_cm_id *id = vb_cm_id_create_for(cm, path, message, false);
	if (!id)
		return NULL;
	id->service_id = req->service_id;
	id->remote_guid = req->ca_guid;
	id->remote_qpn = req->qpn;
	id->ack_timeout = req->primary.ack_timeout;
	id->reply_timeout = req->local_timeout;
	id->max_retries = req->max_cm_retries;
	id->due = vb_time_add(now, vb_cm_period(req->primary.ack_timeout, req->remote_timeout));
	id->period = memory_of(req); /* until a REP is sent */
	vb_cm_id_link_qp(id);
	vb_cm_id_enter(id, VB_CM_REQ_RCVD);
	return id;
}

void vb_cm_take_req(struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *message, vb_time now)
{
	const struct vb_cm_req *req = &message->req;
	if (message->local_id == 0) {
		vb_cm_count(cm, VB_CM_DROPPED_COUNT);
		return;
	}
	if (is_known(cm, path, message, now))
		return;
	if (req->transport == 2) { /* reliable datagram */
		refuse(cm, path, message, VB_CM_REJ_INVALID_TRANSPORT);
		return;
	}
	struct vb_cm_id *old = vb_cm_find_qp(cm, &path->remote, req->ca_guid, req->qpn);
	if (old) {
		refuse_for_good(cm, path, message, VB_CM_REJ_STALE_CONNECTION, now);
		vb_cm_end_stale(old, now);
		return;
	}
	struct vb_gid address = vb_cm_destination(message, &path->remote, &path->local);
	struct vb_cm_id *listener = vb_cm_find_listener(cm, req->service_id, &address);
	if (!listener) {
		refuse_for_good(cm, path, message, VB_CM_REJ_INVALID_SERVICE_ID, now);
		return;
	}
	if (!vb_cm_make_room(cm, &path->remote, now))
		return;
	struct vb_cm_id *id = create_for(cm, path, message, now);
	if (id)
		vb_cm_post_request(listener, id, VB_CM_EVENT_REQUEST, message);
	else
		vb_cm_count(cm, VB_CM_DROPPED_COUNT);
}

/* ---- Answering --------------------------------------------------------------------------------------------------- */

int vb_cm_accept(struct vb_cm_id *id, const struct vb_cm_rep *rep, vb_time now)
{
	if (!vb_cm_owes_reply(id->state) || rep->qpn > VB_CM_BITS_24 || rep->psn > VB_CM_BITS_24)
		return -EINVAL;
	assert(id->by_remote.is_linked); /* so that a duplicate of the REQ finds it */
	id->local_qpn = rep->qpn;
	id->local_guid = rep->ca_guid;
	id->period = vb_cm_period(id->ack_timeout, id->reply_timeout);
	struct vb_cm_message message = vb_cm_message_of(id, VB_CM_REP);
	message.rep = *rep;
	vb_cm_ask(id, &message, VB_CM_REP_SENT, id->max_retries, now);
	return 0;
}

/* A peer that has sent an MRA may confirm at any time: a single REJ could be lost, so a DREQ is repeated. */
void vb_cm_rep_unanswered(struct vb_cm_id *id, vb_time now)
{
	assert(vb_cm_awaits_confirmation(id->state));
	if (vb_cm_try_again(id, now))
		return;
	vb_cm_post(id, VB_CM_EVENT_UNREACHABLE, NULL);
	if (id->state == VB_CM_MRA_REP_RCVD) {
		vb_cm_abandon_reply(id, VB_CM_REJ_TIMEOUT, now);
		return;
	}
	struct vb_cm_message rejection = vb_cm_rejection(id, VB_CM_REJ_TIMEOUT);
	vb_cm_send(id, &rejection);
	vb_cm_enter_timewait(id, now);
}

void vb_cm_take_rtu(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	assert(vb_cm_awaits_confirmation(id->state));
	vb_cm_id_enter(id, VB_CM_ESTABLISHED);
	vb_cm_post(id, VB_CM_EVENT_ESTABLISHED, message);
}

/* The RTU may have come first. */
int vb_cm_notify_established(struct vb_cm_id *id, vb_time now)
{
	if (id->state == VB_CM_ESTABLISHED)
		return 0;
	if (!vb_cm_awaits_confirmation(id->state))
		return -EINVAL;
	if (!vb_cm_reserve_events(id->cm))
		return -ENOMEM;
	vb_cm_id_enter(id, VB_CM_ESTABLISHED);
	vb_cm_post(id, VB_CM_EVENT_ESTABLISHED, NULL);
	return 0;
}
