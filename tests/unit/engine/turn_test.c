/* What leaves in a turn, and in which trains. */
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
	parts[0] = 0;
	while (rig_transmit(rig) > 0)
		for (unsigned i = 0; i < rig->batch.count; i++) {
			parts[n]++;
			if (rig->batch.out[i].ends_train)
				parts[++n] = 0;
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

/* They are not waited for by a thread that polls. */
static void write__goes_as_a_whole(void **state)
{
	struct two *two = open_two(1, 1);
	unsigned parts[VB_BATCH_PACKETS];
	exchange(two, 0, VB_WR_RDMA_WRITE, 2);
	post_of(two, VB_WR_RDMA_WRITE, HALVED);
	assert_int_equal(parts_of(two, parts), 1);
	close_two(two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send__that_is_alone_goes_in_halves),
		cmocka_unit_test(write__goes_as_a_whole),
		cmocka_unit_test(send__beside_another_goes_as_a_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
