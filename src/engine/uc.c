/* UC's receiving side: the responder of a connection that acknowledges nothing. A message that lost a packet, or is
 * refused, is dropped and counted up to the next one's first packet; only a receive that does not fit is an error of
 * the QP. What its requests do is execute.c; its sending side is requester.c. IBA vol. 1, 9.8.2. */
#include "engine/execute.h"
#include "engine/lane.h"
#include "engine/qp.h"
#include "engine/request_packet.h"
#include "engine/responder.h"
#include "engine/uc.h"

static void discard(struct vb_qp *qp, enum vb_counter reason)
{
	vb_count(qp->lane, reason, 1);
	qp->target.open = VB_NO_MESSAGE;
	qp->responder.uc_discarding = true; /* up to the next First or Only */
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
		rs->uc_discarding = false;
		return true;
	}
	return !rs->uc_discarding && psn == expected_psn && qp->target.open == row->message;
}

bool vb_uc_expects(struct vb_qp *qp, uint32_t psn, const struct vb_opcode *row)
{
	vb_responder_establish(qp);
	if (is_in_sequence(qp, psn, row))
		return true;
	discard(qp, VB_DROP_UC_SEQUENCE);
	return false;
}

void vb_uc_receive(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	struct vb_request request;
	if (!vb_uc_expects(qp, packet->psn, vb_packet_row(packet)))
		return;
	if (!vb_payload_is_right(qp, packet)) {
		discard(qp, VB_DROP_LENGTH);
		return;
	}
	vb_request_of_packet(&request, packet);
	vb_uc_conclude(qp, &request, vb_execute(&qp->target, &request, NULL), now);
}
