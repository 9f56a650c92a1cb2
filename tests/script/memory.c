/* The memory of a script's NIC. Each region lies between two guards and has a shadow: what it must hold according to
 * the script. The two are compared after every line, byte for byte. */
#include <stdlib.h>
#include <string.h>
#include "script.h"

static uint8_t pattern(uint64_t seed, uint64_t at)
{
	uint64_t z = (seed << 32 ^ at) + 0x9E3779B97F4A7C15u;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return (uint8_t)(z >> 56);
}

void payload_make(uint8_t *bytes, uint32_t length, uint32_t psn, uint32_t fill)
{
	for (uint32_t i = 0; i < length; i++)
		bytes[i] = pattern(((uint64_t)fill << 24 | psn) + 1000, i);
}

void region_create(struct region *region, const char *name, uint64_t size, unsigned index)
{
	uint64_t whole = size + 2 * GUARD;
	uint8_t *real, *shadow;
	if (posix_memalign((void **)&real, 64, whole) || posix_memalign((void **)&shadow, 64, whole))
		abort();
	for (uint64_t i = 0; i < whole; i++)
		shadow[i] = pattern(index + 1, i);
	memcpy(real, shadow, whole);
	strncpy(region->name, name, sizeof(region->name) - 1);
	region->bytes = real + GUARD;
	region->shadow = shadow + GUARD;
	region->iova = (uint64_t)(index + 1) << 28;
	region->size = size;
}

void region_free(struct region *region)
{
	free(region->bytes - GUARD);
	free(region->shadow - GUARD);
}

struct region *region_at(uint64_t iova, uint64_t length)
{
	for (unsigned i = 0; i < stage.region_count; i++) {
		struct region *region = &stage.regions[i];
		if (iova >= region->iova && iova - region->iova <= region->size &&
			length <= region->size - (iova - region->iova))
			return region;
	}
	return NULL;
}

uint8_t *shadow_at(uint64_t iova, uint64_t length)
{
	struct region *region = region_at(iova, length);
	return region ? region->shadow + (iova - region->iova) : NULL;
}

void shadow_scatter(const struct vb_sge *sges, unsigned count, uint64_t offset, const uint8_t *bytes, uint64_t length)
{
	for (unsigned i = 0; i < count && length; i++) {
		if (offset >= sges[i].length) {
			offset -= sges[i].length;
			continue;
		}
		uint64_t n = sges[i].length - offset < length ? sges[i].length - offset : length;
		uint8_t *to = shadow_at(sges[i].addr + offset, n);
		if (to)
			memcpy(to, bytes, n);
		bytes += n;
		length -= n;
		offset = 0;
	}
}

void shadow_gather(const struct vb_sge *sges, unsigned count, uint8_t *bytes)
{
	for (unsigned i = 0; i < count; i++) {
		uint8_t *from = shadow_at(sges[i].addr, sges[i].length);
		if (from)
			memcpy(bytes, from, sges[i].length);
		bytes += sges[i].length;
	}
}

void memory_check(const struct line *line)
{
	for (unsigned i = 0; i < stage.region_count; i++) {
		struct region *region = &stage.regions[i];
		uint64_t whole = region->size + 2 * GUARD;
		const uint8_t *real = region->bytes - GUARD, *shadow = region->shadow - GUARD;
		if (memcmp(real, shadow, whole) == 0)
			continue;
		uint64_t first = 0, last = whole - 1;
		while (real[first] == shadow[first])
			first++;
		while (real[last] == shadow[last])
			last--;
		fail(line, "memory of '%s' differs from offset %lld to %lld (size %llu): expected %02x.., seen %02x..",
			region->name, (long long)first - GUARD, (long long)last - GUARD,
			(unsigned long long)region->size, shadow[first], real[first]);
	}
}
