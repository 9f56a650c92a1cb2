/* The state machine as tables: the function that handles each message in each state, and the one that handles a
 * timeout. A message without an entry is dropped and counted. Read it beside IBA vol. 1, 12.9.7 (figures 133 and 134).
 */
#include <errno.h>
#include <string.h>
#include "base/invariant.h"
#include "cm/id.h"

/* A duplicate that needs no answer. */
static void take_again(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now)
{
	vb_cm_count(id->cm, VB_CM_DUPLICATES_COUNT);
}

/* A message's place is the row of its kind and the state of its recipient. REQ and SIDR_REQ have no recipient yet; LAP
 * is always refused. */
static vb_cm_taker *const takers[VB_CM_KINDS][VB_CM_STATES] = {
	[VB_CM_MRA] = {
		[VB_CM_REQ_SENT] = vb_cm_take_mra_of_req,
		[VB_CM_MRA_REQ_RCVD] = vb_cm_take_mra_again,
		[VB_CM_REP_SENT] = vb_cm_take_mra_of_rep,
		[VB_CM_MRA_REP_RCVD] = vb_cm_take_mra_again,
	},
	[VB_CM_REJ] = {
		[VB_CM_REQ_SENT] = vb_cm_take_rej,
		[VB_CM_MRA_REQ_RCVD] = vb_cm_take_rej,
		[VB_CM_REQ_RCVD] = vb_cm_take_rej,
		[VB_CM_MRA_REQ_SENT] = vb_cm_take_rej,
		[VB_CM_REP_SENT] = vb_cm_take_rej_and_wait,
		[VB_CM_MRA_REP_RCVD] = vb_cm_take_rej_and_wait,
		[VB_CM_REP_RCVD] = vb_cm_take_rej_and_wait,
		[VB_CM_MRA_REP_SENT] = vb_cm_take_rej_and_wait,
		[VB_CM_ESTABLISHED] = vb_cm_take_rej_as_end,
		[VB_CM_DREQ_SENT] = vb_cm_take_rej_as_end,
	},
	[VB_CM_REP] = {
		[VB_CM_REQ_SENT] = vb_cm_take_rep,
		[VB_CM_MRA_REQ_RCVD] = vb_cm_take_rep,
		[VB_CM_REP_RCVD] = vb_cm_take_rep_unread,
		[VB_CM_MRA_REP_SENT] = vb_cm_take_rep_again,
		[VB_CM_ESTABLISHED] = vb_cm_take_rep_again,
		[VB_CM_TIMEWAIT] = vb_cm_take_late,
	},
	[VB_CM_RTU] = {
		[VB_CM_REP_SENT] = vb_cm_take_rtu,
		[VB_CM_MRA_REP_RCVD] = vb_cm_take_rtu,
		[VB_CM_ESTABLISHED] = take_again,
		[VB_CM_TIMEWAIT] = vb_cm_take_late,
	},
	[VB_CM_DREQ] = {
		[VB_CM_REQ_SENT] = vb_cm_take_dreq_as_rejection,
		[VB_CM_MRA_REQ_RCVD] = vb_cm_take_dreq_as_rejection,
		[VB_CM_REP_RCVD] = vb_cm_take_dreq_as_rejection,
		[VB_CM_MRA_REP_SENT] = vb_cm_take_dreq_as_rejection,
		[VB_CM_REP_SENT] = vb_cm_take_dreq_as_established,
		[VB_CM_MRA_REP_RCVD] = vb_cm_take_dreq_as_established,
		[VB_CM_ESTABLISHED] = vb_cm_take_dreq,
		[VB_CM_DREQ_SENT] = vb_cm_take_dreq_crossing,
		[VB_CM_DREQ_RCVD] = take_again, /* the user will answer */
		[VB_CM_TIMEWAIT] = vb_cm_take_late_dreq,
	},
	[VB_CM_DREP] = {
		[VB_CM_DREQ_SENT] = vb_cm_take_drep,
		[VB_CM_TIMEWAIT] = take_again,
	},
	[VB_CM_SIDR_REP] = {
		[VB_CM_SIDR_REQ_SENT] = vb_cm_take_sidr_rep,
	},
};

static vb_cm_timeout *const timeouts[VB_CM_STATES] = {
	[VB_CM_REQ_SENT] = vb_cm_req_unanswered,
	[VB_CM_MRA_REQ_RCVD] = vb_cm_req_unanswered,
	[VB_CM_REP_SENT] = vb_cm_rep_unanswered,
	[VB_CM_MRA_REP_RCVD] = vb_cm_rep_unanswered,
	[VB_CM_DREQ_SENT] = vb_cm_dreq_unanswered,
	[VB_CM_TIMEWAIT] = vb_cm_timewait_over,
	[VB_CM_SIDR_REQ_SENT] = vb_cm_sidr_unanswered,
};

#define NO_MEMORY_PAUSE (10 * VB_MS)

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

/* The address is the peer's, and so is the communication ID, which is unknown before a REP or MRA. */
static bool is_from_peer(const struct vb_cm_id *id, const struct vb_cm_path *path, const struct vb_cm_message *message)
{
	bool is_known =
		id->state != VB_CM_REQ_SENT && id->state != VB_CM_SIDR_REQ_SENT && id->state != VB_CM_MRA_REQ_RCVD;
	/* The sender of a REJ of a REQ has no ID, though it may have sent an MRA with one. */
	bool may_lack_id = id->state == VB_CM_MRA_REQ_RCVD && message->kind == VB_CM_REJ && message->local_id == 0;
	if (!vb_gid_equal(&id->path.remote, &path->remote))
		return false;
	if (!is_known && (id->remote_id == 0 || may_lack_id))
		return true;
	return message->local_id == id->remote_id;
}

static struct vb_cm_id *find_recipient(
	struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *message)
{
	struct vb_cm_id *id;
	bool gives_up_req = message->kind == VB_CM_REJ && message->remote_id == 0; /* its sender never knew our ID */
	if (gives_up_req)
		id = vb_cm_find_remote(cm, &path->remote, message->local_id, false);
	else
		id = vb_cm_find_local(cm, message->remote_id);
	return id && is_from_peer(id, path, message) ? id : NULL;
}

/* A peer that waits for an answer from a connection that we do not have gets one; a peer that has just completed a
 * connection learns that we do not have it. */
static void answer_unknown_peer(struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *message)
{
	struct vb_cm_message answer;
	vb_cm_count(cm, VB_CM_DROPPED_COUNT);
	if (message->local_id == 0)
		return;
	switch (message->kind) {
	case VB_CM_DREQ:
		answer = vb_cm_answer_to(message, VB_CM_DREP);
		break;
	case VB_CM_REP:
	case VB_CM_RTU:
		answer = vb_cm_rejection_of(message, VB_CM_REJ_INVALID_COMM_ID);
		break;
	default:
		return;
	}
	vb_cm_send_unkept(cm, path, &answer);
}

/* Alternate paths are not supported: the network chooses the port that a packet leaves by. */
static void refuse_lap(struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *message)
{
	struct vb_cm_message answer = vb_cm_answer_to(message, VB_CM_APR);
	answer.apr.status = find_recipient(cm, path, message) ? VB_CM_APR_UNSUPPORTED : VB_CM_APR_INVALID_COMM_ID;
	vb_cm_send_unkept(cm, path, &answer);
}

void vb_cm_receive(struct vb_cm *cm, const struct vb_cm_path *path, const uint8_t mad[VB_MAD_LENGTH], vb_time now)
{
	struct vb_cm_message message;
	struct vb_cm_id *id;
	vb_cm_count(cm, VB_CM_RX_MADS_COUNT);
	if (!vb_cm_decode(&message, mad) || !vb_cm_reserve_events(cm)) {
		vb_cm_count(cm, VB_CM_DROPPED_COUNT);
		return;
	}
	switch (message.kind) {
	case VB_CM_REQ:
		vb_cm_take_req(cm, path, &message, now);
		return;
	case VB_CM_SIDR_REQ:
		vb_cm_take_sidr_req(cm, path, &message, now);
		return;
	case VB_CM_LAP:
		refuse_lap(cm, path, &message);
		return;
	default:
		break;
	}
	id = find_recipient(cm, path, &message);
	if (!id)
		answer_unknown_peer(cm, path, &message);
	else if (takers[message.kind][id->state])
		takers[message.kind][id->state](id, &message, now);
	else
		vb_cm_count(cm, VB_CM_DROPPED_COUNT);
}

/* The MAD is the last one that the id sent, and it is unanswered. */
static bool awaits_answer_to(const struct vb_cm_id *id, const struct vb_gid *remote, const uint8_t mad[VB_MAD_LENGTH])
{
	switch (id->state) {
	case VB_CM_REQ_SENT:
	case VB_CM_REP_SENT:
	case VB_CM_DREQ_SENT:
	case VB_CM_SIDR_REQ_SENT:
		return vb_gid_equal(&id->path.remote, remote) && memcmp(id->sent, mad, VB_MAD_LENGTH) == 0;
	default:
		return false;
	}
}

void vb_cm_undelivered(
	struct vb_cm *cm, const struct vb_gid *remote, const uint8_t mad[VB_MAD_LENGTH], int error, vb_time now)
{
	struct vb_cm_message message;
	if (!vb_cm_decode(&message, mad) || !vb_cm_reserve_events(cm))
		return;
	struct vb_cm_id *id = vb_cm_find_local(cm, message.local_id);
	if (!id || !awaits_answer_to(id, remote, mad))
		return;
	bool is_certain = error != -ECONNREFUSED || (id->was_refused && !id->is_early);
	id->was_refused = error == -ECONNREFUSED;
	if (!is_certain)
		return;
	vb_cm_give_up(id, error, now);
	assert(timeouts[id->state]); /* a state that awaits an answer has one */
	timeouts[id->state](id, now);
}

/* ---- Time -------------------------------------------------------------------------------------------------------- */

void vb_cm_advance(struct vb_cm *cm, vb_time now)
{
	struct vb_timer *timer;
	while ((timer = vb_timers_expire(&cm->timers, now))) {
		struct vb_cm_id *id = vb_container_of(timer, struct vb_cm_id, timer);
		assert(timeouts[id->state]);
		assert(vb_cm_is_waiting(id->state));
		if (vb_cm_reserve_events(cm))
			timeouts[id->state](id, now);
		else
			vb_cm_arm(id, NO_MEMORY_PAUSE, now);
	}
}
