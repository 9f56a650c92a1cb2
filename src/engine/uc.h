/* UC's receiving side. */
#ifndef VB_ENGINE_UC_H
#define VB_ENGINE_UC_H

#include "engine/execute.h"

void vb_uc_receive(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);
/* Of the message that is open, or the beginning of one; else it was dropped. */
bool vb_uc_expects(struct vb_qp *qp, const struct vb_packet *packet);
void vb_uc_conclude(struct vb_qp *qp, const struct vb_packet *packet, enum vb_verdict verdict, vb_time now);

#endif
