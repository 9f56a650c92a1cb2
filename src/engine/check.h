/* Invariants between two calls of the engine, asserted (base/invariant.h). With everything that is checked to
 * oneself, and nothing posted meanwhile. */
#ifndef VB_ENGINE_CHECK_H
#define VB_ENGINE_CHECK_H

#include "core/memory.h"
#include "engine/nic.h"
#include "roce/raw.h"

void vb_lane_check(const struct vb_lane *lane);    /* and its QPs, and the queues that they use */
uint32_t vb_qp_oldest_psn(const struct vb_qp *qp); /* that is not acknowledged; as it moves, the requester gets on */

#endif
