/* See rig.h. */
#include "rig.h"

#include <arpa/inet.h>
#include <sched.h>
#include <sys/mman.h>

#define DEFAULT_DEPTH 128

static double patience(void)
{
	return is_sanitized() ? 60 : 10;
}

struct ibv_context *open_lo(void)
{
	struct ibv_context *context = NULL;
	int count;
	struct ibv_device **list = ibv_get_device_list(&count);

	REQUIRE(list);
	for (int i = 0; i < count && !context; i++)
		if (strcmp(ibv_get_device_name(list[i]), "vb_lo") == 0)
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	REQUIRE(context);
	return context;
}

struct ibv_qp *make_qp(struct ibv_pd *pd, struct qp_size size)
{
	uint32_t depth = size.depth ? size.depth : DEFAULT_DEPTH;
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = size.send_cq,
		.recv_cq = size.recv_cq ? size.recv_cq : size.send_cq,
		.srq = size.srq,
		.cap = { .max_send_wr = depth,
			.max_recv_wr = depth,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = 64 },
		.qp_type = size.type ? size.type : IBV_QPT_RC,
		.sq_sig_all = 0,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (size.has_wr_api ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(pd->context, &attr);

	REQUIRE(qp);
	return qp;
}

/* vb_lo has one IPv4 address, the first of its GIDs. */
struct address address_of(struct ibv_qp *qp)
{
	struct address address = { .qpn = qp->qp_num };

	REQUIRE_EQUAL(ibv_query_gid(qp->context, 1, 0, &address.gid), 0);
	return address;
}

void to_init(struct ibv_qp *qp)
{
	bool is_ud = qp->qp_type == IBV_QPT_UD;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS_ALL, .qkey = 0x1234
	};

	REQUIRE_EQUAL(
		ibv_modify_qp(qp, &attr,
			IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (is_ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)),
		0);
}

static void to_rtr(struct ibv_qp *qp, const struct address *peer)
{
	int mask = IBV_QP_STATE;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };

	if (qp->qp_type != IBV_QPT_UD) {
		attr.path_mtu = IBV_MTU_4096;
		attr.dest_qp_num = peer->qpn;
		attr.max_dest_rd_atomic = 8;
		attr.min_rnr_timer = 1;
		attr.ah_attr = (struct ibv_ah_attr){
			.is_global = 1, .port_num = 1, .grh = { .dgid = peer->gid, .sgid_index = 0, .hop_limit = 64 }
		};
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	}
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	REQUIRE_EQUAL(ibv_modify_qp(qp, &attr, mask), 0);
}

void to_rts(struct ibv_qp *qp, const struct address *peer)
{
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 8
	};

	to_rtr(qp, peer);
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	REQUIRE_EQUAL(ibv_modify_qp(qp, &attr, mask), 0);
}

void connect_pair(struct ibv_qp *a, struct ibv_qp *b)
{
	struct address of_a = address_of(a), of_b = address_of(b);

	to_init(a);
	to_init(b);
	to_rts(a, &of_b);
	to_rts(b, &of_a);
}

static void to_reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	REQUIRE_EQUAL(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

void reconnect_pair(struct ibv_qp *a, struct ibv_qp *b)
{
	to_reset(a);
	to_reset(b);
	connect_pair(a, b);
}

void to_error(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	REQUIRE_EQUAL(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

struct buffer make_buffer(struct ibv_pd *pd, size_t length)
{
	struct buffer buffer = { .length = length };

	buffer.bytes = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(buffer.bytes != MAP_FAILED);
	buffer.mr = ibv_reg_mr(pd, buffer.bytes, length, ACCESS_ALL);
	REQUIRE(buffer.mr);
	return buffer;
}

void free_buffer(struct buffer *buffer)
{
	REQUIRE_EQUAL(ibv_dereg_mr(buffer->mr), 0);
	REQUIRE_EQUAL(munmap(buffer->bytes, buffer->length), 0);
}

int post(struct ibv_qp *qp, const struct request *request)
{
	struct ibv_sge sge = { 0 };
	struct ibv_send_wr wr = { .wr_id = request->id,
		.opcode = request->opcode,
		.imm_data = htonl(request->imm),
		.send_flags = IBV_SEND_SIGNALED | request->flags };
	struct ibv_send_wr *bad;

	if (request->local) {
		sge = (struct ibv_sge){ (uintptr_t)request->local->bytes + request->offset, (uint32_t)request->length,
			request->local->mr->lkey };
		wr.sg_list = &sge;
		wr.num_sge = 1;
	}
	if (request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || request->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = request->remote;
		wr.wr.atomic.rkey = request->rkey;
		wr.wr.atomic.compare_add = request->compare_add;
		wr.wr.atomic.swap = request->swap;
	} else {
		wr.wr.rdma.remote_addr = request->remote;
		wr.wr.rdma.rkey = request->rkey;
	}
	return ibv_post_send(qp, &wr, &bad);
}

void post_when_room(struct ibv_qp *qp, const struct request *request)
{
	double began = seconds_now();
	int error;

	while ((error = post(qp, request)) == ENOMEM) {
		REQUIRE(seconds_now() - began < patience());
		sched_yield();
	}
	REQUIRE_EQUAL(error, 0);
}

int post_receive(struct ibv_qp *qp, uint64_t id, const struct buffer *local, size_t offset, size_t length)
{
	struct ibv_sge sge = { (uintptr_t)local->bytes + offset, (uint32_t)length, local->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

struct ibv_wc wait_completion(struct ibv_cq *cq)
{
	double began = seconds_now();
	struct ibv_wc wc;
	int got;

	while ((got = ibv_poll_cq(cq, 1, &wc)) == 0)
		REQUIRE(seconds_now() - began < patience());
	REQUIRE_EQUAL(got, 1);
	return wc;
}

void wait_success(struct ibv_cq *cq, uint64_t id)
{
	struct ibv_wc wc = wait_completion(cq);

	if (wc.status != IBV_WC_SUCCESS)
		fail(__FILE__, __LINE__, "completion %llu: %s", (unsigned long long)wc.wr_id,
			ibv_wc_status_str(wc.status));
	REQUIRE_EQUAL(wc.wr_id, id);
}

struct pair_end make_end(size_t buffer_length, uint32_t depth)
{
	struct pair_end end = { .context = open_lo() };

	REQUIRE((end.pd = ibv_alloc_pd(end.context)));
	REQUIRE((end.channel = ibv_create_comp_channel(end.context)));
	REQUIRE((end.cq = ibv_create_cq(end.context, (int)(2 * depth), NULL, end.channel, 0)));
	end.qp = make_qp(end.pd, (struct qp_size){ .send_cq = end.cq, .depth = depth });
	end.buffer = make_buffer(end.pd, buffer_length);
	return end;
}

void free_end(struct pair_end *end)
{
	REQUIRE_EQUAL(ibv_destroy_qp(end->qp), 0);
	free_buffer(&end->buffer);
	REQUIRE_EQUAL(ibv_destroy_cq(end->cq), 0);
	REQUIRE_EQUAL(ibv_destroy_comp_channel(end->channel), 0);
	REQUIRE_EQUAL(ibv_dealloc_pd(end->pd), 0);
	REQUIRE_EQUAL(ibv_close_device(end->context), 0);
}

struct pair make_pair(size_t buffer_length, uint32_t depth)
{
	struct pair pair = { .a = make_end(buffer_length, depth), .b = make_end(buffer_length, depth) };

	connect_pair(pair.a.qp, pair.b.qp);
	return pair;
}

void free_pair(struct pair *pair)
{
	free_end(&pair->a);
	free_end(&pair->b);
}
