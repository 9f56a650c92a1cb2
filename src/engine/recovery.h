/* When a request is sent again, and when nobody answers any more. Its state is the requester's. */
#ifndef VB_ENGINE_RECOVERY_H
#define VB_ENGINE_RECOVERY_H

#include "cc/cc.h"
#include "engine/nic.h"

void vb_recovery_check(const struct vb_qp *qp);
void vb_recovery_reset(struct vb_qp *qp, vb_time now);
void vb_recovery_on_sent(struct vb_qp *qp, uint32_t psn, bool is_new, vb_time now);
/* psn and what is before it is acknowledged, which congestion control is told, with the round trip if that was
 * measured.
 * may_answer_probe: what said so can be the answer to a probe. */
void vb_recovery_on_progress(
	struct vb_qp *qp, uint32_t psn, struct vb_cc_signal *acked, bool may_answer_probe, vb_time now);
/* An answer to something old: the peer is there and works off our duplicates. */
void vb_recovery_on_ghost(struct vb_qp *qp, vb_time now);
/* A NAK, or what amounts to one, for una_psn: resend, unless that was done already. */
void vb_recovery_on_gap(struct vb_qp *qp, vb_time now);
void vb_recovery_on_rnr(struct vb_qp *qp, uint8_t timer_code, vb_time now);
/* Nobody takes the oldest request, now. */
void vb_recovery_on_absence(struct vb_qp *qp, vb_time now);
/* The peer asks us to ask again soon, which he may do without end. */
void vb_recovery_on_later(struct vb_qp *qp, vb_time now);
/* Everything from the oldest on is to be sent again. */
void vb_recovery_go_back(struct vb_qp *qp);
/* Something was executed, and by descriptors: all retries are left. */
void vb_recovery_renew(struct vb_qp *qp, vb_time now);
void vb_recovery_on_timer(struct vb_qp *qp, vb_time now);

#endif
