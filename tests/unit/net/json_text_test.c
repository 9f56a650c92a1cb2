/* JSON is taken apart as far as it is JSON. */
#include "net/json_text.h"
#include "../unit.h"

/* A copy of just this size, so that sanitizers see who reads beyond it. */
static bool passes(const char *text)
{
	const size_t length = strlen(text);
	char *copy = malloc(length + !length);
	memcpy(copy, text, length);
	struct json json = { copy, copy + length };
	const bool is = json_pass(&json) && json_is_end(&json);
	free(copy);
	return is;
}

static void values__are_passed(void **state)
{
	assert_true(passes("1"));
	assert_true(passes(" -1.5e3 "));
	assert_true(passes("\"a\\\"b\""));
	assert_true(passes("[]"));
	assert_true(passes("{ }"));
	assert_true(passes("[[], {}, [1, 2], {\"a\": {\"b\": [true, false, null]}, \"c\": \"\"}]"));
	assert_true(passes("{\"a\": []}"));
}

static void what_is_no_value__is_not_passed(void **state)
{
	static const char *const wrong[] = { "", " ", "x", "[", "{", "[1", "[1,", "[1,]", "[,]", "{\"a\"}", "{\"a\":}",
		"{\"a\": 1,}", "{1: 2}", "[1}", "{\"a\": 1]", "\"a", "\"a\\", "\"a\n\"", "[1 2]", "tru", "]", "1]" };
	for (size_t i = 0; i < COUNT_OF(wrong); i++)
		if (passes(wrong[i]))
			fail_msg("%s", wrong[i]);
}

static void depth__has_a_bound(void **state)
{
	char text[200];
	memset(text, '[', sizeof(text));
	for (size_t depth = 1; depth <= 65; depth++) {
		memset(text + depth, ']', depth);
		text[2 * depth] = 0;
		assert_int_equal(passes(text), depth <= 64);
		memset(text, '[', sizeof(text));
	}
}

static void parts__are_taken(void **state)
{
	static const char text[] = " { \"a\\n\" : 17 , 18.5";
	struct json json = { text, text + strlen(text) };
	struct span key;
	uint64_t number;
	assert_false(json_take(&json, '['));
	assert_true(json_take(&json, '{'));
	assert_true(json_take_string(&json, &key));
	assert_int_equal(key.length, 3);
	assert_true(json_take(&json, ':'));
	assert_false(json_take_number(&json, 16, &number));
	assert_true(json_take_number(&json, 17, &number));
	assert_int_equal(number, 17);
	assert_true(json_take(&json, ','));
	assert_false(json_take_number(&json, 100, &number));
	assert_false(json_is_end(&json));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values__are_passed),
		cmocka_unit_test(what_is_no_value__is_not_passed),
		cmocka_unit_test(depth__has_a_bound),
		cmocka_unit_test(parts__are_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
