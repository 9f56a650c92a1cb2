/* What a port is, whichever it is: two lanes that know nothing but port.h talk over one in memory, which is late with
 * all that it may be late with. */
#include "../memory_port.h"
#include "../unit.h"
#include "engine/check.h"

enum { MTU = 1024, BYTES = 65536, DEPTH = 32 };

struct end {
	struct vb_gid gid;
	struct vb_nic *nic;
	struct vb_lane *lane;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_mr *mr;
	struct vb_qp *qp;
	struct vb_port *port;
	uint8_t *memory;
};

static struct end ends[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static vb_time now;

static void open_end(struct end *end, uint8_t n, enum vb_qp_type type)
{
	end->gid = vb_gid_from_ipv4(10, 0, 0, n);
	end->memory = calloc(1, BYTES);
	struct vb_mr_config mr = { .memory = end->memory,
		.iova = (uintptr_t)end->memory,
		.length = BYTES,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE };
	assert_int_equal(vb_nic_create(&(struct vb_nic_config){ .seed = n, .mtu = MTU }, &end->nic), 0);
	assert_int_equal(vb_nic_set_gid(end->nic, 0, &end->gid), 0);
	assert_int_equal(
		vb_lane_create(
			&(struct vb_lane_config){ .seed = n, .slot = n, .turn_bytes = end->port->largest_segment },
			&end->lane),
		0);
	assert_int_equal(vb_pd_create(end->nic, &end->pd), 0);
	assert_int_equal(vb_cq_create(end->nic, &(struct vb_cq_config){ .capacity = 256 }, &end->cq), 0);
	assert_int_equal(vb_mr_register(end->pd, &mr, &end->mr), 0);
	struct vb_qp_config qp = { .type = type,
		.pd = end->pd,
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.max_send_wr = DEPTH,
		.max_recv_wr = DEPTH,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_inline = 64 };
	assert_int_equal(vb_qp_create(end->lane, &qp, &end->qp), 0);
}

static void connect(struct end *end, const struct end *peer, enum vb_qp_type type)
{
	struct vb_qp_attr attr = { .state = VB_QPS_INIT,
		.path_mtu = MTU,
		.port = 1,
		.dest_qpn = vb_qp_number(peer->qp),
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.access = VB_ACCESS_REMOTE_WRITE,
		.av = { .sgid = end->gid, .dgid = peer->gid } };
	bool is_rc = type == VB_QP_RC, is_ud = type == VB_QP_UD;
	uint32_t init = VB_QP_STATE | VB_QP_PKEY_INDEX | VB_QP_PORT | (is_ud ? VB_QP_QKEY : VB_QP_ACCESS_FLAGS);
	uint32_t path = VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN;
	assert_int_equal(vb_qp_modify(end->qp, &attr, init, now), 0);
	attr.state = VB_QPS_RTR;
	assert_int_equal(
		vb_qp_modify(end->qp, &attr,
			VB_QP_STATE | (is_ud ? 0 : path) | (is_rc ? VB_QP_MAX_DEST_RD_ATOMIC | VB_QP_MIN_RNR_TIMER : 0),
			now),
		0);
	attr.state = VB_QPS_RTS;
	assert_int_equal(
		vb_qp_modify(end->qp, &attr,
			VB_QP_STATE | VB_QP_SQ_PSN |
				(is_rc ? VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_MAX_QP_RD_ATOMIC
				       : 0),
			now),
		0);
}

static void open_ends(enum vb_qp_type type)
{
	struct vb_port *ports[2];
	memory_port_pair(&mutex, ports);
	now = 1;
	for (unsigned i = 0; i < 2; i++) {
		ends[i].port = ports[i];
		open_end(&ends[i], (uint8_t)(i + 1), type);
	}
	connect(&ends[0], &ends[1], type);
	connect(&ends[1], &ends[0], type);
}

static void close_end(struct end *end)
{
	struct vb_event event;
	assert_int_equal(vb_qp_destroy(end->qp), 0);
	while (vb_lane_next_event(end->lane, &event))
		;
	assert_int_equal(vb_mr_invalidate(end->mr), 0);
	vb_mr_free(end->mr);
	assert_int_equal(vb_cq_destroy(end->cq), 0);
	assert_int_equal(vb_pd_destroy(end->pd), 0);
	vb_lane_destroy(end->lane);
	vb_nic_destroy(end->nic);
	vb_port_close(end->port);
	free(end->memory);
}

/* A host lane's turn, as port.h has it. */
static void turn(struct end *end)
{
	static struct vb_train train;
	static struct vb_batch batch;
	unsigned count;
	now += 5 * VB_US;
	if (vb_port_receive(end->port, now))
		while (vb_port_next_train(end->port, &train))
			vb_lane_receive(end->lane, &train.path, train.packets, train.count, now);
	vb_lane_advance(end->lane, now);
	if (vb_lane_transmit(end->lane, &batch, end->port->room, now))
		vb_port_send(end->port, &batch, now);
	const struct vb_tx_completion *completions = vb_port_finished(end->port, &count);
	vb_lane_transmit_done(end->lane, completions, count, now);
	vb_lane_check(end->lane);
}

/* Takes n completions, all in order of their numbers from first on. */
static void expect(struct end *end, uint64_t first, unsigned n)
{
	struct vb_wc wc;
	for (unsigned turns = 0, seen = 0; seen < n; turns++) {
		assert_true(turns < 10000);
		turn(&ends[0]);
		turn(&ends[1]);
		while (seen < n && vb_cq_poll(end->cq, &wc, 1) == 1) {
			assert_int_equal(wc.status, VB_WC_SUCCESS);
			assert_int_equal(wc.wr_id, first + seen++);
		}
	}
}

static void post_send(struct vb_send_wr *wr, uint32_t length)
{
	struct vb_sge sge = { (uintptr_t)ends[0].memory, length, vb_mr_key(ends[0].mr) };
	wr->sges = &sge;
	wr->sge_count = 1;
	wr->flags |= VB_SEND_SIGNALED;
	vb_sq_begin(ends[0].qp);
	assert_int_equal(vb_sq_put(ends[0].qp, wr), 0);
	vb_sq_end(ends[0].qp, true);
}

static void post_receives(unsigned n, uint32_t length)
{
	for (unsigned i = 0; i < n; i++) {
		struct vb_sge sge = { (uintptr_t)ends[1].memory + i * length, length, vb_mr_key(ends[1].mr) };
		assert_int_equal(
			vb_rq_post(ends[1].qp, &(struct vb_recv_wr){ .wr_id = 100 + i, .sges = &sge, .sge_count = 1 }),
			0);
	}
}

static void expect_all_left(struct end *end)
{
	for (unsigned i = 0; i < 10; i++)
		turn(end);
	assert_int_equal(vb_lane_handed_out(end->lane), 0);
	assert_int_equal(end->port->room, MEMORY_PORT_ROOM);
}

static void writes__arrive_through_any_port(void **state)
{
	open_ends(VB_QP_RC);
	for (unsigned i = 0; i < BYTES; i++)
		ends[0].memory[i] = (uint8_t)(i * 31 + i / 251);
	for (uint64_t i = 0; i < 3; i++)
		post_send(&(struct vb_send_wr){ .wr_id = i,
				  .opcode = VB_WR_RDMA_WRITE,
				  .remote_addr = (uintptr_t)ends[1].memory,
				  .rkey = vb_mr_key(ends[1].mr) },
			BYTES);
	expect(&ends[0], 0, 3);
	assert_memory_equal(ends[0].memory, ends[1].memory, BYTES);
	assert_int_equal(
		memory_port_of(ends[0].port)->most_held, MEMORY_PORT_ROOM); /* it was full, and nothing was lost */
	expect_all_left(&ends[0]);
	expect_all_left(&ends[1]);
	close_end(&ends[0]);
	close_end(&ends[1]);
}

/* UC and UD complete when the port is done; the bytes may be changed then, and no earlier, inline or not. */
static void datagrams__complete_when_their_bytes_are_read(void **state)
{
	static const enum vb_qp_type types[] = { VB_QP_UC, VB_QP_UD };
	for (unsigned t = 0; t < 2; t++) {
		open_ends(types[t]);
		struct vb_av av = { .sgid = ends[0].gid, .dgid = ends[1].gid };
		unsigned skip = types[t] == VB_QP_UD ? 40 : 0;
		post_receives(DEPTH, 128);
		for (unsigned i = 0; i < DEPTH; i++) {
			memset(ends[0].memory, (int)i + 1, 64);
			post_send(&(struct vb_send_wr){ .wr_id = i,
					  .opcode = VB_WR_SEND,
					  .av = &av,
					  .flags = i % 2 ? VB_SEND_INLINE : 0,
					  .remote_qpn = vb_qp_number(ends[1].qp) },
				64);
			expect(&ends[0], i, 1);
		}
		expect(&ends[1], 100, DEPTH);
		for (unsigned i = 0; i < DEPTH; i++) {
			assert_int_equal(ends[1].memory[i * 128 + skip], i + 1);
			assert_int_equal(ends[1].memory[i * 128 + skip + 63], i + 1);
		}
		expect_all_left(&ends[0]);
		close_end(&ends[0]);
		close_end(&ends[1]);
	}
}

/* What the port still has of a QP that is gone arrives all the same, whole. */
static void destroyed_qp__leaves_what_it_handed_over(void **state)
{
	open_ends(VB_QP_UC);
	post_receives(4, 128);
	for (unsigned i = 0; i < 4; i++) {
		memset(ends[0].memory, (int)i + 1, 64);
		post_send(&(struct vb_send_wr){ .opcode = VB_WR_SEND, .flags = VB_SEND_INLINE }, 64);
	}
	turn(&ends[0]);
	assert_int_equal(vb_lane_handed_out(ends[0].lane), 4);
	assert_int_equal(vb_qp_destroy(ends[0].qp), 0);
	memset(ends[0].memory, 0xEE, BYTES);
	expect(&ends[1], 100, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(ends[1].memory[i * 128 + 63], i + 1);
	struct vb_qp_config qp = { .type = VB_QP_UC,
		.pd = ends[0].pd,
		.send_cq = ends[0].cq,
		.recv_cq = ends[0].cq,
		.max_send_wr = 1,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1 };
	assert_int_equal(vb_qp_create(ends[0].lane, &qp, &ends[0].qp), 0); /* for close_end */
	close_end(&ends[0]);
	close_end(&ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes__arrive_through_any_port),
		cmocka_unit_test(datagrams__complete_when_their_bytes_are_read),
		cmocka_unit_test(destroyed_qp__leaves_what_it_handed_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
