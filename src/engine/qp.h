/* A whole QP: core's part, the wire transport's and local's. */
#ifndef VB_ENGINE_QP_H
#define VB_ENGINE_QP_H

#include "local/local.h"
#include "roce/roce.h"

struct vb_whole_qp {
	struct vb_roce_qp roce;
	struct vb_local local;
};

void vb_qp_clear(struct vb_qp *qp); /* resets everything but the QPN */
void vb_qp_free(struct vb_qp *qp);  /* its memory; nothing of it is at the port any more */

#endif
