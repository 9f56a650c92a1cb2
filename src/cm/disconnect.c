/* How connections end: by DREQ and DREP, by REJ, or because the peer's QP belongs to another connection. IBA vol. 1,
 * 12.9.7.3 and 12.9.8.3. */
#include <errno.h>
#include <string.h>
#include "base/invariant.h"
#include "cm/id.h"

/* ---- DREQ and DREP ----------------------------------------------------------------------------------------------- */

struct vb_cm_message vb_cm_make_dreq(struct vb_cm_id *id)
{
	assert(id->remote_id != 0);
	id->disconnect_transaction_id = vb_cm_new_transaction(id);
	struct vb_cm_message message = vb_cm_message_of(id, VB_CM_DREQ);
	message.transaction_id = id->disconnect_transaction_id;
	message.dreq.remote_qpn = id->remote_qpn;
	return message;
}

static void send_dreq(struct vb_cm_id *id, const void *data, size_t length, vb_time now)
{
	struct vb_cm_message message = vb_cm_make_dreq(id);
	if (length)
		memcpy(message.dreq.private_data, data, length);
	vb_cm_ask(id, &message, VB_CM_DREQ_SENT, id->max_retries, now);
}

static void send_drep(struct vb_cm_id *id, const void *data, size_t length)
{
	struct vb_cm_message message = vb_cm_message_of(id, VB_CM_DREP);
	message.transaction_id = id->disconnect_transaction_id;
	if (length)
		memcpy(message.drep.private_data, data, length);
	vb_cm_send(id, &message);
}

int vb_cm_disconnect(struct vb_cm_id *id, const void *data, size_t length, vb_time now)
{
	switch (id->state) {
	case VB_CM_ESTABLISHED:
		if (length > VB_CM_DREQ_PRIVATE)
			return -EINVAL;
		send_dreq(id, data, length, now);
		return 0;
	case VB_CM_DREQ_RCVD:
		if (length > VB_CM_DREP_PRIVATE)
			return -EINVAL;
		send_drep(id, data, length);
		vb_cm_enter_timewait(id, now);
		return 0;
	default:
		return -EINVAL;
	}
}

static void disconnected(struct vb_cm_id *id, const struct vb_cm_message *drep, vb_time now)
{
	if (!id->is_abandoned)
		vb_cm_post(id, VB_CM_EVENT_DISCONNECTED, drep);
	vb_cm_enter_timewait(id, now);
}

void vb_cm_dreq_unanswered(struct vb_cm_id *id, vb_time now)
{
	assert(id->state == VB_CM_DREQ_SENT);
	if (!vb_cm_try_again(id, now))
		disconnected(id, NULL, now);
}

void vb_cm_take_drep(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	assert(id->state == VB_CM_DREQ_SENT);
	disconnected(id, message, now);
}

static bool names_our_qp(struct vb_cm_id *id, const struct vb_cm_message *message)
{
	if (message->dreq.remote_qpn == id->local_qpn)
		return true;
	vb_cm_count(id->cm, VB_CM_DROPPED_COUNT);
	return false;
}

void vb_cm_take_dreq(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	if (!names_our_qp(id, message))
		return;
	id->disconnect_transaction_id = message->transaction_id;
	vb_cm_id_enter(id, VB_CM_DREQ_RCVD);
	vb_cm_post(id, VB_CM_EVENT_DISCONNECT, message);
}

/* The peer ends a connection that it must have had: the RTU was lost. */
void vb_cm_take_dreq_as_established(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	assert(vb_cm_awaits_confirmation(id->state));
	if (!names_our_qp(id, message))
		return;
	vb_cm_post(id, VB_CM_EVENT_ESTABLISHED, NULL);
	vb_cm_take_dreq(id, message, now);
}

/* Both sides end it: neither user has anything left to answer. */
void vb_cm_take_dreq_crossing(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	assert(id->state == VB_CM_DREQ_SENT);
	if (!names_our_qp(id, message))
		return;
	id->disconnect_transaction_id = message->transaction_id;
	send_drep(id, NULL, 0);
	disconnected(id, NULL, now);
}

/* The peer has gone before the connection was complete, and its REJ, or even its REP, was lost. */
void vb_cm_take_dreq_as_rejection(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	struct vb_cm_message drep = vb_cm_answer_to(message, VB_CM_DREP);
	assert(vb_cm_awaits_reply(id->state) || vb_cm_owes_confirmation(id->state));
	if (!names_our_qp(id, message))
		return;
	vb_cm_send_unkept(id->cm, &id->path, &drep);
	vb_cm_post(id, VB_CM_EVENT_REJECTED, NULL);
	if (vb_cm_awaits_reply(id->state))
		vb_cm_id_enter(id, VB_CM_IDLE);
	else
		vb_cm_enter_timewait(id, now);
}

/* ---- REJ --------------------------------------------------------------------------------------------------------- */

/* The answer to our REQ; or the sender of a REQ has given up. Neither side has moved its QP. */
void vb_cm_take_rej(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	assert(vb_cm_awaits_reply(id->state) || vb_cm_owes_reply(id->state));
	vb_cm_post(id, VB_CM_EVENT_REJECTED, message);
	vb_cm_id_enter(id, VB_CM_IDLE);
}

void vb_cm_take_rej_and_wait(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	assert(vb_cm_awaits_confirmation(id->state) || vb_cm_owes_confirmation(id->state));
	vb_cm_post(id, VB_CM_EVENT_REJECTED, message);
	vb_cm_enter_timewait(id, now);
}

/* A REJ after the handshake: the peer gave up because our RTU was lost, or it does not know the connection. Either ends
 * it. */
void vb_cm_take_rej_as_end(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	assert(id->state == VB_CM_ESTABLISHED || id->state == VB_CM_DREQ_SENT);
	disconnected(id, NULL, now);
}

static void send_rej(struct vb_cm_id *id, struct vb_cm_message *rejection, vb_time now)
{
	vb_cm_send(id, rejection);
	if (vb_cm_owes_reply(id->state)) {
		vb_cm_record_answer(id, id->period, now);
		vb_cm_id_enter(id, VB_CM_IDLE);
	} else {
		vb_cm_enter_timewait(id, now);
	}
}

int vb_cm_reject(struct vb_cm_id *id, uint16_t reason, const void *ari, size_t ari_length, const void *data,
	size_t length, vb_time now)
{
	if (!vb_cm_owes_reply(id->state) && !vb_cm_owes_confirmation(id->state))
		return -EINVAL;
	if (ari_length > VB_CM_ARI_LENGTH || length > VB_CM_REJ_PRIVATE)
		return -EINVAL;
	struct vb_cm_message message = vb_cm_rejection(id, reason);
	if (ari_length) {
		message.rej.ari_length = (uint8_t)ari_length;
		memcpy(message.rej.ari, ari, ari_length);
	}
	if (length)
		memcpy(message.rej.private_data, data, length);
	send_rej(id, &message, now);
	return 0;
}

/* ---- The end without the user ------------------------------------------------------------------------------------ */

/* The peer has our REP, so it may be connected by now, and the REJ may be lost: a DREQ is repeated until the peer
 * answers. The user hears nothing more of it. The sender of the REQ may not exist, and has chosen how long we wait:
 * where many ids wait so, one REJ must do, and a later RTU gets another. */
void vb_cm_abandon_reply(struct vb_cm_id *id, uint16_t reason, vb_time now)
{
	struct vb_cm_message rejection = vb_cm_rejection(id, reason), dreq = vb_cm_make_dreq(id);
	assert(vb_cm_awaits_confirmation(id->state));
	assert(!id->is_abandoned);
	vb_cm_send_unkept(id->cm, &id->path, &rejection);
	if (id->cm->abandoned >= id->cm->half_open.limit) {
		vb_cm_id_enter(id, VB_CM_IDLE);
		return;
	}
	vb_cm_encode(&dreq, id->sent);
	id->is_abandoned = true;
	id->cm->abandoned++;
	vb_cm_id_enter(id, VB_CM_DREQ_SENT);
	vb_cm_await(id, id->max_retries, now);
}

void vb_cm_end_stale(struct vb_cm_id *id, vb_time now)
{
	struct vb_cm_message rejection = vb_cm_rejection(id, VB_CM_REJ_STALE_CONNECTION);
	assert(id->by_qp.is_linked); /* it was found by the peer's QP */
	switch (id->state) {
	case VB_CM_REQ_RCVD:
	case VB_CM_MRA_REQ_SENT:
	case VB_CM_REP_RCVD:
	case VB_CM_MRA_REP_SENT:
		vb_cm_post(id, VB_CM_EVENT_REJECTED, NULL);
		send_rej(id, &rejection, now);
		break;
	case VB_CM_REP_SENT:
	case VB_CM_MRA_REP_RCVD:
		vb_cm_post(id, VB_CM_EVENT_REJECTED, NULL);
		vb_cm_abandon_reply(id, VB_CM_REJ_STALE_CONNECTION, now);
		break;
	case VB_CM_ESTABLISHED:
		send_dreq(id, NULL, 0, now);
		break;
	default: /* it is ending already */
		break;
	}
}
