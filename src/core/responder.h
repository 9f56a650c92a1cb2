/* A connection's receiving side, as far as it is the same whatever brings requests: its beginning, and UC's order. */
#ifndef VB_CORE_RESPONDER_H
#define VB_CORE_RESPONDER_H

#include "core/execute.h"
#include "core/qp.h"

void vb_responder_reset(struct vb_qp *qp);     /* from RTR on; no message is in progress */
void vb_responder_establish(struct vb_qp *qp); /* in RTR: the peer's first request is there */
/* True: it is of the message that is open, or begins one. Else it was dropped. */
bool vb_uc_expects(struct vb_qp *qp, uint32_t psn, const struct vb_opcode *row);
void vb_uc_conclude(struct vb_qp *qp, const struct vb_request *request, enum vb_verdict verdict, vb_time now);

/* A request has been executed, or a part of one: struct vb_requester's is_asked. */
static inline void vb_requester_note_asked(struct vb_qp *qp, const struct vb_opcode *row)
{
	qp->requester.is_asked = true;
	qp->requester.took_receive = row->consumes_recv || row->message == VB_MESSAGE_SEND;
}

#endif
