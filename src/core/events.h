/* News for the holder: completions into CQs, and the list of objects that have something to say. */
#ifndef VB_CORE_EVENTS_H
#define VB_CORE_EVENTS_H

#include "core/execute.h"
#include "core/queues.h"

void vb_raise(struct vb_lane *lane, struct vb_notice *notice, enum vb_event_kind kind);
void vb_notice_forget(struct vb_notice *notice);
/* Raises the events that follow from adding a completion to cq. False: it was lost. */
bool vb_cq_tell(struct vb_lane *lane, struct vb_cq *cq, enum vb_cq_outcome outcome);
/* Adds a completion of qp, raises what follows from it. */
void vb_complete(struct vb_qp *qp, struct vb_cq *cq, struct vb_wc *wc, bool solicited);
/* The same for who holds the CQ's lock, and writes all of it itself. NULL: it is lost. */
struct vb_wc *vb_complete_in_place(struct vb_qp *qp, struct vb_cq *cq, bool wakes);

#endif
