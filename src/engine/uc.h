/* UC's receiving side. */
#ifndef VB_ENGINE_UC_H
#define VB_ENGINE_UC_H

#include "engine/nic.h"

void vb_uc_receive(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);

#endif
