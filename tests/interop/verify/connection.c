/* A QP at each end, connected; the PSNs wrap within the first messages. */
#include "verify.h"

static struct ibv_ah_attr address_vector(const struct end *end)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = end->peer.gid, .sgid_index = (uint8_t)end->gid_index, .hop_limit = 64 },
	};
}

static void modify(struct end *end, struct ibv_qp_attr *attr, int mask, const char *to)
{
	int error = ibv_modify_qp(end->qp, attr, mask | IBV_QP_STATE);

	if (error)
		fail(end, "ibv_modify_qp to %s: %s", to, strerror(error));
}

static void connect_datagrams(struct end *end)
{
	struct ibv_ah_attr av = address_vector(end);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };

	modify(end, &attr, 0, "RTR");
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .sq_psn = end->self.psn };
	modify(end, &attr, IBV_QP_SQ_PSN, "RTS");
	end->ah = ibv_create_ah(end->pd, &av);
	if (!end->ah)
		fail(end, "ibv_create_ah failed");
}

static void connect_pair(struct end *end, bool is_rc)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
		.ah_attr = address_vector(end),
		.path_mtu = end->mtu,
		.dest_qp_num = end->peer.qpn,
		.rq_psn = end->peer.psn,
		.max_dest_rd_atomic = READS,
		.min_rnr_timer = 12 };
	int mask = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	modify(end, &attr, mask | (is_rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0), "RTR");
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
		.sq_psn = end->self.psn,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = READS };
	mask = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	modify(end, &attr, IBV_QP_SQ_PSN | (is_rc ? mask : 0), "RTS");
}

void connect_qp(struct end *end, enum ibv_qp_type type, int access)
{
	struct ibv_qp_init_attr init = { .send_cq = end->cq,
		.recv_cq = end->cq,
		.qp_type = type,
		.cap = { .max_send_wr = BURST + 8,
			.max_recv_wr = BURST + 8,
			.max_send_sge = MAX_PIECES,
			.max_recv_sge = MAX_PIECES + 1 } };
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY, .qp_access_flags = (unsigned)access
	};

	end->qp = ibv_create_qp(end->pd, &init);
	if (!end->qp)
		fail(end, "ibv_create_qp failed");
	modify(end, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS),
		"INIT");
	end->self.qpn = end->qp->qp_num;
	end->self.psn = 0xFFFFFF - end->qp->qp_num % 100;
	exchange(end, &end->self, &end->peer, sizeof(end->self));
	if (type == IBV_QPT_UD)
		connect_datagrams(end);
	else
		connect_pair(end, type == IBV_QPT_RC);
	meet(end);
}

void disconnect_qp(struct end *end)
{
	struct ibv_wc wc;

	meet(end);
	if (ibv_destroy_qp(end->qp))
		fail(end, "ibv_destroy_qp failed");
	while (ibv_poll_cq(end->cq, 1, &wc) > 0)
		;
	if (end->ah)
		ibv_destroy_ah(end->ah);
	end->ah = NULL;
}
