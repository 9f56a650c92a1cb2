/* See number_map.h: open addressing with linear probing, at most three quarters full. */
#include "base/number_map.h"
#include <stdlib.h>
#include "base/invariant.h"

enum { FEW = 4 };

struct number_map_entry {
	uint64_t key;
	uint32_t value;
	bool is_used;
};

static uint32_t home(const struct number_map *map, uint64_t key)
{
	return (uint32_t)(key * 0x9E3779B97F4A7C15u >> 32) & map->mask;
}

/* The key's entry, or the free one where it belongs. */
static struct number_map_entry *place_of(const struct number_map *map, uint64_t key)
{
	uint32_t at = home(map, key);
	while (map->entries[at].is_used && map->entries[at].key != key)
		at = (at + 1) & map->mask;
	return &map->entries[at];
}

uint32_t *number_map_find(const struct number_map *map, uint64_t key)
{
	if (map->count == 0)
		return NULL;
	struct number_map_entry *entry = place_of(map, key);
	return entry->is_used ? &entry->value : NULL;
}

static bool grow(struct number_map *map)
{
	const uint32_t room = map->entries ? 2 * (map->mask + 1) : FEW;
	struct number_map larger = {
		.entries = calloc(room, sizeof(*larger.entries)), .mask = room - 1, .count = map->count
	};
	if (!larger.entries)
		return false;
	for (uint32_t i = 0; map->entries && i <= map->mask; i++)
		if (map->entries[i].is_used)
			*place_of(&larger, map->entries[i].key) = map->entries[i];
	free(map->entries);
	*map = larger;
	return true;
}

uint32_t *number_map_make(struct number_map *map, uint64_t key)
{
	if ((!map->entries || 4 * (map->count + 1) > 3 * (map->mask + 1)) && !grow(map))
		return NULL;
	struct number_map_entry *entry = place_of(map, key);
	if (!entry->is_used) {
		*entry = (struct number_map_entry){ .key = key, .is_used = true };
		map->count++;
	}
	assert(map->count <= map->mask);
	return &entry->value;
}

/* Entries behind it move up, unless they are at home or come from behind the gap. */
void number_map_remove(struct number_map *map, uint64_t key)
{
	struct number_map_entry *entry = map->count ? place_of(map, key) : NULL;
	if (!entry || !entry->is_used)
		return;
	uint32_t gap = (uint32_t)(entry - map->entries);
	for (uint32_t at = (gap + 1) & map->mask; map->entries[at].is_used; at = (at + 1) & map->mask) {
		const uint32_t from = home(map, map->entries[at].key);
		if (((at - from) & map->mask) < ((at - gap) & map->mask))
			continue;
		map->entries[gap] = map->entries[at];
		gap = at;
	}
	map->entries[gap].is_used = false;
	map->count--;
}

void number_map_free(struct number_map *map)
{
	free(map->entries);
	*map = (struct number_map){ 0 };
}
