/* UC's receiving side. */
#ifndef VB_ENGINE_UC_H
#define VB_ENGINE_UC_H

#include "engine/execute.h"

void vb_uc_receive(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);
/* Of the message that is open, or the beginning of one; else it was dropped. */
bool vb_uc_expects(struct vb_qp *qp, uint32_t psn, const struct vb_opcode *row);
void vb_uc_conclude(struct vb_qp *qp, const struct vb_request *request, enum vb_verdict verdict, vb_time now);

#endif
