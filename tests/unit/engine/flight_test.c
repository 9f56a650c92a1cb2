/* The turns of QPs that share an allowance: in which order, and that a turn which is not used, or whose QP goes away,
 * is handed on. The pieces in which a READ is asked for: how large they are, that they follow the window, and that QPs
 * with large and with small ones share the lane's. What windows do to packets otherwise is tests/script/requester. */
#include "engine/check.h"
#include "roce/peers.h"
#include "core/lane.h"
#include "engine/qp.h"
#include "../unit.h"

enum { MESSAGE = 64 << 20, MTU = 4096, FIRST_PSN = 100 };

static void piece__is_the_largest_of_which_two_fit_the_windows(void **state)
{
	struct vb_roce_lane lane = { .reads.limit = UINT64_MAX };
	static const uint32_t mtus[] = { 256, 512, 1024, 1344, 1408, 2048, 4096, 8128, VB_LARGE_MTU };
	struct vb_roce_qp roce = { .overhead = VB_PACKET_OVERHEAD };
	struct vb_qp *qp = &roce.qp;
	qp->lane = &lane.lane;
	qp->is_reliable = true;
	qp->attr.max_rd_atomic = 2;
	for (unsigned i = 0; i < COUNT_OF(mtus); i++) {
		const uint32_t mtu = mtus[i];
		for (uint32_t window = VB_CC_START_WINDOW; window <= VB_MAX_WINDOW; window += 4096) {
			roce.congestion.cc.window_bytes = window;
			uint32_t piece = vb_flight_read_piece(qp, mtu), bytes = piece * mtu;
			uint32_t cost = piece * (mtu + VB_PACKET_OVERHEAD);
			bool is_least = bytes / 2 + mtu / 2 < VB_READ_PIECE_MIN;
			assert_int_equal(piece & (piece - 1), 0);
			assert_in_range(bytes, VB_READ_PIECE_MIN - mtu, VB_READ_PIECE_MAX + VB_READ_PIECE_MAX / 8);
			assert_true(is_least || 2 * cost <= window);
			assert_true(2 * bytes > VB_READ_PIECE_MAX || 4 * cost > window);
		}
	}
}

/* Nothing else is asked for meanwhile. */
static void piece__fills_the_window_where_the_peer_takes_one_read(void **state)
{
	struct vb_roce_lane lane = { .reads.limit = UINT64_MAX };
	struct vb_roce_qp roce = { .overhead = VB_PACKET_OVERHEAD };
	struct vb_qp *qp = &roce.qp;
	qp->lane = &lane.lane;
	qp->is_reliable = true;
	qp->mtu = 4096;
	qp->attr.max_rd_atomic = 1;
	for (uint32_t window = VB_CC_START_WINDOW; window <= VB_MAX_WINDOW; window += 4096) {
		roce.congestion.cc.window_bytes = window;
		uint32_t piece = vb_flight_read_piece(qp, qp->mtu), bytes = piece * qp->mtu,
			 cost = piece * (qp->mtu + VB_PACKET_OVERHEAD);
		assert_true(bytes == VB_READ_PIECE_MIN || cost <= window);
		assert_true(bytes == VB_READ_PIECE_MAX || 2 * cost > window);
	}
}

static void piece__is_held_to_the_receive_buffer_too(void **state)
{
	struct vb_roce_lane lane = { .reads.limit = 106496 };
	struct vb_roce_qp roce = { .overhead = VB_PACKET_OVERHEAD, .congestion.cc.window_bytes = VB_MAX_WINDOW };
	struct vb_qp *qp = &roce.qp;
	qp->lane = &lane.lane;
	qp->is_reliable = true;
	static const uint32_t mtus[] = { 1024, 1344, 1408, 4096, 8128, VB_LARGE_MTU };
	for (unsigned i = 0; i < COUNT_OF(mtus); i++) {
		uint32_t piece = vb_flight_read_piece(qp, mtus[i]);
		assert_true(piece * (mtus[i] + VB_PACKET_OVERHEAD) <= lane.reads.limit);
		assert_true((piece + 1) * mtus[i] > VB_READ_PIECE_MIN);
	}
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
	struct vb_qp_attr attr = { .path_mtu = MTU,
		.port = 1,
		.dest_qpn = 0x020001,
		.sq_psn = FIRST_PSN,
		.max_rd_atomic = 16,
		.timeout = 14,
		.retry_cnt = 7,
		.av = { .sgid = vb_gid_from_ipv4(10, 0, 0, 1), .dgid = vb_gid_from_ipv4(10, 0, 0, 2) } };
	attr.state = VB_QPS_INIT;
	assert_int_equal(
		vb_qp_modify(qp, &attr, VB_QP_STATE | VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS, 0), 0);
	attr.state = VB_QPS_RTR;
	assert_int_equal(vb_qp_modify(qp, &attr,
				 VB_QP_STATE | VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN |
					 VB_QP_MAX_DEST_RD_ATOMIC | VB_QP_MIN_RNR_TIMER,
				 0),
		0);
	attr.state = VB_QPS_RTS;
	assert_int_equal(vb_qp_modify(qp, &attr,
				 VB_QP_STATE | VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_SQ_PSN |
					 VB_QP_MAX_QP_RD_ATOMIC,
				 0),
		0);
}

static struct vb_qp *connected(struct scene *s)
{
	struct vb_qp_config config = { .type = VB_QP_RC,
		.pd = s->pd,
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.max_send_wr = 4,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1 };
	struct vb_qp *qp;
	assert_int_equal(vb_qp_create(s->lane, &config, &qp), 0);
	connect(qp);
	return qp;
}

static void open_lane(struct scene *s, const struct vb_lane_config *lane)
{
	struct vb_nic_config nic = { .seed = 1, .mtu = MTU };
	struct vb_cq_config cq = { .capacity = 8 };
	struct vb_mr_config mr = { .kind = &vb_memory_phantom, .length = MESSAGE, .access = VB_ACCESS_LOCAL_WRITE };
	assert_int_equal(vb_nic_create(&nic, &s->nic), 0);
	assert_int_equal(vb_lane_create(lane, &s->lane), 0);
	assert_int_equal(vb_pd_create(s->nic, &s->pd), 0);
	assert_int_equal(vb_cq_create(s->nic, &cq, &s->cq), 0);
	assert_int_equal(vb_mr_register(s->pd, &mr, &s->mr), 0);
	s->qp = connected(s);
}

static void open_scene(struct scene *s, uint32_t receive_buffer)
{
	open_lane(s, &(struct vb_lane_config){ .seed = 1, .slot = 1, .receive_buffer = receive_buffer });
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

static void post(struct scene *s, struct vb_qp *qp, enum vb_wr_opcode opcode, uint32_t length)
{
	struct vb_sge sge = { 0, length, vb_mr_key(s->mr) };
	struct vb_send_wr wr = { .opcode = opcode, .flags = VB_SEND_SIGNALED, .sges = &sge, .sge_count = 1 };
	vb_sq_begin(qp);
	assert_int_equal(vb_sq_put(qp, &wr), 0);
	vb_sq_end(qp, true);
}

static void post_read(struct scene *s, struct vb_qp *qp)
{
	post(s, qp, VB_WR_RDMA_READ, MESSAGE);
}

/* The READ requests that leave now ask for so many bytes each, up to 0, from this PSN on, without a gap. */
static void expect_requests(struct scene *s, uint32_t psn, const uint32_t *bytes, vb_time now)
{
	static struct vb_batch batch;
	unsigned count = vb_lane_transmit(s->lane, &batch, VB_BATCH_PACKETS, now);
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(batch.out[i].packet.psn, psn);
		assert_int_equal(batch.out[i].packet.dma_length, bytes[i]);
		psn += bytes[i] / MTU;
	}
	assert_int_equal(bytes[count], 0);
	vb_lane_transmit_done(s->lane, batch.completions, batch.count, now);
}

#define BYTES(...) ((const uint32_t[]){ __VA_ARGS__, 0 })

static void receive_response_for(struct scene *s, struct vb_qp *qp, uint32_t psn, vb_time now)
{
	struct vb_packet packet = { .opcode = VB_RC | VB_READ_RESPONSE_MIDDLE,
		.pkey = 0xffff,
		.dest_qpn = vb_qp_number(qp),
		.psn = psn,
		.payload_length = MTU };
	struct vb_path path = { .src = qp->attr.av.dgid, .dst = qp->attr.av.sgid };
	vb_lane_receive(s->lane, &path, &packet, 1, now);
}

static void receive_response(struct scene *s, uint32_t psn, vb_time now)
{
	receive_response_for(s, s->qp, psn, now);
}

static void receive_responses(struct scene *s, uint32_t from, uint32_t to, vb_time now)
{
	while (from < to)
		receive_response(s, from++, now);
}

/* The window is halved, and what is asked for from then on. What was asked for before is asked for again as it was: a
 * responder remembers each request by itself, and rxe forgets where one began once its end was asked for again. */
static void pieces__shrink_after_a_loss_but_not_those_asked_for(void **state)
{
	const uint32_t piece = VB_READ_PIECE_MAX / MTU, first = FIRST_PSN, second = first + piece,
		       third = second + piece;
	struct scene s;
	open_scene(&s, 0);
	vb_roce(s.qp)->congestion.cc.window_bytes = VB_MAX_WINDOW;
	post_read(&s, s.qp);
	expect_requests(&s, first, BYTES(VB_READ_PIECE_MAX, VB_READ_PIECE_MAX), 0);
	receive_responses(&s, first, first + piece / 2, VB_US);
	receive_response(&s, first + piece / 2 + 1, VB_US); /* one was lost */
	expect_requests(&s, first + piece / 2, BYTES(VB_READ_PIECE_MAX / 2), VB_US);
	receive_responses(&s, first + piece / 2, second, VB_US);
	expect_requests(&s, second, BYTES(VB_READ_PIECE_MAX), VB_US);
	receive_responses(&s, second, second + piece / 2, VB_US);
	expect_requests(&s, third, BYTES(VB_READ_PIECE_MAX / 2), VB_US);
	receive_responses(&s, second + piece / 2, third + piece / 2, VB_US);
	assert_int_equal(s.qp->requester.ssn, 3); /* each piece is one message to the peer */
	close_scene(&s);
}

/* A window that was small when the READ began does not make it slow for good. */
static void pieces__grow_within_a_read(void **state)
{
	const uint32_t few = VB_READ_PIECE_MIN / MTU;
	struct scene s;
	open_scene(&s, 0);
	post_read(&s, s.qp);
	expect_requests(&s, FIRST_PSN, BYTES(VB_READ_PIECE_MIN), 0);
	vb_roce(s.qp)->congestion.cc.window_bytes = VB_MAX_WINDOW;
	receive_responses(&s, FIRST_PSN, FIRST_PSN + few, VB_US);
	expect_requests(&s, FIRST_PSN + few, BYTES(VB_READ_PIECE_MAX - VB_READ_PIECE_MIN, VB_READ_PIECE_MAX), VB_US);
	close_scene(&s);
}

/* A peer that answers one request after the other. Returns the packets that other had when one was finished. */
static uint32_t read_side_by_side(struct scene *s, const struct vb_qp *one, const struct vb_qp *other)
{
	static struct vb_batch batch;
	struct {
		struct vb_qp *qp;
		uint32_t psn, end;
	} asked[64];
	unsigned head = 0, tail = 0;
	while (one->requester.una_psn - FIRST_PSN < MESSAGE / MTU) {
		while (vb_lane_transmit(s->lane, &batch, VB_BATCH_PACKETS, VB_US)) {
			for (unsigned i = 0; i < batch.count; i++, tail++) {
				const struct vb_packet *packet = &batch.out[i].packet;
				asked[tail % COUNT_OF(asked)].qp = batch.out[i].qp;
				asked[tail % COUNT_OF(asked)].psn = packet->psn;
				asked[tail % COUNT_OF(asked)].end = packet->psn + packet->dma_length / MTU;
			}
			vb_lane_transmit_done(s->lane, batch.completions, batch.count, VB_US);
		}
		assert_in_range(tail - head, 1, COUNT_OF(asked)); /* somebody may always ask */
		unsigned n = head % COUNT_OF(asked);
		receive_response_for(s, asked[n].qp, asked[n].psn++, VB_US);
		head += asked[n].psn == asked[n].end;
	}
	return other->requester.una_psn - FIRST_PSN;
}

/* Small pieces fit where large ones do not: they must not pass them for ever, nor the other way round. */
static void reads__of_large_and_small_pieces_go_on_side_by_side(void **state)
{
	static const uint32_t buffers[] = { 212992, 1500000, 2 << 20, 3000000, 4 << 20, 8 << 20 };
	for (size_t i = 0; i < COUNT_OF(buffers); i++) {
		for (int is_grown_first = 0; is_grown_first < 2; is_grown_first++) {
			struct scene s;
			open_scene(&s, buffers[i]);
			struct vb_qp *young = connected(&s);
			vb_roce(s.qp)->congestion.cc.window_bytes = VB_MAX_WINDOW;
			post_read(&s, is_grown_first ? s.qp : young);
			post_read(&s, is_grown_first ? young : s.qp);
			assert_true(read_side_by_side(&s, s.qp, young) > MESSAGE / MTU / 4);
			assert_int_equal(vb_qp_destroy(young), 0);
			close_scene(&s);
		}
	}
}

/* ---- Turns ------------------------------------------------------------------------------------------------------- */

enum { OTHERS = 3, ROOM = 2 * MTU + 2 * VB_PACKET_OVERHEAD }; /* two full packets to the peer */

/* s->qp fills the peer's allowance, the others wait in their order, each with a WRITE of so many bytes. */
static void open_queue(struct scene *s, struct vb_qp **others, const uint32_t *lengths)
{
	static struct vb_batch batch;
	open_lane(s, &(struct vb_lane_config){ .seed = 1, .slot = 1, .unknown_peer_allowance = ROOM });
	post(s, s->qp, VB_WR_RDMA_WRITE, 2 * MTU);
	assert_int_equal(vb_lane_transmit(s->lane, &batch, VB_BATCH_PACKETS, 0), 2);
	vb_lane_transmit_done(s->lane, batch.completions, batch.count, 0);
	for (int i = 0; i < OTHERS; i++) {
		others[i] = connected(s);
		post(s, others[i], VB_WR_RDMA_WRITE, lengths[i]);
		assert_int_equal(vb_lane_transmit(s->lane, &batch, VB_BATCH_PACKETS, 0), 0);
	}
	vb_lane_check(s->lane);
}

static void close_queue(struct scene *s, struct vb_qp **others)
{
	for (int i = 0; i < OTHERS; i++)
		if (others[i])
			assert_int_equal(vb_qp_destroy(others[i]), 0);
	close_scene(s);
}

static void receive_ack(struct scene *s, struct vb_qp *qp, uint32_t psn)
{
	struct vb_packet packet = { .opcode = VB_RC | VB_ACKNOWLEDGE,
		.pkey = 0xffff,
		.dest_qpn = vb_qp_number(qp),
		.psn = psn,
		.syndrome = VB_AETH_ACK | VB_AETH_NO_CREDITS };
	struct vb_path path = { .src = qp->attr.av.dgid, .dst = qp->attr.av.sgid };
	vb_lane_receive(s->lane, &path, &packet, 1, VB_US);
	vb_lane_check(s->lane);
}

/* One packet of each of these QPs leaves now, up to NULL, and nothing else. */
static void expect_from(struct scene *s, struct vb_qp *const *qps)
{
	static struct vb_batch batch;
	unsigned count = vb_lane_transmit(s->lane, &batch, VB_BATCH_PACKETS, VB_US), expected = 0;
	for (; qps[expected]; expected++)
		assert_true(expected < count && batch.out[expected].qp == qps[expected]);
	assert_int_equal(count, expected);
	vb_lane_transmit_done(s->lane, batch.completions, batch.count, VB_US);
	vb_lane_check(s->lane);
}

#define QPS(...)     ((struct vb_qp *const[]){ __VA_ARGS__, NULL })
#define LENGTHS(...) ((const uint32_t[OTHERS]){ __VA_ARGS__ })

static void turns__go_round_in_the_order_of_waiting(void **state)
{
	struct scene s;
	struct vb_qp *others[OTHERS];
	open_queue(&s, others, LENGTHS(MTU, MTU, MTU));
	receive_ack(&s, s.qp, FIRST_PSN);
	post(&s, s.qp, VB_WR_RDMA_WRITE, 8); /* who comes anew is behind them */
	expect_from(&s, QPS(others[0]));
	receive_ack(&s, s.qp, FIRST_PSN + 1);
	expect_from(&s, QPS(others[1]));
	receive_ack(&s, others[1], FIRST_PSN);
	expect_from(&s, QPS(others[2]));
	receive_ack(&s, others[0], FIRST_PSN);
	expect_from(&s, QPS(s.qp));
	close_queue(&s, others);
}

static void turns__follow_each_other_as_long_as_there_is_room(void **state)
{
	struct scene s;
	struct vb_qp *others[OTHERS];
	open_queue(&s, others, LENGTHS(MTU, MTU, MTU));
	receive_ack(&s, s.qp, FIRST_PSN + 1);
	expect_from(&s, QPS(others[0], others[1]));
	close_queue(&s, others);
}

/* What is free would do for the small one, which must not pass the large one for ever. */
static void turn__is_kept_by_who_needs_more_room(void **state)
{
	struct scene s;
	struct vb_qp *others[OTHERS];
	open_queue(&s, others, LENGTHS(8, MTU, 8));
	receive_ack(&s, s.qp, FIRST_PSN);
	expect_from(&s, QPS(others[0]));
	receive_ack(&s, others[0], FIRST_PSN);
	expect_from(&s, QPS(others[1]));
	receive_ack(&s, s.qp, FIRST_PSN + 1);
	expect_from(&s, QPS(others[2]));
	close_queue(&s, others);
}

static void reset(struct vb_qp **qp)
{
	assert_int_equal(vb_qp_modify(*qp, &(struct vb_qp_attr){ .state = VB_QPS_RESET }, VB_QP_STATE, VB_US), 0);
}

static void stop(struct vb_qp **qp)
{
	assert_int_equal(vb_qp_modify(*qp, &(struct vb_qp_attr){ .state = VB_QPS_ERR }, VB_QP_STATE, VB_US), 0);
}

static void destroy(struct vb_qp **qp)
{
	assert_int_equal(vb_qp_destroy(*qp), 0);
	*qp = NULL;
}

static void turn__of_who_goes_away_is_the_next_ones(void **state)
{
	static void (*const ways[])(struct vb_qp * *qp) = { reset, stop, destroy };
	for (size_t i = 0; i < COUNT_OF(ways); i++) {
		for (int has_turn = 0; has_turn < 2; has_turn++) {
			struct scene s;
			struct vb_qp *others[OTHERS];
			open_queue(&s, others, LENGTHS(MTU, MTU, MTU));
			if (!has_turn)
				ways[i](&others[0]);
			receive_ack(&s, s.qp, FIRST_PSN);
			if (has_turn)
				ways[i](&others[0]);
			vb_lane_check(s.lane);
			expect_from(&s, QPS(others[1]));
			receive_ack(&s, s.qp, FIRST_PSN + 1);
			expect_from(&s, QPS(others[2]));
			close_queue(&s, others);
		}
	}
}

/* It has room there, and sends what it has begun. */
static void turn__of_who_moves_to_another_peer_is_the_next_ones(void **state)
{
	struct vb_qp_attr attr = { .state = VB_QPS_SQD,
		.av = { .sgid = vb_gid_from_ipv4(10, 0, 0, 1), .dgid = vb_gid_from_ipv4(10, 0, 0, 3) } };
	for (int has_turn = 0; has_turn < 2; has_turn++) {
		struct scene s;
		struct vb_qp *others[OTHERS];
		open_queue(&s, others, LENGTHS(MTU, MTU, MTU));
		assert_int_equal(vb_qp_modify(others[0], &attr, VB_QP_STATE, VB_US), 0);
		if (has_turn)
			receive_ack(&s, s.qp, FIRST_PSN);
		assert_int_equal(vb_qp_modify(others[0], &attr, VB_QP_STATE | VB_QP_AV, VB_US), 0);
		vb_lane_check(s.lane);
		if (!has_turn)
			receive_ack(&s, s.qp, FIRST_PSN);
		expect_from(&s, QPS(others[0], others[1]));
		receive_ack(&s, s.qp, FIRST_PSN + 1);
		expect_from(&s, QPS(others[2]));
		close_queue(&s, others);
	}
}

/* Whose bytes are under way when it dies gives back what they took. */
static void allowance__of_who_dies_wakes_the_first(void **state)
{
	static void (*const ways[])(struct vb_qp * *qp) = { reset, stop };
	for (size_t i = 0; i < COUNT_OF(ways); i++) {
		struct scene s;
		struct vb_qp *others[OTHERS];
		open_queue(&s, others, LENGTHS(MTU, MTU, MTU));
		ways[i](&s.qp);
		vb_lane_check(s.lane);
		expect_from(&s, QPS(others[0], others[1]));
		close_queue(&s, others);
	}
}

static void allowance__that_grows_wakes_the_first(void **state)
{
	struct scene s;
	struct vb_qp *others[OTHERS];
	open_queue(&s, others, LENGTHS(MTU, MTU, MTU));
	struct vb_gid gid = s.qp->attr.av.dgid;
	vb_lane_set_peer(s.lane, &gid, &(struct vb_peer_facts){ .is_verbena = true, .receive_buffer = 4 * ROOM });
	vb_lane_check(s.lane);
	expect_from(&s, QPS(others[0], others[1]));
	close_queue(&s, others);
}

static void allowance__of_which_nothing_is_used_lets_anything_through(void **state)
{
	struct scene s;
	open_lane(&s, &(struct vb_lane_config){ .seed = 1, .slot = 1, .unknown_peer_allowance = 1 });
	struct vb_qp *other = connected(&s);
	post(&s, s.qp, VB_WR_RDMA_WRITE, MTU);
	post(&s, other, VB_WR_RDMA_WRITE, MTU);
	expect_from(&s, QPS(s.qp));
	receive_ack(&s, s.qp, FIRST_PSN);
	expect_from(&s, QPS(other));
	assert_int_equal(vb_qp_destroy(other), 0);
	close_scene(&s);
}

/* In SQD a QP may get another address: it waits for the old one's allowance no longer, and what it has under way counts
 * at the new one. */
static void flight__moves_to_another_address(void **state)
{
	struct scene s;
	struct vb_qp *others[OTHERS];
	open_queue(&s, others, LENGTHS(MTU, MTU, MTU));
	struct vb_qp_attr attr = { .state = VB_QPS_SQD, .av = s.qp->attr.av };
	attr.av.dgid = vb_gid_from_ipv4(10, 0, 0, 3);
	assert_int_equal(vb_qp_modify(s.qp, &attr, VB_QP_STATE, VB_US), 0);
	assert_int_equal(vb_qp_modify(s.qp, &attr, VB_QP_STATE | VB_QP_AV, VB_US), 0);
	vb_lane_check(s.lane);
	assert_int_equal(vb_roce_peer(vb_peer_find(s.lane, &attr.av.dgid, 2))->allowance.used, ROOM);
	expect_from(&s, QPS(others[0], others[1]));
	close_queue(&s, others);
}

/* Sixteen that always have packets to send, where there is room for those of six: nobody is passed over. */
static void qps__that_share_an_allowance_send_alike(void **state)
{
	enum { QPS = 16, ROUNDS = 200 };
	static struct vb_batch batch;
	struct scene s;
	struct vb_qp *qps[QPS];
	open_lane(&s, &(struct vb_lane_config){ .seed = 1, .slot = 1, .unknown_peer_allowance = 106496 });
	for (int i = 0; i < QPS; i++) {
		qps[i] = connected(&s);
		for (int k = 0; k < 4; k++)
			post(&s, qps[i], VB_WR_RDMA_WRITE, MTU);
	}
	for (int round = 0; round < ROUNDS; round++) {
		unsigned count = vb_lane_transmit(s.lane, &batch, VB_BATCH_PACKETS, 0);
		vb_lane_transmit_done(s.lane, batch.completions, count, 0);
		for (unsigned i = 0; i < count; i++) {
			struct vb_wc wc;
			receive_ack(&s, batch.out[i].qp, batch.out[i].packet.psn);
			assert_int_equal(vb_cq_poll(s.cq, &wc, 1), 1);
			post(&s, batch.out[i].qp, VB_WR_RDMA_WRITE, MTU);
		}
	}
	for (int i = 0; i < QPS; i++) {
		assert_in_range(qps[i]->requester.una_psn - FIRST_PSN, ROUNDS * 24 / QPS - 4, ROUNDS * 24 / QPS + 4);
		assert_int_equal(vb_qp_destroy(qps[i]), 0);
	}
	close_scene(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qps__that_share_an_allowance_send_alike),
		cmocka_unit_test(turns__go_round_in_the_order_of_waiting),
		cmocka_unit_test(turns__follow_each_other_as_long_as_there_is_room),
		cmocka_unit_test(turn__is_kept_by_who_needs_more_room),
		cmocka_unit_test(turn__of_who_goes_away_is_the_next_ones),
		cmocka_unit_test(turn__of_who_moves_to_another_peer_is_the_next_ones),
		cmocka_unit_test(allowance__of_who_dies_wakes_the_first),
		cmocka_unit_test(allowance__that_grows_wakes_the_first),
		cmocka_unit_test(allowance__of_which_nothing_is_used_lets_anything_through),
		cmocka_unit_test(flight__moves_to_another_address),
		cmocka_unit_test(piece__is_the_largest_of_which_two_fit_the_windows),
		cmocka_unit_test(piece__fills_the_window_where_the_peer_takes_one_read),
		cmocka_unit_test(piece__is_held_to_the_receive_buffer_too),
		cmocka_unit_test(pieces__shrink_after_a_loss_but_not_those_asked_for),
		cmocka_unit_test(pieces__grow_within_a_read),
		cmocka_unit_test(reads__of_large_and_small_pieces_go_on_side_by_side),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
