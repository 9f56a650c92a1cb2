/* MRA, "message completion acknowledged": the receiver of a REQ or REP asks for more time to answer. Both sides send
 * and receive it. IBA vol. 1, 12.6.6. */
#include <errno.h>
#include "base/invariant.h"
#include "cm/id.h"

enum {
	BITS_5 = 31,
	USER_SPAN = 22, /* 17 s, short enough to notice soon a host that dies meanwhile */
};

/* ---- Sent -------------------------------------------------------------------------------------------------------- */

int vb_cm_delay(struct vb_cm_id *id, uint8_t service_timeout, vb_time now)
{
	bool is_req = vb_cm_owes_reply(id->state);
	if ((!is_req && !vb_cm_owes_confirmation(id->state)) || service_timeout > BITS_5)
		return -EINVAL;
	struct vb_cm_message message = vb_cm_message_of(id, VB_CM_MRA);
	message.mra.answers = is_req ? VB_CM_ANSWERS_REQ : VB_CM_ANSWERS_REP;
	message.mra.service_timeout = service_timeout;
	vb_cm_send(id, &message);
	vb_cm_id_enter(id, is_req ? VB_CM_MRA_REQ_SENT : VB_CM_MRA_REP_SENT);
	return 0;
}

/* A duplicate that comes early guards against loss only, and needs no answer. Once the peer counts its retries, it
 * would give up on a user that is merely slow; an MRA gives the user minutes, as in Linux's CM. */
void vb_cm_hold_off(struct vb_cm_id *id, vb_time now)
{
	assert(vb_cm_owes_reply(id->state) || vb_cm_owes_confirmation(id->state));
	vb_cm_count(id->cm, VB_CM_DUPLICATES_COUNT);
	if (vb_time_is_due(id->due, now))
		vb_cm_delay(id, USER_SPAN, now);
}

/* ---- Received ---------------------------------------------------------------------------------------------------- */

static void wait_longer(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	vb_cm_wait(id, vb_cm_span(id->ack_timeout) + vb_cm_span(message->mra.service_timeout), now);
}

static void take_mra(struct vb_cm_id *id, enum vb_cm_state state, const struct vb_cm_message *message, vb_time now)
{
	vb_cm_id_enter(id, state);
	wait_longer(id, message, now);
	vb_cm_post(id, VB_CM_EVENT_DELAYED, message);
}

void vb_cm_take_mra_of_req(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	assert(id->state == VB_CM_REQ_SENT);
	if (message->mra.answers != VB_CM_ANSWERS_REQ) {
		vb_cm_count(id->cm, VB_CM_DROPPED_COUNT);
		return;
	}
	id->remote_id = message->local_id;
	take_mra(id, VB_CM_MRA_REQ_RCVD, message, now);
}

void vb_cm_take_mra_of_rep(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	assert(id->state == VB_CM_REP_SENT);
	if (message->mra.answers != VB_CM_ANSWERS_REP) {
		vb_cm_count(id->cm, VB_CM_DROPPED_COUNT);
		return;
	}
	take_mra(id, VB_CM_MRA_REP_RCVD, message, now);
}

/* The peer needs even longer. The user was told the first time. */
void vb_cm_take_mra_again(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	assert(id->state == VB_CM_MRA_REQ_RCVD || id->state == VB_CM_MRA_REP_RCVD);
	vb_cm_count(id->cm, VB_CM_DUPLICATES_COUNT);
	wait_longer(id, message, now);
}
