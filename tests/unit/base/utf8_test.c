/* What of a text fits. */
#include "base/utf8.h"
#include "../unit.h"

static void fitting__is_all_of_a_short_text(void **state)
{
	assert_int_equal(vb_utf8_fitting("", 0), 0);
	assert_int_equal(vb_utf8_fitting("", 4), 0);
	assert_int_equal(vb_utf8_fitting("abc", 3), 3);
	assert_int_equal(vb_utf8_fitting("abc", 9), 3);
	assert_int_equal(vb_utf8_fitting("a\u00fc", 3), 3);
}

static void fitting__cuts_no_character(void **state)
{
	assert_int_equal(vb_utf8_fitting("abc", 2), 2);
	assert_int_equal(vb_utf8_fitting("a\u00fcb", 2), 1);
	assert_int_equal(vb_utf8_fitting("a\u00fcb", 3), 3);
	for (unsigned most = 1; most < 4; most++)
		assert_int_equal(vb_utf8_fitting("\U0001F600x", most), 0);
	assert_int_equal(vb_utf8_fitting("\U0001F600x", 4), 4);
	assert_int_equal(vb_utf8_fitting("\u20acx\u20ac", 5), 4);
}

static void fitting__of_what_is_no_utf8_is_as_much_as_there_is_room_for(void **state)
{
	assert_int_equal(vb_utf8_fitting("\x80\x80\x80\x80\x80\x80\x80", 5), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fitting__is_all_of_a_short_text),
		cmocka_unit_test(fitting__cuts_no_character),
		cmocka_unit_test(fitting__of_what_is_no_utf8_is_as_much_as_there_is_room_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
