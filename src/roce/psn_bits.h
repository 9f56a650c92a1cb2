/* A bit for each of the PSNs of a span that moves: a ring of a power of two of them, at least 64. */
#ifndef VB_ROCE_PSN_BITS_H
#define VB_ROCE_PSN_BITS_H

#include <stdbool.h>
#include <stdint.h>

static inline bool vb_psn_bit(const uint64_t *bits, uint32_t mask, uint32_t psn)
{
	return bits[(psn & mask) / 64] >> (psn & 63) & 1;
}

static inline void vb_psn_set(uint64_t *bits, uint32_t mask, uint32_t psn)
{
	bits[(psn & mask) / 64] |= (uint64_t)1 << (psn & 63);
}

static inline void vb_psn_clear(uint64_t *bits, uint32_t mask, uint32_t psn)
{
	bits[(psn & mask) / 64] &= ~((uint64_t)1 << (psn & 63));
}

/* Places of a ring for that many PSNs. */
static inline uint32_t vb_psn_places(uint32_t psns)
{
	uint32_t places = 64;
	while (places < psns)
		places *= 2;
	return places;
}

#endif
