/* What comes to a responder before its turn, and what comes again, where both ends recover selectively. */
#include "selective.h"

static void responder__holds_what_is_early_and_executes_it_in_its_turn(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	receive_write(rig, qp, 2);
	assert_bitmap(rig, 0, 1 << 2);
	receive_write(rig, qp, 4);
	assert_bitmap(rig, 0, 1 << 2 | 1 << 4);
	assert_false(was_written(rig, 2) || was_written(rig, 4));
	assert_true(held_bytes(rig) > 0);
	receive_write(rig, qp, 0);
	assert_ack(rig, 0);
	receive_write(rig, qp, 1);
	assert_ack(rig, 2); /* at once, with what was held */
	assert_true(was_written(rig, 0) && was_written(rig, 1) && was_written(rig, 2));
	assert_false(was_written(rig, 4));
	receive_write(rig, qp, 3);
	assert_ack(rig, 4);
	assert_true(was_written(rig, 3) && was_written(rig, 4));
	assert_int_equal(held_bytes(rig), 0);
	assert_int_equal(rig_transmit(rig), 0);
	assert_int_equal(rig_counter(rig, VB_HELD), 2);
	assert_int_equal(rig_counter(rig, VB_NAK_SENT), 0);
	close_rig(rig, qp);
}

/* The lane receives packets between two pieces, so that its receive buffer does not overflow. */
static void responder__executes_many_that_are_held_piece_by_piece(void **state)
{
	enum { MANY = 200, PIECE = 64 };
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	for (uint32_t ahead = 1; ahead < MANY; ahead++) {
		receive_write(rig, qp, ahead);
		rig_transmit(rig);
	}
	assert_false(vb_lane_next_deadline(rig->lane).is_set);
	vb_lane_advance(rig->lane, rig->now);
	receive_write(rig, qp, 0);
	assert_ack(rig, PIECE);
	for (uint32_t executed = PIECE + 1; executed < MANY; executed += PIECE) {
		assert_true(was_written(rig, executed - 1));
		assert_false(was_written(rig, executed));
		assert_false(vb_lane_is_quiet(rig->lane));
		assert_true(vb_deadline_due(vb_lane_next_deadline(rig->lane), rig->now));
		vb_lane_advance(rig->lane, rig->now);
		rig_transmit(rig);
	}
	assert_true(was_written(rig, MANY - 1));
	assert_int_equal(held_bytes(rig), 0);
	assert_false(vb_lane_next_deadline(rig->lane).is_set);
	close_rig(rig, qp);
}

/* Its newest acknowledgement may have been lost as well, and the peer would never hear of it. */
static void responder__that_goes_acknowledges_once_more_where_packets_are_lost(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	assert_false(vb_qp_takes_leave(qp, rig->now));
	receive_write(rig, qp, 0);
	assert_ack(rig, 0);
	assert_false(vb_qp_takes_leave(qp, rig->now));
	receive_write(rig, qp, 2);
	receive_write(rig, qp, 1);
	assert_ack(rig, 2);
	for (int i = 0; i < 2; i++) {
		assert_true(vb_qp_takes_leave(qp, rig->now));
		assert_ack(rig, 2);
	}
	assert_int_equal(rig_transmit(rig), 0);
	vb_qp_modify(qp, &(struct vb_qp_attr){ .state = VB_QPS_ERR }, VB_QP_STATE, rig->now);
	assert_false(vb_qp_takes_leave(qp, rig->now));
	close_rig(rig, qp);
}

/* A program that has heard from its peer that a READ is done may unmap what was read. */
static bool is_there;

static bool is_present(const void *at, uint64_t length, bool for_writing)
{
	assert_true(at && length > 0 && !for_writing);
	return is_there;
}

static void responder__reads_nothing_again_that_is_unmapped(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ .is_present = is_present });
	struct vb_qp *qp = rig_connected(rig, NULL);
	is_there = false;
	receive_read(rig, qp, 0, 0, READ_BYTES);
	assert_int_equal(rig_transmit(rig), 3); /* the first time nobody asks */
	receive_read(rig, qp, 0, 0, READ_BYTES);
	assert_int_equal(rig_transmit(rig), 0);
	assert_true(rig_counter(rig, VB_DROP_DUPLICATE) > 0);
	is_there = true;
	receive_read(rig, qp, 0, 0, READ_BYTES);
	assert_int_equal(rig_transmit(rig), 3);
	close_rig(rig, qp);
}

/* Or there would be no end to it. */
static void responder__executes_more_than_come_meanwhile(void **state)
{
	enum { MANY = 400, COME = 40 };
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	uint32_t next = 1, advances = 0;
	while (next < MANY)
		receive_write(rig, qp, next++);
	vb_lane_advance(rig->lane, rig->now);
	receive_write(rig, qp, 0);
	for (; held_bytes(rig) > 0; advances++) {
		for (uint32_t i = 0; i < COME; i++)
			receive_write(rig, qp, next++);
		vb_lane_advance(rig->lane, rig->now);
		rig_transmit(rig);
		assert_true(advances < MANY / COME);
	}
	close_rig(rig, qp);
}

static void responder__may_go_with_many_that_are_held(void **state)
{
	enum { MANY = 200 };
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	for (uint32_t ahead = 1; ahead < MANY; ahead++)
		receive_write(rig, qp, ahead);
	receive_write(rig, qp, 0);
	assert_true(held_bytes(rig) > 0);
	assert_int_equal(vb_qp_destroy(qp), 0);
	vb_lane_advance(rig->lane, rig->now);
	rig_close(rig);
}

/* What was acknowledged comes again: the acknowledgement was lost, and the port that it went by may be that of a path
 * that died. */
static void responder__acknowledges_by_another_port_after_a_duplicate(void **state)
{
	enum { PATHS = 4 };
	struct rig *rig = open_rig((struct vb_lane_config){ .paths = PATHS });
	struct vb_qp *qp = rig_connected(rig, NULL);
	receive_write(rig, qp, 0);
	assert_ack(rig, 0);
	const uint16_t before = rig->batch.out[0].flow;
	for (uint32_t ahead = 1; ahead <= PATHS; ahead++) {
		receive_write(rig, qp, ahead);
		assert_ack(rig, ahead);
	}
	assert_int_equal(rig->batch.out[0].flow, before);
	receive_write(rig, qp, PATHS);
	assert_bitmap(rig, PATHS + 1, 0);
	for (uint32_t ahead = PATHS + 1; ahead <= 2 * PATHS; ahead++) {
		receive_write(rig, qp, ahead);
		assert_ack(rig, ahead);
		assert_int_not_equal(rig->batch.out[0].flow, before);
	}
	close_rig(rig, qp);
}

static void responder__executes_each_once_whatever_came_twice(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	for (uint64_t id = 0; id < 4; id++)
		post_receive(rig, qp, id);
	receive_send(rig, qp, 1);
	assert_bitmap(rig, 0, 1 << 1);
	receive_send(rig, qp, 1);
	assert_bitmap(rig, 0, 1 << 1);
	assert_int_equal(left(rig, 0)->named, 1u << 24 | (RIG_RQ_PSN + 1));
	receive_send(rig, qp, 0);
	assert_ack(rig, 1);
	receive_send(rig, qp, 1);
	assert_bitmap(rig, 2, 0);
	assert_int_equal(left(rig, 0)->named, 2u << 24 | (RIG_RQ_PSN + 1));
	struct vb_wc wc[4];
	assert_int_equal(vb_cq_poll(rig->cq, wc, 4), 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(wc[i].wr_id, i);
		assert_int_equal(rig->memory[8192 + i * BYTES], i + 1);
	}
	close_rig(rig, qp);
}

static void responder__answers_a_held_read_in_its_turn(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	receive_read(rig, qp, 1, 0, READ_BYTES);
	assert_bitmap(rig, 0, 7 << 1);
	receive_write(rig, qp, 4);
	assert_bitmap(rig, 0, 7 << 1 | 1 << 4);
	receive_write(rig, qp, 0);
	assert_int_equal(rig_transmit(rig), 4);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(left(rig, i)->psn, RIG_RQ_PSN + 1 + i);
		assert_int_equal(left(rig, i)->payload_length, RIG_MTU);
		assert_int_equal(left(rig, i)->opcode, VB_READ_RESPONSE_FIRST + i);
	}
	assert_int_equal(left(rig, 3)->opcode, VB_ACKNOWLEDGE);
	assert_int_equal(left(rig, 3)->psn, RIG_RQ_PSN + 4);
	assert_true(was_written(rig, 4));
	close_rig(rig, qp);
}

static void responder__waits_for_a_receive_in_the_middle_of_what_is_held(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	post_receive(rig, qp, 0);
	for (uint32_t ahead = 1; ahead < 4; ahead++)
		receive_send(rig, qp, ahead);
	assert_bitmap(rig, 0, 7 << 1);
	receive_send(rig, qp, 0);
	const struct vb_packet *packet = only_one(rig);
	assert_int_equal(packet->opcode, VB_ACKNOWLEDGE);
	assert_int_equal(packet->syndrome & VB_AETH_TYPE_MASK, VB_AETH_RNR);
	assert_int_equal(packet->psn, RIG_RQ_PSN + 1);
	for (uint64_t id = 1; id < 4; id++)
		post_receive(rig, qp, id);
	receive_send(rig, qp, 1);
	assert_ack(rig, 3);
	struct vb_wc wc[8];
	assert_int_equal(vb_cq_poll(rig->cq, wc, 8), 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(wc[i].wr_id, i);
	assert_int_equal(held_bytes(rig), 0);
	close_rig(rig, qp);
}

static void responder__refuses_in_the_middle_of_what_is_held(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	receive_write(rig, qp, 1);
	rig_receive(rig, qp,
		(struct vb_packet){ .opcode = VB_WRITE_ONLY,
			.psn = RIG_RQ_PSN + 2,
			.va = 1,
			.rkey = 77,
			.dma_length = 8,
			.payload = (const uint8_t *)"12345678",
			.payload_length = 8 });
	receive_write(rig, qp, 3);
	assert_bitmap(rig, 0, 7 << 1);
	receive_write(rig, qp, 0);
	const struct vb_packet *packet = only_one(rig);
	assert_int_equal(packet->opcode, VB_ACKNOWLEDGE);
	assert_int_equal(packet->syndrome, VB_NAK_REMOTE_ACCESS);
	assert_int_equal(packet->psn, RIG_RQ_PSN + 2);
	assert_int_equal(vb_qp_state(qp), VB_QPS_ERR);
	assert_true(was_written(rig, 1));
	assert_false(was_written(rig, 3));
	assert_int_equal(held_bytes(rig), 0);
	close_rig(rig, qp);
}

/* Where nothing can be held a NAK says that all is to come again; where something is, the rest is dropped. */
static void responder__that_is_full_goes_on_without(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ .hold_bytes = 600 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	receive_write(rig, qp, 1);
	const struct vb_packet *packet = only_one(rig);
	assert_int_equal(packet->syndrome, VB_NAK_PSN_SEQUENCE);
	assert_int_equal(packet->psn, RIG_RQ_PSN);
	receive_write(rig, qp, 2);
	assert_int_equal(rig_transmit(rig), 0); /* it has been said */
	close_rig(rig, qp);
	rig = open_rig((struct vb_lane_config){ .hold_bytes = 700 });
	qp = rig_connected(rig, NULL);
	receive_write(rig, qp, 1);
	receive_write(rig, qp, 2);
	receive_write(rig, qp, 3);
	assert_true(held_bytes(rig) <= 700);
	assert_bitmap(rig, 0, 1 << 1);
	assert_int_equal(rig_counter(rig, VB_DROP_OUT_OF_ORDER), 2);
	receive_write(rig, qp, 0);
	assert_ack(rig, 1);
	close_rig(rig, qp);
}

static void responder__gives_all_back_when_its_qp_goes(void **state)
{
	static const enum vb_qp_state states[] = { VB_QPS_ERR, VB_QPS_RESET };
	for (unsigned i = 0; i < COUNT_OF(states); i++) {
		struct rig *rig = open_rig((struct vb_lane_config){ 0 });
		struct vb_qp *qp = rig_connected(rig, NULL);
		receive_write(rig, qp, 1);
		receive_read(rig, qp, 9, 0, READ_BYTES);
		assert_true(held_bytes(rig) > 0);
		rig_modify(rig, qp, states[i], 0);
		assert_int_equal(held_bytes(rig), 0);
		rig_transmit(rig);
		close_rig(rig, qp);
	}
}

/* A bitmap says as much of marks as the ACK in whose place it leaves. */
static void bitmap__tells_marks(void **state)
{
	struct rig *rig =
		open_rig((struct vb_lane_config){ .acks = { .tells_marks = true }, .cnps = { .scope = VB_CNP_NEVER } });
	struct vb_qp *qp = rig_connected(rig, NULL);
	uint8_t payload[BYTES] = { 0 };
	struct vb_path path = { .src = qp->attr.av.dgid, .dst = qp->attr.av.sgid, .traffic_class = 3 };
	struct vb_packet packet = { .opcode = VB_SEND_ONLY,
		.pkey = VB_PKEY_DEFAULT,
		.dest_qpn = vb_qp_number(qp),
		.psn = RIG_RQ_PSN + 1,
		.payload = payload,
		.payload_length = BYTES,
		.ackreq = true };
	vb_lane_receive(rig->lane, &path, &packet, 1, rig->now);
	assert_bitmap(rig, 0, 1 << 1);
	assert_true(left(rig, 0)->becn);
	packet.psn++;
	path.traffic_class = 0;
	vb_lane_receive(rig->lane, &path, &packet, 1, rig->now);
	assert_bitmap(rig, 0, 3 << 1);
	assert_false(left(rig, 0)->becn);
	close_rig(rig, qp);
}

static void receive_unasked(struct rig *rig, struct vb_qp *qp, uint32_t ahead)
{
	uint8_t payload[BYTES] = { 0 };
	rig_receive(rig, qp,
		(struct vb_packet){ .opcode = VB_SEND_ONLY,
			.psn = RIG_RQ_PSN + ahead,
			.payload = payload,
			.payload_length = BYTES });
}

static void bitmap__is_told_where_a_hole_begins_when_asked_and_every_so_often(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	receive_unasked(rig, qp, 1);
	assert_bitmap(rig, 0, 1 << 1);
	receive_unasked(rig, qp, 2);
	assert_int_equal(rig_transmit(rig), 0);
	receive_unasked(rig, qp, 4);
	assert_bitmap(rig, 0, 3 << 1 | 1 << 4);
	receive_unasked(rig, qp, 3); /* what was late */
	assert_bitmap(rig, 0, 15 << 1);
	receive_unasked(rig, qp, 5);
	receive_send(rig, qp, 6);
	assert_bitmap(rig, 0, 63 << 1);
	uint32_t ahead = 7;
	for (; rig_transmit(rig) == 0; ahead++)
		receive_unasked(rig, qp, ahead);
	assert_int_equal(ahead, 7 + 64);
	close_rig(rig, qp);
}

/* Once, to each QP that misses something. */
static void bitmap__tells_that_the_receive_buffer_was_full(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	receive_send(rig, qp, 2);
	assert_int_equal(only_one(rig)->told & VB_TOLD_OVERFLOW, 0);
	vb_lane_note_overflow(rig->lane, 3);
	receive_send(rig, qp, 4);
	assert_int_equal(only_one(rig)->told & VB_TOLD_OVERFLOW, VB_TOLD_OVERFLOW);
	receive_send(rig, qp, 6);
	assert_int_equal(only_one(rig)->told & VB_TOLD_OVERFLOW, 0);
	close_rig(rig, qp);
}

/* However far it is ahead. */
static void bitmap__tells_of_the_furthest(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	uint32_t furthest = RIG_RQ_PSN + VB_HOLD_PSNS - 1;
	receive_write(rig, qp, VB_HOLD_PSNS - 1);
	const struct vb_packet *packet = only_one(rig);
	assert_int_equal(packet->opcode, VB_BITMAP);
	assert_in_range(furthest, packet->psn, packet->psn + VB_BITMAP_PSNS - 1);
	assert_true(packet->bits[(furthest - packet->psn) / 64] >> (furthest - packet->psn) % 64 & 1);
	close_rig(rig, qp);
}

/* What was executed behind a READ that is still being answered is not missing, though it cannot be acknowledged yet. */
static void bitmap__tells_of_what_was_executed_behind_a_read(void **state)
{
	enum { READ = 40 };
	struct rig *rig = open_rig((struct vb_lane_config){ .turn_bytes = 1 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	receive_read(rig, qp, 0, 0, READ * 512);
	receive_write(rig, qp, READ / 2);
	receive_write(rig, qp, READ / 2 + 2);
	const struct vb_packet *packet = NULL;
	assert_true(vb_lane_transmit(rig->lane, &rig->batch, 3, rig->now) > 1);
	for (unsigned i = 0; i < rig->batch.count; i++)
		if (left(rig, i)->opcode == VB_BITMAP)
			packet = left(rig, i);
	assert_non_null(packet);
	uint32_t written = RIG_RQ_PSN + READ / 2;
	assert_in_range(packet->expected_psn, RIG_RQ_PSN, written - 1);
	assert_int_equal(packet->expected_psn + packet->executed_ahead, written + 1);
	assert_in_range(written + 2, packet->psn, packet->psn + VB_BITMAP_PSNS - 1);
	uint32_t bit = written + 2 - packet->psn;
	assert_true(packet->bits[bit / 64] >> bit % 64 & 1);
	vb_lane_transmit_done(rig->lane, rig->batch.completions, rig->batch.count, rig->now);
	while (rig_transmit(rig))
		;
	close_rig(rig, qp);
}

/* Two READs' responses are missed; of the first one nobody knows any more. The second one's leaves all the same, and so
 * does the ack behind it. */
static void repeats__go_on_behind_one_that_is_gone(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	const uint32_t remembered = VB_GRANTED_BEHIND * 4, end = remembered * 3;
	for (uint32_t i = 0; i < remembered; i++)
		receive_read(rig, qp, i * 3, i * READ_BYTES, READ_BYTES);
	assert_int_equal(rig_transmit(rig), end);
	receive_read(rig, qp, 1, RIG_MTU, RIG_MTU);
	receive_read(rig, qp, 3, READ_BYTES, RIG_MTU);
	receive_read(rig, qp, end, 0, 8); /* takes the first one's place */
	receive_write(rig, qp, end + 1);
	assert_int_equal(rig_transmit(rig), 3);
	assert_int_equal(left(rig, 0)->psn, RIG_RQ_PSN + 3);
	assert_int_equal(left(rig, 1)->psn, RIG_RQ_PSN + end);
	assert_int_equal(left(rig, 2)->psn, RIG_RQ_PSN + end + 1);
	assert_int_equal(rig_transmit(rig), 0);
	receive_read(rig, qp, 4, READ_BYTES + RIG_MTU, RIG_MTU);
	receive_read(rig, qp, 6, 2 * READ_BYTES, RIG_MTU);
	receive_read(rig, qp, 14, 0, 8); /* takes the second one's */
	assert_int_equal(rig_transmit(rig), 2);
	receive_read(rig, qp, 6, 2 * READ_BYTES, RIG_MTU);
	receive_read(rig, qp, 8, 2 * READ_BYTES + 2 * RIG_MTU, RIG_MTU);
	assert_int_equal(rig_transmit(rig), 2);
	close_rig(rig, qp);
}

/* With no READ left to be answered as well. */
static void repeats__that_are_gone_keep_no_other_waiting(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_mr *other;
	struct vb_mr_config mr = { .memory = rig->memory,
		.iova = (uintptr_t)rig->memory,
		.length = RIG_BYTES,
		.access = VB_ACCESS_REMOTE_READ };
	assert_int_equal(vb_mr_register(rig->pd, &mr, &other), 0);
	struct vb_packet read = { .opcode = VB_READ_REQUEST,
		.psn = RIG_RQ_PSN,
		.va = (uintptr_t)rig->memory,
		.rkey = vb_mr_key(other),
		.dma_length = READ_BYTES };
	rig_receive(rig, qp, read);
	receive_read(rig, qp, 3, 0, READ_BYTES);
	assert_int_equal(rig_transmit(rig), 6);
	rig_receive(rig, qp, read);
	receive_read(rig, qp, 3, 0, READ_BYTES);
	receive_write(rig, qp, 6);
	assert_int_equal(vb_mr_invalidate(other), 0);
	vb_mr_free(other);
	assert_int_equal(rig_transmit(rig), 4);
	assert_int_equal(left(rig, 0)->psn, RIG_RQ_PSN + 3);
	assert_int_equal(left(rig, 3)->psn, RIG_RQ_PSN + 6);
	close_rig(rig, qp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(responder__holds_what_is_early_and_executes_it_in_its_turn),
		cmocka_unit_test(responder__executes_many_that_are_held_piece_by_piece),
		cmocka_unit_test(responder__executes_more_than_come_meanwhile),
		cmocka_unit_test(responder__may_go_with_many_that_are_held),
		cmocka_unit_test(responder__that_goes_acknowledges_once_more_where_packets_are_lost),
		cmocka_unit_test(responder__reads_nothing_again_that_is_unmapped),
		cmocka_unit_test(responder__acknowledges_by_another_port_after_a_duplicate),
		cmocka_unit_test(responder__executes_each_once_whatever_came_twice),
		cmocka_unit_test(responder__answers_a_held_read_in_its_turn),
		cmocka_unit_test(responder__waits_for_a_receive_in_the_middle_of_what_is_held),
		cmocka_unit_test(responder__refuses_in_the_middle_of_what_is_held),
		cmocka_unit_test(responder__that_is_full_goes_on_without),
		cmocka_unit_test(responder__gives_all_back_when_its_qp_goes),
		cmocka_unit_test(bitmap__tells_marks),
		cmocka_unit_test(bitmap__is_told_where_a_hole_begins_when_asked_and_every_so_often),
		cmocka_unit_test(bitmap__tells_that_the_receive_buffer_was_full),
		cmocka_unit_test(bitmap__tells_of_the_furthest),
		cmocka_unit_test(bitmap__tells_of_what_was_executed_behind_a_read),
		cmocka_unit_test(repeats__go_on_behind_one_that_is_gone),
		cmocka_unit_test(repeats__that_are_gone_keep_no_other_waiting),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
