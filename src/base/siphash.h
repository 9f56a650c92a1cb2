/* SipHash-2-4 (J.-P. Aumasson, D. J. Bernstein: SipHash, 2012; public domain algorithm) of whole 64-bit words, under a
 * key of 128 bits. Without the key nobody can predict a hash or find a collision. */
#ifndef VB_BASE_SIPHASH_H
#define VB_BASE_SIPHASH_H

#include <stdint.h>

static inline uint64_t vb_siphash_rotate(uint64_t word, int by)
{
	return word << by | word >> (64 - by);
}

static inline void vb_siphash_rounds(uint64_t v[4], int rounds)
{
	while (rounds-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = vb_siphash_rotate(v[1], 13) ^ v[0];
		v[3] = vb_siphash_rotate(v[3], 16) ^ v[2];
		v[0] = vb_siphash_rotate(v[0], 32) + v[3];
		v[2] += v[1];
		v[3] = vb_siphash_rotate(v[3], 21) ^ v[0];
		v[1] = vb_siphash_rotate(v[1], 17) ^ v[2];
		v[2] = vb_siphash_rotate(v[2], 32);
	}
}

static inline void vb_siphash_take(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	vb_siphash_rounds(v, 2);
	v[0] ^= word;
}

static inline uint64_t vb_siphash(const uint64_t key[2], const uint64_t *words, unsigned count)
{
	uint64_t v[4] = { key[0] ^ 0x736F6D6570736575u, key[1] ^ 0x646F72616E646F6Du, key[0] ^ 0x6C7967656E657261u,
		key[1] ^ 0x7465646279746573u };
	for (unsigned i = 0; i < count; i++)
		vb_siphash_take(v, words[i]);
	vb_siphash_take(v, (uint64_t)count * sizeof(*words) << 56); /* how many bytes there were */
	v[2] ^= 0xFF;
	vb_siphash_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
