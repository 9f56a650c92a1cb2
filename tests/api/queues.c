/* Queue pairs at work and at odds: states, requests, receives, completions, events. */
#include "fuzz.h"

#include <fcntl.h>

enum { MOST_SGES = 40, MOST_REQUESTS = 4 };

/* ---- States ------------------------------------------------------------------------------------------------------ */

static const int rc_masks[] = {
	[IBV_QPS_RESET] = IBV_QP_STATE,
	[IBV_QPS_INIT] = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	[IBV_QPS_RTR] = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	[IBV_QPS_RTS] = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC,
	[IBV_QPS_SQD] = IBV_QP_STATE,
	[IBV_QPS_SQE] = IBV_QP_STATE,
	[IBV_QPS_ERR] = IBV_QP_STATE,
};

static int mask_for(const struct ibv_qp *qp, enum ibv_qp_state state)
{
	int mask = rc_masks[state];
	if (qp->qp_type == IBV_QPT_UC)
		mask &= ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
	if (qp->qp_type == IBV_QPT_UD && state == IBV_QPS_INIT)
		return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	if (qp->qp_type == IBV_QPT_UD && state == IBV_QPS_RTS)
		return IBV_QP_STATE | IBV_QP_SQ_PSN;
	return qp->qp_type == IBV_QPT_UD ? IBV_QP_STATE : mask;
}

static uint32_t some_qpn(struct worker *worker)
{
	return one_in(worker, 10) ? (uint32_t)boundary(worker) : atomic_load(&PICK(worker, seen_qpns));
}

static struct ibv_qp_attr make_attr(struct worker *worker, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state,
		.port_num = 1,
		.qkey = 0x1234,
		.qp_access_flags = ACCESS_ALL | IBV_ACCESS_MW_BIND,
		.path_mtu = (enum ibv_mtu)(1 + below(worker, 5)),
		.dest_qp_num = some_qpn(worker) & 0xFFFFFF,
		.rq_psn = 7,
		.sq_psn = 7,
		.max_dest_rd_atomic = (uint8_t)(1 + below(worker, 8)),
		.max_rd_atomic = (uint8_t)(1 + below(worker, 8)),
		.min_rnr_timer = 1,
		.timeout = (uint8_t)(1 + below(worker, 12)),
		.retry_cnt = (uint8_t)below(worker, 8),
		.rnr_retry = (uint8_t)below(worker, 8),
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } } };
	ibv_query_gid(qp->context, 1, 0, &attr.ah_attr.grh.dgid);
	return attr;
}

/* One field is anything. */
static void spoil(struct worker *worker, struct ibv_qp_attr *attr, int *mask)
{
	switch (below(worker, 10)) {
	case 0:
		*mask = (int)boundary(worker);
		break;
	case 1:
		*mask ^= 1 << below(worker, 26);
		break;
	case 2:
		attr->qp_state = (enum ibv_qp_state)boundary(worker);
		break;
	case 3:
		attr->path_mtu = (enum ibv_mtu)boundary(worker);
		break;
	case 4:
		attr->dest_qp_num = (uint32_t)boundary(worker);
		break;
	case 5:
		attr->port_num = (uint8_t)boundary(worker);
		break;
	case 6:
		attr->qp_access_flags = (unsigned)boundary(worker);
		break;
	case 7:
		attr->max_rd_atomic = attr->max_dest_rd_atomic = (uint8_t)boundary(worker);
		break;
	case 8:
		attr->ah_attr.grh.dgid.raw[below(worker, 16)] ^= (uint8_t)draw(worker);
		attr->ah_attr.grh.sgid_index = (uint8_t)boundary(worker);
		break;
	default:
		attr->timeout = (uint8_t)boundary(worker);
		attr->min_rnr_timer = (uint8_t)boundary(worker);
		attr->retry_cnt = attr->rnr_retry = (uint8_t)boundary(worker);
	}
}

static int move(struct worker *worker, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = make_attr(worker, qp, state);
	int mask = mask_for(qp, state);
	if (one_in(worker, 6))
		spoil(worker, &attr, &mask);
	int error = ibv_modify_qp(qp, &attr, mask);
	EXPECT(worker, error, EINVAL, ENOMEM, EOPNOTSUPP, EPERM, ENETUNREACH, EHOSTUNREACH);
	return error;
}

static void modify_qp(struct worker *worker)
{
	struct slot *slot = use(worker, QP);
	if (slot)
		move(worker, slot->object, (enum ibv_qp_state)below(worker, IBV_QPS_ERR + 1));
}

static void connect_qp(struct worker *worker)
{
	static const enum ibv_qp_state way[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	struct slot *slot = use(worker, QP);
	for (unsigned i = 0; slot && i < 4; i++)
		if (move(worker, slot->object, way[i]))
			return;
}

/* ---- Requests ---------------------------------------------------------------------------------------------------- */

static void fill_sges(struct worker *worker, struct ibv_sge *sges, unsigned count)
{
	struct slot *mr = use(worker, MR);
	for (unsigned i = 0; i < count; i++) {
		size_t offset = mr && mr->length ? draw(worker) % mr->length : 0;
		uint32_t length = one_in(worker, 8) ? (uint32_t)boundary(worker) : below(worker, 9000);
		sges[i] = (struct ibv_sge){ mr ? (uintptr_t)mr->memory + offset : boundary(worker), length,
			mr && !one_in(worker, 10) ? ((struct ibv_mr *)mr->object)->lkey : (uint32_t)boundary(worker) };
	}
}

static unsigned sge_count(struct worker *worker)
{
	return one_in(worker, 10) ? below(worker, MOST_SGES + 1) : 1;
}

static uint32_t some_rkey(struct worker *worker)
{
	return one_in(worker, 6) ? (uint32_t)draw(worker) : atomic_load(&PICK(worker, seen_rkeys));
}

static uint64_t some_address(struct worker *worker)
{
	return one_in(worker, 6) ? boundary(worker) : (uintptr_t)arena + draw(worker) % ARENA;
}

/* What is sent inline is read by the call, so it is memory of this thread. */
static void fill_request(struct worker *worker, struct ibv_send_wr *wr, struct ibv_sge *sges, char *own_bytes)
{
	struct slot *ah = use(worker, AH), *mw = use(worker, MW), *mr = use(worker, MR);
	unsigned count = sge_count(worker);
	fill_sges(worker, sges, count);
	*wr = (struct ibv_send_wr){ .wr_id = draw(worker),
		.sg_list = sges,
		.num_sge = one_in(worker, 40) ? -1 : (int)count,
		.opcode = one_in(worker, 20) ? (enum ibv_wr_opcode)boundary(worker)
					     : (enum ibv_wr_opcode)below(worker, IBV_WR_SEND_WITH_INV + 1),
		.send_flags = one_in(worker, 20) ? (unsigned)boundary(worker) : below(worker, 8),
		.imm_data = (uint32_t)draw(worker) };
	if (wr->send_flags & IBV_SEND_INLINE)
		wr->send_flags &= ~(unsigned)IBV_SEND_INLINE;
	if (one_in(worker, 5)) {
		wr->send_flags |= IBV_SEND_INLINE;
		sges[0] = (struct ibv_sge){ (uintptr_t)own_bytes, below(worker, 2048), (uint32_t)draw(worker) };
		wr->num_sge = 1;
	}
	wr->wr.rdma.remote_addr = some_address(worker);
	wr->wr.rdma.rkey = some_rkey(worker);
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = some_address(worker) & ~(uint64_t)(one_in(worker, 4) ? 0 : 7);
		wr->wr.atomic.rkey = some_rkey(worker);
	}
	wr->qp_type.xrc.remote_srqn = (uint32_t)boundary(worker);
	if (wr->opcode == IBV_WR_BIND_MW && mw && mr) {
		wr->bind_mw.mw = mw->object;
		wr->bind_mw.rkey = ((struct ibv_mw *)mw->object)->rkey;
		wr->bind_mw.bind_info = (struct ibv_mw_bind_info){ mr->object,
			(uintptr_t)mr->memory + below(worker, 64), boundary(worker), below(worker, 128) };
	} else if (wr->opcode == IBV_WR_BIND_MW) {
		wr->opcode = IBV_WR_SEND;
	}
	if (!ah && wr->opcode > IBV_WR_SEND_WITH_INV)
		wr->opcode = IBV_WR_SEND;
}

/* A UD request names its AH, where the others have their remote address. */
static bool address_datagram(struct worker *worker, struct ibv_send_wr *wr)
{
	struct slot *ah = use(worker, AH);
	if (!ah)
		return false;
	wr->wr.ud.ah = ah->object;
	wr->wr.ud.remote_qpn = some_qpn(worker);
	wr->wr.ud.remote_qkey = one_in(worker, 4) ? (uint32_t)boundary(worker) : 0x1234;
	return true;
}

static void post_send(struct worker *worker)
{
	struct slot *slot = use(worker, QP);
	struct ibv_send_wr wrs[MOST_REQUESTS], *bad = NULL;
	struct ibv_sge sges[MOST_REQUESTS][MOST_SGES];
	char own_bytes[2048] = { 0 };
	unsigned count = 1 + below(worker, MOST_REQUESTS);
	if (!slot)
		return;
	struct ibv_qp *qp = slot->object;
	for (unsigned i = 0; i < count; i++) {
		fill_request(worker, &wrs[i], sges[i], own_bytes);
		if (qp->qp_type == IBV_QPT_UD && !address_datagram(worker, &wrs[i]))
			return;
		wrs[i].next = i + 1 < count ? &wrs[i + 1] : NULL;
	}
	int error = ibv_post_send(qp, wrs, &bad);
	EXPECT(worker, error, EINVAL, ENOMEM, EOPNOTSUPP, EFAULT, EPERM, ENOTSUP);
	if (error)
		REQUIRE(bad >= wrs && bad < wrs + count);
}

static void post_recv(struct worker *worker)
{
	struct slot *slot = use(worker, one_in(worker, 4) ? SRQ : QP);
	struct ibv_recv_wr wrs[MOST_REQUESTS], *bad = NULL;
	struct ibv_sge sges[MOST_REQUESTS][MOST_SGES];
	unsigned count = 1 + below(worker, MOST_REQUESTS);
	if (!slot)
		return;
	for (unsigned i = 0; i < count; i++) {
		unsigned length = sge_count(worker);
		fill_sges(worker, sges[i], length);
		wrs[i] = (struct ibv_recv_wr){ draw(worker), i + 1 < count ? &wrs[i + 1] : NULL, sges[i],
			one_in(worker, 40) ? -1 : (int)length };
	}
	int error =
		slot->kind == SRQ ? ibv_post_srq_recv(slot->object, wrs, &bad) : ibv_post_recv(slot->object, wrs, &bad);
	EXPECT(worker, error, EINVAL, ENOMEM, EOPNOTSUPP, EFAULT, EPERM);
	if (error)
		REQUIRE(bad >= wrs && bad < wrs + count);
}

static void post_tag_operation(struct worker *worker)
{
	struct slot *slot = use(worker, SRQ);
	struct ibv_sge sges[MOST_SGES];
	struct ibv_ops_wr wr = { .wr_id = draw(worker),
		.opcode = (enum ibv_ops_wr_opcode)below(worker, 4),
		.flags = (int)below(worker, 4) },
			  *bad = NULL;
	if (!slot)
		return;
	unsigned count = sge_count(worker);
	fill_sges(worker, sges, count);
	wr.tm.handle = (uint32_t)boundary(worker);
	wr.tm.unexpected_cnt = (uint32_t)boundary(worker);
	wr.tm.add.recv_wr_id = draw(worker);
	wr.tm.add.sg_list = sges;
	wr.tm.add.num_sge = (int)count;
	wr.tm.add.tag = below(worker, 4);
	wr.tm.add.mask = one_in(worker, 2) ? UINT64_MAX : 0;
	EXPECT(worker, ibv_post_srq_ops(slot->object, &wr, &bad), EINVAL, ENOMEM, EOPNOTSUPP, EBUSY, EFAULT, ENOENT);
}

static void bind_window(struct worker *worker)
{
	struct slot *qp = use(worker, QP), *mw = use(worker, MW), *mr = use(worker, MR);
	if (!qp || !mw || !mr)
		return;
	struct ibv_mw_bind bind = { .wr_id = draw(worker),
		.send_flags = below(worker, 8) & ~(unsigned)IBV_SEND_INLINE,
		.bind_info = { one_in(worker, 10) ? NULL : mr->object, (uintptr_t)mr->memory + below(worker, 64),
			boundary(worker), below(worker, 128) } };
	EXPECT(worker, ibv_bind_mw(qp->object, mw->object, &bind), EINVAL, ENOMEM, EOPNOTSUPP, EPERM, ENOTSUP);
	const uint32_t *rkey = &((struct ibv_mw *)mw->object)->rkey; /* others may bind it now */
	atomic_store(&PICK(worker, seen_rkeys), __atomic_load_n(rkey, __ATOMIC_RELAXED));
}

/* The newer way to post. Only what the QP was made with may be called. */
static void build_requests(struct worker *worker)
{
	struct slot *slot = own(worker, QP);
	char own_bytes[256] = { 0 };
	struct ibv_sge sge;
	if (!slot || !slot->has_wr_api || ((struct ibv_qp *)slot->object)->qp_type != IBV_QPT_RC)
		return;
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(slot->object);
	if (!qp || !qp->wr_rdma_write || !qp->wr_send)
		return;
	ibv_wr_start(qp);
	for (unsigned i = 0, count = below(worker, 5); i < count; i++) {
		qp->wr_id = draw(worker);
		qp->wr_flags = below(worker, 8) & ~(unsigned)IBV_SEND_INLINE;
		if (one_in(worker, 2))
			ibv_wr_rdma_write(qp, some_rkey(worker), some_address(worker));
		else
			ibv_wr_send(qp);
		fill_sges(worker, &sge, 1);
		if (one_in(worker, 3))
			ibv_wr_set_inline_data(qp, own_bytes, below(worker, 257));
		else
			ibv_wr_set_sge(qp, sge.lkey, sge.addr, sge.length);
	}
	if (one_in(worker, 4))
		ibv_wr_abort(qp);
	else
		EXPECT(worker, ibv_wr_complete(qp), EINVAL, ENOMEM, EOPNOTSUPP, EFAULT, EPERM);
}

/* ---- Completions and events -------------------------------------------------------------------------------------- */

static void poll_cq(struct worker *worker)
{
	struct slot *slot = use(worker, CQ);
	struct ibv_wc wcs[16];
	if (!slot)
		return;
	for (unsigned i = 0; i < 4; i++) {
		int room = (int)below(worker, 17), got = ibv_poll_cq(slot->object, room, wcs);
		if (got > room) /* an overrun CQ says so by a negative number */
			fail(__FILE__, __LINE__, "ibv_poll_cq gave %d of %d", got, room);
		for (int k = 0; k < got; k++)
			REQUIRE(wcs[k].status <= IBV_WC_TM_RNDV_INCOMPLETE);
	}
}

static void poll_cq_ex(struct worker *worker)
{
	struct slot *slot = own(worker, CQ);
	struct ibv_poll_cq_attr attr = { .comp_mask = one_in(worker, 8) ? (uint32_t)boundary(worker) : 0 };
	if (!slot || !slot->is_ex)
		return;
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)slot->object;
	int error = ibv_start_poll(cq, &attr);
	EXPECT(worker, error, ENOENT, EINVAL, EIO); /* EIO: it is overrun */
	if (error)
		return;
	while (!error && !one_in(worker, 8)) {
		ibv_wc_read_opcode(cq);
		ibv_wc_read_vendor_err(cq);
		ibv_wc_read_wc_flags(cq);
		error = ibv_next_poll(cq);
	}
	ibv_end_poll(cq);
	struct ibv_modify_cq_attr change = { (uint32_t)boundary(worker),
		{ (uint16_t)boundary(worker), (uint16_t)boundary(worker) } };
	EXPECT(worker, ibv_modify_cq(ibv_cq_ex_to_cq(cq), &change), EINVAL, EOPNOTSUPP, ENOSYS);
}

static void arm_cq(struct worker *worker)
{
	struct slot *slot = use(worker, CQ);
	if (slot)
		EXPECT(worker, ibv_req_notify_cq(slot->object, (int)below(worker, 2)), EINVAL);
}

static void be_patient_no_more(int fd)
{
	REQUIRE(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
}

static void get_cq_event(struct worker *worker)
{
	struct slot *slot = use(worker, CHANNEL);
	struct ibv_cq *cq;
	void *context;
	if (!slot)
		return;
	struct ibv_comp_channel *channel = slot->object;
	be_patient_no_more(channel->fd);
	if (EXPECT_RC(worker, ibv_get_cq_event(channel, &cq, &context), EAGAIN))
		ibv_ack_cq_events(cq, 1);
}

static void get_async_event(struct worker *worker)
{
	struct slot *slot = use(worker, CONTEXT);
	struct ibv_async_event event;
	if (!slot)
		return;
	struct ibv_context *context = slot->object;
	be_patient_no_more(context->async_fd);
	if (EXPECT_RC(worker, ibv_get_async_event(context, &event), EAGAIN))
		ibv_ack_async_event(&event);
}

static const struct call calls[] = {
	{ "ibv_modify_qp", modify_qp, 12 },
	{ "ibv_modify_qp to RTS", connect_qp, 30 },
	{ "ibv_post_send", post_send, 60 },
	{ "ibv_post_recv", post_recv, 40 },
	{ "ibv_post_srq_ops", post_tag_operation, 3 },
	{ "ibv_bind_mw", bind_window, 6 },
	{ "ibv_wr_*", build_requests, 12 },
	{ "ibv_poll_cq", poll_cq, 50 },
	{ "ibv_start_poll", poll_cq_ex, 20 },
	{ "ibv_req_notify_cq", arm_cq, 8 },
	{ "ibv_get_cq_event", get_cq_event, 10 },
	{ "ibv_get_async_event", get_async_event, 10 },
};
const struct calls queue_calls = { calls, sizeof(calls) / sizeof(calls[0]) };
