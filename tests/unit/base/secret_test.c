#include "base/secret.h"
#include "../unit.h"

/* From the authors' test vectors: key 00 01 .. 0f, message 00 01 .. 07. */
static void secret__hashes_as_its_authors_do(void **state)
{
	struct vb_secret secret = { .key = { 0x0706050403020100u, 0x0F0E0D0C0B0A0908u } };
	assert_true(vb_secret_of(&secret, 0x0706050403020100u) == 0x93F5F5799A932462u);
}

static void secret__goes_on_with_the_count_and_differs_with_either_half_of_the_key(void **state)
{
	struct vb_secret a = { .key = { 1, 2 } }, b = { .key = { 1, 3 } }, c = { .key = { 2, 2 } };
	uint64_t first = vb_secret_next(&a);
	assert_true(first == vb_secret_of(&a, 0));
	assert_true(vb_secret_next(&a) == vb_secret_of(&a, 1));
	assert_true(first != vb_secret_of(&a, 1));
	assert_true(first != vb_secret_next(&b));
	assert_true(first != vb_secret_next(&c));
}

/* Of the authors' vectors, that of 24 bytes. */
static void siphash__of_several_words_is_the_authors(void **state)
{
	const uint64_t key[2] = { 0x0706050403020100u, 0x0f0e0d0c0b0a0908u };
	const uint64_t words[3] = { 0x0706050403020100u, 0x0f0e0d0c0b0a0908u, 0x1716151413121110u };
	assert_true(vb_siphash(key, words, 3) == 0xb8ad50c6f649af94u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(siphash__of_several_words_is_the_authors),
		cmocka_unit_test(secret__hashes_as_its_authors_do),
		cmocka_unit_test(secret__goes_on_with_the_count_and_differs_with_either_half_of_the_key),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
