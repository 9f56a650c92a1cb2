/* Building messages, and the times that messages carry. IBA vol. 1, 12.6 and 12.7. */
#include <string.h>
#include "base/bytes.h"
#include "base/invariant.h"
#include "cm/id.h"

enum {
	LONGEST_SPAN = 25, /* 137 s; Linux asks for 24 */
	GUID_LENGTH = 8,
};

#define SHORTEST_PERIOD (5 * VB_MS) /* so that no peer makes us send a burst of repetitions */

vb_time vb_cm_span(uint8_t code)
{
	return (vb_time)4096 * VB_NS << (code < LONGEST_SPAN ? code : LONGEST_SPAN);
}

/* The path's ACK timeout, which stands for the round trip, and the time that the other CM takes to answer. */
vb_time vb_cm_period(uint8_t ack_timeout, uint8_t response_timeout)
{
	vb_time period = vb_cm_span(ack_timeout) + vb_cm_span(response_timeout);
	return period > SHORTEST_PERIOD ? period : SHORTEST_PERIOD;
}

uint64_t vb_cm_new_transaction(struct vb_cm_id *id)
{
	assert(id->local_id != 0); /* it has its number */
	return vb_secret_next(&id->cm->secret) << 32 | id->local_id;
}

struct vb_cm_message vb_cm_message_of(const struct vb_cm_id *id, enum vb_cm_kind kind)
{
	return (struct vb_cm_message){
		.kind = kind, .transaction_id = id->transaction_id, .local_id = id->local_id, .remote_id = id->remote_id
	};
}

static enum vb_cm_answered answered_in(enum vb_cm_state state)
{
	switch (state) {
	case VB_CM_REQ_RCVD:
	case VB_CM_MRA_REQ_SENT:
		return VB_CM_ANSWERS_REQ;
	case VB_CM_REP_RCVD:
	case VB_CM_MRA_REP_SENT:
		return VB_CM_ANSWERS_REP;
	default:
		return VB_CM_ANSWERS_OTHER;
	}
}

/* A REJ for a timeout names our CA: the peer may know no other identification of us (12.6.7.2, reason 4). */
struct vb_cm_message vb_cm_rejection(const struct vb_cm_id *id, uint16_t reason)
{
	struct vb_cm_message message = vb_cm_message_of(id, VB_CM_REJ);
	message.rej.answers = answered_in(id->state);
	message.rej.reason = reason;
	if (reason == VB_CM_REJ_TIMEOUT) {
		message.rej.ari_length = GUID_LENGTH;
		vb_store_be64(message.rej.ari, id->local_guid);
	}
	return message;
}

struct vb_cm_message vb_cm_answer_to(const struct vb_cm_message *message, enum vb_cm_kind kind)
{
	return (struct vb_cm_message){ .kind = kind,
		.transaction_id = message->transaction_id,
		.local_id = message->remote_id,
		.remote_id = message->local_id };
}

struct vb_cm_message vb_cm_rejection_of(const struct vb_cm_message *message, uint16_t reason)
{
	struct vb_cm_message answer = vb_cm_answer_to(message, VB_CM_REJ);
	answer.rej.answers = message->kind == VB_CM_REQ   ? VB_CM_ANSWERS_REQ
			     : message->kind == VB_CM_REP ? VB_CM_ANSWERS_REP
							  : VB_CM_ANSWERS_OTHER;
	answer.rej.reason = reason;
	return answer;
}
