/* Memory that is not there: a simulator's, of which there are only lengths, and the null memory of
 * ibv_alloc_null_mr. */
#include "core/memory_kind.h"
#include "core/objects.h"

#define ZEROS VB_LARGE_MTU /* no packet takes more */

static bool is_always_present(const void *at, uint64_t length, bool for_writing)
{
	return true;
}

static bool is_null_present(const void *at, uint64_t length, bool for_writing)
{
	return for_writing || length <= ZEROS;
}

static const void *load_nothing(const void *at, uint32_t length)
{
	return NULL;
}

static const void *load_zeros(const void *at, uint32_t length)
{
	static const uint8_t zeros[ZEROS];
	return zeros;
}

static void forget(void *at, const uint8_t *from, uint32_t length, bool ends_message) {}

static uint64_t fetch_add_nothing(void *at, uint64_t add)
{
	return 0;
}

static uint64_t compare_swap_nothing(void *at, uint64_t compare, uint64_t swap)
{
	return 0;
}

const struct vb_memory_kind vb_memory_phantom = {
	.access = UINT32_MAX,
	.is_present = is_always_present,
	.load = load_nothing,
	.store = forget,
	.fetch_add = fetch_add_nothing,
	.compare_swap = compare_swap_nothing,
};

const struct vb_memory_kind vb_memory_null = {
	.access = VB_ACCESS_LOCAL_WRITE,
	.is_present = is_null_present,
	.load = load_zeros,
	.store = forget,
	.fetch_add = fetch_add_nothing,
	.compare_swap = compare_swap_nothing,
};
