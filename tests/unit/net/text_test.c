#include <errno.h>
#include <unistd.h>
#include "net/text.h"
#include "../unit.h"

static char why[100];

static struct span of(const char *text)
{
	return (struct span){ .at = text, .length = strlen(text) };
}

static void lines__are_counted_and_blank_ones_and_comments_left_out(void **state)
{
	const char *bytes = "\n  \t\r\n# no\n  one two\r\nthree";
	struct text text = text_of("name", bytes, strlen(bytes), why, sizeof(why));
	struct span line, word;
	assert_true(text_next(&text, '#', &line));
	assert_int_equal(text.line, 4);
	assert_true(span_take(&line, 0, &word));
	assert_true(span_is(word, "ONE"));
	assert_true(span_take(&line, 0, &word));
	assert_true(span_is(word, "two"));
	assert_false(span_take(&line, 0, &word));
	assert_true(text_next(&text, '#', &line));
	assert_true(span_is(line, "three"));
	assert_false(text_next(&text, '#', &line));
	assert_int_equal(text_wrong(&text, "no %d", 7), -EINVAL);
	assert_string_equal(why, "name:5: no 7");
	text_wrong(&text, "no %s", "\033[31m\r");
	assert_string_equal(why, "name:5: no ?[31m?");
}

static void words__are_apart_by_a_separator(void **state)
{
	struct span line = of("a, b ,,c"), word;
	const char *expected[] = { "a", "b", "", "c" };
	for (int i = 0; i < 4; i++) {
		assert_true(span_take(&line, ',', &word));
		assert_true(span_is(word, expected[i]));
	}
	assert_false(span_take(&line, ',', &word));
}

static void text__begins_behind_its_byte_order_mark(void **state)
{
	const char *bytes = "\xEF\xBB\xBF"
			    "1\n";
	struct text text = text_of("name", bytes, strlen(bytes), why, sizeof(why));
	struct span line;
	assert_true(text_next(&text, '#', &line));
	assert_true(span_is(line, "1"));
}

static int is_columns(const char *line)
{
	struct text text = text_of("name", "", 0, why, sizeof(why));
	return text_is_columns(&text, of(line), "src,dst");
}

static void columns__are_those_that_are_expected(void **state)
{
	assert_int_equal(is_columns("src,dst"), 1);
	assert_int_equal(is_columns("SRC, dst \r"), 1);
	const char *none[] = { "1,2", "-1,2", ",", "\"1\",2",
		"\xFF\xFE"
		"s" };
	for (unsigned i = 0; i < COUNT_OF(none); i++)
		assert_int_equal(is_columns(none[i]), 0);
	const char *other[] = { "dst,src", "src", "src,dst,bytes", "src;dst", "sr,dst" };
	for (unsigned i = 0; i < COUNT_OF(other); i++)
		assert_int_equal(is_columns(other[i]), -EINVAL);
	assert_string_equal(why, "name:0: the columns are sr,dst, expected src,dst");
}

static void numbers__are_exact_or_refused(void **state)
{
	uint64_t n = 0;
	assert_true(span_number(of("0"), 10, &n) && n == 0);
	assert_true(span_number(of("18446744073709551615"), UINT64_MAX, &n) && n == UINT64_MAX);
	assert_true(span_number(of("2.0"), 10, &n) && n == 2);
	const char *wrong[] = { "", "-1", "+1", "1x", "0x1", "11", "1.5", ".", "1..2", "18446744073709551616", "1e3",
		"99999999999999999999999999999999999999999" };
	for (unsigned i = 0; i < COUNT_OF(wrong); i++)
		assert_false(span_number(of(wrong[i]), 10, &n));
	assert_false(span_number(of("18446744073709551616"), UINT64_MAX, &n));
}

static void decimals__are_exact_or_refused(void **state)
{
	uint64_t n = 0;
	assert_true(span_decimal(of("0.000001"), 1000000, 10, &n) && n == 1);
	assert_true(
		span_decimal(of("2.000000000000000000000000"), 1000000000000, UINT64_MAX, &n) && n == 2000000000000);
	assert_true(span_decimal(of(".5"), 10, 10, &n) && n == 5);
	assert_true(span_decimal(of("5."), 10, 100, &n) && n == 50);
	assert_false(span_decimal(of("0.0000001"), 1000000, 10, &n));
	assert_false(span_decimal(of("0.0000000000000000001"), 1000000, 10, &n));
	assert_false(span_decimal(of("1.1"), 10, 10, &n));
	assert_true(span_decimal(of("1.5e3"), 1, 2000, &n) && n == 1500);
	assert_true(span_decimal(of("2E+01"), 1, 20, &n) && n == 20);
	assert_true(span_decimal(of("2.5e-6"), 1000000000000, UINT64_MAX, &n) && n == 2500000);
	assert_true(span_decimal(of("0e18"), 1, 0, &n) && n == 0);
	assert_true(span_decimal(of("18446744073709551615e-0"), 1, UINT64_MAX, &n) && n == UINT64_MAX);
	const char *wrong[] = { "1e", "e1", "1e-", "1e+-1", "1e1.0", "1e2e1", "1e19", "1e99999999999", "1.5e0", "15e-1",
		"1e18", "18446744073709551615e18", "1e1 " };
	for (unsigned i = 0; i < COUNT_OF(wrong); i++)
		assert_false(span_decimal(of(wrong[i]), 1, 1000000, &n));
}

static void units__are_known(void **state)
{
	uint64_t n = 0;
	assert_true(span_rate(of("100Gbps"), &n) && n == 100000000000);
	assert_true(span_rate(of("0.5kbps"), &n) && n == 500);
	assert_true(span_rate(of("7bps"), &n) && n == 7);
	assert_false(span_rate(of("Gbps"), &n));
	assert_false(span_rate(of("100"), &n));
	assert_false(span_rate(of("100 Gbps"), &n));
	assert_true(span_time(of("0.001ms"), 1000000, &n) && n == 1000000);
	assert_true(span_time(of("1us"), 1000000, &n) && n == 1000000);
	assert_true(span_time(of("3ns"), 1000000, &n) && n == 3000);
	assert_true(span_time(of("0s"), 1000000, &n) && n == 0);
	assert_false(span_time(of("1.1us"), 1000000, &n));
	assert_false(span_time(of("1"), 1000000, &n));
}

static void file__is_read_whole(void **state)
{
	char path[] = "/tmp/text_test.XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	FILE *file = fdopen(fd, "w");
	for (int i = 0; i < 40000; i++)
		fprintf(file, "line %d\n", i);
	fclose(file);
	struct text text;
	assert_int_equal(text_open(&text, path, why, sizeof(why)), 0);
	unlink(path);
	struct span line;
	uint32_t lines = 0;
	while (text_next(&text, '#', &line))
		lines++;
	assert_int_equal(lines, 40000);
	text_close(&text);
}

static void file__that_is_not_there_is_named(void **state)
{
	struct text text;
	assert_int_equal(text_open(&text, "/nowhere/at/all", why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "/nowhere/at/all: No such file or directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines__are_counted_and_blank_ones_and_comments_left_out),
		cmocka_unit_test(words__are_apart_by_a_separator),
		cmocka_unit_test(text__begins_behind_its_byte_order_mark),
		cmocka_unit_test(columns__are_those_that_are_expected),
		cmocka_unit_test(numbers__are_exact_or_refused),
		cmocka_unit_test(decimals__are_exact_or_refused),
		cmocka_unit_test(units__are_known),
		cmocka_unit_test(file__is_read_whole),
		cmocka_unit_test(file__that_is_not_there_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
