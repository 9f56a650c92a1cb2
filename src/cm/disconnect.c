/* How connections end: by DREQ and DREP, by REJ, because the peer's QP has gone elsewhere, or because their holder lets
 * go; and TIMEWAIT, in which they are remembered for a while. IBA vol. 1, 12.9.7.3, 12.9.8.3, 12.9.8.4. */
#include <errno.h>
#include <string.h>
#include "cm/id.h"

enum { LONGEST_TIMEWAIT = 21 /* of either of its two parts: 8.6 s */ };

static uint8_t at_most(uint8_t code, uint8_t most)
{
	return code < most ? code : most;
}

/* There and back, and what the peer takes to acknowledge what it has. */
void vb_cm_enter_timewait(struct vb_cm_id *id, vb_time now)
{
	vb_cm_id_enter(id, VB_CM_TIMEWAIT);
	vb_cm_arm(id,
		vb_cm_span(at_most(id->ack_timeout, LONGEST_TIMEWAIT)) +
			vb_cm_span(at_most(id->target_ack_delay, LONGEST_TIMEWAIT)),
		now);
}

void vb_cm_timewait_over(struct vb_cm_id *id, vb_time now)
{
	vb_cm_tell(id, VB_CM_EVENT_TIMEWAIT_EXIT, NULL);
	vb_cm_id_enter(id, VB_CM_IDLE);
}

/* ---- DREQ and DREP ---------------------------------------------------------------------------------------------- */

static struct vb_cm_message make_dreq(struct vb_cm_id *id)
{
	id->disconnect_transaction_id = vb_cm_new_transaction(id);
	struct vb_cm_message message = vb_cm_message_of(id, VB_CM_DREQ);
	message.transaction_id = id->disconnect_transaction_id;
	message.dreq.remote_qpn = id->remote_qpn;
	return message;
}

static void send_dreq(struct vb_cm_id *id, const void *data, size_t length, vb_time now)
{
	struct vb_cm_message message = make_dreq(id);
	if (length)
		memcpy(message.dreq.private_data, data, length);
	vb_cm_send(id, &message);
	vb_cm_id_enter(id, VB_CM_DREQ_SENT);
	vb_cm_await(id, id->max_retries, now);
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
	if (!id->is_over)
		vb_cm_tell(id, VB_CM_EVENT_DISCONNECTED, drep);
	vb_cm_enter_timewait(id, now);
}

void vb_cm_dreq_unanswered(struct vb_cm_id *id, vb_time now)
{
	if (!vb_cm_try_again(id, now))
		disconnected(id, NULL, now);
}

void vb_cm_take_drep(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
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
	vb_cm_tell(id, VB_CM_EVENT_DISCONNECT, message);
}

/* Nobody ends what is not there: the RTU was lost. */
void vb_cm_take_dreq_as_established(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	if (!names_our_qp(id, message))
		return;
	vb_cm_tell(id, VB_CM_EVENT_ESTABLISHED, NULL);
	vb_cm_take_dreq(id, message, now);
}

/* Both want to end it: neither user has anything left to answer. */
void vb_cm_take_dreq_crossing(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	if (!names_our_qp(id, message))
		return;
	id->disconnect_transaction_id = message->transaction_id;
	send_drep(id, NULL, 0);
	disconnected(id, NULL, now);
}

/* Who was accepting us has gone before we were through, and the REJ or even the REP that should have said so is lost.
 */
void vb_cm_take_dreq_as_rejection(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	struct vb_cm_message drep = vb_cm_answer_to(message, VB_CM_DREP);
	if (!names_our_qp(id, message))
		return;
	vb_cm_send_unkept(id->cm, &id->path, &drep);
	vb_cm_tell(id, VB_CM_EVENT_REJECTED, NULL);
	if (id->state == VB_CM_REQ_SENT || id->state == VB_CM_MRA_REQ_RCVD)
		vb_cm_id_enter(id, VB_CM_IDLE);
	else
		vb_cm_enter_timewait(id, now);
}

/* In TIMEWAIT: our DREP was lost, or theirs and ours have crossed. */
void vb_cm_take_late_dreq(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	struct vb_cm_message drep = vb_cm_answer_to(message, VB_CM_DREP);
	if (vb_cm_kept(id) == VB_CM_DREP && id->disconnect_transaction_id == message->transaction_id)
		vb_cm_send_kept(id);
	else
		vb_cm_send_unkept(id->cm, &id->path, &drep);
}

/* In TIMEWAIT: who goes on as if it were connected has not heard our REJ. */
void vb_cm_take_late(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	if (vb_cm_kept(id) == VB_CM_REJ)
		vb_cm_send_kept(id);
	else
		vb_cm_count(id->cm, VB_CM_DUPLICATES_COUNT);
}

/* ---- REJ -------------------------------------------------------------------------------------------------------- */

/* REQ is answered so, or its sender has given up: no QP of the two has been moved. */
void vb_cm_take_rej(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	vb_cm_tell(id, VB_CM_EVENT_REJECTED, message);
	vb_cm_id_enter(id, VB_CM_IDLE);
}

void vb_cm_take_rej_and_wait(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	vb_cm_tell(id, VB_CM_EVENT_REJECTED, message);
	vb_cm_enter_timewait(id, now);
}

/* After our RTU, which was lost; or the peer knows no such connection. */
void vb_cm_take_rej_as_end(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	disconnected(id, NULL, now);
}

void vb_cm_create_ghost(struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *request,
	bool is_sidr, const uint8_t answer[VB_MAD_LENGTH], vb_time span, vb_time now)
{
	struct vb_cm_id *ghost =
		cm->ghosts < cm->half_open.limit ? vb_cm_id_create_for(cm, path, request, is_sidr) : NULL;
	if (!ghost)
		return; /* who asks again is a new request, then */
	ghost->is_orphan = ghost->is_ghost = true;
	cm->ghosts++;
	ghost->remote_qpn = is_sidr ? 0 : request->req.qpn;
	ghost->period = span;
	memcpy(ghost->sent, answer, sizeof(ghost->sent));
	vb_cm_id_enter(ghost, VB_CM_TIMEWAIT);
	vb_cm_arm(ghost, span, now);
}

void vb_cm_leave_ghost(struct vb_cm_id *id, vb_time span, vb_time now)
{
	const struct vb_cm_message request = {
		.transaction_id = id->transaction_id, .local_id = id->remote_id, .req.qpn = id->remote_qpn
	};
	vb_cm_table_remove(&id->cm->by_remote, &id->by_remote);
	vb_cm_create_ghost(id->cm, &id->path, &request, id->is_sidr, id->sent, span, now);
}

static void send_rej(struct vb_cm_id *id, struct vb_cm_message *rejection, vb_time now)
{
	bool is_req = id->state == VB_CM_REQ_RCVD || id->state == VB_CM_MRA_REQ_SENT;
	vb_cm_send(id, rejection);
	if (is_req) {
		vb_cm_leave_ghost(id, id->period, now);
		vb_cm_id_enter(id, VB_CM_IDLE);
	} else {
		vb_cm_enter_timewait(id, now);
	}
}

int vb_cm_reject(struct vb_cm_id *id, uint16_t reason, const void *ari, size_t ari_length, const void *data,
	size_t length, vb_time now)
{
	bool is_req = id->state == VB_CM_REQ_RCVD || id->state == VB_CM_MRA_REQ_SENT;
	bool is_rep = id->state == VB_CM_REP_RCVD || id->state == VB_CM_MRA_REP_SENT;
	if ((!is_req && !is_rep) || ari_length > VB_CM_ARI_LENGTH || length > VB_CM_REJ_PRIVATE)
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

/* ---- The end without the user ----------------------------------------------------------------------------------- */

/* Our REP was heard, so that the peer may be connected by now, and may never hear of the REJ: a DREQ follows until it
 * answers. The user has nothing more to hear of it. Who asked may be nobody, and may have said how long we shall wait:
 * where many wait so, one REJ has to do, and another one that answers an RTU. */
void vb_cm_abandon_reply(struct vb_cm_id *id, uint16_t reason, vb_time now)
{
	struct vb_cm_message rejection = vb_cm_rejection(id, reason), dreq = make_dreq(id);
	vb_cm_send_unkept(id->cm, &id->path, &rejection);
	if (id->cm->abandoned >= id->cm->half_open.limit) {
		vb_cm_id_enter(id, VB_CM_IDLE);
		return;
	}
	vb_cm_encode(&dreq, id->sent);
	id->is_over = true;
	id->cm->abandoned++;
	vb_cm_id_enter(id, VB_CM_DREQ_SENT);
	vb_cm_await(id, id->max_retries, now);
}

void vb_cm_end_stale(struct vb_cm_id *id, vb_time now)
{
	struct vb_cm_message rejection = vb_cm_rejection(id, VB_CM_REJ_STALE_CONNECTION);
	switch (id->state) {
	case VB_CM_REQ_RCVD:
	case VB_CM_MRA_REQ_SENT:
	case VB_CM_REP_RCVD:
	case VB_CM_MRA_REP_SENT:
		vb_cm_tell(id, VB_CM_EVENT_REJECTED, NULL);
		send_rej(id, &rejection, now);
		break;
	case VB_CM_REP_SENT:
	case VB_CM_MRA_REP_RCVD:
		vb_cm_tell(id, VB_CM_EVENT_REJECTED, NULL);
		vb_cm_abandon_reply(id, VB_CM_REJ_STALE_CONNECTION, now);
		break;
	case VB_CM_ESTABLISHED:
		send_dreq(id, NULL, 0, now);
		break;
	default: /* it is ending anyway */
		break;
	}
}

void vb_cm_id_forget(struct vb_cm_id *id)
{
	vb_cm_drop_events(id);
	id->is_orphan = true;
	vb_cm_id_enter(id, VB_CM_IDLE);
}

static bool is_unheard(const struct vb_cm_id *id)
{
	if (vb_list_empty(&id->events))
		return false;
	enum vb_cm_event_kind first = vb_container_of(id->events.next, struct vb_cm_pending, of_id)->event.kind;
	return first == VB_CM_EVENT_REQUEST || first == VB_CM_EVENT_SIDR_REQUEST;
}

/* Who asks is real more seldom than not. So nothing is said to a REQ, which comes again if it is; where more was said
 * already, one message takes it back, and to an RTU of who does not hear it comes a REJ. */
void vb_cm_displace(struct vb_cm_id *id, vb_time now)
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
		vb_cm_tell(id, VB_CM_EVENT_REJECTED, NULL);
		break;
	case VB_CM_REQ_RCVD:
		vb_cm_tell(id, VB_CM_EVENT_REJECTED, NULL);
		break;
	case VB_CM_REP_SENT:
		last = make_dreq(id);
		vb_cm_send_unkept(id->cm, &id->path, &last);
		vb_cm_tell(id, VB_CM_EVENT_UNREACHABLE, NULL);
		break;
	default: /* SIDR: its user finds out when he answers */
		break;
	}
	vb_cm_id_enter(id, VB_CM_IDLE);
}

void vb_cm_id_destroy(struct vb_cm_id *id, vb_time now)
{
	struct vb_cm_message rejection;
	struct vb_cm_sidr_rep refused = { .status = VB_CM_SIDR_REJECTED };
	if (id->state == VB_CM_LISTEN)
		vb_cm_drop_requests_of(id, now);
	vb_cm_drop_events(id);
	id->is_orphan = true;
	id->user = NULL;
	switch (id->state) {
	case VB_CM_IDLE:
	case VB_CM_LISTEN:
	case VB_CM_SIDR_REQ_SENT:
		vb_cm_id_enter(id, VB_CM_IDLE);
		break;
	case VB_CM_REQ_SENT:
	case VB_CM_MRA_REQ_RCVD:
		rejection = vb_cm_rejection(id, VB_CM_REJ_TIMEOUT);
		vb_cm_send_unkept(id->cm, &id->path, &rejection);
		vb_cm_id_enter(id, VB_CM_IDLE);
		break;
	case VB_CM_REQ_RCVD:
	case VB_CM_MRA_REQ_SENT:
	case VB_CM_REP_RCVD:
	case VB_CM_MRA_REP_SENT:
		rejection = vb_cm_rejection(id, VB_CM_REJ_CONSUMER);
		send_rej(id, &rejection, now);
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
		refused.service_id = id->service_id;
		vb_cm_sidr_reply(id, &refused, now);
		break;
	case VB_CM_DREQ_SENT:
	case VB_CM_TIMEWAIT:
		break;
	}
}
