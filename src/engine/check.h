/* What always holds between two calls of the engine, asserted (base/invariant.h). With everything that is checked to
 * oneself, and nothing posted meanwhile. */
#ifndef VB_ENGINE_CHECK_H
#define VB_ENGINE_CHECK_H

#include "engine/nic.h"

struct vb_steering;

void vb_lane_check(const struct vb_lane *lane);    /* and its QPs, and the queues that they use */
void vb_nic_check(const struct vb_nic *nic);       /* O(keys ever used) */
uint32_t vb_qp_oldest_psn(const struct vb_qp *qp); /* that is not acknowledged; as it moves, the requester gets on */
void vb_steering_check(const struct vb_steering *steering);

#endif
