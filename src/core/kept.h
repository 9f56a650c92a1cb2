/* Bytes that are kept beyond their region: a datagram's that waits while its program closes the region that it
 * names. */
#ifndef VB_CORE_KEPT_H
#define VB_CORE_KEPT_H

#include "core/qp.h"

void vb_kept_init(struct vb_qp *qp);
void vb_kept_join(struct vb_qp *qp);      /* of UD: it is looked at from now on, */
void vb_kept_leave(struct vb_qp *qp);     /* and no longer */
void vb_kept_free_done(struct vb_qp *qp); /* of requests that have completed: the port is done with them */
void vb_kept_abandon(struct vb_qp *qp);   /* its requests are flushed or forgotten; packets may be at the port */
void vb_kept_deinit(struct vb_qp *qp);
void vb_kept_check(const struct vb_qp *qp);

static inline bool vb_kept_any(const struct vb_qp *qp)
{
	return !vb_list_empty(&qp->kept);
}

#endif
