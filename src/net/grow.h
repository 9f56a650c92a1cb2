/* Arrays that grow by doubling. */
#ifndef NET_GROW_H
#define NET_GROW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { GROW_FIRST = 16, GROW_MOST = 1 << 28 };

/* Zeroed memory that starts at a cache line; NULL: no memory. */
static inline void *grow_lines(size_t size)
{
	const size_t whole = (size + 63) / 64 * 64;
	void *lines = aligned_alloc(64, whole);
	return lines ? memset(lines, 0, whole) : NULL;
}

/* Makes room for one more element behind count, in the array that *array points to; false: no memory, and nothing
 * changed. */
static inline bool grow_by_one(void *array, uint32_t *room, uint32_t count, size_t size)
{
	if (count < *room)
		return true;
	if (count >= GROW_MOST)
		return false;
	uint32_t wanted = *room ? *room * 2 : GROW_FIRST;
	void *old; /* copied, as *array has some other pointer type */
	memcpy(&old, array, sizeof(old));
	void *larger = realloc(old, wanted * size);
	if (!larger)
		return false;
	memcpy(array, &larger, sizeof(larger));
	*room = wanted;
	return true;
}

#endif
