/* UC's packets. What becomes of a message that lost one: core/responder.c; its sending side is requester.c. */
#include "core/execute.h"
#include "core/responder.h"
#include "roce/request_packet.h"
#include "roce/roce.h"
#include "roce/uc.h"

void vb_uc_receive(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	struct vb_request request;
	if (!vb_uc_expects(qp, packet->psn, vb_packet_row(packet)))
		return;
	if (!vb_payload_is_right(packet, qp->mtu)) {
		vb_uc_conclude(qp, NULL, VB_BAD_LENGTH, now);
		return;
	}
	vb_request_of_packet(&request, packet);
	vb_uc_conclude(qp, &request, vb_execute(&qp->target, &request, NULL), now);
}
