/* How much the checks of a table's rows may take, and what is told of them. */
#include "../unit.h"
#include <string.h>
#include "sim/table_checks.h"

static double all_of(uint64_t rows, double takes)
{
	struct table_checks checks;
	double sum = 0;

	table_checks_begin(&checks, rows);
	for (uint64_t i = 0; i < rows; i++) {
		const double its = table_checks_next(&checks), taken = takes < its ? takes : its;
		table_checks_add(&checks, 1, (uint64_t)taken);
		sum += taken;
	}
	return sum;
}

static void checks__of_few_rows_are_as_large_as_alone(void **state)
{
	struct table_checks checks;

	table_checks_begin(&checks, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_float_equal(table_checks_next(&checks), CHECK_HOPS, 1);
		table_checks_add(&checks, 0.5, (uint64_t)CHECK_HOPS);
	}
}

static void checks__of_many_rows_take_no_more_than_four(void **state)
{
	assert_float_equal(all_of(1000, 1e12), 4 * CHECK_HOPS, 1000);
	assert_float_equal(all_of(9, 1e12), 4 * CHECK_HOPS, 9);
	assert_float_equal(all_of(9, 1e6), 9e6, 1);
}

static void rows__that_are_small_leave_theirs_to_those_behind(void **state)
{
	struct table_checks checks;

	table_checks_begin(&checks, 8);
	assert_float_equal(table_checks_next(&checks), CHECK_HOPS / 2, 1);
	table_checks_add(&checks, 1, 0);
	assert_float_equal(table_checks_next(&checks), 4 * CHECK_HOPS / 7, 1);
	/* An estimate was far too low. */
	table_checks_add(&checks, 1, (uint64_t)(5 * CHECK_HOPS));
	assert_true(table_checks_next(&checks) > 0);
}

/* The line, without its end. */
static const char *told(const struct table_checks *checks, char *text, size_t size)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	table_checks_tell(checks, file, "# ");
	rewind(file);
	if (!fgets(text, (int)size, file))
		*text = 0;
	text[strcspn(text, "\n")] = 0;
	fclose(file);
	return text;
}

static void line__says_what_was_checked(void **state)
{
	struct table_checks checks;
	char text[200];

	table_checks_begin(&checks, 3);
	assert_string_equal(told(&checks, text, sizeof(text)), "");
	table_checks_add(&checks, 0.5, 1000000);
	assert_string_equal(told(&checks, text, sizeof(text)),
		"# error: of a piece of each row that ran by packets, too: 50% of each message's bytes, 1 M "
		"packet-hops in all");
	table_checks_add(&checks, 0.125, 2000000);
	table_checks_add(&checks, 1, 1000000);
	assert_string_equal(told(&checks, text, sizeof(text)),
		"# error: of a piece of each row that ran by packets, too: 12.5% to 100% of each message's bytes, "
		"4 M packet-hops in all");
}

static void error__has_a_sign_or_is_not_known(void **state)
{
	char text[32];

	assert_string_equal(table_error_text(true, -0.0123, text, sizeof(text)), "-1.23%");
	assert_string_equal(table_error_text(true, 0.5, text, sizeof(text)), "+50.00%");
	assert_string_equal(table_error_text(false, 0, text, sizeof(text)), "-");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checks__of_few_rows_are_as_large_as_alone),
		cmocka_unit_test(checks__of_many_rows_take_no_more_than_four),
		cmocka_unit_test(rows__that_are_small_leave_theirs_to_those_behind),
		cmocka_unit_test(line__says_what_was_checked),
		cmocka_unit_test(error__has_a_sign_or_is_not_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
