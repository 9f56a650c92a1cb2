/* What an adapter and a connection take of memory where thousands of them share a machine: every allocation of the
 * engine is counted, by what the allocator gave for it. */
#include <malloc.h>
#include "rig.h"

enum {
	HOST_BYTES = 12 * 1024,
	CONNECTION_BYTES = 4 * 1024,
	SELECTIVE_BYTES = 8 * 1024,
	CONNECTIONS = 16,
	MESSAGE = 3 * RIG_MTU,
	HEADER = 8
};

static size_t in_use;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *p);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *p);

static void *counted(void *p)
{
	in_use += p ? malloc_usable_size(p) + HEADER : 0;
	return p;
}

static void discount(void *p)
{
	in_use -= p ? malloc_usable_size(p) + HEADER : 0;
}

void *__wrap_malloc(size_t size)
{
	return counted(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return counted(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t size)
{
	discount(p);
	return counted(__real_realloc(p, size));
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return counted(__real_aligned_alloc(alignment, size));
}

void __wrap_free(void *p)
{
	discount(p);
	__real_free(p);
}

struct side {
	struct vb_nic *nic;
	struct vb_lane *lane;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_mr *mr;
	struct vb_gid gid;
	struct vb_qp *qps[CONNECTIONS];
};

static struct vb_batch batch;

/* As a fabric has them: no windows, no memory behind the region. */
static void open_side(struct side *side, uint8_t n, enum vb_recovery_kind recovery)
{
	struct vb_lane_config lane = { .seed = n,
		.slot = n,
		.unknown_peer_allowance = VB_UNLIMITED,
		.cc.algorithm = &vb_cc_none,
		.recovery = recovery };
	struct vb_mr_config mr = {
		.length = MESSAGE, .kind = &vb_memory_phantom, .access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE
	};
	side->gid = vb_gid_from_ipv4(10, 0, 0, n);
	assert_int_equal(vb_nic_create(&(struct vb_nic_config){ .seed = n, .mtu = RIG_MTU }, &side->nic), 0);
	assert_int_equal(vb_nic_set_gid(side->nic, 0, &side->gid), 0);
	assert_int_equal(vb_lane_create(&lane, &side->lane), 0);
	assert_int_equal(vb_pd_create(side->nic, &side->pd), 0);
	assert_int_equal(vb_cq_create(side->nic, &(struct vb_cq_config){ .capacity = 32 }, &side->cq), 0);
	assert_int_equal(vb_mr_register(side->pd, &mr, &side->mr), 0);
}

static void close_side(struct side *side)
{
	for (int i = 0; i < CONNECTIONS; i++)
		assert_int_equal(vb_qp_destroy(side->qps[i]), 0);
	assert_int_equal(vb_mr_invalidate(side->mr), 0);
	vb_mr_free(side->mr);
	assert_int_equal(vb_cq_destroy(side->cq), 0);
	assert_int_equal(vb_pd_destroy(side->pd), 0);
	vb_lane_destroy(side->lane);
	vb_nic_destroy(side->nic);
}

static void create_qp(struct side *side, int i)
{
	struct vb_qp_config config = { .type = VB_QP_RC,
		.pd = side->pd,
		.send_cq = side->cq,
		.recv_cq = side->cq,
		.max_send_wr = 2,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1 };
	assert_int_equal(vb_qp_create(side->lane, &config, &side->qps[i]), 0);
}

static void connect_qp(struct side *side, const struct side *peer, int i)
{
	struct vb_qp_attr attr = { .path_mtu = RIG_MTU,
		.port = 1,
		.dest_qpn = vb_qp_number(peer->qps[i]),
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.access = VB_ACCESS_REMOTE_WRITE,
		.av = { .sgid = side->gid, .dgid = peer->gid } };
	static const uint32_t masks[] = { VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS,
		VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN | VB_QP_MAX_DEST_RD_ATOMIC |
			VB_QP_MIN_RNR_TIMER,
		VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_SQ_PSN | VB_QP_MAX_QP_RD_ATOMIC };
	for (int state = VB_QPS_INIT; state <= VB_QPS_RTS; state++) {
		attr.state = (enum vb_qp_state)state;
		assert_int_equal(vb_qp_modify(side->qps[i], &attr, VB_QP_STATE | masks[state - 1], 0), 0);
	}
}

static bool carry(struct side *from, struct side *to)
{
	struct vb_path path = { .src = from->gid, .dst = to->gid };
	if (vb_lane_transmit(from->lane, &batch, 1, 0) == 0)
		return false;
	vb_lane_prefetch(to->lane, batch.out[0].packet.dest_qpn);
	vb_lane_receive(to->lane, &path, &batch.out[0].packet, 1, 0);
	vb_lane_transmit_done(from->lane, batch.completions, 1, 0);
	return true;
}

static void exchange(struct side *a, struct side *b, int i)
{
	struct vb_sge sge = { 0, MESSAGE, vb_mr_key(a->mr) };
	struct vb_wc wc;
	rig_post(a->qps[i], &(struct vb_send_wr){ .opcode = VB_WR_RDMA_WRITE,
				    .flags = VB_SEND_SIGNALED,
				    .sges = &sge,
				    .sge_count = 1,
				    .rkey = vb_mr_key(b->mr) });
	while (carry(a, b) || carry(b, a))
		;
	assert_int_equal(vb_cq_poll(a->cq, &wc, 1), 1);
	assert_int_equal(wc.status, VB_WC_SUCCESS);
}

static void assert_small(enum vb_recovery_kind recovery, size_t connection_bytes)
{
	struct side a, b;
	size_t before = in_use;
	open_side(&a, 1, recovery);
	open_side(&b, 2, recovery);
	size_t opened = in_use;
	assert_in_range((opened - before) / 2, 1, HOST_BYTES);
	for (int i = 0; i < CONNECTIONS; i++) {
		create_qp(&a, i);
		create_qp(&b, i);
		connect_qp(&a, &b, i);
		connect_qp(&b, &a, i);
		exchange(&a, &b, i);
		assert_in_range((in_use - opened) / (size_t)(i + 1), 1, connection_bytes);
	}
	print_message(
		"an adapter %zu bytes, a connection %zu\n", (opened - before) / 2, (in_use - opened) / CONNECTIONS);
	close_side(&a);
	close_side(&b);
	assert_int_equal(in_use, before); /* and nothing stays */
}

static void adapters_and_connections__are_small(void **state)
{
	assert_small(VB_RECOVERY_GO_BACK_N, CONNECTION_BYTES);
}

/* Where nothing is missing, whatever is kept is kept of the QP alone. */
static void connections__that_recover_selectively_are_small(void **state)
{
	assert_small(VB_RECOVERY_SELECTIVE, SELECTIVE_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adapters_and_connections__are_small),
		cmocka_unit_test(connections__that_recover_selectively_are_small),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
