/* The account of packets under way, by itself. */
#include "roce/sent.h"
#include "../unit.h"

enum { UNA = 0xFFFFC0 };

static uint32_t psn_at(uint32_t index)
{
	return vb_psn_add(UNA, index);
}

static void assert_open(const struct vb_sent *sent, uint32_t from, uint32_t end, uint32_t expected)
{
	assert_int_equal(vb_sent_next_open(sent, psn_at(from), psn_at(end)), psn_at(expected));
}

static void assert_lost(const struct vb_sent *sent, uint32_t from, uint32_t end, uint32_t expected)
{
	assert_int_equal(vb_sent_next_lost(sent, psn_at(from), psn_at(end)), psn_at(expected));
}

static void sent__is_kept_from_una_on(void **state)
{
	struct vb_sent sent = { 0 };
	assert_false(vb_sent_is_kept(&sent));
	assert_true(vb_sent_keep(&sent, UNA, 100, 7));
	assert_true(vb_sent_is_kept(&sent));
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(vb_sent_at(&sent, psn_at(i)), 7);
		assert_false(vb_sent_is_settled(&sent, psn_at(i)));
	}
	assert_int_equal(sent.known_psn, UNA);
	vb_sent_forget(&sent);
	assert_false(vb_sent_is_kept(&sent));
	vb_sent_forget(&sent);
}

/* Beyond each word, beyond the ring's end and beyond the last PSN. */
static void sent__next_of_a_kind_is_found_across_words(void **state)
{
	struct vb_sent sent = { 0 };
	assert_true(vb_sent_keep(&sent, UNA, 250, 1));
	assert_open(&sent, 0, 250, 0);
	assert_lost(&sent, 0, 250, 250);
	for (uint32_t i = 0; i < 250; i++) {
		if (i == 63 || i == 64 || i == 200)
			continue;
		if (i % 2)
			vb_sent_lose(&sent, psn_at(i), false);
		else
			vb_sent_arrive(&sent, psn_at(i));
	}
	assert_open(&sent, 0, 250, 63);
	assert_open(&sent, 63, 250, 63);
	assert_open(&sent, 64, 250, 64);
	assert_open(&sent, 65, 250, 200);
	assert_open(&sent, 65, 200, 200);
	assert_open(&sent, 65, 199, 199);
	assert_open(&sent, 201, 250, 250);
	assert_open(&sent, 5, 5, 5);
	assert_lost(&sent, 62, 250, 65);
	assert_lost(&sent, 200, 250, 201);
	assert_lost(&sent, 248, 249, 249);
	assert_lost(&sent, 250, 250, 250);
	assert_int_equal(sent.lost_count, 124);
	assert_int_equal(sent.known_psn, psn_at(250));
	vb_sent_forget(&sent);
}

static void sent__what_is_lost_is_found_or_arrives_or_leaves_again(void **state)
{
	struct vb_sent sent = { 0 };
	assert_true(vb_sent_keep(&sent, UNA, 10, 1));
	for (uint32_t i = 0; i < 4; i++)
		vb_sent_lose(&sent, psn_at(i), false);
	assert_int_equal(sent.lost_count, 4);
	assert_int_equal(sent.known_psn, psn_at(4));
	vb_sent_find(&sent, psn_at(0));
	vb_sent_find(&sent, psn_at(0));
	vb_sent_arrive(&sent, psn_at(1));
	assert_true(vb_sent_add(&sent, UNA, psn_at(2), 1, true, 9));
	assert_int_equal(sent.lost_count, 1);
	assert_open(&sent, 0, 10, 0);
	assert_open(&sent, 1, 10, 2);
	assert_true(vb_psn_bit(sent.again, sent.mask, psn_at(2)));
	assert_false(vb_psn_bit(sent.again, sent.mask, psn_at(0)));
	assert_int_equal(vb_sent_at(&sent, psn_at(2)), 9);
	assert_int_equal(vb_sent_at(&sent, psn_at(1)), 1);
	assert_true(vb_psn_bit(sent.taken, sent.mask, psn_at(1)));
	vb_sent_forget(&sent);
}

/* Such as what was sent before all was to be sent again, and is acknowledged before that. */
static void sent__is_as_old_as_the_account_where_it_does_not_know(void **state)
{
	struct vb_sent sent = { 0 };
	assert_true(vb_sent_keep(&sent, UNA, 3, -5));
	assert_int_equal(vb_sent_at(&sent, psn_at(2)), -5);
	assert_int_equal(vb_sent_at(&sent, psn_at(3)), -5);
	assert_true(vb_sent_add(&sent, UNA, psn_at(3), 100, false, 8));
	assert_int_equal(vb_sent_at(&sent, psn_at(102)), 8);
	assert_int_equal(vb_sent_at(&sent, psn_at(103)), -5);
	vb_sent_pass(&sent, psn_at(0), psn_at(4));
	assert_int_equal(
		vb_sent_at(&sent, vb_psn_add(psn_at(3), sent.mask + 1)), -5); /* the place of one that passed */
	vb_sent_forget(&sent);
}

static void sent__grows_with_what_it_knows(void **state)
{
	struct vb_sent sent = { 0 };
	assert_true(vb_sent_keep(&sent, UNA, 3, 1));
	vb_sent_lose(&sent, psn_at(0), false);
	vb_sent_arrive(&sent, psn_at(1));
	for (uint32_t i = 3; i < 5000; i += 7)
		assert_true(vb_sent_add(&sent, UNA, psn_at(i), 7, false, (vb_time)i));
	assert_int_equal(sent.lost_count, 1);
	assert_lost(&sent, 0, 5000, 0);
	assert_lost(&sent, 1, 5000, 5000);
	assert_open(&sent, 0, 5000, 2);
	assert_int_equal(vb_sent_at(&sent, psn_at(2)), 1);
	for (uint32_t i = 3; i < 5000; i++)
		assert_int_equal(vb_sent_at(&sent, psn_at(i)), i - (i - 3) % 7);
	vb_sent_forget(&sent);
}

/* What has passed leaves its places as new. */
static void sent__places_are_used_anew(void **state)
{
	struct vb_sent sent = { 0 };
	uint32_t una = UNA;
	assert_true(vb_sent_keep(&sent, una, 64, 1));
	for (int round = 0; round < 100; round++) {
		for (uint32_t i = 0; i < 64; i++) {
			assert_false(vb_sent_is_settled(&sent, vb_psn_add(una, i)));
			assert_false(vb_psn_bit(sent.taken, sent.mask, vb_psn_add(una, i)));
			assert_false(vb_psn_bit(sent.again, sent.mask, vb_psn_add(una, i)));
		}
		for (uint32_t i = 0; i < 20; i++) {
			vb_sent_arrive(&sent, vb_psn_add(una, i));
			vb_sent_lose(&sent, vb_psn_add(una, 20 + i), false);
		}
		assert_true(vb_sent_add(&sent, una, vb_psn_add(una, 20), 1, true, 3));
		assert_int_equal(sent.lost_count, 19);
		uint32_t next = vb_psn_add(una, 40);
		vb_sent_pass(&sent, una, next);
		assert_int_equal(sent.lost_count, 0);
		for (uint32_t i = 24; i < 64; i++)
			assert_true(vb_sent_add(&sent, next, vb_psn_add(next, i), 1, false, 2));
		una = next;
	}
	assert_int_equal(sent.mask, 63);
	vb_sent_pass(&sent, una, vb_psn_add(una, 1 << 20));
	assert_int_equal(sent.lost_count, 0);
	vb_sent_forget(&sent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sent__is_kept_from_una_on),
		cmocka_unit_test(sent__next_of_a_kind_is_found_across_words),
		cmocka_unit_test(sent__what_is_lost_is_found_or_arrives_or_leaves_again),
		cmocka_unit_test(sent__is_as_old_as_the_account_where_it_does_not_know),
		cmocka_unit_test(sent__grows_with_what_it_knows),
		cmocka_unit_test(sent__places_are_used_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
