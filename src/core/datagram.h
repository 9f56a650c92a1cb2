/* UD: a datagram that arrived, whatever brought it. */
#ifndef VB_CORE_DATAGRAM_H
#define VB_CORE_DATAGRAM_H

#include "core/qp.h"
#include "core/send_queue.h"
#include "wire/opcode.h"

#define VB_GRH_LENGTH 40 /* in front of the payload, in the receive */

struct vb_datagram {
	const struct vb_opcode *row;
	const struct vb_path *path;
	const uint8_t *payload; /* NULL: there are no bytes, only their number */
	uint32_t length;
	uint32_t src_qpn, qkey;
	uint32_t imm;
	bool is_solicited;
};

void vb_datagram_receive(struct vb_qp *qp, const struct vb_datagram *datagram);
/* To any address: a group's. */
void vb_datagram_deliver(struct vb_qp *qp, const struct vb_datagram *datagram);

/* The top bit asks for the QP's own key, which a process may not know. 10.2.5 */
static inline uint32_t vb_datagram_qkey(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	return wqe->ud.qkey & 0x80000000u ? qp->attr.qkey : wqe->ud.qkey;
}

#endif
