/* A lane's table of QPs: it grows with them, and their numbers stay apart. */
#include "rig.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qps__are_found_however_many_there_are),
		cmocka_unit_test(numbers__do_not_return_soon),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
