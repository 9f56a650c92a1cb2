/* Requests that wait for their listener. */
#include "../unit.h"
#include "broker/early.h"

static struct early early;
static uint8_t bytes[VB_MAD_LENGTH];

static bool hold(uint8_t mark, uint64_t now)
{
	const struct vb_cm_message cm = { .kind = VB_CM_REQ, .local_id = mark };
	const struct qp1_mad mad = { .scope = mark, .bytes = bytes, .length = 300, .cm = &cm };
	memset(bytes, mark, sizeof(bytes));
	return early_hold(&early, &mad, now, EARLY_MAX);
}

static int setup(void **state)
{
	early = (struct early){ 0 };
	return 0;
}

static void hold__keeps_the_bytes_until_they_are_due(void **state)
{
	bool is_due = true;
	assert_true(hold(1, 1000));
	memset(bytes, 9, sizeof(bytes));
	const struct qp1_mad *mad = early_look(&early, 0, 1000 + EARLY_MS - 1, &is_due);
	assert_false(is_due);
	assert_int_equal(mad->bytes[0], 1);
	assert_int_equal(mad->bytes[VB_MAD_LENGTH - 1], 1);
	assert_int_equal(mad->length, VB_MAD_LENGTH);
	assert_int_equal(mad->cm->local_id, 1);
	assert_non_null(early_look(&early, 0, 1000 + EARLY_MS, &is_due));
	assert_true(is_due);
	assert_null(early_look(&early, 1, 1000, &is_due));
}

static void hold__of_strangers_leaves_room(void **state)
{
	const struct vb_cm_message cm = { .kind = VB_CM_REQ };
	const struct qp1_mad mad = { .bytes = bytes, .cm = &cm };
	for (unsigned i = 0; i < EARLY_MAX / 2; i++)
		assert_true(early_hold(&early, &mad, 1000, EARLY_MAX / 2));
	assert_false(early_hold(&early, &mad, 1000, EARLY_MAX / 2));
	assert_true(hold(1, 1000));
}

static void forget__leaves_the_others_in_order(void **state)
{
	bool is_due;
	for (uint8_t mark = 1; mark <= 3; mark++)
		assert_true(hold(mark, mark));
	early_forget(&early, 1);
	assert_int_equal(early_look(&early, 0, 0, &is_due)->bytes[7], 1);
	assert_int_equal(early_look(&early, 1, 0, &is_due)->bytes[7], 3);
	assert_int_equal(early_look(&early, 1, 0, &is_due)->scope, 3);
	assert_null(early_look(&early, 2, 0, &is_due));
}

static void hold__is_bounded(void **state)
{
	for (int i = 0; i < EARLY_MAX; i++)
		assert_true(hold(1, 0));
	assert_false(hold(2, 0));
	early_forget(&early, EARLY_MAX - 1);
	assert_true(hold(2, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(hold__keeps_the_bytes_until_they_are_due, setup),
		cmocka_unit_test_setup(hold__of_strangers_leaves_room, setup),
		cmocka_unit_test_setup(forget__leaves_the_others_in_order, setup),
		cmocka_unit_test_setup(hold__is_bounded, setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
