#include <stdlib.h>
#include "base/copy.h"
#include "base/random.h"
#include "../unit.h"

enum { ROOM = 3 * VB_COPY_PAGE, GUARD = 0xA5 };

/* length bytes between places of their pages that are apart, and nothing beside them. */
static void check_copy(uint8_t *to, const uint8_t *from, uint32_t apart, size_t length)
{
	uint8_t *target = to + VB_COPY_PAGE / 2 + apart;
	const uint8_t *source = from + VB_COPY_PAGE / 2;
	memset(to, GUARD, ROOM);
	vb_copy(target, source, length);
	assert_memory_equal(target, source, length);
	for (size_t i = 0; i < ROOM; i++)
		if (to + i < target || to + i >= target + length)
			assert_int_equal(to[i], GUARD);
}

static void copy__brings_every_byte_and_no_other(void **state)
{
	static const uint32_t apart[] = { 0, 1, 7, 16, 63, 64, 65, VB_COPY_PAGE - 1, VB_COPY_PAGE - 63 };
	static const size_t lengths[] = { 0, 1, 8, 127, 1023, 1024, 1025, 1151, 1152, 4088, 4095, 4096 };
	uint8_t *to = aligned_alloc(VB_COPY_PAGE, ROOM), *from = aligned_alloc(VB_COPY_PAGE, ROOM);
	struct vb_random random;
	vb_random_seed(&random, 5);
	for (size_t i = 0; i < ROOM; i++)
		from[i] = (uint8_t)vb_random_u64(&random);
	for (size_t i = 0; i < COUNT_OF(apart); i++)
		for (size_t j = 0; j < COUNT_OF(lengths); j++)
			check_copy(to, from, apart[i], lengths[j]);
	free(to);
	free(from);
}

static void copy__places_1_to_63_bytes_apart_in_their_pages_are_near(void **state)
{
	const uint8_t *from = (const uint8_t *)(uintptr_t)0x10000;
	for (uint32_t apart = 0; apart < VB_COPY_PAGE; apart++) {
		bool is_near = apart >= 1 && apart <= 63;
		assert_int_equal(vb_copy_is_near(from + 5 * VB_COPY_PAGE + apart, from), is_near);
		assert_int_equal(vb_copy_is_near(from - 5 * VB_COPY_PAGE + apart, from), is_near);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copy__brings_every_byte_and_no_other),
		cmocka_unit_test(copy__places_1_to_63_bytes_apart_in_their_pages_are_near),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
