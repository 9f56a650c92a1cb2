/* The QP state machine as a table: which transitions exist and which attributes each requires and allows.
 * IBA vol. 1, 10.3 and table 91 (modify QP). */
#ifndef VB_CORE_QP_STATE_H
#define VB_CORE_QP_STATE_H

#include "core/objects.h"

/* Is from -> to legal for this type with exactly these attributes (VB_QP_STATE and VB_QP_CUR_STATE aside)? 0 or
 * -EINVAL. */
int vb_qp_transition_check(enum vb_qp_type type, enum vb_qp_state from, enum vb_qp_state to, uint32_t mask);

#endif
