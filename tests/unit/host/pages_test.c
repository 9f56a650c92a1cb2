#include <sys/mman.h>
#include <unistd.h>
#include "host/host.h"
#include "../unit.h"

static size_t page;

/* Six pages: written to twice, read-only, missing, and two more that can be written. */
static uint8_t *map(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *pages = mmap(NULL, 6 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + 2 * page, page, PROT_READ), 0);
	assert_int_equal(munmap(pages + 3 * page, page), 0);
	return pages;
}

static void unmap(uint8_t *pages)
{
	munmap(pages, 6 * page);
}

static void memory__is_present_as_far_as_it_is_mapped(void **state)
{
	uint8_t *pages = map();
	assert_true(vb_host_memory_is_present(pages, 3 * page, false));
	assert_true(vb_host_memory_is_present(pages + 3 * page - 1, 1, false));
	assert_false(vb_host_memory_is_present(pages + 3 * page - 1, 2, false));
	assert_false(vb_host_memory_is_present(pages + 3 * page, 1, false));
	assert_true(vb_host_memory_is_present(pages + 4 * page, 2 * page, false));
	unmap(pages);
}

static void memory__with_a_hole_in_its_middle_is_not_present(void **state)
{
	uint8_t *pages = map();
	assert_false(vb_host_memory_is_present(pages, 6 * page, false));
	assert_false(vb_host_memory_is_present(pages + 3 * page - 1, page + 2, false));
	unmap(pages);
}

static void memory__of_other_protection_can_be_read_alone(void **state)
{
	uint8_t *pages = map();
	assert_true(vb_host_memory_is_present(pages + 2 * page, page, false));
	assert_false(vb_host_memory_is_present(pages + 2 * page, page, true));
	assert_true(vb_host_memory_is_present(pages, 2 * page, true));
	assert_false(vb_host_memory_is_present(pages + page, page + 1, true));
	mprotect(pages, page, PROT_NONE);
	assert_false(vb_host_memory_is_present(pages + 8, 8, false));
	unmap(pages);
}

static void memory__asked_about_is_as_it_was(void **state)
{
	uint8_t *pages = map();
	memset(pages, 0xA5, 2 * page);
	assert_true(vb_host_memory_is_present(pages + 1, 2 * page - 2, true));
	for (size_t i = 0; i < 2 * page; i++)
		assert_int_equal(pages[i], 0xA5);
	unmap(pages);
}

static void memory__of_no_bytes_is_always_present_and_none_wraps(void **state)
{
	assert_true(vb_host_memory_is_present(NULL, 0, true));
	assert_false(vb_host_memory_is_present(NULL, 1, false));
	assert_false(vb_host_memory_is_present((void *)(UINTPTR_MAX - 7), 16, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory__is_present_as_far_as_it_is_mapped),
		cmocka_unit_test(memory__with_a_hole_in_its_middle_is_not_present),
		cmocka_unit_test(memory__of_other_protection_can_be_read_alone),
		cmocka_unit_test(memory__asked_about_is_as_it_was),
		cmocka_unit_test(memory__of_no_bytes_is_always_present_and_none_wraps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
