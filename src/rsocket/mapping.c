/* The mappings of a stream: buffers that riomap registered, and the entries of the peer's table that tell of them.
 * Holds: an entry that the peer wrote into our table is copied whole before it is checked.
 * Not here: the calls (iomap.c). */
#include "rsocket/mapping.h"

#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"

enum { WORD_BITS = 64 };

int vb_rs_mapping_take_index(struct vb_rsocket *rs, int64_t *index)
{
	uint32_t count = rs->remote.mappings;

	if (!rs->mapping_used)
		rs->mapping_used = calloc(count / WORD_BITS + 1, sizeof(uint64_t));
	if (!rs->mapping_used)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t bit = 1ull << i % WORD_BITS;
		if (rs->mapping_used[i / WORD_BITS] & bit)
			continue;
		rs->mapping_used[i / WORD_BITS] |= bit;
		*index = i;
		return 0;
	}
	return -ENOBUFS;
}

static void give_index(struct vb_rsocket *rs, int64_t index)
{
	if (index < 0)
		return;
	assert(rs->mapping_used[index / WORD_BITS] & 1ull << index % WORD_BITS);
	rs->mapping_used[index / WORD_BITS] &= ~(1ull << index % WORD_BITS);
}

void vb_rs_mapping_free(struct vb_rsocket *rs, struct vb_rs_mapping *mapping)
{
	vb_list_remove(&mapping->link);
	if (mapping->mr)
		ibv_dereg_mr(mapping->mr);
	give_index(rs, mapping->index);
	free(mapping);
}

void vb_rs_mappings_close(struct vb_rsocket *rs)
{
	vb_list_for_each_safe (link, &rs->mappings)
		vb_rs_mapping_free(rs, vb_container_of(link, struct vb_rs_mapping, link));
	free(rs->mapping_used);
	rs->mapping_used = NULL;
}

struct entry {
	uint64_t offset;
	struct vb_rs_region region;
};
_Static_assert(sizeof(struct entry) == VB_RS_MAPPING_LENGTH, "an entry of our table, in our byte order");

uint32_t vb_rs_mapping_find(const struct vb_rsocket *rs, uint64_t offset, struct vb_rs_region *place)
{
	const uint8_t *entries = rs->table + VB_RS_TARGETS * VB_RS_REGION_LENGTH;

	for (uint32_t i = 0; i < rs->options.mappings; i++) {
		struct entry entry;
		memcpy(&entry, entries + (size_t)i * VB_RS_MAPPING_LENGTH, sizeof(entry));
		if (offset < entry.offset || offset - entry.offset >= entry.region.length)
			continue;
		uint32_t skipped = (uint32_t)(offset - entry.offset);
		*place = (struct vb_rs_region){ entry.region.addr + skipped, entry.region.key,
			entry.region.length - skipped };
		return place->length;
	}
	return 0;
}
