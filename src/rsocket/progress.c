/* Progress of one rsocket: its completions, the events of its connection, its datagrams.
 * Not here: waiting for more (wait.c). */
#include "rsocket/objects.h"

static bool take_completion_events(struct vb_rsocket *rs)
{
	struct ibv_cq *cq;
	void *context;
	bool was_any = false;

	while (rs->completions && rs->is_armed && ibv_get_cq_event(rs->completions, &cq, &context) == 0) {
		ibv_ack_cq_events(cq, 1);
		rs->is_armed = false; /* there is no other event until it is armed again */
		was_any = true;
	}
	return was_any;
}

void vb_rs_progress(struct vb_rsocket *rs, unsigned *driven)
{
	if (rs->type == SOCK_DGRAM)
		vb_rs_datagram_progress(rs, false);
	else if (rs->state < VB_RS_CONNECTED)
		vb_rs_take_events(rs);
	else if (rs->cq && vb_rs_stream_poll(rs, driven))
		vb_rs_changed(rs);
	else if (rs->peer_state == VB_RS_PEER_UNCONFIRMED)
		vb_rs_take_events(rs);
}

void vb_rs_progress_all(struct vb_rsocket *rs, unsigned *driven)
{
	if (rs->type == SOCK_DGRAM) {
		if (vb_rs_datagram_progress(rs, true))
			vb_rs_kick(rs);
		return;
	}
	bool was_any = take_completion_events(rs);
	/* Completions that came before the end of the connection count before it. */
	vb_rs_progress(rs, driven);
	was_any |= vb_rs_take_events(rs);
	vb_rs_progress(rs, driven);
	/* Other threads may have been about to be woken by what we took. */
	if (was_any)
		vb_rs_kick(rs);
}

/* Has the descriptor become readable with the next completion; false: it was armed already. */
static bool arm(struct vb_rsocket *rs)
{
	if (rs->type == SOCK_DGRAM)
		return vb_rs_datagram_arm(rs);
	if (!rs->cq || rs->is_armed || ibv_req_notify_cq(rs->cq, 0))
		return false;
	return rs->is_armed = true;
}

/* A look that takes an event disarms the queue, and the next completion would go unnoticed: so look once more. */
void vb_rs_arm_and_look(struct vb_rsocket *rs, unsigned *driven)
{
	arm(rs);
	do
		vb_rs_progress_all(rs, driven);
	while (arm(rs));
}
