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
	struct vb_qp_config config = { .type = VB_QP_RC, .pd = rig->pd, .send_cq = rig->cq, .recv_cq = rig->cq, .max_send_wr = 1,
		.max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 };
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qps__are_found_however_many_there_are),
		cmocka_unit_test(numbers__do_not_return_soon),
		cmocka_unit_test(numbers__are_of_the_lanes_part_until_it_has_none_left),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
