/* Packets that come back from the port.
 * Not here: what is at the port (core/handed_out.c). */
#include <errno.h>
#include "base/invariant.h"
#include "core/handed_out.h"
#include "core/requests.h"
#include "engine/nic.h"
#include "engine/qp.h"
#include "roce/batch.h"
#include "roce/responder.h"
#include "roce/roce.h"

static void take_note(struct vb_lane *lane, const struct vb_tx_completion *completion, vb_time now)
{
	struct vb_qp *qp = vb_handed_out_owner(lane, completion->cookie);
	uint32_t psn = completion->cookie >> VB_COOKIE_PSN_SHIFT & VB_PSN_MASK;

	if (completion->error)
		vb_count(lane, VB_TX_ERRORS, 1);
	if (!qp)
		return;
	bool lacks_memory = completion->error == EFAULT && (completion->cookie & VB_COOKIE_PAYLOAD);
	if (lacks_memory && (completion->cookie & VB_COOKIE_RESPONSE))
		vb_responder_fault(qp, psn, now);
	else if (lacks_memory)
		vb_requester_fault(qp, psn, VB_CAUSE_LOCAL_FAULT, now);
	if (completion->cookie & VB_COOKIE_MESSAGE)
		vb_requester_left(qp, psn, now);
}

static void free_left(struct vb_lane *lane)
{
	while (!vb_list_empty(&lane->leaving)) {
		struct vb_qp *qp = vb_container_of(lane->leaving.next, struct vb_qp, leaving_link);
		if (!vb_lane_is_back(lane, qp->leaving_mark))
			return;
		vb_list_remove(&qp->leaving_link);
		vb_qp_free(qp);
	}
}

void vb_lane_transmit_done(
	struct vb_lane *lane, const struct vb_tx_completion *completions, unsigned count, vb_time now)
{
	unsigned odd = 0;

	lane->now = now;
	for (unsigned i = 0; i < count; i++) {
		odd += completions[i].cookie & VB_COOKIE_GENERATION;
		if ((completions[i].cookie & VB_COOKIE_MESSAGE) || completions[i].error)
			take_note(lane, &completions[i], now);
	}
	vb_handed_out_remove(lane, count, odd);
	free_left(lane);
	vb_lane_reap(lane);
	assert(vb_list_empty(&lane->failing));
}
