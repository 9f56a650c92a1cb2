/* Verbs objects: made of others that fit and others that do not, looked at, changed, destroyed. */
#include "fuzz.h"

#include <fcntl.h>

#define CREATE_ERRORS EINVAL, ENOMEM, EOPNOTSUPP, ENOSYS, EFAULT, EPERM, EBUSY

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

static void open_device(struct worker *worker)
{
	struct slot *slot = vacant(worker, CONTEXT);
	int count = -1;
	if (!slot)
		return;
	struct ibv_device **list = ibv_get_device_list(one_in(worker, 2) ? &count : NULL);
	REQUIRE(list && list[0]);
	struct ibv_context *context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (EXPECT_OBJECT(worker, context, CREATE_ERRORS, EMFILE))
		adopt(worker, slot, context, NULL, 0);
}

/* Only an empty one: what lives in it could not be used any more. */
static void close_device(struct worker *worker)
{
	struct slot *slot = own(worker, CONTEXT);
	if (!slot || atomic_load(&slot->children) || !one_in(worker, 4))
		return;
	EXPECT(worker, ibv_close_device(slot->object), EPERM);
	vacate(slot);
}

static void query_device(struct worker *worker)
{
	struct slot *slot = use(worker, CONTEXT);
	struct ibv_device_attr attr;
	struct ibv_device_attr_ex attr_ex;
	struct ibv_query_device_ex_input input = { .comp_mask = (uint32_t)boundary(worker) };
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;
	uint8_t number = one_in(worker, 2) ? 1 : (uint8_t)boundary(worker);
	if (!slot)
		return;
	EXPECT(worker, ibv_query_device(slot->object, &attr), EINVAL);
	EXPECT(worker, ibv_query_device_ex(slot->object, one_in(worker, 2) ? &input : NULL, &attr_ex), EINVAL);
	EXPECT(worker, ibv_query_port(slot->object, number, &port), EINVAL);
	EXPECT_RC(worker, ibv_query_gid(slot->object, number, (int)boundary(worker), &gid), EINVAL);
	EXPECT_RC(worker, ibv_query_pkey(slot->object, number, (int)boundary(worker), &pkey), EINVAL);
	ibv_get_pkey_index(slot->object, number, (__be16)boundary(worker));
}

static void read_gids(struct worker *worker)
{
	struct slot *slot = use(worker, CONTEXT);
	struct ibv_gid_entry entries[8];
	if (!slot)
		return;
	ssize_t got = ibv_query_gid_table(slot->object, entries, below(worker, 9), one_in(worker, 4) ? ~0u : 0);
	REQUIRE(got <= 8);
	EXPECT(worker,
		ibv_query_gid_ex(slot->object, (uint32_t)boundary(worker), (uint32_t)boundary(worker), entries,
			one_in(worker, 4) ? ~0u : 0),
		EINVAL, ENODATA, EOPNOTSUPP);
}

/* Texts of numbers that mean nothing. */
static void read_texts(struct worker *worker)
{
	int number = (int)boundary(worker);
	REQUIRE(ibv_wc_status_str((enum ibv_wc_status)number));
	REQUIRE(ibv_event_type_str((enum ibv_event_type)number));
	REQUIRE(ibv_port_state_str((enum ibv_port_state)number));
	REQUIRE(ibv_node_type_str((enum ibv_node_type)number));
	REQUIRE(rdma_event_str((enum rdma_cm_event_type)number));
	(void)ibv_rate_to_mbps((enum ibv_rate)number);
	(void)mbps_to_ibv_rate(number);
	(void)mult_to_ibv_rate(number);
}

/* ---- Domains, memory --------------------------------------------------------------------------------------------- */

static void alloc_pd(struct worker *worker)
{
	struct slot *context = use(worker, CONTEXT), *slot = context ? vacant(worker, PD) : NULL;
	if (!slot)
		return;
	struct ibv_pd *pd = ibv_alloc_pd(context->object);
	if (EXPECT_OBJECT(worker, pd, CREATE_ERRORS))
		adopt(worker, slot, pd, &context, 1);
}

static void dealloc_pd(struct worker *worker)
{
	struct slot *slot = own(worker, PD);
	if (slot)
		expect_gone(worker, slot, ibv_dealloc_pd(slot->object));
}

static int access_flags(struct worker *worker)
{
	static const int often[] = { ACCESS_ALL, IBV_ACCESS_LOCAL_WRITE, 0, ACCESS_ALL | IBV_ACCESS_MW_BIND,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED, IBV_ACCESS_REMOTE_WRITE,
		ACCESS_ALL | IBV_ACCESS_RELAXED_ORDERING };
	return one_in(worker, 6) ? (int)boundary(worker) : PICK(worker, often);
}

/* A part of the arena, or, now and then, a length that no memory has. */
static void choose_memory(struct worker *worker, uint8_t **memory, size_t *length)
{
	size_t offset = draw(worker) % ARENA;
	size_t most = ARENA - offset;
	*memory = arena + offset;
	*length = one_in(worker, 3) ? most : (size_t)(boundary(worker) % (most + 1));
}

static void reg_mr(struct worker *worker)
{
	struct slot *pd = use(worker, PD), *slot = pd ? vacant(worker, MR) : NULL;
	int access = access_flags(worker);
	uint8_t *memory;
	size_t length;
	if (!slot)
		return;
	choose_memory(worker, &memory, &length);
	struct ibv_mr *mr = NULL;
	switch (below(worker, 4)) {
	case 0:
		mr = ibv_reg_mr_iova(pd->object, memory, length, boundary(worker), access);
		break;
	case 1: /* of memory that is not there */
		mr = ibv_reg_mr(pd->object, memory, SIZE_MAX - (draw(worker) >> 8), access);
		break;
	case 2:
		mr = ibv_reg_dmabuf_mr(pd->object, boundary(worker), length, (uint64_t)(uintptr_t)memory, -1, access);
		break;
	default:
		mr = ibv_reg_mr(pd->object, memory, length, access);
	}
	if (!EXPECT_OBJECT(worker, mr, CREATE_ERRORS, EBADF))
		return;
	slot->memory = memory;
	slot->length = length;
	atomic_store(&PICK(worker, seen_rkeys), mr->rkey);
	adopt(worker, slot, mr, &pd, 1);
}

static void dereg_mr(struct worker *worker)
{
	struct slot *slot = own(worker, MR);
	if (slot)
		expect_gone(worker, slot, ibv_dereg_mr(slot->object));
}

/* What fails may leave the region unusable (its manual page), but it is still to be deregistered. The domain stays, for
 * the slot's parents are as they were. */
static void rereg_mr(struct worker *worker)
{
	struct slot *slot = own(worker, MR);
	int flags = one_in(worker, 4) ? (int)boundary(worker) : (int)below(worker, 8);
	uint8_t *memory;
	size_t length;
	if (!slot)
		return;
	choose_memory(worker, &memory, &length);
	flags &= ~IBV_REREG_MR_CHANGE_PD;
	int rc = ibv_rereg_mr(slot->object, flags, NULL, memory, length, access_flags(worker));
	REQUIRE(rc <= 0 && rc >= IBV_REREG_MR_ERR_CMD_AND_DO_FORK_NEW);
	if (rc == 0 && flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		slot->memory = memory;
		slot->length = length;
	}
}

static void advise_mr(struct worker *worker)
{
	struct slot *pd = use(worker, PD), *mr = use(worker, MR);
	if (!pd || !mr)
		return;
	struct ibv_sge sge = { (uintptr_t)mr->memory + boundary(worker) % 4096, (uint32_t)boundary(worker),
		one_in(worker, 4) ? (uint32_t)draw(worker) : ((struct ibv_mr *)mr->object)->lkey };
	EXPECT(worker,
		ibv_advise_mr(pd->object, (enum ibv_advise_mr_advice)below(worker, 5), (uint32_t)below(worker, 3), &sge,
			below(worker, 2)),
		EINVAL, EOPNOTSUPP, EFAULT, ENOENT, EPERM);
}

static void alloc_mw(struct worker *worker)
{
	struct slot *pd = use(worker, PD), *slot = pd ? vacant(worker, MW) : NULL;
	if (!slot)
		return;
	struct ibv_mw *mw = ibv_alloc_mw(
		pd->object, (enum ibv_mw_type)(one_in(worker, 6) ? boundary(worker) : 1 + below(worker, 2)));
	if (EXPECT_OBJECT(worker, mw, CREATE_ERRORS))
		adopt(worker, slot, mw, &pd, 1);
}

static void dealloc_mw(struct worker *worker)
{
	struct slot *slot = own(worker, MW);
	if (slot)
		expect_gone(worker, slot, ibv_dealloc_mw(slot->object));
}

/* Device memory lives as long as this call. */
static void play_with_dm(struct worker *worker)
{
	struct slot *context = use(worker, CONTEXT), *pd = use(worker, PD);
	if (!context || !pd)
		return;
	struct ibv_alloc_dm_attr attr = { .length = boundary(worker),
		.log_align_req = (uint32_t)below(worker, 70),
		.comp_mask = one_in(worker, 8) ? ~0u : 0 };
	struct ibv_dm *dm = ibv_alloc_dm(context->object, &attr);
	if (!EXPECT_OBJECT(worker, dm, CREATE_ERRORS))
		return;
	char bytes[256] = { 0 };
	uint64_t offset = one_in(worker, 2) ? boundary(worker) : 0;
	EXPECT(worker, ibv_memcpy_to_dm(dm, offset, bytes, below(worker, 257)), EINVAL, EFAULT);
	EXPECT(worker, ibv_memcpy_from_dm(bytes, dm, offset, below(worker, 257)), EINVAL, EFAULT);
	struct ibv_mr *mr = ibv_reg_dm_mr(pd->object, dm, offset, below(worker, 300), access_flags(worker));
	if (EXPECT_OBJECT(worker, mr, CREATE_ERRORS))
		EXPECT(worker, ibv_dereg_mr(mr), 0);
	EXPECT(worker, ibv_free_dm(dm), 0);
}

/* A domain of a domain lives as long as this call, too. */
static void play_with_parent_domain(struct worker *worker)
{
	struct slot *context = use(worker, CONTEXT), *pd = use(worker, PD);
	if (!context || !pd)
		return;
	struct ibv_td_init_attr td_attr = { .comp_mask = one_in(worker, 8) ? ~0u : 0 };
	struct ibv_td *td = ibv_alloc_td(context->object, &td_attr);
	if (!EXPECT_OBJECT(worker, td, CREATE_ERRORS))
		return;
	struct ibv_parent_domain_init_attr attr = {
		.pd = pd->object, .td = one_in(worker, 4) ? NULL : td, .comp_mask = one_in(worker, 8) ? ~0u : 0
	};
	struct ibv_pd *domain = ibv_alloc_parent_domain(context->object, &attr);
	if (EXPECT_OBJECT(worker, domain, CREATE_ERRORS))
		EXPECT(worker, ibv_dealloc_pd(domain), 0);
	EXPECT(worker, ibv_dealloc_td(td), 0);
}

/* ---- Queues ------------------------------------------------------------------------------------------------------ */

static void create_channel(struct worker *worker)
{
	struct slot *context = use(worker, CONTEXT), *slot = context ? vacant(worker, CHANNEL) : NULL;
	if (!slot)
		return;
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context->object);
	if (EXPECT_OBJECT(worker, channel, CREATE_ERRORS, EMFILE))
		adopt(worker, slot, channel, &context, 1);
}

static void destroy_channel(struct worker *worker)
{
	struct slot *slot = own(worker, CHANNEL);
	if (slot)
		expect_gone(worker, slot, ibv_destroy_comp_channel(slot->object));
}

static int queue_size(struct worker *worker)
{
	return one_in(worker, 5) ? (int)boundary(worker) : (int)below(worker, 200);
}

static void create_cq(struct worker *worker)
{
	struct slot *context = use(worker, CONTEXT), *channel = one_in(worker, 2) ? use(worker, CHANNEL) : NULL;
	struct slot *slot = context ? vacant(worker, CQ) : NULL;
	if (!slot)
		return;
	int size = queue_size(worker), vector = one_in(worker, 10) ? (int)boundary(worker) : 0;
	if (size > 1 << 16)
		size = one_in(worker, 4) ? size : 1 << 16;
	struct ibv_cq_init_attr_ex attr = { .cqe = (uint32_t)size,
		.channel = channel ? channel->object : NULL,
		.comp_vector = (uint32_t)vector,
		.wc_flags = one_in(worker, 4) ? boundary(worker) : IBV_WC_STANDARD_FLAGS };
	bool is_ex = one_in(worker, 3);
	struct ibv_cq *cq;
	if (is_ex) {
		struct ibv_cq_ex *ex = ibv_create_cq_ex(context->object, &attr);
		cq = ex ? ibv_cq_ex_to_cq(ex) : NULL;
	} else {
		cq = ibv_create_cq(context->object, size, NULL, attr.channel, vector);
	}
	if (!EXPECT_OBJECT(worker, cq, CREATE_ERRORS))
		return;
	slot->is_ex = is_ex;
	adopt(worker, slot, cq, (struct slot *[]){ context, channel }, 2);
}

static void destroy_cq(struct worker *worker)
{
	struct slot *slot = own(worker, CQ);
	if (slot)
		expect_gone(worker, slot, ibv_destroy_cq(slot->object));
}

static void resize_cq(struct worker *worker)
{
	struct slot *slot = use(worker, CQ);
	if (slot)
		EXPECT(worker, ibv_resize_cq(slot->object, queue_size(worker) % (1 << 16)), EINVAL, ENOMEM, EBUSY,
			EOPNOTSUPP, ENOSYS);
}

static void create_srq(struct worker *worker)
{
	struct slot *context = use(worker, CONTEXT), *pd = use(worker, PD), *cq = use(worker, CQ);
	struct slot *xrcd = use(worker, XRCD), *slot = context && pd ? vacant(worker, SRQ) : NULL;
	if (!slot)
		return;
	struct ibv_srq_init_attr_ex attr = { .attr = { .max_wr = (uint32_t)queue_size(worker),
						     .max_sge = below(worker, 6),
						     .srq_limit = below(worker, 4) },
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = (enum ibv_srq_type)below(worker, one_in(worker, 8) ? 9 : 3),
		.pd = pd->object };
	if (xrcd && cq && attr.srq_type != IBV_SRQT_BASIC) {
		attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
		attr.xrcd = xrcd->object;
		attr.cq = cq->object;
		attr.tm_cap = (struct ibv_tm_cap){ below(worker, 200), below(worker, 20) };
	}
	if (one_in(worker, 10))
		attr.comp_mask = (uint32_t)boundary(worker) & attr.comp_mask;
	bool is_basic = one_in(worker, 2);
	struct ibv_srq_init_attr basic = { .attr = attr.attr };
	struct ibv_srq *srq = is_basic ? ibv_create_srq(pd->object, &basic) : ibv_create_srq_ex(context->object, &attr);
	if (!EXPECT_OBJECT(worker, srq, CREATE_ERRORS))
		return;
	bool has_type = !is_basic && attr.comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr.srq_type != IBV_SRQT_BASIC;
	bool has_cq = has_type && attr.comp_mask & IBV_SRQ_INIT_ATTR_CQ;
	bool has_xrcd = has_cq && attr.srq_type == IBV_SRQT_XRC;
	struct slot *parents[] = { pd, context, has_cq ? cq : NULL, has_xrcd ? xrcd : NULL };
	adopt(worker, slot, srq, parents, 4);
}

static void destroy_srq(struct worker *worker)
{
	struct slot *slot = own(worker, SRQ);
	if (slot)
		expect_gone(worker, slot, ibv_destroy_srq(slot->object));
}

static void modify_srq(struct worker *worker)
{
	struct slot *slot = use(worker, SRQ);
	struct ibv_srq_attr attr = { (uint32_t)queue_size(worker), (uint32_t)boundary(worker), below(worker, 200) };
	if (!slot)
		return;
	EXPECT(worker, ibv_modify_srq(slot->object, &attr, one_in(worker, 4) ? (int)boundary(worker) : IBV_SRQ_LIMIT),
		EINVAL, ENOMEM, EOPNOTSUPP, ENOSYS);
	EXPECT(worker, ibv_query_srq(slot->object, &attr), 0);
}

static enum ibv_qp_type qp_type(struct worker *worker)
{
	static const enum ibv_qp_type often[] = { IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
		IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV, IBV_QPT_DRIVER, 0 };
	return one_in(worker, 12) ? (enum ibv_qp_type)boundary(worker) : PICK(worker, often);
}

static void create_qp(struct worker *worker)
{
	struct slot *pd = use(worker, PD), *send_cq = use(worker, CQ), *recv_cq = use(worker, CQ);
	struct slot *srq = one_in(worker, 3) ? use(worker, SRQ) : NULL, *context = use(worker, CONTEXT);
	struct slot *xrcd = use(worker, XRCD), *slot = pd && context ? vacant(worker, QP) : NULL;
	if (!slot)
		return;
	struct ibv_qp_init_attr_ex attr = { .send_cq = send_cq ? send_cq->object : NULL,
		.recv_cq = recv_cq ? recv_cq->object : NULL,
		.srq = srq ? srq->object : NULL,
		.cap = { (uint32_t)queue_size(worker), (uint32_t)queue_size(worker), below(worker, 20),
			below(worker, 20), (uint32_t)boundary(worker) % 2048 },
		.qp_type = qp_type(worker),
		.sq_sig_all = (int)below(worker, 2),
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd->object };
	bool is_receiver = attr.qp_type == IBV_QPT_XRC_RECV && xrcd, is_ex = one_in(worker, 2) || is_receiver;
	if (is_receiver) {
		attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		attr.xrcd = xrcd->object;
	}
	if (one_in(worker, 2)) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags =
			one_in(worker, 4) ? boundary(worker)
					  : IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ;
	}
	if (one_in(worker, 16))
		attr.comp_mask &= (uint32_t)boundary(worker);
	struct ibv_qp_init_attr basic = { NULL, attr.send_cq, attr.recv_cq, attr.srq, attr.cap, attr.qp_type,
		attr.sq_sig_all };
	struct ibv_qp *qp = is_ex ? ibv_create_qp_ex(context->object, &attr) : ibv_create_qp(pd->object, &basic);
	if (!EXPECT_OBJECT(worker, qp, CREATE_ERRORS))
		return;
	slot->has_wr_api = is_ex && attr.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	atomic_store(&PICK(worker, seen_qpns), qp->qp_num);
	struct slot *parents[] = { is_receiver ? xrcd : pd, context, is_receiver ? NULL : send_cq,
		is_receiver || attr.qp_type == IBV_QPT_XRC_SEND ? NULL : recv_cq,
		is_receiver || attr.qp_type == IBV_QPT_XRC_SEND ? NULL : srq };
	adopt(worker, slot, qp, parents, 5);
}

static void destroy_qp(struct worker *worker)
{
	struct slot *slot = own(worker, QP);
	if (slot && one_in(worker, 2))
		expect_gone(worker, slot, ibv_destroy_qp(slot->object));
}

static void query_qp(struct worker *worker)
{
	struct slot *slot = use(worker, QP);
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_ece ece = { 0 };
	if (!slot)
		return;
	EXPECT(worker, ibv_query_qp(slot->object, &attr, (int)boundary(worker), &init), EINVAL);
	EXPECT(worker, ibv_query_ece(slot->object, &ece), EOPNOTSUPP, EINVAL);
	ece.vendor_id = one_in(worker, 2) ? 0 : (uint32_t)boundary(worker);
	EXPECT(worker, ibv_set_ece(slot->object, &ece), EOPNOTSUPP, EINVAL);
	ibv_query_qp_data_in_order(slot->object, (enum ibv_wr_opcode)below(worker, 20), 0);
}

static void join_group(struct worker *worker)
{
	struct slot *slot = own(worker, QP);
	union ibv_gid gid = { .raw = { 0xFF, 0x0E, [15] = (uint8_t)below(worker, 4) } };
	if (!slot)
		return;
	if (one_in(worker, 4))
		gid.raw[0] = (uint8_t)boundary(worker);
	int error = ibv_attach_mcast(slot->object, &gid, (uint16_t)boundary(worker));
	EXPECT(worker, error, EINVAL, ENOMEM, EOPNOTSUPP, EPERM, ENODEV, EADDRNOTAVAIL);
	int left = ibv_detach_mcast(slot->object, &gid, 0);
	if (!error)
		REQUIRE_EQUAL(left, 0);
}

static void create_ah(struct worker *worker)
{
	struct slot *pd = use(worker, PD), *slot = pd ? vacant(worker, AH) : NULL;
	struct ibv_ah_attr attr = { .is_global = !one_in(worker, 8), .port_num = one_in(worker, 8) ? 0 : 1 };
	if (!slot)
		return;
	ibv_query_gid(((struct ibv_pd *)pd->object)->context, 1, 0, &attr.grh.dgid);
	if (one_in(worker, 4))
		attr.grh.dgid.raw[below(worker, 16)] ^= (uint8_t)draw(worker);
	attr.grh.sgid_index = one_in(worker, 4) ? (uint8_t)boundary(worker) : 0;
	attr.grh.hop_limit = (uint8_t)boundary(worker);
	attr.grh.flow_label = (uint32_t)boundary(worker);
	struct ibv_ah *ah = ibv_create_ah(pd->object, &attr);
	if (EXPECT_OBJECT(worker, ah, CREATE_ERRORS, ENETUNREACH, EHOSTUNREACH))
		adopt(worker, slot, ah, &pd, 1);
}

/* UD requests under way keep their AH: it goes when nobody posts with it. */
static void destroy_ah(struct worker *worker)
{
	struct slot *slot = own(worker, AH);
	if (slot)
		expect_gone(worker, slot, ibv_destroy_ah(slot->object));
}

static void open_xrcd(struct worker *worker)
{
	struct slot *context = use(worker, CONTEXT), *slot = context ? vacant(worker, XRCD) : NULL;
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT
	};
	if (!slot)
		return;
	if (one_in(worker, 6))
		attr.comp_mask = (uint32_t)boundary(worker);
	struct ibv_xrcd *xrcd = ibv_open_xrcd(context->object, &attr);
	if (EXPECT_OBJECT(worker, xrcd, CREATE_ERRORS, EBADF))
		adopt(worker, slot, xrcd, &context, 1);
}

static void close_xrcd(struct worker *worker)
{
	struct slot *slot = own(worker, XRCD);
	if (slot)
		expect_gone(worker, slot, ibv_close_xrcd(slot->object));
}

/* ---- Rarely ------------------------------------------------------------------------------------------------------ */

static void create_what_is_not_built(struct worker *worker)
{
	struct slot *context = use(worker, CONTEXT), *pd = use(worker, PD), *cq = use(worker, CQ);
	if (!context || !pd || !cq)
		return;
	struct ibv_wq_init_attr attr = { .wq_type = IBV_WQT_RQ,
		.max_wr = below(worker, 100),
		.max_sge = below(worker, 4),
		.pd = pd->object,
		.cq = cq->object };
	struct ibv_wq *wq = ibv_create_wq(context->object, &attr);
	if (EXPECT_OBJECT(worker, wq, CREATE_ERRORS))
		EXPECT(worker, ibv_destroy_wq(wq), 0);
	struct ibv_counters_init_attr counters_attr = { .comp_mask = one_in(worker, 4) ? ~0u : 0 };
	struct ibv_counters *counters = ibv_create_counters(context->object, &counters_attr);
	if (EXPECT_OBJECT(worker, counters, CREATE_ERRORS))
		EXPECT(worker, ibv_destroy_counters(counters), 0);
}

int object_destroy(struct slot *slot)
{
	switch (slot->kind) {
	case QP:
		return ibv_destroy_qp(slot->object);
	case MW:
		return ibv_dealloc_mw(slot->object);
	case MR:
		return ibv_dereg_mr(slot->object);
	case AH:
		return ibv_destroy_ah(slot->object);
	case SRQ:
		return ibv_destroy_srq(slot->object);
	case CQ:
		return ibv_destroy_cq(slot->object);
	case CHANNEL:
		return ibv_destroy_comp_channel(slot->object);
	case XRCD:
		return ibv_close_xrcd(slot->object);
	case PD:
		return ibv_dealloc_pd(slot->object);
	default:
		return ibv_close_device(slot->object);
	}
}

static const struct call calls[] = {
	{ "ibv_open_device", open_device, 4 },
	{ "ibv_close_device", close_device, 2 },
	{ "ibv_query_device and its like", query_device, 2 },
	{ "ibv_query_gid_table", read_gids, 2 },
	{ "texts", read_texts, 1 },
	{ "ibv_alloc_pd", alloc_pd, 6 },
	{ "ibv_dealloc_pd", dealloc_pd, 3 },
	{ "ibv_reg_mr", reg_mr, 20 },
	{ "ibv_dereg_mr", dereg_mr, 8 },
	{ "ibv_rereg_mr", rereg_mr, 4 },
	{ "ibv_advise_mr", advise_mr, 2 },
	{ "ibv_alloc_mw", alloc_mw, 5 },
	{ "ibv_dealloc_mw", dealloc_mw, 3 },
	{ "device memory", play_with_dm, 2 },
	{ "parent domains", play_with_parent_domain, 2 },
	{ "ibv_create_comp_channel", create_channel, 4 },
	{ "ibv_destroy_comp_channel", destroy_channel, 2 },
	{ "ibv_create_cq", create_cq, 10 },
	{ "ibv_destroy_cq", destroy_cq, 4 },
	{ "ibv_resize_cq", resize_cq, 3 },
	{ "ibv_create_srq", create_srq, 8 },
	{ "ibv_destroy_srq", destroy_srq, 4 },
	{ "ibv_modify_srq", modify_srq, 3 },
	{ "ibv_create_qp", create_qp, 25 },
	{ "ibv_destroy_qp", destroy_qp, 14 },
	{ "ibv_query_qp", query_qp, 3 },
	{ "ibv_attach_mcast", join_group, 2 },
	{ "ibv_create_ah", create_ah, 5 },
	{ "ibv_destroy_ah", destroy_ah, 3 },
	{ "ibv_open_xrcd", open_xrcd, 3 },
	{ "ibv_close_xrcd", close_xrcd, 2 },
	{ "ibv_create_wq and counters", create_what_is_not_built, 1 },
};
const struct calls object_calls = { calls, sizeof(calls) / sizeof(calls[0]) };
