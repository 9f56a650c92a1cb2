#include "../unit.h"
#include "base/words.h"

static void words__differ_by_letters(void **state)
{
	assert_int_equal(vb_word_distance("devices", "devices"), 0);
	assert_int_equal(vb_word_distance("devises", "devices"), 1);
	assert_int_equal(vb_word_distance("device", "devices"), 1);
	assert_int_equal(vb_word_distance("", "run"), 3);
	assert_int_equal(vb_word_distance("kitten", "sitting"), 3);
}

static void words__that_are_long_are_apart(void **state)
{
	char long_word[VB_WORDS_APART + 1];
	memset(long_word, 'a', VB_WORDS_APART);
	long_word[VB_WORDS_APART] = 0;
	assert_int_equal(vb_word_distance(long_word, long_word), VB_WORDS_APART);
	assert_int_equal(vb_word_distance(long_word + 1, long_word + 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words__differ_by_letters),
		cmocka_unit_test(words__that_are_long_are_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
