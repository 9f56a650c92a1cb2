/* The pieces in which a READ is asked for: how large they are, and that they shrink with the window. What windows do to
 * packets otherwise is tests/script/requester. */
#include "engine/qp.h"
#include "../unit.h"

enum { MESSAGE = 4 << 20, MTU = 4096, FIRST_PSN = 100 };

static void piece__is_the_largest_of_which_two_fit_the_windows(void **state)
{
	struct vb_lane lane = { .read_window = UINT32_MAX };
	struct vb_qp qp = { .lane = &lane };
	for (qp.mtu_shift = 8; qp.mtu_shift <= 12; qp.mtu_shift++) {
		qp.mtu = 1u << qp.mtu_shift;
		for (uint32_t window = VB_START_WINDOW; window <= VB_MAX_WINDOW; window += 4096) {
			qp.requester.cc.window_bytes = window;
			uint32_t piece = vb_read_piece(&qp), bytes = piece << qp.mtu_shift;
			uint32_t cost = piece * (qp.mtu + VB_PACKET_OVERHEAD);
			assert_int_equal(piece & (piece - 1), 0);
			assert_in_range(bytes, VB_READ_PIECE_MIN, VB_READ_PIECE_MAX);
			assert_true(bytes == VB_READ_PIECE_MIN || 2 * cost <= window);
			assert_true(bytes == VB_READ_PIECE_MAX || 4 * cost > window);
		}
	}
}

static void piece__is_held_to_the_receive_buffer_too(void **state)
{
	struct vb_lane lane = { .read_window = 106496 };
	struct vb_qp qp = { .lane = &lane, .mtu = 4096, .mtu_shift = 12, .requester.cc.window_bytes = VB_MAX_WINDOW };
	assert_int_equal(vb_read_piece(&qp) << qp.mtu_shift, VB_READ_PIECE_MIN);
}

struct scene {
	struct vb_nic *nic;
	struct vb_lane *lane;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_mr *mr;
	struct vb_qp *qp;
};

static void connect(struct vb_qp *qp)
{
	struct vb_qp_attr attr = { .path_mtu = MTU, .port = 1, .dest_qpn = 0x020001, .sq_psn = FIRST_PSN, .max_rd_atomic = 16,
		.timeout = 14, .retry_cnt = 7,
		.av = { .sgid = vb_gid_from_ipv4(10, 0, 0, 1), .dgid = vb_gid_from_ipv4(10, 0, 0, 2) } };
	attr.state = VB_QPS_INIT;
	assert_int_equal(vb_qp_modify(qp, &attr, VB_QP_STATE | VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS, 0), 0);
	attr.state = VB_QPS_RTR;
	assert_int_equal(vb_qp_modify(qp, &attr, VB_QP_STATE | VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN |
		VB_QP_MAX_DEST_RD_ATOMIC | VB_QP_MIN_RNR_TIMER, 0), 0);
	attr.state = VB_QPS_RTS;
	assert_int_equal(vb_qp_modify(qp, &attr, VB_QP_STATE | VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY |
		VB_QP_SQ_PSN | VB_QP_MAX_QP_RD_ATOMIC, 0), 0);
}

static void open_scene(struct scene *s)
{
	struct vb_nic_config nic = { .seed = 1, .mtu = MTU };
	struct vb_lane_config lane = { .seed = 1, .slot = 1 };
	struct vb_cq_config cq = { .capacity = 8 };
	struct vb_mr_config mr = { .kind = VB_MEMORY_PHANTOM, .length = MESSAGE, .access = VB_ACCESS_LOCAL_WRITE };
	assert_int_equal(vb_nic_create(&nic, &s->nic), 0);
	assert_int_equal(vb_lane_create(&lane, &s->lane), 0);
	assert_int_equal(vb_pd_create(s->nic, &s->pd), 0);
	assert_int_equal(vb_cq_create(s->nic, &cq, &s->cq), 0);
	assert_int_equal(vb_mr_register(s->pd, &mr, &s->mr), 0);
	struct vb_qp_config qp = { .type = VB_QP_RC, .pd = s->pd, .send_cq = s->cq, .recv_cq = s->cq, .max_send_wr = 4,
		.max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 };
	assert_int_equal(vb_qp_create(s->lane, &qp, &s->qp), 0);
	connect(s->qp);
}

static void close_scene(struct scene *s)
{
	assert_int_equal(vb_qp_destroy(s->qp), 0);
	assert_int_equal(vb_mr_invalidate(s->mr), 0);
	vb_mr_free(s->mr);
	assert_int_equal(vb_cq_destroy(s->cq), 0);
	assert_int_equal(vb_pd_destroy(s->pd), 0);
	vb_lane_destroy(s->lane);
	vb_nic_destroy(s->nic);
}

static void post_read(struct scene *s)
{
	struct vb_sge sge = { 0, MESSAGE, vb_mr_key(s->mr) };
	struct vb_send_wr wr = { .opcode = VB_WR_RDMA_READ, .flags = VB_SEND_SIGNALED, .sges = &sge, .sge_count = 1 };
	vb_sq_begin(s->qp);
	assert_int_equal(vb_sq_put(s->qp, &wr), 0);
	vb_sq_end(s->qp, true);
}

/* The READ requests that leave now ask for these bytes, from this PSN on, without a gap. */
static void expect_requests(struct scene *s, uint32_t psn, uint32_t bytes, unsigned count, vb_time now)
{
	static struct vb_batch batch;
	assert_int_equal(vb_lane_transmit(s->lane, &batch, VB_BATCH_PACKETS, now), count);
	for (unsigned i = 0; i < count; i++, psn += bytes / MTU) {
		assert_int_equal(batch.out[i].packet.psn, psn);
		assert_int_equal(batch.out[i].packet.dma_length, bytes);
	}
	vb_lane_transmit_done(s->lane, &batch, now);
}

static void receive_response(struct scene *s, uint32_t psn, vb_time now)
{
	struct vb_packet packet = { .opcode = VB_RC | VB_READ_RESPONSE_MIDDLE, .pkey = 0xffff,
		.dest_qpn = vb_qp_number(s->qp), .psn = psn, .payload_length = MTU };
	struct vb_path path = { .src = s->qp->attr.av.dgid, .dst = s->qp->attr.av.sgid };
	vb_lane_receive(s->lane, &path, &packet, 1, now);
}

/* The window is halved: half as much is asked for at a time, beginning with the rest of the piece that was being answered. */
static void pieces__of_a_read_under_way_shrink_after_a_loss(void **state)
{
	struct scene s;
	open_scene(&s);
	s.qp->requester.cc.window_bytes = VB_MAX_WINDOW;
	post_read(&s);
	expect_requests(&s, FIRST_PSN, VB_READ_PIECE_MAX, 2, 0);
	uint32_t half = VB_READ_PIECE_MAX / 2 / MTU;
	for (uint32_t i = 0; i < half; i++)
		receive_response(&s, FIRST_PSN + i, VB_US);
	receive_response(&s, FIRST_PSN + half + 1, VB_US); /* one was lost */
	expect_requests(&s, FIRST_PSN + half, VB_READ_PIECE_MAX / 2, 2, VB_US);
	close_scene(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(piece__is_the_largest_of_which_two_fit_the_windows),
		cmocka_unit_test(piece__is_held_to_the_receive_buffer_too),
		cmocka_unit_test(pieces__of_a_read_under_way_shrink_after_a_loss),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
