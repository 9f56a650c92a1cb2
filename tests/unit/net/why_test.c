/* Reasons: the text, what else there is, and room for a part of them only. */
#include <errno.h>
#include "net/why.h"
#include "../unit.h"

static const char *metal(uint32_t number)
{
	static const char *const names[] = { "iron", "zinc" };
	return number < 2 ? names[number] : NULL;
}

static const char *nobody(uint32_t number)
{
	(void)number;
	return NULL;
}

static void reason__says_what_there_is(void **state)
{
	char why[60];
	assert_int_equal(why_not_among(why, sizeof(why), metal, "there is no metal %s of %u", "tin", 3), -EINVAL);
	assert_string_equal(why, "there is no metal tin of 3; there are iron, zinc");
	assert_int_equal(why_not_among(why, sizeof(why), nobody, "there is no %s", "tin"), -EINVAL);
	assert_string_equal(why, "there is no tin");
}

static void reason__is_cut_where_room_ends(void **state)
{
	static const char whole[] = "no tin; there are iron, zinc";
	for (unsigned room = 1; room <= sizeof(whole); room++) {
		char why[sizeof(whole) + 1];
		memset(why, '#', sizeof(why));
		why_not_among(why, room, metal, "no tin");
		assert_int_equal(strlen(why), room - 1);
		assert_memory_equal(why, whole, room - 1);
		assert_int_equal(why[room], '#');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reason__says_what_there_is),
		cmocka_unit_test(reason__is_cut_where_room_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
