/* See keyed_hash.h. */
#include "broker/keyed_hash.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct hash_key hash_key_new(void)
{
	struct hash_key key;
	if (getrandom(&key, sizeof(key), 0) != sizeof(key))
		key = (struct hash_key){ { (uint64_t)random(), (uint64_t)random() } };
	return key;
}

static uint64_t turn(uint64_t value, unsigned bits)
{
	return value << bits | value >> (64 - bits);
}

static void mix(uint64_t v[4], unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = turn(v[1], 13) ^ v[0];
		v[3] = turn(v[3], 16) ^ v[2];
		v[0] = turn(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = turn(v[1], 17) ^ v[2];
		v[3] = turn(v[3], 21) ^ v[0];
		v[2] = turn(v[2], 32);
	}
}

uint64_t keyed_hash(const struct hash_key *key, const struct vb_gid *gid, uint64_t number)
{
	uint64_t v[4] = { key->words[0] ^ 0x736f6d6570736575u, key->words[1] ^ 0x646f72616e646f6du,
		key->words[0] ^ 0x6c7967656e657261u, key->words[1] ^ 0x7465646279746573u };
	uint64_t words[4] = { [2] = number, [3] = (uint64_t)24 << 56 }; /* the last one: how many bytes there were */
	memcpy(words, gid->raw, sizeof(gid->raw));
	for (unsigned i = 0; i < 4; i++) {
		v[3] ^= words[i];
		mix(v, 2);
		v[0] ^= words[i];
	}
	v[2] ^= 0xff;
	mix(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
