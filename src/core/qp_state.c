/* The QP state machine: the diagram is the table, and what is not written is illegal.
 * Not here: what a transition does (qp_modify.c). VB_QP_ALT_PATH is in no row: RoCE has no path migration, and Linux
 * refuses it too. Source: IBA vol. 1, 10.3.1, 11.2.5.2 and annex A14: of RC's attributes an XRC QP has those of its
 * half. A raw packet QP has a port, and nothing to drain: its frames leave in the order posted. */
#include <errno.h>
#include "core/qp_state.h"

#define ACCESS       VB_QP_ACCESS_FLAGS
#define PKEY         VB_QP_PKEY_INDEX
#define PORT         VB_QP_PORT
#define QKEY         VB_QP_QKEY
#define AV           VB_QP_AV
#define MTU          VB_QP_PATH_MTU
#define DEST_QPN     VB_QP_DEST_QPN
#define RQ_PSN       VB_QP_RQ_PSN
#define SQ_PSN       VB_QP_SQ_PSN
#define MAX_RD       VB_QP_MAX_QP_RD_ATOMIC
#define MAX_DEST_RD  VB_QP_MAX_DEST_RD_ATOMIC
#define RNR_TIMER    VB_QP_MIN_RNR_TIMER
#define RNR_RETRY    VB_QP_RNR_RETRY
#define TIMEOUT      VB_QP_TIMEOUT
#define RETRY        VB_QP_RETRY_CNT
#define MIG_STATE    VB_QP_PATH_MIG_STATE
#define DRAIN_NOTIFY VB_QP_EN_SQD_ASYNC_NOTIFY

/* Beside the state itself. */
struct attributes {
	uint32_t required, optional;
};

struct transition {
	bool reliable_legal, uc_legal, ud_legal, raw_legal;
	struct attributes rc, uc, ud, raw, xrc_send, xrc_recv;
};

#define ALL_BUT_RAW .reliable_legal = true, .uc_legal = true, .ud_legal = true
#define ALL_TYPES   ALL_BUT_RAW, .raw_legal = true

static const struct transition transitions[VB_QPS_COUNT][VB_QPS_COUNT] = {
	[VB_QPS_RESET] = {
		[VB_QPS_RESET] = { ALL_TYPES },
		[VB_QPS_INIT] = { ALL_TYPES,
			.rc = { .required = PKEY | PORT | ACCESS },
			.uc = { .required = PKEY | PORT | ACCESS },
			.ud = { .required = PKEY | PORT | QKEY },
			.raw = { .required = PORT },
			.xrc_send = { .required = PKEY | PORT | ACCESS },
			.xrc_recv = { .required = PKEY | PORT | ACCESS } },
	},
	[VB_QPS_INIT] = {
		[VB_QPS_RESET] = { ALL_TYPES },
		[VB_QPS_INIT] = { ALL_TYPES,
			.rc = { .optional = PKEY | PORT | ACCESS },
			.uc = { .optional = PKEY | PORT | ACCESS },
			.ud = { .optional = PKEY | PORT | QKEY },
			.raw = { .optional = PORT },
			.xrc_send = { .optional = PKEY | PORT | ACCESS },
			.xrc_recv = { .optional = PKEY | PORT | ACCESS } },
		[VB_QPS_RTR] = { ALL_TYPES,
			.rc = { .required = AV | MTU | DEST_QPN | RQ_PSN | MAX_DEST_RD | RNR_TIMER,
				.optional = ACCESS | PKEY },
			.uc = { .required = AV | MTU | DEST_QPN | RQ_PSN, .optional = ACCESS | PKEY },
			.ud = { .optional = PKEY | QKEY },
			.xrc_send = { .required = AV | MTU | DEST_QPN | RQ_PSN, .optional = ACCESS | PKEY },
			.xrc_recv = { .required = AV | MTU | DEST_QPN | RQ_PSN | MAX_DEST_RD | RNR_TIMER,
				.optional = ACCESS | PKEY } },
		[VB_QPS_ERR] = { ALL_TYPES },
	},
	[VB_QPS_RTR] = {
		[VB_QPS_RESET] = { ALL_TYPES },
		[VB_QPS_RTS] = { ALL_TYPES,
			.rc = { .required = TIMEOUT | RETRY | RNR_RETRY | SQ_PSN | MAX_RD,
				.optional = ACCESS | RNR_TIMER | MIG_STATE },
			.uc = { .required = SQ_PSN, .optional = ACCESS | MIG_STATE },
			.ud = { .required = SQ_PSN, .optional = QKEY },
			.xrc_send = { .required = TIMEOUT | RETRY | RNR_RETRY | SQ_PSN | MAX_RD,
				.optional = ACCESS | MIG_STATE },
			.xrc_recv = { .required = TIMEOUT | SQ_PSN, .optional = ACCESS | RNR_TIMER | MIG_STATE } },
		[VB_QPS_ERR] = { ALL_TYPES },
	},
	[VB_QPS_RTS] = {
		[VB_QPS_RESET] = { ALL_TYPES },
		[VB_QPS_RTS] = { ALL_TYPES,
			.rc = { .optional = ACCESS | RNR_TIMER | MIG_STATE },
			.uc = { .optional = ACCESS | MIG_STATE },
			.ud = { .optional = QKEY },
			.xrc_send = { .optional = ACCESS | MIG_STATE },
			.xrc_recv = { .optional = ACCESS | RNR_TIMER | MIG_STATE } },
		[VB_QPS_SQD] = { ALL_BUT_RAW,
			.rc = { .optional = DRAIN_NOTIFY },
			.uc = { .optional = DRAIN_NOTIFY },
			.ud = { .optional = DRAIN_NOTIFY },
			.xrc_send = { .optional = DRAIN_NOTIFY },
			.xrc_recv = { .optional = DRAIN_NOTIFY } },
		[VB_QPS_ERR] = { ALL_TYPES },
	},
	[VB_QPS_SQD] = {
		[VB_QPS_RESET] = { ALL_BUT_RAW },
		[VB_QPS_RTS] = { ALL_BUT_RAW,
			.rc = { .optional = ACCESS | RNR_TIMER | MIG_STATE },
			.uc = { .optional = ACCESS | MIG_STATE },
			.ud = { .optional = QKEY },
			.xrc_send = { .optional = ACCESS | MIG_STATE },
			.xrc_recv = { .optional = ACCESS | RNR_TIMER | MIG_STATE } },
		[VB_QPS_SQD] = { ALL_BUT_RAW,
			.rc = { .optional = PORT | AV | TIMEOUT | RETRY | RNR_RETRY | MAX_RD | MAX_DEST_RD | ACCESS | PKEY |
					RNR_TIMER | MIG_STATE },
			.uc = { .optional = AV | ACCESS | PKEY | MIG_STATE },
			.ud = { .optional = PKEY | QKEY },
			.xrc_send = { .optional = PORT | AV | TIMEOUT | RETRY | RNR_RETRY | MAX_RD | ACCESS | PKEY |
					MIG_STATE },
			.xrc_recv = { .optional = PORT | AV | TIMEOUT | MAX_DEST_RD | ACCESS | PKEY | RNR_TIMER |
					MIG_STATE } },
		[VB_QPS_ERR] = { ALL_BUT_RAW },
	},
	[VB_QPS_SQE] = {
		[VB_QPS_RESET] = { ALL_TYPES },
		/* a reliable QP is never in SQE */
		[VB_QPS_RTS] = { .uc_legal = true, .ud_legal = true, .raw_legal = true,
			.uc = { .optional = ACCESS },
			.ud = { .optional = QKEY } },
		[VB_QPS_ERR] = { ALL_TYPES },
	},
	[VB_QPS_ERR] = {
		[VB_QPS_RESET] = { ALL_TYPES },
		[VB_QPS_ERR] = { ALL_TYPES },
	},
};

static const struct attributes *attributes_of(const struct transition *transition, enum vb_qp_type type)
{
	switch (type) {
	case VB_QP_RC:
		return transition->reliable_legal ? &transition->rc : NULL;
	case VB_QP_UC:
		return transition->uc_legal ? &transition->uc : NULL;
	case VB_QP_UD:
		return transition->ud_legal ? &transition->ud : NULL;
	case VB_QP_RAW:
		return transition->raw_legal ? &transition->raw : NULL;
	case VB_QP_XRC_SEND:
		return transition->reliable_legal ? &transition->xrc_send : NULL;
	case VB_QP_XRC_RECV:
		return transition->reliable_legal ? &transition->xrc_recv : NULL;
	}
	return NULL;
}

int vb_qp_transition_check(enum vb_qp_type type, enum vb_qp_state from, enum vb_qp_state to, uint32_t mask)
{
	if ((unsigned)from >= VB_QPS_COUNT || (unsigned)to >= VB_QPS_COUNT)
		return -EINVAL;
	const struct attributes *attributes = attributes_of(&transitions[from][to], type);
	if (!attributes)
		return -EINVAL;
	mask &= ~(uint32_t)(VB_QP_STATE | VB_QP_CUR_STATE);
	if (attributes->required & ~mask)
		return -EINVAL;
	if (mask & ~(attributes->required | attributes->optional))
		return -EINVAL;
	return 0;
}
