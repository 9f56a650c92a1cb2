/* What is said of endpoints in few words. */
#include "../unit.h"
#include "sim/explain.h"

static const char *said_of(const char *marks, size_t size)
{
	static char text[100];
	bool are_in[40] = { 0 };
	for (size_t i = 0; i < strlen(marks); i++)
		are_in[i] = marks[i] == 'x';
	return endpoints_text(are_in, (uint32_t)strlen(marks), text, size);
}

static void endpoints__beside_each_other_are_a_range(void **state)
{
	assert_string_equal(said_of("", 100), "");
	assert_string_equal(said_of("....", 100), "");
	assert_string_equal(said_of("x", 100), "0");
	assert_string_equal(said_of("xx.x..xxxx", 100), "0-1, 3, 6-9");
	assert_string_equal(said_of("xxxxxxxxxxxxxxxxxxxxx", 100), "0-20");
}

static void endpoints__that_have_no_room_are_left_out(void **state)
{
	assert_string_equal(said_of("x.x.x.x.x.x.x.x.x", 12), "0, 2, 4, 6");
	assert_string_equal(said_of("x.........xxx", 7), "0...");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(endpoints__beside_each_other_are_a_range),
		cmocka_unit_test(endpoints__that_have_no_room_are_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
