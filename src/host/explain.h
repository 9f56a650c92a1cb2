/* The line a user reads when a QP died, made of what the engine and the port know. Pure, for tests. */
#ifndef VB_HOST_EXPLAIN_H
#define VB_HOST_EXPLAIN_H

#include <stddef.h>
#include "engine/nic.h"

struct vb_death {
	const char *device;
	enum vb_qp_type type;
	uint32_t qpn, dest_qpn;
	struct vb_gid peer;
	struct vb_cause cause;
	uint64_t overflows;	 /* datagrams that our receive buffer had no room for, while the QP was stuck */
	uint32_t receive_buffer; /* bytes */
};

void vb_explain(const struct vb_death *death, char *line, size_t size);

#endif
