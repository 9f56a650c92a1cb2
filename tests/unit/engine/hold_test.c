/* The store of packets that came before their turn, by itself. */
#include "roce/hold.h"
#include "roce/psn_bits.h"
#include "../unit.h"

enum { FIRST = 0xFFFFF0, PAYLOAD = 64 };

struct store {
	struct vb_hold hold;
	struct vb_hold_pool pool;
	uint8_t payload[PAYLOAD];
};

static struct store *open_store(void)
{
	struct store *s = calloc(1, sizeof(*s));
	s->pool = (struct vb_hold_pool){ .of_qp = 1 << 20, .of_lane = 1 << 20 };
	return s;
}

static void close_store(struct store *s)
{
	vb_hold_clear(&s->hold, &s->pool);
	assert_null(s->hold.places);
	assert_int_equal(s->pool.used, 0);
	vb_hold_pool_deinit(&s->pool);
	assert_int_equal(s->pool.spare_bytes, 0);
	free(s);
}

/* Each carries its own PSN. */
static enum vb_hold_outcome put(struct store *s, uint32_t ahead, uint32_t span)
{
	struct vb_packet packet = {
		.psn = vb_psn_add(FIRST, ahead), .payload = s->payload, .payload_length = span > 1 ? 0 : PAYLOAD
	};
	memset(s->payload, (int)ahead, PAYLOAD);
	enum vb_hold_outcome outcome = vb_hold_put(&s->hold, FIRST, &packet, span, &s->pool);
	vb_hold_check(&s->hold, FIRST);
	return outcome;
}

static const struct vb_held *at(const struct store *s, uint32_t ahead)
{
	return vb_hold_at(&s->hold, vb_psn_add(FIRST, ahead));
}

static void assert_bits(const struct store *s, uint64_t low, uint64_t high)
{
	uint64_t bits[2] = { UINT64_MAX, UINT64_MAX };
	vb_hold_bitmap(&s->hold, FIRST, FIRST, bits);
	assert_int_equal(bits[0], low);
	assert_int_equal(bits[1], high);
}

static void hold__keeps_copies_and_gives_all_back(void **state)
{
	struct store *s = open_store();
	assert_null(at(s, 3));
	assert_int_equal(put(s, 3, 1), VB_HOLD_TAKEN);
	assert_int_equal(put(s, 20, 1), VB_HOLD_TAKEN); /* its PSN has wrapped around */
	assert_int_equal(put(s, 3, 1), VB_HOLD_HAD);
	assert_int_equal(s->hold.count, 2);
	assert_int_equal(s->pool.used, s->hold.bytes);
	for (uint32_t ahead = 1; ahead < 30; ahead++)
		assert_true((ahead == 3 || ahead == 20) == (at(s, ahead) != NULL));
	assert_ptr_not_equal(at(s, 3)->packet.payload, s->payload);
	assert_int_equal(at(s, 3)->packet.payload[PAYLOAD - 1], 3);
	assert_int_equal(at(s, 20)->packet.payload[0], 20);
	assert_bits(s, 1u << 3 | 1u << 20, 0);
	vb_hold_pass(&s->hold, FIRST, vb_psn_add(FIRST, 4), &s->pool);
	assert_null(at(s, 3));
	assert_int_equal(s->hold.count, 1);
	vb_hold_pass(&s->hold, vb_psn_add(FIRST, 4), vb_psn_add(FIRST, 21), &s->pool);
	assert_null(s->hold.places);
	assert_int_equal(s->pool.used, 0);
	close_store(s);
}

static void hold__phantom_payload_costs_as_much_and_has_no_bytes(void **state)
{
	struct store *s = open_store();
	struct vb_packet packet = { .psn = vb_psn_add(FIRST, 1), .payload_length = 4096 };
	assert_int_equal(vb_hold_put(&s->hold, FIRST, &packet, 1, &s->pool), VB_HOLD_TAKEN);
	assert_null(at(s, 1)->packet.payload);
	assert_true(s->hold.bytes > 4096);
	close_store(s);
}

static void hold__reads_take_as_many_psns_as_responses(void **state)
{
	struct store *s = open_store();
	assert_int_equal(put(s, 4, 6), VB_HOLD_TAKEN);
	assert_bits(s, 0x3f0, 0);
	assert_int_equal(put(s, 4, 6), VB_HOLD_HAD);
	assert_int_equal(put(s, 9, 1), VB_HOLD_HAD);  /* within it */
	assert_int_equal(put(s, 3, 2), VB_HOLD_FULL); /* it would reach into it */
	assert_int_equal(put(s, 10, 1), VB_HOLD_TAKEN);
	assert_null(at(s, 5));
	assert_int_equal(at(s, 4)->span, 6);
	vb_hold_pass(&s->hold, FIRST, vb_psn_add(FIRST, 10), &s->pool);
	uint64_t bits[2];
	vb_hold_bitmap(&s->hold, vb_psn_add(FIRST, 10), FIRST, bits);
	assert_int_equal(bits[0], 1u << 10);
	close_store(s);
}

/* The ring is larger with each; what it has stays, and what it has no room for does not come in by way of growth. */
static void hold__grows_with_what_it_has(void **state)
{
	static const uint32_t ahead[] = { 1, 63, 64, 65, 300, 1000, 40000, VB_HOLD_PSNS - 1 };
	struct store *s = open_store();
	for (unsigned i = 0; i < sizeof(ahead) / sizeof(ahead[0]); i++) {
		assert_int_equal(put(s, ahead[i], 1), VB_HOLD_TAKEN);
		for (unsigned j = 0; j <= i; j++)
			assert_int_equal(at(s, ahead[j])->packet.payload[0], (uint8_t)ahead[j]);
	}
	assert_int_equal(put(s, 30000, 20000), VB_HOLD_FULL);
	assert_bits(s, UINT64_C(1) << 63 | 2, 3);
	close_store(s);
	s = open_store();
	assert_int_equal(put(s, 60, 2), VB_HOLD_TAKEN);
	assert_int_equal(put(s, 50, 50), VB_HOLD_FULL); /* the ring has grown before that is seen */
	assert_bits(s, UINT64_C(3) << 60, 0);
	close_store(s);
}

static void hold__what_is_too_far_ahead_is_not_held(void **state)
{
	struct store *s = open_store();
	assert_int_equal(put(s, VB_HOLD_PSNS, 1), VB_HOLD_FULL);
	assert_int_equal(put(s, VB_HOLD_PSNS - 1, 2), VB_HOLD_FULL);
	assert_int_equal(put(s, 1, UINT32_MAX), VB_HOLD_FULL);
	assert_int_equal(put(s, VB_PSN_MASK / 2, 1), VB_HOLD_FULL);
	assert_null(s->hold.places);
	close_store(s);
}

/* The ring counts too: else a few packets far ahead would take as much as they like. */
static void hold__stays_within_both_limits(void **state)
{
	for (int of_lane = 0; of_lane < 2; of_lane++) {
		struct store *s = open_store();
		s->pool.of_lane = of_lane ? 2000 : 1 << 20;
		s->pool.of_qp = of_lane ? 1 << 20 : 2000;
		s->pool.used = of_lane ? 500 : 0;
		uint32_t most = of_lane ? 1500 : 2000, count = 0;
		assert_int_equal(put(s, VB_HOLD_PSNS - 1, 1), VB_HOLD_FULL);
		assert_int_equal(put(s, 1000, 1), VB_HOLD_FULL);
		while (count < 60 && put(s, count + 1, 1) == VB_HOLD_TAKEN)
			count++;
		assert_in_range(count, 3, 20);
		assert_in_range(s->hold.bytes, most / 2, most);
		assert_int_equal(s->pool.used, s->hold.bytes + (of_lane ? 500 : 0));
		assert_null(at(s, count + 1));
		vb_hold_pass(&s->hold, FIRST, vb_psn_add(FIRST, 2), &s->pool);
		assert_int_equal(vb_hold_put(&s->hold, vb_psn_add(FIRST, 2),
					 &(struct vb_packet){ .psn = vb_psn_add(FIRST, count + 1),
						 .payload = s->payload,
						 .payload_length = PAYLOAD },
					 1, &s->pool),
			VB_HOLD_TAKEN);
		vb_hold_clear(&s->hold, &s->pool);
		assert_int_equal(s->pool.used, of_lane ? 500 : 0);
		s->pool.used = 0;
		vb_hold_pool_deinit(&s->pool);
		free(s);
	}
}

/* However the turns pass: packet by packet, over what began before them, or far beyond all. */
static void hold__passes_whatever_began_before(void **state)
{
	struct store *s = open_store();
	assert_int_equal(put(s, 5, 10), VB_HOLD_TAKEN);
	assert_int_equal(put(s, 20, 1), VB_HOLD_TAKEN);
	vb_hold_pass(&s->hold, FIRST, vb_psn_add(FIRST, 6), &s->pool); /* another request of one PSN */
	vb_hold_check(&s->hold, vb_psn_add(FIRST, 6));
	uint64_t bits[2];
	vb_hold_bitmap(&s->hold, vb_psn_add(FIRST, 6), FIRST, bits);
	assert_int_equal(bits[0], 1u << 20);
	vb_hold_pass(&s->hold, vb_psn_add(FIRST, 6), vb_psn_add(FIRST, 1 << 22), &s->pool);
	assert_null(s->hold.places);
	close_store(s);
}

static void put_large(struct store *s, uint32_t ahead, const uint8_t *payload, uint32_t length)
{
	struct vb_packet packet = { .psn = vb_psn_add(FIRST, ahead), .payload = payload, .payload_length = length };
	assert_int_equal(vb_hold_put(&s->hold, FIRST, &packet, 1, &s->pool), VB_HOLD_TAKEN);
	assert_memory_equal(at(s, ahead)->packet.payload, payload, length);
}

/* Each size by itself: what fits into a copy of one is never in one of another. */
static void hold__uses_copies_again(void **state)
{
	struct store *s = open_store();
	const uint32_t lengths[] = { 64, 512, 513, 1024, 1025, 2048, 4095, 4096, 4097, VB_LARGE_MTU };
	uint8_t payload[VB_LARGE_MTU];
	uint32_t spare = 0;
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 10; i++) {
			memset(payload, (int)(10 * round + i), sizeof(payload));
			put_large(s, 1 + (3 * i) % 10, payload, lengths[i]);
		}
		const uint32_t rooms = 2 * (1024 + 4096 + VB_LARGE_MTU) + 1408 + 2048;
		assert_true(s->pool.used > 512 + rooms && s->pool.used < 37000);
		assert_int_equal(s->pool.spare_bytes, 0);
		vb_hold_clear(&s->hold, &s->pool);
		assert_true(s->pool.spare_bytes > rooms);
		assert_true(round == 0 || s->pool.spare_bytes == spare);
		spare = s->pool.spare_bytes;
	}
	close_store(s);
}

static void hold__keeps_no_more_spare_than_it_may(void **state)
{
	struct store *s = open_store();
	uint8_t payload[4096] = { 1 };
	s->pool.of_qp = s->pool.of_lane = 3 * VB_HOLD_SPARE_BYTES;
	for (uint32_t i = 1; i < 2 * VB_HOLD_SPARE_BYTES / 4096; i++)
		put_large(s, i, payload, sizeof(payload));
	vb_hold_clear(&s->hold, &s->pool);
	assert_in_range(s->pool.spare_bytes, VB_HOLD_SPARE_BYTES - 5000, VB_HOLD_SPARE_BYTES);
	close_store(s);
}

/* On a long way that loses packets the store is hardly ever empty, and as much is held again and again. */
static void hold__keeps_spare_what_it_used_until_it_is_empty(void **state)
{
	enum { MANY = 2 * VB_HOLD_SPARE_BYTES / 4096 };
	struct store *s = open_store();
	uint8_t payload[4096] = { 1 };
	s->pool.of_qp = s->pool.of_lane = 3 * VB_HOLD_SPARE_BYTES;
	for (uint32_t i = 1; i < MANY; i++)
		put_large(s, i, payload, sizeof(payload));
	const uint64_t used = s->pool.used;
	vb_hold_pass(&s->hold, FIRST, vb_psn_add(FIRST, MANY - 1), &s->pool);
	assert_int_equal(s->hold.count, 1);
	assert_in_range(s->pool.used + s->pool.spare_bytes, used - 5000, used);
	vb_hold_pass(&s->hold, vb_psn_add(FIRST, MANY - 1), vb_psn_add(FIRST, MANY), &s->pool);
	assert_int_equal(s->pool.used, 0);
	assert_in_range(s->pool.spare_bytes, VB_HOLD_SPARE_BYTES - 5000, VB_HOLD_SPARE_BYTES);
	close_store(s);
}

static void bitmap__tells_nothing_of_what_is_not_in_reach(void **state)
{
	struct store *s = open_store();
	uint64_t bits[2];
	assert_int_equal(put(s, 1, 1), VB_HOLD_TAKEN);
	vb_hold_bitmap(&s->hold, FIRST, vb_psn_add(FIRST, 64), bits); /* its place is that of PSN 1 as well */
	assert_int_equal(bits[0] | bits[1], 0);
	vb_hold_bitmap(&s->hold, FIRST, vb_psn_add(FIRST, VB_PSN_MASK + 1 - 64), bits);
	assert_int_equal(bits[0], 0);
	assert_int_equal(bits[1], 2);
	vb_hold_bitmap(&s->hold, FIRST, vb_psn_add(FIRST, VB_PSN_MASK / 2), bits);
	assert_int_equal(bits[0] | bits[1], 0);
	close_store(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hold__keeps_copies_and_gives_all_back),
		cmocka_unit_test(hold__phantom_payload_costs_as_much_and_has_no_bytes),
		cmocka_unit_test(hold__reads_take_as_many_psns_as_responses),
		cmocka_unit_test(hold__grows_with_what_it_has),
		cmocka_unit_test(hold__what_is_too_far_ahead_is_not_held),
		cmocka_unit_test(hold__stays_within_both_limits),
		cmocka_unit_test(hold__passes_whatever_began_before),
		cmocka_unit_test(hold__uses_copies_again),
		cmocka_unit_test(hold__keeps_no_more_spare_than_it_may),
		cmocka_unit_test(hold__keeps_spare_what_it_used_until_it_is_empty),
		cmocka_unit_test(bitmap__tells_nothing_of_what_is_not_in_reach),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
