/* A turn cuts a message into trains: a SEND that is alone in halves, anything else as it comes. */
#include "two.h"

enum { HALVED = 32768 };

static void post_of(struct two *two, enum vb_wr_opcode opcode, uint32_t length)
{
	struct vb_sge sge = rig_sge(two->end[0].rig, 0, length);
	rig_post(two->end[0].qp, &(struct vb_send_wr){ .opcode = opcode,
					 .sges = &sge,
					 .sge_count = 1,
					 .remote_addr = (uintptr_t)two->end[1].rig->memory,
					 .rkey = vb_mr_key(two->end[1].rig->mr) });
}

/* Packets before each end of a train that is marked, and of all that follow the last mark. */
static unsigned parts_of(struct two *two, unsigned parts[VB_BATCH_PACKETS])
{
	struct rig *rig = two->end[0].rig;
	unsigned n = 0;
	memset(parts, 0, VB_BATCH_PACKETS * sizeof(parts[0]));
	while (rig_transmit(rig) > 0)
		for (unsigned i = 0; i < rig->batch.count; i++) {
			parts[n]++;
			n += rig->batch.out[i].ends_train;
		}
	return n + 1;
}

static void send__that_is_alone_goes_in_halves(void **state)
{
	static const struct {
		uint32_t length;
		unsigned halves[2];
	} cases[] = { { HALVED - 1, { 32 } }, { HALVED, { 16, 16 } }, { HALVED + 1, { 17, 16 } },
		{ 48 * RIG_MTU, { 24, 24 } } };
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct two *two = open_two(1, 1);
		unsigned parts[VB_BATCH_PACKETS];
		exchange(two, 0, VB_WR_RDMA_WRITE, 2);
		post_of(two, VB_WR_SEND, cases[i].length);
		assert_int_equal(parts_of(two, parts), cases[i].halves[1] ? 2 : 1);
		assert_int_equal(parts[0], cases[i].halves[0]);
		assert_int_equal(parts[1], cases[i].halves[1]);
		close_two(two);
	}
}

/* Its receiver has others to take meanwhile. */
static void send__beside_another_goes_as_a_whole(void **state)
{
	for (unsigned is_sent = 0; is_sent < 2; is_sent++) {
		struct two *two = open_two(1, 1);
		unsigned parts[VB_BATCH_PACKETS];
		exchange(two, 0, VB_WR_RDMA_WRITE, 2);
		post_of(two, VB_WR_SEND, 8);
		if (is_sent)
			assert_int_equal(rig_transmit(two->end[0].rig), 1);
		post_of(two, VB_WR_SEND, HALVED);
		assert_int_equal(parts_of(two, parts), 1);
		close_two(two);
	}
}

static void send__behind_another_qps_goes_as_a_whole(void **state)
{
	struct two *two = open_two(1, 1);
	struct rig *rig = two->end[0].rig;
	unsigned parts[VB_BATCH_PACKETS];
	struct end beside = { .rig = rig, .qp = rig_qp(rig, NULL) };
	connect_end(&beside, 0, vb_qp_number(two->end[1].qp));
	exchange(two, 0, VB_WR_RDMA_WRITE, 2);
	struct vb_sge sge = rig_sge(rig, 0, 8);
	rig_post(beside.qp, &(struct vb_send_wr){ .opcode = VB_WR_SEND, .sges = &sge, .sge_count = 1 });
	assert_true(rig_transmit(rig) > 0);
	post_of(two, VB_WR_SEND, HALVED);
	assert_int_equal(parts_of(two, parts), 1);
	assert_int_equal(parts[0], 32);
	assert_int_equal(vb_qp_destroy(beside.qp), 0);
	close_two(two);
}

/* Its first turns are under way when it has its last. */
static void send__of_more_than_a_turn_goes_by_whole_turns(void **state)
{
	struct two *two = open_two(1, 1);
	unsigned parts[VB_BATCH_PACKETS];
	vb_roce_lane(two->end[0].rig->lane)->config.turn_bytes = 32 * (RIG_MTU + 64);
	exchange(two, 0, VB_WR_RDMA_WRITE, 2);
	vb_roce(two->end[0].qp)->congestion.cc.window_bytes = 1 << 20;
	post_of(two, VB_WR_SEND, RIG_BYTES);
	assert_int_equal(parts_of(two, parts), 1);
	assert_int_equal(parts[0], 64);
	close_two(two);
}

/* They are not waited for by a thread that polls. */
static void write__goes_as_a_whole(void **state)
{
	struct two *two = open_two(1, 1);
	unsigned parts[VB_BATCH_PACKETS];
	exchange(two, 0, VB_WR_RDMA_WRITE, 2);
	post_of(two, VB_WR_RDMA_WRITE, HALVED);
	assert_int_equal(parts_of(two, parts), 1);
	assert_int_equal(parts[0], 32);
	close_two(two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send__that_is_alone_goes_in_halves),
		cmocka_unit_test(write__goes_as_a_whole),
		cmocka_unit_test(send__behind_another_qps_goes_as_a_whole),
		cmocka_unit_test(send__of_more_than_a_turn_goes_by_whole_turns),
		cmocka_unit_test(send__beside_another_goes_as_a_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
