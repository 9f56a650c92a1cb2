/* A small seeded generator (xoshiro256**, public domain algorithm by Blackman and Vigna; seeded by splitmix64). The
 * owner of an engine gives it a seed; the engine has no other randomness. Not for secrets. */
#ifndef VB_BASE_RANDOM_H
#define VB_BASE_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct vb_random {
	uint64_t state[4];
};

static inline void vb_random_seed(struct vb_random *random, uint64_t seed)
{
	for (int i = 0; i < 4; i++) {
		uint64_t z = (seed += 0x9E3779B97F4A7C15u);
		z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
		z = (z ^ z >> 27) * 0x94D049BB133111EBu;
		random->state[i] = z ^ z >> 31;
	}
}

static inline uint64_t vb_random_u64(struct vb_random *random)
{
	uint64_t *s = random->state;
	uint64_t five = s[1] * 5, result = (five << 7 | five >> 57) * 9, t = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = s[3] << 45 | s[3] >> 19;
	return result;
}

/* Uniform in 0 .. below - 1; below must not be 0. The bias of the multiply is under 2^-32 for small ranges. */
static inline uint32_t vb_random_below(struct vb_random *random, uint32_t below)
{
	return (uint32_t)(((vb_random_u64(random) >> 32) * below) >> 32);
}

/* True with a chance of parts in a million. */
static inline bool vb_random_chance(struct vb_random *random, uint32_t ppm)
{
	return vb_random_below(random, 1000000) < ppm;
}

#endif
