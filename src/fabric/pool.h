/* Records with numbers, for what a run makes and forgets again: a record stays where it is until it is given back.
 *
 * Each shard takes records from a list of its own. Another shard may read a record whose number has come to it by a
 * packet or by mail, for these arrive after the window in which the record was made. Which number a record has depends
 * on how threads run: nothing that a run tells may depend on it. */
#ifndef FABRIC_POOL_H
#define FABRIC_POOL_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"

/* Chunk k has room for POOL_FIRST << k records. */
enum { POOL_FIRST = 64, POOL_CHUNKS = 24 };

#define POOL_NONE UINT32_MAX

struct pool {
	char *chunks[POOL_CHUNKS];
	uint32_t stride; /* bytes of a record; 0: the pool is not open */
	atomic_uint chunk_count;
};

/* A shard's: records that were given back, linked by the number that each begins with, and those of its newest chunk
 * that were never taken. */
struct pool_list {
	uint32_t free, fresh, fresh_end;
};

/* The number of the chunk's first record. */
static inline uint32_t pool_first(uint32_t chunk)
{
	return ((1u << chunk) - 1) * POOL_FIRST;
}

static inline void *pool_at(const struct pool *pool, uint32_t number)
{
	const uint32_t chunk = 31 - (uint32_t)__builtin_clz(number / POOL_FIRST + 1);
	return pool->chunks[chunk] + (size_t)(number - pool_first(chunk)) * pool->stride;
}

static inline void pool_open(struct pool *pool, uint32_t stride)
{
	*pool = (struct pool){ .stride = stride };
}

static inline void pool_close(struct pool *pool)
{
	for (uint32_t i = 0; i < POOL_CHUNKS; i++)
		free(pool->chunks[i]);
}

static inline struct pool_list pool_empty_list(void)
{
	return (struct pool_list){ .free = POOL_NONE };
}

static inline bool pool_grow(struct pool *pool, struct pool_list *list)
{
	const uint32_t chunk = atomic_fetch_add(&pool->chunk_count, 1);
	assert(pool->stride > 0);
	if (chunk >= POOL_CHUNKS) {
		atomic_fetch_sub(&pool->chunk_count, 1);
		return false;
	}
	pool->chunks[chunk] = calloc((size_t)POOL_FIRST << chunk, pool->stride);
	if (!pool->chunks[chunk])
		return false;
	list->fresh = pool_first(chunk);
	list->fresh_end = pool_first(chunk + 1);
	return true;
}

/* The number of a zeroed record; POOL_NONE: no memory. */
static inline uint32_t pool_take(struct pool *pool, struct pool_list *list)
{
	const uint32_t number = list->free;
	if (number != POOL_NONE) {
		void *record = pool_at(pool, number);
		memcpy(&list->free, record, sizeof(list->free));
		memset(record, 0, pool->stride);
		return number;
	}
	if (list->fresh == list->fresh_end && !pool_grow(pool, list))
		return POOL_NONE;
	return list->fresh++;
}

/* The record is zeroed, so that what goes through all records sees that it is not used. */
static inline void pool_put(struct pool *pool, struct pool_list *list, uint32_t number)
{
	void *record = pool_at(pool, number);
	memset(record, 0, pool->stride);
	memcpy(record, &list->free, sizeof(list->free));
	list->free = number;
}

/* The next record from this number on that may be in use; NULL: there is none. Records that are not are zeroed, but for
 * their first number. */
static inline void *pool_next(const struct pool *pool, uint32_t *number)
{
	uint32_t chunk = 31 - (uint32_t)__builtin_clz(*number / POOL_FIRST + 1);
	while (chunk < POOL_CHUNKS && !pool->chunks[chunk])
		*number = pool_first(++chunk);
	return chunk < POOL_CHUNKS ? pool_at(pool, *number) : NULL;
}

#endif
