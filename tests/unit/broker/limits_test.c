/* Whom a broker serves, and who may have the last of a thing. */
#include "../unit.h"
#include "broker/limits.h"

static const struct limits of_root = { .own = 0 }, of_user = { .own = 1000 },
			   shared = { .own = 1000, .is_shared = true };

static void broker__of_root_serves_everybody(void **state)
{
	assert_true(limits_serves(&of_root, 0));
	assert_true(limits_serves(&of_root, 1001));
}

static void broker__of_a_user_serves_that_user_and_root(void **state)
{
	assert_true(limits_serves(&of_user, 1000));
	assert_true(limits_serves(&of_user, 0));
	assert_false(limits_serves(&of_user, 1001));
	assert_true(limits_serves(&shared, 1001));
}

static void own_user_and_root__may_have_the_last(void **state)
{
	assert_true(limits_may_take(&of_user, 1000, 253, 253, 254));
	assert_true(limits_may_take(&of_user, 0, 0, 253, 254));
	assert_false(limits_may_take(&of_user, 1000, 254, 254, 254));
	assert_false(limits_may_take(&of_user, 0, 0, 254, 254));
}

static void others__leave_room(void **state)
{
	assert_true(limits_may_take(&of_root, 1001, 383, 383, 512));
	assert_false(limits_may_take(&of_root, 1001, 384, 384, 512));
	assert_false(limits_may_take(&of_root, 1001, 100, 480, 512)); /* what is left is for who has next to nothing */
	assert_true(limits_may_take(&of_root, 1001, 7, 480, 512));
	assert_false(limits_may_take(&of_root, 1001, 8, 480, 512));
	assert_false(limits_may_take(&of_root, 1001, 0, 512, 512));
}

static void holders__are_named_by_size(void **state)
{
	struct holders holders = { 0 };
	char text[100];
	static const uid_t uids[] = { 5, 7, 7, 6, 7, 6, 9, 10, 10, 10, 10, 10, 10 };
	for (unsigned i = 0; i < COUNT_OF(uids); i++)
		holders_add(&holders, uids[i]);
	holders_name(&holders, text, sizeof(text));
	assert_ptr_equal(strstr(text, "uid "), text);
	assert_non_null(strstr(text, "uid 7: 3"));
	assert_int_equal(holders.count, LIMITS_HOLDERS);
	holders_name(&holders, text, 12); /* cut, and ended */
	assert_in_range(strlen(text), 1, 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(broker__of_root_serves_everybody),
		cmocka_unit_test(broker__of_a_user_serves_that_user_and_root),
		cmocka_unit_test(own_user_and_root__may_have_the_last),
		cmocka_unit_test(others__leave_room),
		cmocka_unit_test(holders__are_named_by_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
