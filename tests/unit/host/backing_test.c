/* Which memory may become a file's at its place, and that it keeps its bytes. */
#include "../unit.h"
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "host/memory/backing.h"
#include "host/host.h"

enum { BYTES = 1 << 20, PAGE = 4096 };

static uint8_t *map(int protection, int flags, int file)
{
	void *memory = mmap(NULL, BYTES, protection, flags, file, 0);

	assert_true(memory != MAP_FAILED);
	return memory;
}

static uint8_t *private_memory(void)
{
	return map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void memory__that_is_private_and_no_more_may(void **state)
{
	uint8_t *memory = private_memory();

	assert_true(vb_backing_is_possible(memory, BYTES));
	assert_true(vb_backing_is_possible(memory + PAGE, BYTES - 2 * PAGE));
	munmap(memory, BYTES);
}

static void memory__in_several_mappings_may(void **state)
{
	uint8_t *memory = private_memory();

	assert_int_equal(mprotect(memory + PAGE, PAGE, PROT_READ), 0);
	assert_false(vb_backing_is_possible(memory, BYTES));
	assert_true(vb_backing_is_possible(memory + 2 * PAGE, BYTES - 2 * PAGE));
	assert_int_equal(mprotect(memory + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(madvise(memory + PAGE, PAGE, MADV_NOHUGEPAGE), 0);
	assert_true(vb_backing_is_possible(memory, BYTES));
	munmap(memory, BYTES);
}

static void memory__with_a_hole_may_not(void **state)
{
	uint8_t *memory = private_memory();

	munmap(memory + 8 * PAGE, 64 * PAGE); /* of which others may take some */
	assert_false(vb_backing_is_possible(memory, BYTES));
	munmap(memory, BYTES);
}

static void memory__of_which_more_is_asked_may_not(void **state)
{
	static const int advice[] = { MADV_HUGEPAGE, MADV_DONTFORK, MADV_WIPEONFORK };

	for (unsigned i = 0; i < COUNT_OF(advice); i++) {
		uint8_t *memory = private_memory();
		if (madvise(memory + PAGE, PAGE, advice[i]) == 0)
			assert_false(vb_backing_is_possible(memory, BYTES));
		munmap(memory, BYTES);
	}
	uint8_t *locked = private_memory();
	if (syscall(SYS_mlock, locked, PAGE) == 0) /* sanitizers make the function do nothing */
		assert_false(vb_backing_is_possible(locked, BYTES));
	munmap(locked, BYTES);
}

static void memory__of_others_may_not(void **state)
{
	int file = memfd_create("backing_test", MFD_CLOEXEC);
	assert_int_equal(ftruncate(file, BYTES), 0);
	uint8_t *shared = map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
	uint8_t *files = map(PROT_READ | PROT_WRITE, MAP_SHARED, file);
	uint8_t *copied = map(PROT_READ | PROT_WRITE, MAP_PRIVATE, file);
	uint8_t *read_only = map(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	uint8_t *heap = sbrk(2 * PAGE);

	assert_false(vb_backing_is_possible(shared, BYTES));
	assert_false(vb_backing_is_possible(files, BYTES));
	assert_false(vb_backing_is_possible(copied, BYTES));
	assert_false(vb_backing_is_possible(read_only, BYTES));
	assert_false(vb_backing_is_possible(heap, PAGE));
	munmap(shared, BYTES);
	munmap(files, BYTES);
	munmap(copied, BYTES);
	munmap(read_only, BYTES);
	close(file);
}

/* And may once more, when it is no segment any more. */
static void memory__that_moves_to_a_file_keeps_its_bytes(void **state)
{
	uint8_t *memory = private_memory();
	int file = vb_host_make_memory(BYTES);

	for (unsigned i = 0; i < BYTES; i++)
		memory[i] = (uint8_t)(i * 7 + i / 251);
	assert_true(file >= 0);
	assert_int_equal(vb_host_move_memory(memory, BYTES, file), 0);
	const uint8_t *seen = map(PROT_READ, MAP_SHARED, file);
	for (unsigned i = 0; i < BYTES; i++)
		assert_int_equal(memory[i], (uint8_t)(i * 7 + i / 251));
	assert_memory_equal(memory, seen, BYTES);
	memory[77]++;
	assert_int_equal(seen[77], memory[77]);
	assert_true(vb_backing_is_possible(memory, BYTES));
	munmap((void *)seen, BYTES);
	munmap(memory, BYTES);
	close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory__that_is_private_and_no_more_may),
		cmocka_unit_test(memory__in_several_mappings_may),
		cmocka_unit_test(memory__with_a_hole_may_not),
		cmocka_unit_test(memory__of_which_more_is_asked_may_not),
		cmocka_unit_test(memory__of_others_may_not),
		cmocka_unit_test(memory__that_moves_to_a_file_keeps_its_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
