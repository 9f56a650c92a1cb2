/* Ordinary memory: how bytes land in it, and its atomics. Its own for the application too, which polls what arrives and
 * counts where peers count. */
#include <string.h>
#include "base/copy.h"
#include "base/invariant.h"
#include "core/memory_kind.h"

typedef uint16_t __attribute__((may_alias)) word16;
typedef uint32_t __attribute__((may_alias)) word32;
typedef uint64_t __attribute__((may_alias)) word64;

/* One store of size bytes to an address that is aligned to size, after all earlier stores. */
static void store_released(uint8_t *to, const uint8_t *from, uint32_t size)
{
	word16 two;
	word32 four;
	word64 eight;
	switch (size) {
	case 1:
		__atomic_store_n(to, *from, __ATOMIC_RELEASE);
		break;
	case 2:
		memcpy(&two, from, sizeof(two));
		__atomic_store_n((word16 *)(void *)to, two, __ATOMIC_RELEASE);
		break;
	case 4:
		memcpy(&four, from, sizeof(four));
		__atomic_store_n((word32 *)(void *)to, four, __ATOMIC_RELEASE);
		break;
	case 8:
		memcpy(&eight, from, sizeof(eight));
		__atomic_store_n((word64 *)(void *)to, eight, __ATOMIC_RELEASE);
		break;
	default:
		assert(false);
	}
}

/* The largest single store that ends where these bytes end: 8, 4, 2 or 1. */
static uint32_t last_store_size(const uint8_t *to, uint32_t length)
{
	uint32_t end = (uint32_t)(uintptr_t)to + length, size = (end | 8) & -(end | 8);
	while (size > length)
		size /= 2;
	return size;
}

void vb_memory_store(void *at, const uint8_t *from, uint32_t length, bool ends_message)
{
	uint8_t *to = at;
	uint32_t last = last_store_size(to, length);
	if (!ends_message && last != length) {
		vb_copy(to, from, length);
		return;
	}
	vb_copy(to, from, length - last);
	store_released(to + length - last, from + length - last, last);
}

const void *vb_memory_load(const void *at, uint32_t length)
{
	return at;
}

uint64_t vb_memory_fetch_add(void *at, uint64_t add)
{
	return __atomic_fetch_add((word64 *)at, add, __ATOMIC_SEQ_CST);
}

uint64_t vb_memory_compare_swap(void *at, uint64_t compare, uint64_t swap)
{
	word64 before = compare; /* the value before, whether or not it was equal */
	__atomic_compare_exchange_n((word64 *)at, &before, swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return before;
}
