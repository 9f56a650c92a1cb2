/* How QPs die when a completion queue overruns: at the end of the turn, each in its own lane; and what the clock's
 * wrap may not do to them. What is posted to the dead. The rest of a QP's life is tests/script. */
#include "rig.h"

static struct vb_send_wr write_of(const struct vb_sge *sge, uint64_t wr_id)
{
	return (struct vb_send_wr){ .wr_id = wr_id,
		.opcode = VB_WR_RDMA_WRITE,
		.flags = VB_SEND_SIGNALED,
		.sges = sge,
		.sge_count = 1,
		.remote_addr = 77,
		.rkey = 88 };
}

static void post_bind(struct rig *rig, struct vb_qp *qp, struct vb_mw *mw, uint64_t wr_id)
{
	struct vb_send_wr wr = { .wr_id = wr_id,
		.opcode = VB_WR_BIND_MW,
		.flags = VB_SEND_SIGNALED,
		.bind = { .mw = mw,
			.mr = rig->mr,
			.addr = (uintptr_t)rig->memory,
			.length = 64,
			.access = VB_ACCESS_REMOTE_READ,
			.rkey = vb_mw_key(mw) ^ 1 } };
	rig_post(qp, &wr);
}

static void expect_overrun(struct rig *rig, struct vb_qp *qp)
{
	struct vb_cause cause;
	vb_qp_cause(qp, &cause);
	assert_int_equal(vb_qp_state(qp), VB_QPS_ERR);
	assert_int_equal(cause.kind, VB_CAUSE_CQ_OVERRUN);
	assert_true(vb_list_empty(&rig->lane->failing));
	assert_int_equal(qp->sq.head, qp->sq.tail);
	assert_int_equal(qp->requester.cursor, qp->sq.tail);
}

/* Binds complete while the requester looks for what to send. */
static void overrun__in_the_middle_of_sending_kills_at_the_end(void **state)
{
	struct rig *rig = rig_open(1);
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_sge sge = rig_sge(rig, 0, 8);
	struct vb_mw *mws[3];
	for (uint64_t i = 0; i < COUNT_OF(mws); i++) {
		assert_int_equal(vb_mw_create(rig->pd, 2, &mws[i]), 0);
		post_bind(rig, qp, mws[i], i);
	}
	rig_post(qp, &(struct vb_send_wr){ .opcode = VB_WR_RDMA_WRITE, .sges = &sge, .sge_count = 1 });
	rig_transmit(rig);
	expect_overrun(rig, qp);
	rig_post(qp, &(struct vb_send_wr){ .opcode = VB_WR_RDMA_WRITE, .sges = &sge, .sge_count = 1 });
	assert_int_equal(rig_transmit(rig), 0);
	expect_overrun(rig, qp);
	assert_int_equal(vb_qp_destroy(qp), 0);
	for (unsigned i = 0; i < COUNT_OF(mws); i++)
		assert_int_equal(vb_mw_destroy(mws[i]), 0);
	rig_close(rig);
}

/* Two lanes share the queue: who completes into it after the other has overrun it dies too, in a turn of its own
 * lane. */
static void overrun__reaches_another_lane_at_its_next_completion(void **state)
{
	struct rig *rig = rig_open(1), other = *rig;
	assert_int_equal(vb_lane_create(&(struct vb_lane_config){ .seed = 2, .slot = 2 }, &other.lane), 0);
	struct vb_qp *qp = rig_connected(rig, NULL), *far = rig_connected(&other, NULL);
	struct vb_sge sge = rig_sge(rig, 0, 8);
	struct vb_send_wr first = write_of(&sge, 1), second = write_of(&sge, 2);
	struct vb_packet ack = {
		.opcode = VB_ACKNOWLEDGE, .psn = RIG_SQ_PSN, .syndrome = VB_AETH_ACK | VB_AETH_NO_CREDITS
	};
	rig_post(far, &first);
	assert_int_equal(rig_transmit(&other), 1);
	rig_post(qp, &first);
	rig_post(qp, &second);
	assert_int_equal(rig_transmit(rig), 2);
	rig_receive(rig, qp,
		(struct vb_packet){ .opcode = VB_ACKNOWLEDGE, .psn = RIG_SQ_PSN + 1, .syndrome = ack.syndrome });
	expect_overrun(rig, qp);
	assert_int_equal(vb_qp_state(far), VB_QPS_RTS);
	rig_receive(&other, far, ack);
	expect_overrun(&other, far);

	struct vb_event event;
	while (vb_lane_next_event(other.lane, &event))
		;
	while (vb_lane_next_event(rig->lane, &event))
		;
	assert_int_equal(vb_qp_destroy(far), 0);
	assert_int_equal(vb_qp_destroy(qp), 0);
	vb_lane_destroy(other.lane);
	rig_close(rig);
}

/* ---- A lane that nobody calls for longer than half the circle of its clock ---- */

#define DAY (86400 * VB_S)

/* 110 days, which are no span: only a time is so far away. */
static void leap(struct rig *rig)
{
	rig->now = vb_time_add(vb_time_add(rig->now, 55 * DAY), 55 * DAY);
}

static void leap__request_is_sent_again_and_given_up_in_time(void **state)
{
	struct rig *rig = rig_open(4);
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_sge sge = rig_sge(rig, 0, 8);
	struct vb_send_wr wr = write_of(&sge, 1);
	struct vb_cause cause;
	rig_post(qp, &wr);
	assert_int_equal(rig_transmit(rig), 1);
	leap(rig);
	vb_lane_advance(rig->lane, rig->now);
	assert_int_equal(rig_transmit(rig), 1);
	vb_time gives_up = vb_time_add(rig->now, 10 * VB_S);
	for (struct vb_deadline next; (next = vb_lane_next_deadline(rig->lane)).is_set;) {
		assert_true(vb_time_before(next.at, gives_up));
		rig->now = next.at;
		vb_lane_advance(rig->lane, rig->now);
		rig_transmit(rig);
	}
	vb_qp_cause(qp, &cause);
	assert_int_equal(cause.kind, VB_CAUSE_RETRY_EXCEEDED);
	assert_true(cause.stuck_for > 100 * DAY);
	assert_true(cause.silent_for > 100 * DAY);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

/* An answer that comes after the leap is no round trip to go by. */
static void leap__late_answer_does_not_slow_the_probes_down(void **state)
{
	struct rig *rig = rig_open(4);
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_sge sge = rig_sge(rig, 0, 8);
	struct vb_send_wr wr = write_of(&sge, 1);
	rig_post(qp, &wr);
	assert_int_equal(rig_transmit(rig), 1);
	leap(rig);
	rig_receive(rig, qp,
		(struct vb_packet){
			.opcode = VB_ACKNOWLEDGE, .psn = RIG_SQ_PSN, .syndrome = VB_AETH_ACK | VB_AETH_NO_CREDITS });
	rig_post(qp, &wr);
	assert_int_equal(rig_transmit(rig), 1);
	rig->now = vb_time_add(rig->now, VB_S);
	vb_lane_advance(rig->lane, rig->now);
	assert_int_equal(rig_transmit(rig), 1);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void leap__ack_held_back_leaves(void **state)
{
	struct rig *rig = rig_open(4);
	struct vb_qp *qp = rig_connected(rig, NULL);
	uint8_t payload[8] = { 0 };
	vb_roce_lane(rig->lane)->config.ack_delay = 20 * VB_US;
	rig_receive(rig, qp,
		(struct vb_packet){ .opcode = VB_WRITE_ONLY,
			.psn = RIG_RQ_PSN,
			.ackreq = true,
			.payload = payload,
			.payload_length = 8,
			.va = (uintptr_t)rig->memory,
			.rkey = vb_mr_key(rig->mr),
			.dma_length = 8 });
	assert_int_equal(rig_transmit(rig), 0);
	leap(rig);
	assert_true(vb_lane_wants_transmit(rig->lane, rig->now));
	assert_false(vb_lane_is_quiet(rig->lane));
	assert_int_equal(rig_transmit(rig), 1);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

/* ---- Programs that take turns ---- */

static void receive_only(struct rig *rig, struct vb_qp *qp, uint8_t opcode, uint32_t psn)
{
	uint8_t payload[8] = { 0 };
	rig_receive(rig, qp,
		(struct vb_packet){ .opcode = opcode,
			.psn = psn,
			.ackreq = true,
			.payload = payload,
			.payload_length = 8,
			.va = (uintptr_t)rig->memory,
			.rkey = vb_mr_key(rig->mr),
			.dma_length = 8 });
	rig_transmit(rig);
}

static void receive_write(struct rig *rig, struct vb_qp *qp, uint32_t psn)
{
	receive_only(rig, qp, VB_WRITE_ONLY, psn);
}

static void begin_write(struct rig *rig, struct vb_qp *qp)
{
	struct vb_sge sge = rig_sge(rig, 0, 8);
	struct vb_send_wr wr = write_of(&sge, 1);
	rig_post(qp, &wr);
	assert_int_equal(rig_transmit(rig), 1);
}

static void end_write(struct rig *rig, struct vb_qp *qp, uint32_t psn)
{
	rig_receive(rig, qp,
		(struct vb_packet){
			.opcode = VB_ACKNOWLEDGE, .psn = psn, .syndrome = VB_AETH_ACK | VB_AETH_NO_CREDITS });
}

static void send_write(struct rig *rig, struct vb_qp *qp, uint32_t psn)
{
	begin_write(rig, qp);
	end_write(rig, qp, psn);
}

static void turns__answer_is_awaited_until_it_comes(void **state)
{
	struct rig *rig = rig_open(4);
	struct vb_qp *qp = rig_connected(rig, NULL);
	receive_write(rig, qp, RIG_RQ_PSN);
	send_write(rig, qp, RIG_SQ_PSN);
	assert_true(vb_lane_awaits_answer(rig->lane, rig->now));
	receive_write(rig, qp, RIG_RQ_PSN + 1);
	assert_false(vb_lane_awaits_answer(rig->lane, rig->now));
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void turns__answer_is_awaited_for_a_moment(void **state)
{
	struct rig *rig = rig_open(4);
	struct vb_qp *qp = rig_connected(rig, NULL);
	receive_write(rig, qp, RIG_RQ_PSN);
	send_write(rig, qp, RIG_SQ_PSN);
	assert_true(vb_lane_awaits_answer(rig->lane, vb_time_add(rig->now, 15 * VB_US)));
	assert_false(vb_lane_awaits_answer(rig->lane, vb_time_add(rig->now, 25 * VB_US)));
	leap(rig);
	assert_false(vb_lane_awaits_answer(rig->lane, rig->now));
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void receive_first(struct rig *rig, struct vb_qp *qp, uint32_t psn)
{
	static const uint8_t payload[RIG_MTU];
	rig_receive(rig, qp,
		(struct vb_packet){ .opcode = VB_WRITE_FIRST,
			.psn = psn,
			.payload = payload,
			.payload_length = RIG_MTU,
			.va = (uintptr_t)rig->memory,
			.rkey = vb_mr_key(rig->mr),
			.dma_length = 4 * RIG_MTU });
}

/* The program looks for its last byte, and nobody may receive for it then. */
static void turns__answer_of_many_packets_is_awaited_as_long_as_they_come(void **state)
{
	struct rig *rig = rig_open(4);
	struct vb_qp *qp = rig_connected(rig, NULL), *other = rig_connected(rig, NULL);
	receive_write(rig, qp, RIG_RQ_PSN);
	send_write(rig, qp, RIG_SQ_PSN);
	const vb_time begin = rig->now;
	rig->now = vb_time_add(begin, 15 * VB_US);
	receive_first(rig, qp, RIG_RQ_PSN + 1);
	assert_true(vb_lane_awaits_answer(rig->lane, vb_time_add(begin, 30 * VB_US)));
	assert_false(vb_lane_misses_answer(rig->lane, vb_time_add(begin, 30 * VB_US)));
	assert_true(vb_lane_misses_answer(rig->lane, vb_time_add(begin, 40 * VB_US)));
	static const uint8_t payload[RIG_MTU];
	for (unsigned i = 2; i <= 4; i++) {
		rig->now = vb_time_add(rig->now, 15 * VB_US);
		assert_true(vb_lane_awaits_answer(rig->lane, rig->now));
		rig_receive(rig, qp,
			(struct vb_packet){ .opcode = i == 4 ? VB_WRITE_LAST : VB_WRITE_MIDDLE,
				.psn = RIG_RQ_PSN + i,
				.payload = payload,
				.payload_length = RIG_MTU });
	}
	assert_false(vb_lane_awaits_answer(rig->lane, rig->now));
	assert_false(vb_lane_misses_answer(rig->lane, vb_time_add(rig->now, VB_MS)));
	send_write(rig, qp, RIG_SQ_PSN + 1);
	rig->now = vb_time_add(rig->now, 195 * VB_US);
	receive_first(rig, qp, RIG_RQ_PSN + 5);
	assert_false(
		vb_lane_awaits_answer(rig->lane, vb_time_add(rig->now, 6 * VB_US))); /* no longer than that in all */
	receive_write(rig, other, RIG_RQ_PSN);
	send_write(rig, other, RIG_SQ_PSN);
	assert_true(vb_lane_awaits_answer(rig->lane, rig->now));
	rig_receive(rig, qp, /* another's, which comes for long */
		(struct vb_packet){ .opcode = VB_WRITE_MIDDLE,
			.psn = RIG_RQ_PSN + 6,
			.payload = payload,
			.payload_length = RIG_MTU });
	assert_false(vb_lane_awaits_answer(rig->lane, rig->now));
	assert_int_equal(vb_qp_destroy(qp), 0);
	assert_int_equal(vb_qp_destroy(other), 0);
	rig_close(rig);
}

/* However many are answered at once, the program that polls has its own answers soon. */
static void turns__answers_of_many_are_awaited_no_longer(void **state)
{
	struct rig *rig = rig_open(4);
	struct vb_qp *one = rig_connected(rig, NULL), *other = rig_connected(rig, NULL);
	receive_write(rig, one, RIG_RQ_PSN);
	receive_write(rig, other, RIG_RQ_PSN);
	send_write(rig, one, RIG_SQ_PSN);
	rig->now = vb_time_add(rig->now, 15 * VB_US);
	assert_true(vb_lane_awaits_answer(rig->lane, rig->now));
	send_write(rig, other, RIG_SQ_PSN);
	rig->now = vb_time_add(rig->now, 15 * VB_US);
	assert_false(vb_lane_awaits_answer(rig->lane, rig->now));
	assert_int_equal(vb_qp_destroy(one), 0);
	assert_int_equal(vb_qp_destroy(other), 0);
	rig_close(rig);
}

static void turns__nobody_answers_who_was_not_heard(void **state)
{
	struct rig *rig = rig_open(4);
	struct vb_qp *qp = rig_connected(rig, NULL);
	send_write(rig, qp, RIG_SQ_PSN);
	assert_false(vb_lane_awaits_answer(rig->lane, rig->now));
	receive_write(rig, qp, RIG_RQ_PSN);
	send_write(rig, qp, RIG_SQ_PSN + 1);
	send_write(rig, qp, RIG_SQ_PSN + 2); /* the second in a row: this peer only takes */
	assert_false(vb_lane_awaits_answer(rig->lane, rig->now));
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void receive_polled(struct rig *rig, struct vb_qp *qp, uint8_t opcode, uint32_t psn)
{
	struct vb_sge sge = rig_sge(rig, 0, 8);
	assert_int_equal(vb_rq_post(qp, &(struct vb_recv_wr){ .sges = &sge, .sge_count = 1 }), 0);
	receive_only(rig, qp, opcode, psn);
}

/* A program that takes SENDs or immediate data polls for the next one. Its poll does not wait for it, nor where it has
 * come already. */
static void turns__nobody_waits_who_polls_for_the_answer(void **state)
{
	static const uint8_t opcodes[] = { VB_SEND_ONLY, VB_WRITE_ONLY_IMM };
	for (size_t i = 0; i < COUNT_OF(opcodes); i++) {
		struct rig *rig = rig_open(4);
		struct vb_qp *qp = rig_connected(rig, NULL);
		receive_write(rig, qp, RIG_RQ_PSN);
		receive_polled(rig, qp, opcodes[i], RIG_RQ_PSN + 1);
		send_write(rig, qp, RIG_SQ_PSN);
		assert_false(vb_lane_awaits_answer(rig->lane, rig->now));
		receive_write(rig, qp, RIG_RQ_PSN + 2);
		begin_write(rig, qp);
		receive_polled(rig, qp, opcodes[i], RIG_RQ_PSN + 3);
		end_write(rig, qp, RIG_SQ_PSN + 1);
		assert_false(vb_lane_awaits_answer(rig->lane, rig->now));
		assert_int_equal(vb_qp_destroy(qp), 0);
		rig_close(rig);
	}
}

/* ibv_wr_start has the send queue's lock until ibv_wr_complete, and the QP may die in between. */
static void receive__posted_in_error_while_sends_are_put_together_is_flushed(void **state)
{
	struct rig *rig = rig_open(8);
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_wc wc[3];
	rig_modify(rig, qp, VB_QPS_ERR, 0);
	vb_sq_begin(qp);
	for (uint64_t i = 1; i <= 2; i++)
		assert_int_equal(vb_rq_post(qp, &(struct vb_recv_wr){ .wr_id = i }), 0);
	assert_true(vb_lane_has_doorbells(rig->lane));
	assert_int_equal(rig_transmit(rig), 0);
	vb_sq_end(qp, false);
	assert_int_equal(vb_cq_poll(rig->cq, wc, 3), 2);
	for (uint64_t i = 0; i < 2; i++) {
		assert_int_equal(wc[i].wr_id, i + 1);
		assert_int_equal(wc[i].status, VB_WC_WR_FLUSH_ERR);
	}
	assert_false(vb_lane_has_doorbells(rig->lane));
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void post_served(struct rig *rig, struct vb_qp *qp, uint64_t wr_id)
{
	struct vb_send_wr wr = { .wr_id = wr_id, .opcode = VB_WR_SEND, .flags = VB_SEND_SIGNALED };
	vb_sq_begin(qp);
	assert_int_equal(vb_sq_put(qp, &wr), 0);
	assert_null(vb_sq_serve(qp, rig->now));
}

static void send__of_who_has_the_lane_leaves_without_a_bell(void **state)
{
	struct rig *rig = rig_open(8);
	struct vb_qp *qp = rig_connected(rig, NULL);
	post_served(rig, qp, 1);
	assert_false(vb_lane_has_doorbells(rig->lane));
	assert_int_equal(rig_transmit(rig), 1);
	post_served(rig, qp, 2);
	assert_int_equal(rig_transmit(rig), 1);
	vb_sq_begin(qp); /* the lock is free again, and nothing posted is nothing to do */
	vb_sq_serve(qp, rig->now);
	assert_int_equal(rig_transmit(rig), 0);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static bool may_wait_after(struct rig *rig, struct vb_qp *qp, uint32_t length)
{
	struct vb_sge sge = rig_sge(rig, 0, length);
	struct vb_send_wr wr = { .opcode = VB_WR_SEND, .sges = &sge, .sge_count = 1 };
	vb_sq_begin(qp);
	assert_int_equal(vb_sq_put(qp, &wr), 0);
	assert_null(vb_sq_serve(qp, rig->now));
	return vb_sq_may_wait(qp);
}

static void send__may_wait_for_more_behind_what_is_under_way(void **state)
{
	struct rig *rig = rig_open_lane(8, &(struct vb_lane_config){ .seed = 1, .slot = 1, .turn_bytes = 3 * RIG_MTU });
	struct vb_qp *qp = rig_connected(rig, NULL);
	assert_false(may_wait_after(rig, qp, 8)); /* no acknowledgement is to come that would bring anybody */
	assert_int_equal(rig_transmit(rig), 1);
	assert_true(may_wait_after(rig, qp, RIG_MTU));
	assert_true(may_wait_after(rig, qp, RIG_MTU));
	assert_false(may_wait_after(rig, qp, RIG_MTU)); /* makes a train */
	assert_int_equal(rig_transmit(rig), 3);
	assert_true(may_wait_after(rig, qp, 0));
	assert_true(may_wait_after(rig, qp, RIG_MTU + 1));
	assert_int_equal(rig_transmit(rig), 3);
	rig_modify(rig, qp, VB_QPS_ERR, 0);
	assert_false(vb_sq_may_wait(qp));
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void send__that_is_long_makes_its_own_trains(void **state)
{
	struct rig *rig = rig_open_lane(8, &(struct vb_lane_config){ .seed = 1, .slot = 1, .turn_bytes = RIG_BYTES });
	struct vb_qp *qp = rig_connected(rig, NULL);
	assert_false(may_wait_after(rig, qp, 8));
	rig_transmit(rig);
	assert_true(may_wait_after(rig, qp, 16384));
	assert_false(may_wait_after(rig, qp, 16385));
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void send__of_who_has_the_lane_is_flushed_in_error(void **state)
{
	struct rig *rig = rig_open(8);
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_wc wc[2];
	rig_modify(rig, qp, VB_QPS_ERR, 0);
	rig->now = vb_time_add(rig->now, VB_MS);
	post_served(rig, qp, 7);
	assert_int_equal(vb_cq_poll(rig->cq, wc, 2), 1);
	assert_int_equal(wc[0].wr_id, 7);
	assert_int_equal(wc[0].status, VB_WC_WR_FLUSH_ERR);
	assert_true(wc[0].timestamp == rig->now);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static struct vb_qp *datagram_qp(struct rig *rig)
{
	struct vb_qp_config config = { .type = VB_QP_UD,
		.pd = rig->pd,
		.send_cq = rig->cq,
		.recv_cq = rig->cq,
		.max_send_wr = 1,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1 };
	struct vb_qp *qp;
	assert_int_equal(vb_qp_create(rig->lane, &config, &qp), 0);
	rig_modify(rig, qp, VB_QPS_INIT, VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_QKEY);
	return qp;
}

/* Each way into receiving, and each way out, is counted once. */
static void datagrams__are_taken_while_a_qp_receives(void **state)
{
	struct rig *rig = rig_open(8);
	struct vb_qp *one = datagram_qp(rig), *other = datagram_qp(rig), *connected = rig_connected(rig, NULL);
	assert_false(vb_lane_takes_datagrams(rig->lane));
	rig_modify(rig, one, VB_QPS_RTR, 0);
	rig_modify(rig, one, VB_QPS_RTS, VB_QP_SQ_PSN);
	rig_modify(rig, other, VB_QPS_RTR, 0);
	vb_qp_fail(one, VB_CAUSE_CQ_OVERRUN, VB_WC_FATAL_ERR, rig->now);
	assert_true(vb_lane_takes_datagrams(rig->lane));
	rig_modify(rig, other, VB_QPS_ERR, 0);
	assert_false(vb_lane_takes_datagrams(rig->lane));
	for (unsigned i = 0; i < 2; i++) {
		rig_modify(rig, one, VB_QPS_RESET, 0);
		assert_false(vb_lane_takes_datagrams(rig->lane));
		rig_modify(rig, one, VB_QPS_INIT, VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_QKEY);
		rig_modify(rig, one, VB_QPS_RTR, 0);
		assert_true(vb_lane_takes_datagrams(rig->lane));
	}
	assert_int_equal(vb_qp_destroy(one), 0);
	assert_false(vb_lane_takes_datagrams(rig->lane));
	assert_int_equal(vb_qp_destroy(other), 0);
	assert_int_equal(vb_qp_destroy(connected), 0);
	assert_int_equal(rig->lane->datagram_receivers, 0);
	rig_close(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overrun__in_the_middle_of_sending_kills_at_the_end),
		cmocka_unit_test(overrun__reaches_another_lane_at_its_next_completion),
		cmocka_unit_test(leap__request_is_sent_again_and_given_up_in_time),
		cmocka_unit_test(leap__late_answer_does_not_slow_the_probes_down),
		cmocka_unit_test(leap__ack_held_back_leaves),
		cmocka_unit_test(turns__answer_is_awaited_until_it_comes),
		cmocka_unit_test(receive__posted_in_error_while_sends_are_put_together_is_flushed),
		cmocka_unit_test(send__of_who_has_the_lane_leaves_without_a_bell),
		cmocka_unit_test(send__may_wait_for_more_behind_what_is_under_way),
		cmocka_unit_test(send__that_is_long_makes_its_own_trains),
		cmocka_unit_test(send__of_who_has_the_lane_is_flushed_in_error),
		cmocka_unit_test(turns__answer_is_awaited_for_a_moment),
		cmocka_unit_test(turns__answer_of_many_packets_is_awaited_as_long_as_they_come),
		cmocka_unit_test(turns__answers_of_many_are_awaited_no_longer),
		cmocka_unit_test(turns__nobody_answers_who_was_not_heard),
		cmocka_unit_test(turns__nobody_waits_who_polls_for_the_answer),
		cmocka_unit_test(datagrams__are_taken_while_a_qp_receives),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
