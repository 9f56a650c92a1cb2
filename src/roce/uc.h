/* UC's receiving side. */
#ifndef VB_ROCE_UC_H
#define VB_ROCE_UC_H

#include "roce/holder.h"

void vb_uc_receive(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);

#endif
