/* What tests of selective repeat share: one QP that recovers so, and what its peer, which the test plays, says to it.
 */
#ifndef VB_TESTS_SELECTIVE_H
#define VB_TESTS_SELECTIVE_H

#include "rig.h"
#include "roce/selective.h"

enum { BYTES = 64, READ_BYTES = 3 * RIG_MTU, ROUND_TRIP = 20 * VB_US };

/* ---- A QP that recovers so --------------------------------------------------------------------------------------- */

static inline struct rig *open_rig(struct vb_lane_config lane)
{
	lane.seed = lane.slot = 1;
	lane.recovery = VB_RECOVERY_SELECTIVE;
	struct rig *rig = rig_open_lane(64, &lane);
	rig->now = VB_S;
	for (uint32_t i = 0; i < RIG_BYTES / 2; i++)
		rig->memory[RIG_BYTES / 2 + i] = (uint8_t)(i / 7);
	return rig;
}

static inline void close_rig(struct rig *rig, struct vb_qp *qp)
{
	assert_int_equal(vb_qp_destroy(qp), 0);
	assert_int_equal(vb_roce_lane(rig->lane)->hold.used, 0);
	rig_close(rig);
}

static inline uint64_t held_bytes(const struct rig *rig)
{
	return vb_roce_lane(rig->lane)->hold.used;
}

/* ---- The responder's peer ---------------------------------------------------------------------------------------- */

/* The request that is ahead of the first one of all; a WRITE puts its number where nothing else does. */
static inline void receive_write(struct rig *rig, struct vb_qp *qp, uint32_t ahead)
{
	uint8_t payload[BYTES];
	memset(payload, (int)ahead + 1, sizeof(payload));
	rig_receive(rig, qp,
		(struct vb_packet){ .opcode = VB_WRITE_ONLY,
			.psn = RIG_RQ_PSN + ahead,
			.va = (uintptr_t)rig->memory + ahead * BYTES,
			.rkey = vb_mr_key(rig->mr),
			.dma_length = BYTES,
			.payload = payload,
			.payload_length = BYTES,
			.ackreq = true });
}

static inline void receive_send(struct rig *rig, struct vb_qp *qp, uint32_t ahead)
{
	uint8_t payload[BYTES];
	memset(payload, (int)ahead + 1, sizeof(payload));
	rig_receive(rig, qp,
		(struct vb_packet){ .opcode = VB_SEND_ONLY,
			.psn = RIG_RQ_PSN + ahead,
			.payload = payload,
			.payload_length = BYTES,
			.ackreq = true });
}

static inline void receive_read(struct rig *rig, struct vb_qp *qp, uint32_t ahead, uint32_t offset, uint32_t length)
{
	rig_receive(rig, qp,
		(struct vb_packet){ .opcode = VB_READ_REQUEST,
			.psn = RIG_RQ_PSN + ahead,
			.va = (uintptr_t)rig->memory + RIG_BYTES / 2 + offset,
			.rkey = vb_mr_key(rig->mr),
			.dma_length = length });
}

static inline bool was_written(const struct rig *rig, uint32_t ahead)
{
	return rig->memory[ahead * BYTES] == ahead + 1 && rig->memory[ahead * BYTES + BYTES - 1] == ahead + 1;
}

static inline void post_receive(struct rig *rig, struct vb_qp *qp, uint64_t id)
{
	struct vb_sge sge = rig_sge(rig, 8192 + (uint32_t)id * BYTES, BYTES);
	assert_int_equal(vb_rq_post(qp, &(struct vb_recv_wr){ .wr_id = id, .sges = &sge, .sge_count = 1 }), 0);
}

static inline const struct vb_packet *left(const struct rig *rig, unsigned i)
{
	return &rig->batch.out[i].packet;
}

/* Just one packet leaves. */
static inline const struct vb_packet *only_one(struct rig *rig)
{
	assert_int_equal(rig_transmit(rig), 1);
	return left(rig, 0);
}

/* One bitmap leaves: what came before `expected` was executed, and which PSNs behind it are held. */
static inline void assert_bitmap(struct rig *rig, uint32_t expected, uint64_t held)
{
	const struct vb_packet *packet = only_one(rig);
	assert_int_equal(packet->opcode, VB_BITMAP);
	assert_int_equal(packet->expected_psn, RIG_RQ_PSN + expected);
	for (uint32_t i = 0; i < 48; i++) {
		uint32_t bit = RIG_RQ_PSN + i - packet->psn;
		bool is_told = bit < VB_BITMAP_PSNS && packet->bits[bit / 64] >> bit % 64 & 1;
		assert_int_equal(is_told, held >> i & 1);
	}
}

static inline void assert_ack(struct rig *rig, uint32_t ahead)
{
	const struct vb_packet *packet = only_one(rig);
	assert_int_equal(packet->opcode, VB_ACKNOWLEDGE);
	assert_int_equal(packet->syndrome & VB_AETH_TYPE_MASK, VB_AETH_ACK);
	assert_int_equal(packet->psn, RIG_RQ_PSN + ahead);
}

/* ---- The requester's peer ---------------------------------------------------------------------------------------- */

static inline void post_writes(struct rig *rig, struct vb_qp *qp, uint32_t packets)
{
	struct vb_sge sge = rig_sge(rig, 0, packets * RIG_MTU);
	rig_post(qp, &(struct vb_send_wr){
			     .opcode = VB_WR_RDMA_WRITE, .flags = VB_SEND_SIGNALED, .sges = &sge, .sge_count = 1 });
	assert_int_equal(rig_transmit(rig), packets);
}

static inline void post_read(struct rig *rig, struct vb_qp *qp, uint32_t packets)
{
	struct vb_sge sge = rig_sge(rig, 0, packets * RIG_MTU);
	rig_post(qp, &(struct vb_send_wr){
			     .opcode = VB_WR_RDMA_READ, .flags = VB_SEND_SIGNALED, .sges = &sge, .sge_count = 1 });
	assert_true(rig_transmit(rig) > 0);
}

static inline void receive_ack(struct rig *rig, struct vb_qp *qp, uint32_t ahead)
{
	rig_receive(rig, qp,
		(struct vb_packet){ .opcode = VB_ACKNOWLEDGE,
			.psn = RIG_SQ_PSN + ahead,
			.syndrome = VB_AETH_NO_CREDITS,
			.msn = 0 });
}

/* expected and named: filled in. held: by the PSN, from the first one of all on. */
static inline void receive_bitmap_of(struct rig *rig, struct vb_qp *qp, struct vb_packet packet, uint64_t held)
{
	struct vb_path path = { .src = qp->attr.av.dgid, .dst = qp->attr.av.sgid };
	packet.opcode = VB_BITMAP;
	packet.psn = RIG_SQ_PSN;
	packet.syndrome = VB_AETH_NO_CREDITS;
	packet.bits[0] = held;
	packet.pkey = VB_PKEY_DEFAULT;
	packet.dest_qpn = vb_qp_number(qp);
	vb_lane_receive(rig->lane, &path, &packet, 1, rig->now);
	vb_lane_check(rig->lane);
}

static inline void receive_bitmap(
	struct rig *rig, struct vb_qp *qp, uint32_t expected, uint64_t held, uint32_t duplicate)
{
	receive_bitmap_of(
		rig, qp, (struct vb_packet){ .expected_psn = RIG_SQ_PSN + expected, .named = duplicate }, held);
}

/* READs are still being answered from `expected` on, and what came before `executed` was executed. */
static inline void receive_bitmap_ahead(
	struct rig *rig, struct vb_qp *qp, uint32_t expected, uint32_t executed, uint64_t held)
{
	receive_bitmap_of(rig, qp,
		(struct vb_packet){
			.expected_psn = RIG_SQ_PSN + expected, .executed_ahead = (uint16_t)(executed - expected) },
		held);
}

static inline void receive_response(struct rig *rig, struct vb_qp *qp, uint32_t ahead)
{
	uint8_t payload[RIG_MTU];
	memset(payload, (int)ahead + 1, sizeof(payload));
	rig_receive(rig, qp,
		(struct vb_packet){ .opcode = VB_READ_RESPONSE_ONLY,
			.psn = RIG_SQ_PSN + ahead,
			.syndrome = VB_AETH_NO_CREDITS,
			.payload = payload,
			.payload_length = RIG_MTU });
}

static inline void wait(struct rig *rig, vb_time time)
{
	rig->now += time;
	vb_lane_advance(rig->lane, rig->now);
	vb_lane_check(rig->lane);
}

/* Just these leave, each one packet of PSNs. */
static inline void assert_leaves(struct rig *rig, unsigned count, const uint32_t *ahead)
{
	assert_int_equal(rig_transmit(rig), count);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(left(rig, i)->psn, RIG_SQ_PSN + ahead[i]);
}

static inline void assert_completes(struct rig *rig, int count)
{
	struct vb_wc wc[16];
	assert_int_equal(vb_cq_poll(rig->cq, wc, 16), count);
	for (int i = 0; i < count; i++)
		assert_int_equal(wc[i].status, VB_WC_SUCCESS);
}

/* A message that is acknowledged a round trip later. */
static inline void measure_round_trip(struct rig *rig, struct vb_qp *qp)
{
	post_writes(rig, qp, 1);
	rig->now += ROUND_TRIP;
	receive_ack(rig, qp, 0);
	assert_int_equal(vb_roce(qp)->recovery.srtt, ROUND_TRIP);
	assert_completes(rig, 1);
}

static inline uint32_t packets_in_flight(const struct vb_qp *qp)
{
	return vb_roce(qp)->flight.out / (RIG_MTU + VB_PACKET_OVERHEAD);
}

#endif
