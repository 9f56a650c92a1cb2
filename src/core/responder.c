/* A connection's receiving side, as far as it is the same whatever brings requests. UC acknowledges nothing: a message
 * that lost a part, or is refused, is dropped and counted up to the next one's first part; only a receive that does not
 * fit is an error of the QP. IBA vol. 1, 9.8.2. */
#include "core/responder.h"
#include "base/invariant.h"
#include "core/events.h"
#include "core/lane.h"
#include "core/qp.h"
#include "wire/packet.h"

void vb_responder_reset(struct vb_qp *qp)
{
	qp->responder = (struct vb_responder){ .expected_psn = qp->attr.rq_psn & VB_PSN_MASK };
	vb_target_reset(&qp->target);
	assert(qp->target.open == VB_NO_MESSAGE);
}

void vb_responder_establish(struct vb_qp *qp)
{
	if (vb_state(qp) != VB_QPS_RTR || qp->responder.comm_established)
		return;
	qp->responder.comm_established = true;
	vb_raise(qp->lane, &qp->notice, VB_EVENT_COMM_EST);
	assert(vb_state(qp) == VB_QPS_RTR);
}

static void discard(struct vb_qp *qp, enum vb_counter reason)
{
	vb_count(qp->lane, reason, 1);
	qp->target.open = VB_NO_MESSAGE;
	qp->responder.uc_discarding = true; /* up to the next First or Only */
	assert(qp->type == VB_QP_UC);
}

void vb_uc_conclude(struct vb_qp *qp, const struct vb_request *request, enum vb_verdict verdict, vb_time now)
{
	switch (verdict) {
	case VB_EXECUTED:
		break;
	case VB_NOT_READY:
		discard(qp, VB_DROP_NO_RECV);
		break;
	case VB_BAD_LENGTH:
		discard(qp, VB_DROP_LENGTH);
		break;
	case VB_RECV_TOO_SHORT:
	case VB_BAD_RECV_SGE:
		vb_execute_refusal(&qp->target, request, verdict, now);
		break;
	default:
		discard(qp, VB_DROP_UC_ACCESS);
		break;
	}
}

/* True when the part continues the open message. One that begins a message does so afresh, whatever its PSN, and
 * abandons the open one. */
static bool is_in_sequence(struct vb_qp *qp, uint32_t psn, const struct vb_opcode *row)
{
	struct vb_responder *rs = &qp->responder;
	uint32_t expected_psn = rs->expected_psn;
	rs->expected_psn = vb_psn_add(psn, 1);
	if (vb_begins_message(row)) {
		qp->responder.uc_discarding = false;
		return true;
	}
	return !qp->responder.uc_discarding && psn == expected_psn && qp->target.open == row->message;
}

bool vb_uc_expects(struct vb_qp *qp, uint32_t psn, const struct vb_opcode *row)
{
	vb_responder_establish(qp);
	if (is_in_sequence(qp, psn, row))
		return true;
	discard(qp, VB_DROP_UC_SEQUENCE);
	return false;
}
