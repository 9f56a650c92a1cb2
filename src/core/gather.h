/* A message's bytes, copied together. */
#ifndef VB_CORE_GATHER_H
#define VB_CORE_GATHER_H

#include "core/send_queue.h"

enum vb_gathered { VB_GATHERED, VB_NO_BYTES, VB_NO_ACCESS };

/* Copies [offset, offset + length) of a message. */
enum vb_gathered vb_gather(
	struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t offset, uint32_t length, uint8_t *to);

#endif
