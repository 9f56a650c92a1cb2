/* Whose an exchange is, and that the table stays of its size. */
#include <stdlib.h>
#include "../unit.h"
#include "broker/exchanges.h"

static int setup(void **state)
{
	*state = malloc(sizeof(struct exchanges));
	if (*state)
		exchanges_init(*state);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

/* The vector of 24 bytes 00 to 17 under the key 00 to 0f, from the paper's reference table. */
static void hash__is_siphash(void **state)
{
	struct hash_key key;
	struct vb_gid gid;
	uint64_t number;
	uint8_t bytes[24];
	for (uint8_t i = 0; i < 24; i++)
		bytes[i] = i;
	memcpy(&key, bytes, 16);
	memcpy(&gid, bytes, 16);
	memcpy(&number, bytes + 16, 8);
	assert_true(keyed_hash(&key, &gid, number) == 0xb8ad50c6f649af94u);
}

static void exchange__is_its_last_clients(void **state)
{
	const struct vb_gid peer = vb_gid_from_ipv4(10, 0, 0, 2), other = vb_gid_from_ipv4(10, 0, 0, 3);
	assert_int_equal(exchanges_find(*state, &peer, 7), EXCHANGES_NOBODY);
	exchanges_note(*state, 0, &peer, 7);
	exchanges_note(*state, 3, &peer, 8);
	assert_int_equal(exchanges_find(*state, &peer, 7), 0);
	assert_int_equal(exchanges_find(*state, &other, 7), EXCHANGES_NOBODY);
	exchanges_note(*state, 5, &peer, 7);
	assert_int_equal(exchanges_find(*state, &peer, 7), 5);
	exchanges_forget_client(*state, 5);
	assert_int_equal(exchanges_find(*state, &peer, 7), EXCHANGES_NOBODY);
	assert_int_equal(exchanges_find(*state, &peer, 8), 3);
}

static uint32_t find_request(const struct exchanges *exchanges, uint64_t transaction, bool *is_answered)
{
	const struct vb_gid peer = vb_gid_from_ipv4(10, 0, 0, 2);
	*is_answered = false;
	return exchanges_find_request(exchanges, &peer, 7, transaction, is_answered);
}

static void request__is_answered_by_whose_it_is(void **state)
{
	const struct vb_gid peer = vb_gid_from_ipv4(10, 0, 0, 2);
	bool is_answered;
	assert_int_equal(find_request(*state, 1, &is_answered), EXCHANGES_NOBODY);
	exchanges_note_request(*state, 3, &peer, 7, 1);
	exchanges_note_answered(*state, 4, &peer, 7);
	assert_int_equal(find_request(*state, 1, &is_answered), 3);
	assert_false(is_answered);
	exchanges_note_answered(*state, 3, &peer, 7);
	exchanges_note_request(*state, 3, &peer, 7, 1); /* it came again */
	assert_int_equal(find_request(*state, 1, &is_answered), 3);
	assert_true(is_answered);
	assert_int_equal(find_request(*state, 2, &is_answered), EXCHANGES_NOBODY);
	exchanges_note_request(*state, 3, &peer, 7, 2);
	assert_int_equal(find_request(*state, 2, &is_answered), 3);
	assert_false(is_answered);
	exchanges_refuse_client(*state, 3);
	assert_int_equal(find_request(*state, 2, &is_answered), EXCHANGES_REFUSED);
	assert_int_equal(exchanges_find(*state, &peer, 7), EXCHANGES_NOBODY);
}

static void newest__push_out_the_oldest(void **state)
{
	enum { ALL = EXCHANGES_SETS * EXCHANGES_WAYS, FEW = 100 };
	const struct vb_gid peer = vb_gid_from_ipv4(10, 0, 0, 2);
	unsigned old = 0, recent = 0;
	for (unsigned i = 0; i < 20 * ALL; i++)
		exchanges_note(*state, i % 512, &peer, i);
	for (unsigned i = 0; i < FEW; i++) {
		old += exchanges_find(*state, &peer, i) != EXCHANGES_NOBODY;
		recent += exchanges_find(*state, &peer, 20 * ALL - 1 - i) == (20 * ALL - 1 - i) % 512;
	}
	assert_int_equal(old, 0);
	assert_int_equal(recent, FEW);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(hash__is_siphash),
		TEST(exchange__is_its_last_clients),
		TEST(request__is_answered_by_whose_it_is),
		TEST(newest__push_out_the_oldest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
