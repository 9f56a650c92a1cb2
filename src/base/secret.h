/* Numbers that tell nothing of one another, nor of those to come: SipHash-2-4 (Aumasson and Bernstein; public domain
 * algorithm) of a count, under a key of 128 bits that nobody else has. */
#ifndef VB_BASE_SECRET_H
#define VB_BASE_SECRET_H

#include <stdint.h>

struct vb_secret {
	uint64_t key[2], count;
};

static inline uint64_t vb_secret_rotate(uint64_t word, int by)
{
	return word << by | word >> (64 - by);
}

static inline void vb_secret_rounds(uint64_t v[4], int rounds)
{
	while (rounds-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = vb_secret_rotate(v[1], 13) ^ v[0];
		v[3] = vb_secret_rotate(v[3], 16) ^ v[2];
		v[0] = vb_secret_rotate(v[0], 32) + v[3];
		v[2] += v[1];
		v[3] = vb_secret_rotate(v[3], 21) ^ v[0];
		v[1] = vb_secret_rotate(v[1], 17) ^ v[2];
		v[2] = vb_secret_rotate(v[2], 32);
	}
}

/* The hash of eight bytes: the message word, and one that says how long the message was. */
static inline uint64_t vb_secret_of(const struct vb_secret *secret, uint64_t message)
{
	const uint64_t length = 8ull << 56;
	uint64_t v[4] = { secret->key[0] ^ 0x736F6D6570736575u, secret->key[1] ^ 0x646F72616E646F6Du,
		secret->key[0] ^ 0x6C7967656E657261u, secret->key[1] ^ 0x7465646279746573u };
	v[3] ^= message;
	vb_secret_rounds(v, 2);
	v[0] ^= message;
	v[3] ^= length;
	vb_secret_rounds(v, 2);
	v[0] ^= length;
	v[2] ^= 0xFF;
	vb_secret_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static inline uint64_t vb_secret_next(struct vb_secret *secret)
{
	return vb_secret_of(secret, secret->count++);
}

#endif
