/* Service ID resolution (SIDR), by which datagram QPs find each other: a request and its reply. IBA vol. 1, 12.11. */
#include <errno.h>
#include "base/invariant.h"
#include "cm/id.h"

#define REMEMBERED (10 * VB_S) /* a reply: more than two of the periods in which Linux asks again */

enum { MOST_RETRIES = 255 };

/* ---- Asking ------------------------------------------------------------------------------------------------------ */

int vb_cm_sidr_request(struct vb_cm_id *id, const struct vb_cm_path *path, const struct vb_cm_sidr_req *req,
	vb_time timeout, unsigned retries, vb_time now)
{
	if (id->state != VB_CM_IDLE || vb_gid_is_zero(&path->remote) || timeout <= 0 || retries > MOST_RETRIES)
		return -EINVAL;
	struct vb_cm_message message = vb_cm_id_begin(id, VB_CM_SIDR_REQ, path, req->service_id);
	message.sidr_req = *req;
	id->period = timeout;
	vb_cm_ask(id, &message, VB_CM_SIDR_REQ_SENT, (uint8_t)retries, now);
	return 0;
}

void vb_cm_sidr_unanswered(struct vb_cm_id *id, vb_time now)
{
	assert(id->state == VB_CM_SIDR_REQ_SENT);
	if (vb_cm_try_again(id, now))
		return;
	vb_cm_post(id, VB_CM_EVENT_SIDR_TIMEOUT, NULL);
	vb_cm_id_enter(id, VB_CM_IDLE);
}

void vb_cm_take_sidr_rep(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	assert(id->state == VB_CM_SIDR_REQ_SENT);
	vb_cm_post(id, VB_CM_EVENT_SIDR_REPLY, message);
	vb_cm_id_enter(id, VB_CM_IDLE);
}

/* ---- Being asked ------------------------------------------------------------------------------------------------- */

/* The message's remote_id is the request's ID; the reply has no ID of its own. */
static struct vb_cm_message make_reply(uint64_t transaction_id, uint32_t request_id, const struct vb_cm_sidr_rep *rep)
{
	return (struct vb_cm_message){
		.kind = VB_CM_SIDR_REP, .transaction_id = transaction_id, .remote_id = request_id, .sidr_rep = *rep
	};
}

static void refuse(struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *message)
{
	struct vb_cm_sidr_rep rep = { .status = VB_CM_SIDR_UNSUPPORTED, .service_id = message->sidr_req.service_id };
	struct vb_cm_message reply = make_reply(message->transaction_id, message->local_id, &rep);
	vb_cm_send_unkept(cm, path, &reply);
	vb_cm_count(cm, VB_CM_REJECTED_COUNT);
}

static bool is_known(struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *message, vb_time now)
{
	struct vb_cm_id *id = vb_cm_find_remote(cm, &path->remote, message->local_id, true);
	if (!id)
		return false;
	if (id->transaction_id != message->transaction_id) {
		vb_cm_table_remove(&cm->by_remote, &id->by_remote);
		return false;
	}
	assert(id->is_record || id->state == VB_CM_SIDR_REQ_RCVD);
	if (id->is_record) {
		vb_cm_send_kept(id);
		vb_cm_arm(id, id->period, now);
	} else {
		vb_cm_count(cm, VB_CM_DUPLICATES_COUNT);
	}
	return true;
}

void vb_cm_take_sidr_req(
	struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *message, vb_time now)
{
	if (is_known(cm, path, message, now))
		return;
	struct vb_gid address = vb_cm_destination(message, &path->remote, &path->local);
	struct vb_cm_id *listener = vb_cm_find_listener(cm, message->sidr_req.service_id, &address);
	if (!listener) {
		refuse(cm, path, message);
		return;
	}
	if (!vb_cm_make_room(cm, &path->remote, now))
		return;
	struct vb_cm_id *id = vb_cm_id_create_for(cm, path, message, true);
	if (!id) {
		vb_cm_count(cm, VB_CM_DROPPED_COUNT);
		return;
	}
	id->service_id = message->sidr_req.service_id;
	vb_cm_id_enter(id, VB_CM_SIDR_REQ_RCVD);
	vb_cm_post_request(listener, id, VB_CM_EVENT_SIDR_REQUEST, message);
}

int vb_cm_sidr_reply(struct vb_cm_id *id, const struct vb_cm_sidr_rep *rep, vb_time now)
{
	if (id->state != VB_CM_SIDR_REQ_RCVD || rep->qpn > VB_CM_BITS_24 || rep->info_length > VB_CM_ARI_LENGTH)
		return -EINVAL;
	struct vb_cm_message message = make_reply(id->transaction_id, id->remote_id, rep);
	vb_cm_send(id, &message);
	vb_cm_record_answer(id, REMEMBERED, now);
	vb_cm_id_enter(id, VB_CM_IDLE);
	return 0;
}
