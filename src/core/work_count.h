/* Counts of completed work: nothing to do unless a program reads them. */
#ifndef VB_CORE_WORK_COUNT_H
#define VB_CORE_WORK_COUNT_H

#include "core/qp.h"

void vb_count_work_slowly(struct vb_qp *qp, enum vb_counted kind, enum vb_wc_status status, uint32_t bytes);

static inline void vb_count_work(struct vb_qp *qp, enum vb_counted kind, enum vb_wc_status status, uint32_t bytes)
{
	if (__builtin_expect(qp->counts != NULL, false))
		vb_count_work_slowly(qp, kind, status, bytes);
}

#endif
