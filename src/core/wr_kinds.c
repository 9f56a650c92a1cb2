/* The table of send work requests. */
#include "core/wr_kinds.h"

#define CONNECTED     (1 << VB_QP_RC | 1 << VB_QP_UC | 1 << VB_QP_XRC_SEND)
#define RELIABLE      (1 << VB_QP_RC | 1 << VB_QP_XRC_SEND)
#define COUNTED(kind) (1 << VB_COUNTED_##kind)

const struct vb_wr_kind vb_wr_kinds[VB_WR_KINDS] = {
	[VB_WR_SEND] = {
		.types = CONNECTED | 1 << VB_QP_UD | 1 << VB_QP_RAW,
		.message = VB_MESSAGE_SEND,
		.wc_opcode = VB_WC_SEND,
		.counted = COUNTED(SEND),
		.has_payload = true,
		.takes_receive = true,
		.forms = { VB_SEND_ONLY, VB_SEND_FIRST, VB_SEND_MIDDLE, VB_SEND_LAST },
	},
	[VB_WR_SEND_WITH_IMM] = {
		.types = CONNECTED | 1 << VB_QP_UD,
		.message = VB_MESSAGE_SEND,
		.wc_opcode = VB_WC_SEND,
		.counted = COUNTED(SEND),
		.has_payload = true,
		.takes_receive = true,
		.forms = { VB_SEND_ONLY_IMM, VB_SEND_FIRST, VB_SEND_MIDDLE, VB_SEND_LAST_IMM },
	},
	[VB_WR_SEND_WITH_INV] = {
		.types = RELIABLE,
		.message = VB_MESSAGE_SEND,
		.wc_opcode = VB_WC_SEND,
		.counted = COUNTED(SEND),
		.has_payload = true,
		.takes_receive = true,
		.forms = { VB_SEND_ONLY_INV, VB_SEND_FIRST, VB_SEND_MIDDLE, VB_SEND_LAST_INV },
	},
	[VB_WR_RDMA_WRITE] = {
		.types = CONNECTED,
		.message = VB_MESSAGE_WRITE,
		.wc_opcode = VB_WC_RDMA_WRITE,
		.counted = COUNTED(WRITE),
		.has_payload = true,
		.forms = { VB_WRITE_ONLY, VB_WRITE_FIRST, VB_WRITE_MIDDLE, VB_WRITE_LAST },
	},
	[VB_WR_RDMA_WRITE_WITH_IMM] = {
		.types = CONNECTED,
		.message = VB_MESSAGE_WRITE,
		.wc_opcode = VB_WC_RDMA_WRITE,
		.counted = COUNTED(WRITE),
		.has_payload = true,
		.takes_receive = true,
		.forms = { VB_WRITE_ONLY_IMM, VB_WRITE_FIRST, VB_WRITE_MIDDLE, VB_WRITE_LAST_IMM },
	},
	[VB_WR_RDMA_READ] = {
		.types = RELIABLE,
		.message = VB_MESSAGE_READ,
		.wc_opcode = VB_WC_RDMA_READ,
		.counted = COUNTED(READ),
		.finished_by = VB_BY_READ,
		.forms = { VB_READ_REQUEST, VB_READ_REQUEST, VB_READ_REQUEST, VB_READ_REQUEST },
	},
	[VB_WR_ATOMIC_CMP_AND_SWP] = {
		.types = RELIABLE,
		.message = VB_MESSAGE_ATOMIC,
		.wc_opcode = VB_WC_COMP_SWAP,
		.finished_by = VB_BY_VALUE,
		.has_eight_bytes = true,
		.forms = { .only = VB_CMP_SWAP },
	},
	[VB_WR_ATOMIC_FETCH_AND_ADD] = {
		.types = RELIABLE,
		.message = VB_MESSAGE_ATOMIC,
		.wc_opcode = VB_WC_FETCH_ADD,
		.finished_by = VB_BY_VALUE,
		.has_eight_bytes = true,
		.forms = { .only = VB_FETCH_ADD },
	},
	[VB_WR_FLUSH] = {
		.types = 1 << VB_QP_RC,
		.message = VB_MESSAGE_FLUSH,
		.wc_opcode = VB_WC_FLUSH,
		.finished_by = VB_BY_NOTHING,
		.forms = { .only = VB_FLUSH },
	},
	[VB_WR_ATOMIC_WRITE] = {
		.types = 1 << VB_QP_RC,
		.message = VB_MESSAGE_ATOMIC_WRITE,
		.wc_opcode = VB_WC_ATOMIC_WRITE,
		.finished_by = VB_BY_NOTHING,
		.has_payload = true,
		.has_eight_bytes = true,
		.forms = { .only = VB_ATOMIC_WRITE },
	},
	[VB_WR_LOCAL_INV] = {
		.types = CONNECTED,
		.wc_opcode = VB_WC_LOCAL_INV,
		.finished_by = VB_BY_ITSELF,
	},
	[VB_WR_BIND_MW] = {
		.types = CONNECTED,
		.wc_opcode = VB_WC_BIND_MW,
		.finished_by = VB_BY_ITSELF,
	},
};
