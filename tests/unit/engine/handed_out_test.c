/* A port that is done with packets late and in any order: completions stay in order and come once, and nothing of a
 * QP's earlier epoch, or of one that is gone, is mistaken for another's. */
#include <errno.h>
#include "roce/echo.h"
#include "rig.h"

static struct vb_qp *open_qp(struct rig *rig, enum vb_qp_type type)
{
	struct vb_qp_config config = { .type = type,
		.pd = rig->pd,
		.send_cq = rig->cq,
		.recv_cq = rig->cq,
		.max_send_wr = 16,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_inline = 64 };
	struct vb_qp *qp;
	assert_int_equal(vb_qp_create(rig->lane, &config, &qp), 0);
	return qp;
}

static void connect(struct rig *rig, struct vb_qp *qp)
{
	bool is_ud = qp->type == VB_QP_UD;
	rig_modify(rig, qp, VB_QPS_INIT, VB_QP_PKEY_INDEX | VB_QP_PORT | (is_ud ? VB_QP_QKEY : VB_QP_ACCESS_FLAGS));
	rig_modify(rig, qp, VB_QPS_RTR, is_ud ? 0 : VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN);
	rig_modify(rig, qp, VB_QPS_RTS, VB_QP_SQ_PSN);
}

static struct vb_qp *connected(struct rig *rig, enum vb_qp_type type)
{
	struct vb_qp *qp = open_qp(rig, type);
	connect(rig, qp);
	return qp;
}

static void post(struct rig *rig, struct vb_qp *qp, uint64_t wr_id, uint32_t length, uint32_t flags)
{
	struct vb_av av = { .sgid = vb_gid_from_ipv4(10, 0, 0, 1), .dgid = vb_gid_from_ipv4(10, 0, 0, 2) };
	struct vb_sge sge = rig_sge(rig, 0, length);
	rig_post(qp, &(struct vb_send_wr){ .wr_id = wr_id,
			     .opcode = VB_WR_SEND,
			     .flags = VB_SEND_SIGNALED | flags,
			     .sges = &sge,
			     .sge_count = 1,
			     .av = &av,
			     .remote_qpn = 0x020002 });
}

/* How many packets leave; they are the port's from now on, and their completions ours. */
static unsigned hand_out(struct rig *rig, struct vb_tx_completion *completions)
{
	unsigned count = vb_lane_transmit(rig->lane, &rig->batch, VB_BATCH_PACKETS, rig->now);
	memcpy(completions, rig->batch.completions, count * sizeof(*completions));
	vb_lane_check(rig->lane);
	return count;
}

static void give_back(struct rig *rig, const struct vb_tx_completion *completion, int error)
{
	vb_lane_transmit_done(rig->lane, &(struct vb_tx_completion){ completion->cookie, error }, 1, rig->now);
	vb_lane_check(rig->lane);
}

static void expect_completion(struct rig *rig, uint64_t wr_id, enum vb_wc_status status)
{
	struct vb_wc wc;
	assert_int_equal(vb_cq_poll(rig->cq, &wc, 1), 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
}

static void expect_nothing(struct rig *rig)
{
	struct vb_wc wc;
	assert_int_equal(vb_cq_poll(rig->cq, &wc, 1), 0);
}

static void close_all(struct rig *rig, struct vb_qp *qp)
{
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

/* Of three UC messages the middle one has three packets. */
static void messages__complete_in_order_and_when_all_their_packets_are_back(void **state)
{
	struct rig *rig = rig_open(16);
	struct vb_qp *qp = connected(rig, VB_QP_UC);
	struct vb_tx_completion completions[VB_BATCH_PACKETS];
	post(rig, qp, 1, 8, 0);
	post(rig, qp, 2, 2 * RIG_MTU + 1, 0);
	post(rig, qp, 3, 8, 0);
	assert_int_equal(hand_out(rig, completions), 5);
	give_back(rig, &completions[4], 0);
	give_back(rig, &completions[3], 0);
	give_back(rig, &completions[1], 0);
	expect_nothing(rig);
	give_back(rig, &completions[0], 0);
	expect_completion(rig, 1, VB_WC_SUCCESS);
	expect_nothing(rig);
	give_back(rig, &completions[2], 0);
	expect_completion(rig, 2, VB_WC_SUCCESS);
	expect_completion(rig, 3, VB_WC_SUCCESS);
	close_all(rig, qp);
}

/* A CNP's PSN is 0, which may be a message's too. */
static void message__is_not_completed_by_a_packet_that_is_none(void **state)
{
	struct rig *rig = rig_open(16);
	struct vb_qp *qp = connected(rig, VB_QP_UC);
	struct vb_tx_completion completions[VB_BATCH_PACKETS];
	struct vb_packet packet = {
		.opcode = VB_UC | VB_SEND_ONLY, .pkey = VB_PKEY_DEFAULT, .dest_qpn = vb_qp_number(qp)
	};
	struct vb_path path = { .src = qp->attr.av.dgid, .dst = qp->attr.av.sgid, .traffic_class = 3 };
	qp->requester.una_psn = qp->requester.next_psn = qp->requester.max_psn = 0;
	vb_lane_receive(rig->lane, &path, &packet, 1, rig->now);
	post(rig, qp, 1, 8, 0);
	assert_int_equal(hand_out(rig, completions), 2);
	assert_int_equal(rig->batch.out[0].packet.opcode, VB_CNP);
	give_back(rig, &completions[0], 0);
	expect_nothing(rig);
	give_back(rig, &completions[1], 0);
	expect_completion(rig, 1, VB_WC_SUCCESS);
	close_all(rig, qp);
}

/* The last packet's bytes have left, and more are to come. */
static void message__in_the_middle_of_its_packets_does_not_complete(void **state)
{
	struct rig *rig = rig_open(16);
	struct vb_qp *qp = connected(rig, VB_QP_UC);
	struct vb_tx_completion first, second;
	post(rig, qp, 1, 2 * RIG_MTU, 0);
	assert_int_equal(vb_lane_transmit(rig->lane, &rig->batch, 1, rig->now), 1);
	first = rig->batch.completions[0];
	give_back(rig, &first, 0);
	expect_nothing(rig);
	assert_int_equal(hand_out(rig, &second), 1);
	give_back(rig, &second, 0);
	expect_completion(rig, 1, VB_WC_SUCCESS);
	close_all(rig, qp);
}

/* Inline bytes are the slot's: it is not another's before the port is done. */
static void inline_bytes__stay_until_the_port_is_done(void **state)
{
	struct rig *rig = rig_open(16);
	struct vb_qp *qp = connected(rig, VB_QP_UD);
	struct vb_tx_completion completions[2 * VB_BATCH_PACKETS];
	const uint8_t *lent[16];
	for (unsigned i = 0; i < 16; i++) {
		memset(rig->memory, (int)i + 1, 64);
		post(rig, qp, i, 64, VB_SEND_INLINE);
	}
	assert_int_equal(hand_out(rig, completions), 16);
	for (unsigned i = 0; i < 16; i++)
		lent[i] = rig->batch.iov[rig->batch.out[i].iov_first].base;
	for (unsigned i = 16; i-- > 0;) {
		assert_int_equal(lent[i][0], i + 1);
		assert_int_equal(lent[i][63], i + 1);
		give_back(rig, &completions[i], 0);
		memset(rig->memory, 0xEE, 64);
		vb_sq_begin(qp); /* as much room as there is is used */
		struct vb_sge sge = rig_sge(rig, 0, 64);
		int rc = vb_sq_put(qp, &(struct vb_send_wr){ .opcode = VB_WR_SEND,
					       .flags = VB_SEND_INLINE,
					       .sges = &sge,
					       .sge_count = 1,
					       .av = &(struct vb_av){ .dgid = vb_gid_from_ipv4(10, 0, 0, 2) } });
		assert_int_equal(rc, -ENOMEM);
		vb_sq_end(qp, false);
	}
	for (unsigned i = 0; i < 16; i++)
		expect_completion(rig, i, VB_WC_SUCCESS);
	close_all(rig, qp);
}

static void missing_memory__fails_its_own_message_once_those_before_are_back(void **state)
{
	static const enum vb_qp_type types[] = { VB_QP_UC, VB_QP_UD };
	for (unsigned t = 0; t < COUNT_OF(types); t++) {
		struct rig *rig = rig_open(16);
		struct vb_qp *qp = connected(rig, types[t]);
		struct vb_tx_completion completions[VB_BATCH_PACKETS];
		for (uint64_t i = 1; i <= 4; i++)
			post(rig, qp, i, 8, 0);
		assert_int_equal(hand_out(rig, completions), 4);
		give_back(rig, &completions[2], EFAULT);
		give_back(rig, &completions[3], 0);
		post(rig, qp, 5, 8, 0);
		assert_int_equal(vb_lane_transmit(rig->lane, &rig->batch, VB_BATCH_PACKETS, rig->now), 0);
		give_back(rig, &completions[1], 0);
		expect_nothing(rig);
		give_back(rig, &completions[0], 0);
		expect_completion(rig, 1, VB_WC_SUCCESS);
		expect_completion(rig, 2, VB_WC_SUCCESS);
		expect_completion(rig, 3, VB_WC_LOC_PROT_ERR);
		expect_completion(rig, 4, VB_WC_WR_FLUSH_ERR);
		expect_completion(rig, 5, VB_WC_WR_FLUSH_ERR);
		assert_int_equal(vb_qp_state(qp), VB_QPS_SQE);
		close_all(rig, qp);
	}
}

static void receive_ack(struct rig *rig, struct vb_qp *qp, uint32_t psn, uint8_t syndrome)
{
	rig_receive(rig, qp, (struct vb_packet){ .opcode = VB_ACKNOWLEDGE, .psn = psn, .syndrome = syndrome });
}

/* The completion comes when the requester has gone back, so that it stands before the request that it is about. */
static void missing_memory__said_after_going_back_fails_no_other_request(void **state)
{
	struct rig *rig = rig_open(16);
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_tx_completion first[VB_BATCH_PACKETS], again[VB_BATCH_PACKETS];
	for (uint64_t i = 1; i <= 3; i++)
		post(rig, qp, i, 8, 0);
	assert_int_equal(hand_out(rig, first), 3);
	receive_ack(rig, qp, RIG_SQ_PSN, VB_NAK_PSN_SEQUENCE);
	give_back(rig, &first[1], EFAULT);
	assert_int_equal(hand_out(rig, again), 3);
	give_back(rig, &again[1], EFAULT);
	receive_ack(rig, qp, RIG_SQ_PSN, VB_AETH_ACK | VB_AETH_NO_CREDITS);
	expect_completion(rig, 1, VB_WC_SUCCESS);
	expect_completion(rig, 2, VB_WC_LOC_PROT_ERR);
	expect_completion(rig, 3, VB_WC_WR_FLUSH_ERR);
	close_all(rig, qp);
}

static void missing_memory__of_a_packet_that_got_through_before_fails_nothing(void **state)
{
	struct rig *rig = rig_open(16);
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_tx_completion first[VB_BATCH_PACKETS], again[VB_BATCH_PACKETS];
	for (uint64_t i = 1; i <= 3; i++)
		post(rig, qp, i, 8, 0);
	assert_int_equal(hand_out(rig, first), 3);
	receive_ack(rig, qp, RIG_SQ_PSN, VB_NAK_PSN_SEQUENCE);
	assert_int_equal(hand_out(rig, again), 3);
	give_back(rig, &again[1], EFAULT);
	receive_ack(rig, qp, RIG_SQ_PSN + 1, VB_AETH_ACK | VB_AETH_NO_CREDITS);
	expect_completion(rig, 1, VB_WC_SUCCESS);
	expect_completion(rig, 2, VB_WC_SUCCESS);
	expect_nothing(rig);
	post(rig, qp, 4, 8, 0);
	assert_int_equal(hand_out(rig, again), 1);
	receive_ack(rig, qp, RIG_SQ_PSN + 3, VB_AETH_ACK | VB_AETH_NO_CREDITS);
	expect_completion(rig, 3, VB_WC_SUCCESS);
	expect_completion(rig, 4, VB_WC_SUCCESS);
	close_all(rig, qp);
}

/* The same PSNs are under way again when the completions of before the reset come. */
static void completions__of_before_a_reset_complete_nothing(void **state)
{
	struct rig *rig = rig_open(16);
	struct vb_qp *qp = connected(rig, VB_QP_UD);
	struct vb_tx_completion before[VB_BATCH_PACKETS], after[VB_BATCH_PACKETS];
	post(rig, qp, 1, 8, 0);
	post(rig, qp, 2, 8, 0);
	assert_int_equal(hand_out(rig, before), 2);
	rig_modify(rig, qp, VB_QPS_RESET, 0);
	connect(rig, qp);
	post(rig, qp, 3, 8, 0);
	assert_int_equal(hand_out(rig, after), 1);
	give_back(rig, &before[0], EFAULT);
	give_back(rig, &before[1], 0);
	expect_nothing(rig);
	assert_int_equal(vb_qp_state(qp), VB_QPS_RTS);
	give_back(rig, &after[0], 0);
	expect_completion(rig, 3, VB_WC_SUCCESS);
	assert_int_equal(vb_lane_handed_out(rig->lane), 0);
	close_all(rig, qp);
}

static void destroyed_qp__keeps_its_bytes_until_they_are_back(void **state)
{
	struct rig *rig = rig_open(16);
	struct vb_qp *qp = connected(rig, VB_QP_UC), *other = connected(rig, VB_QP_UC);
	struct vb_tx_completion completions[VB_BATCH_PACKETS], later[VB_BATCH_PACKETS];
	memset(rig->memory, 0xAB, 64);
	post(rig, qp, 1, 64, VB_SEND_INLINE);
	post(rig, qp, 2, 64, VB_SEND_INLINE);
	assert_int_equal(hand_out(rig, completions), 2);
	const uint8_t *lent = rig->batch.iov[rig->batch.out[1].iov_first].base;
	assert_int_equal(vb_qp_destroy(qp), 0);
	post(rig, other, 3, 8, 0);
	assert_int_equal(hand_out(rig, later), 1);
	give_back(rig, &completions[0], 0);
	assert_false(vb_list_empty(&rig->lane->leaving));
	assert_int_equal(lent[0], 0xAB);
	assert_int_equal(lent[63], 0xAB);
	give_back(rig, &completions[1], EFAULT);
	assert_true(vb_list_empty(&rig->lane->leaving)); /* though something left meanwhile, and is still out */
	assert_int_equal(vb_lane_handed_out(rig->lane), 1);
	expect_nothing(rig);
	give_back(rig, &later[0], 0);
	expect_completion(rig, 3, VB_WC_SUCCESS);
	close_all(rig, other);
}

static void lane__that_goes_takes_what_is_at_its_port_along(void **state)
{
	struct rig *rig = rig_open(16);
	struct vb_qp *qp = connected(rig, VB_QP_UC);
	struct vb_tx_completion completions[VB_BATCH_PACKETS];
	post(rig, qp, 1, 64, VB_SEND_INLINE);
	assert_int_equal(hand_out(rig, completions), 1);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig); /* a leak checker finds what stays */
}

/* Whoever waits for what is out now waits for nothing that leaves meanwhile, be it without end. */
static void mark__is_back_when_all_that_was_out_is(void **state)
{
	struct rig *rig = rig_open(16);
	struct vb_qp *qp = connected(rig, VB_QP_UC);
	struct vb_tx_completion now, next = { 0 };
	assert_true(vb_lane_is_back(rig->lane, vb_lane_mark(rig->lane)));
	post(rig, qp, 0, 8, 0);
	assert_int_equal(hand_out(rig, &now), 1);
	for (unsigned i = 1; i < 20; i++) {
		uint32_t mark = vb_lane_mark(rig->lane), again = vb_lane_mark(rig->lane);
		post(rig, qp, i, 8, 0);
		assert_int_equal(hand_out(rig, &next), 1);
		uint32_t later = vb_lane_mark(rig->lane);
		assert_false(vb_lane_is_back(rig->lane, mark));
		give_back(rig, &now, 0);
		assert_true(vb_lane_is_back(rig->lane, mark));
		assert_true(vb_lane_is_back(rig->lane, again));
		assert_false(vb_lane_is_back(rig->lane, later));
		expect_completion(rig, i - 1, VB_WC_SUCCESS);
		now = next;
	}
	give_back(rig, &now, 0);
	close_all(rig, qp);
}

/* A port that never says that it is done does not keep replies from leaving. */
static void echo_replies__need_no_completion(void **state)
{
	struct rig *rig = rig_open(16);
	struct vb_qp *qp = connected(rig, VB_QP_UC);
	struct vb_path path = { .src = qp->attr.av.dgid, .dst = qp->attr.av.sgid };
	struct vb_tx_completion completions[VB_BATCH_PACKETS];
	for (uint32_t i = 0; i < 3 * VB_ECHO_REPLIES; i++) {
		struct vb_packet request = { .opcode = VB_ECHO_REQUEST,
			.pkey = VB_PKEY_DEFAULT,
			.psn = i,
			.dest_qpn = vb_qp_number(qp),
			.src_qpn = 0x020002 };
		vb_lane_receive(rig->lane, &path, &request, 1, rig->now);
		assert_int_equal(hand_out(rig, completions), 1);
		assert_int_equal(rig->batch.out[0].packet.opcode, VB_ECHO_REPLY);
		assert_int_equal(rig->batch.out[0].packet.psn, i);
		assert_true(vb_gid_equal(&rig->batch.out[0].av->dgid, &path.src));
	}
	close_all(rig, qp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages__complete_in_order_and_when_all_their_packets_are_back),
		cmocka_unit_test(message__is_not_completed_by_a_packet_that_is_none),
		cmocka_unit_test(message__in_the_middle_of_its_packets_does_not_complete),
		cmocka_unit_test(inline_bytes__stay_until_the_port_is_done),
		cmocka_unit_test(missing_memory__fails_its_own_message_once_those_before_are_back),
		cmocka_unit_test(missing_memory__said_after_going_back_fails_no_other_request),
		cmocka_unit_test(missing_memory__of_a_packet_that_got_through_before_fails_nothing),
		cmocka_unit_test(completions__of_before_a_reset_complete_nothing),
		cmocka_unit_test(destroyed_qp__keeps_its_bytes_until_they_are_back),
		cmocka_unit_test(lane__that_goes_takes_what_is_at_its_port_along),
		cmocka_unit_test(mark__is_back_when_all_that_was_out_is),
		cmocka_unit_test(echo_replies__need_no_completion),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
