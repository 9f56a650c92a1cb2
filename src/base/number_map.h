/* A map from numbers to numbers, for what is open at a time: it takes memory for its entries only. */
#ifndef VB_BASE_NUMBER_MAP_H
#define VB_BASE_NUMBER_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct number_map {
	struct number_map_entry *entries; /* NULL: the map is empty */
	uint32_t count, mask;
};

/* NULL: the key is not in the map. The pointer holds until the next change of the map. */
uint32_t *number_map_find(const struct number_map *map, uint64_t key);
/* The key's value; it is 0 if the key was not in the map before. NULL: no memory. */
uint32_t *number_map_make(struct number_map *map, uint64_t key);
void number_map_remove(struct number_map *map, uint64_t key); /* if it is there */
void number_map_free(struct number_map *map);

#endif
