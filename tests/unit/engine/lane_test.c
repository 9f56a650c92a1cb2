/* A lane's table of QPs: it grows with them, and their numbers stay apart. */
#include "rig.h"
#include <errno.h>

static void qps__are_found_however_many_there_are(void **state)
{
	enum { MANY = 700 };
	static struct vb_qp *qps[MANY];
	struct rig *rig = rig_open(16);
	assert_null(vb_lane_find_qp(rig->lane, 0x010002));
	for (int i = 0; i < MANY; i++) {
		qps[i] = rig_qp(rig, NULL);
		for (int k = 0; k <= i; k++)
			assert_ptr_equal(vb_lane_find_qp(rig->lane, vb_qp_number(qps[k])), qps[k]);
	}
	for (int i = 1; i < MANY; i += 2) {
		uint32_t number = vb_qp_number(qps[i]);
		assert_int_equal(vb_qp_destroy(qps[i]), 0);
		assert_null(vb_lane_find_qp(rig->lane, number));
	}
	for (int i = 0; i < MANY; i += 2) {
		uint32_t number = vb_qp_number(qps[i]);
		assert_ptr_equal(vb_lane_find_qp(rig->lane, number), qps[i]);
		assert_null(vb_lane_find_qp(rig->lane, number ^ 0x8000)); /* nobody's, that would have its place */
		assert_null(vb_lane_find_qp(rig->lane, number ^ 0x020000));
		vb_lane_prefetch(rig->lane, number);
		assert_int_equal(vb_qp_destroy(qps[i]), 0);
		vb_lane_prefetch(rig->lane, number);
	}
	vb_lane_check(rig->lane);
	rig_close(rig);
}

static void numbers__do_not_return_soon(void **state)
{
	static bool was_given[0x10000];
	struct rig *rig = rig_open(16);
	struct vb_qp *staying[3] = { rig_qp(rig, NULL), rig_qp(rig, NULL), rig_qp(rig, NULL) };
	for (int i = 0; i < 20000; i++) {
		struct vb_qp *qp = rig_qp(rig, NULL);
		uint32_t index = vb_qp_number(qp) & 0xffff;
		assert_in_range(index, 2, 0xfffe);
		assert_false(was_given[index]);
		was_given[index] = true;
		assert_int_equal(vb_qp_destroy(qp), 0);
	}
	for (size_t i = 0; i < COUNT_OF(staying); i++)
		assert_int_equal(vb_qp_destroy(staying[i]), 0);
	rig_close(rig);
}

static struct vb_qp *create_at(struct rig *rig, int expected)
{
	struct vb_qp_config config = { .type = VB_QP_RC,
		.pd = rig->pd,
		.send_cq = rig->cq,
		.recv_cq = rig->cq,
		.max_send_wr = 1,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1 };
	struct vb_qp *qp = NULL;
	assert_int_equal(vb_qp_create(rig->lane, &config, &qp), expected);
	return qp;
}

/* Others have the rest: what is published of a QP goes by its index alone. */
static void numbers__are_of_the_lanes_part_until_it_has_none_left(void **state)
{
	enum { FIRST = 24576, COUNT = 4096, MOST = COUNT - 3 };
	static struct vb_qp *qps[MOST];
	struct vb_lane_config part = { .seed = 5, .slot = 1, .first_index = FIRST, .index_count = COUNT };
	struct rig *rig = rig_open_lane(16, &part);
	for (int i = 0; i < MOST; i++) {
		qps[i] = create_at(rig, 0);
		assert_in_range(vb_qp_number(qps[i]) & 0xffff, FIRST, FIRST + COUNT - 1);
	}
	create_at(rig, -ENOSPC);
	assert_int_equal(vb_qp_destroy(qps[7]), 0);
	qps[7] = create_at(rig, 0);
	for (int i = 0; i < MOST; i++) {
		assert_ptr_equal(vb_lane_find_qp(rig->lane, vb_qp_number(qps[i])), qps[i]);
		assert_int_equal(vb_qp_destroy(qps[i]), 0);
	}
	rig_close(rig);
}

static struct vb_qp *create_numbered(struct rig *rig, uint32_t number, int expected)
{
	struct vb_qp_config config = { .type = VB_QP_RC,
		.pd = rig->pd,
		.send_cq = rig->cq,
		.recv_cq = rig->cq,
		.max_send_wr = 1,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.number = number };
	struct vb_qp *qp = NULL;
	assert_int_equal(vb_qp_create(rig->lane, &config, &qp), expected);
	return qp;
}

/* In any order, far apart and again when they are gone; others are given none of those that are taken. */
static void numbers__are_given_before_there_are_qps(void **state)
{
	enum { MANY = 9000, STEP = 1024 };
	static uint32_t numbers[MANY];
	struct vb_qp *qps[MANY / STEP + 1], *other;
	struct rig *rig = rig_open(16), *twin = rig_open(16);
	for (int i = 0; i < MANY; i++)
		numbers[i] = vb_lane_next_number(rig->lane);
	struct vb_qp *first = rig_qp(twin, NULL);
	assert_int_equal(vb_qp_number(first), numbers[0]); /* as the first would have been given */
	for (int i = MANY / STEP; i >= 0; i--) {
		assert_false(vb_lane_has_qp(rig->lane, numbers[i * STEP]));
		qps[i] = create_numbered(rig, numbers[i * STEP], 0);
		assert_int_equal(vb_qp_number(qps[i]), numbers[i * STEP]);
		create_numbered(rig, numbers[i * STEP], -EADDRINUSE);
	}
	other = rig_qp(rig, NULL);
	for (int i = 0; i <= MANY / STEP; i++) {
		assert_true(vb_lane_has_qp(rig->lane, numbers[i * STEP]));
		assert_int_not_equal(vb_qp_number(other), numbers[i * STEP]);
		assert_int_equal(vb_qp_destroy(qps[i]), 0);
		assert_false(vb_lane_has_qp(rig->lane, numbers[i * STEP]));
	}
	qps[0] = create_numbered(rig, numbers[0], 0);
	vb_lane_check(rig->lane);
	assert_int_equal(vb_qp_destroy(qps[0]), 0);
	assert_int_equal(vb_qp_destroy(other), 0);
	assert_int_equal(vb_qp_destroy(first), 0);
	rig_close(rig);
	rig_close(twin);
}

/* A request of ours is under way; what comes is the peer's, and in front of the ack of ours. */
static unsigned complete_with_train(
	struct rig *rig, struct vb_qp *qp, const struct vb_packet *packets, size_t n, struct vb_wc *wc)
{
	struct vb_path path = { .src = qp->attr.av.dgid, .dst = qp->attr.av.sgid };
	struct vb_sge sge = rig_sge(rig, 0, 8);
	rig_post(qp,
		&(struct vb_send_wr){ .opcode = VB_WR_SEND, .flags = VB_SEND_SIGNALED, .sges = &sge, .sge_count = 1 });
	assert_int_equal(rig_transmit(rig), 1);
	vb_lane_receive(rig->lane, &path, packets, n, rig->now);
	vb_lane_check(rig->lane);
	return (unsigned)vb_cq_poll(rig->cq, wc, 4);
}

static void train__ack_at_its_end_counts_as_first(void **state)
{
	static const uint8_t payload[8];
	struct rig *rig = rig_open(8);
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_sge sge = rig_sge(rig, 64, 64);
	struct vb_wc wc[4];
	struct vb_packet packets[] = {
		{ .opcode = VB_SEND_ONLY, .psn = RIG_RQ_PSN, .payload = payload, .payload_length = 8 },
		{ .opcode = VB_SEND_ONLY, .psn = RIG_RQ_PSN + 1, .payload = payload, .payload_length = 8 },
		{ .opcode = VB_ACKNOWLEDGE, .psn = RIG_SQ_PSN, .syndrome = VB_AETH_ACK | VB_AETH_NO_CREDITS }
	};
	for (size_t i = 0; i < COUNT_OF(packets); i++) {
		packets[i].pkey = VB_PKEY_DEFAULT;
		packets[i].dest_qpn = vb_qp_number(qp);
	}
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(vb_rq_post(qp, &(struct vb_recv_wr){ .wr_id = i, .sges = &sge, .sge_count = 1 }), 0);
	assert_int_equal(complete_with_train(rig, qp, packets, COUNT_OF(packets), wc), 3);
	assert_int_equal(wc[0].opcode, VB_WC_SEND);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(wc[i + 1].opcode, VB_WC_RECV);
		assert_int_equal(wc[i + 1].wr_id, i);
	}
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

/* It acknowledges what the response answers, and more: taken first it would say that the response was lost. */
static void train__ack_behind_a_response_stays_there(void **state)
{
	static const uint8_t payload[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct rig *rig = rig_open(8);
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_sge sge = rig_sge(rig, 512, 8);
	struct vb_wc wc[4];
	struct vb_packet packets[] = { { .opcode = VB_READ_RESPONSE_ONLY,
					       .psn = RIG_SQ_PSN,
					       .syndrome = VB_AETH_ACK | VB_AETH_NO_CREDITS,
					       .payload = payload,
					       .payload_length = 8 },
		{ .opcode = VB_ACKNOWLEDGE, .psn = RIG_SQ_PSN + 1, .syndrome = VB_AETH_ACK | VB_AETH_NO_CREDITS } };
	for (size_t i = 0; i < COUNT_OF(packets); i++) {
		packets[i].pkey = VB_PKEY_DEFAULT;
		packets[i].dest_qpn = vb_qp_number(qp);
	}
	rig_post(qp, &(struct vb_send_wr){
			     .opcode = VB_WR_RDMA_READ, .flags = VB_SEND_SIGNALED, .sges = &sge, .sge_count = 1 });
	assert_int_equal(rig_transmit(rig), 1);
	assert_int_equal(complete_with_train(rig, qp, packets, COUNT_OF(packets), wc), 2);
	assert_int_equal(wc[0].opcode, VB_WC_RDMA_READ);
	assert_int_equal(wc[1].opcode, VB_WC_SEND);
	assert_int_equal(rig_counter(rig, VB_IMPLIED_NAK), 0);
	assert_memory_equal(rig->memory + 512, payload, sizeof(payload));
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qps__are_found_however_many_there_are),
		cmocka_unit_test(numbers__do_not_return_soon),
		cmocka_unit_test(numbers__are_of_the_lanes_part_until_it_has_none_left),
		cmocka_unit_test(numbers__are_given_before_there_are_qps),
		cmocka_unit_test(train__ack_at_its_end_counts_as_first),
		cmocka_unit_test(train__ack_behind_a_response_stays_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
