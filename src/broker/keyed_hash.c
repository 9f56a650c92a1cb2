/* See keyed_hash.h. */
#include "broker/keyed_hash.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "base/siphash.h"

struct hash_key hash_key_new(void)
{
	struct hash_key key;
	if (getrandom(&key, sizeof(key), 0) != sizeof(key))
		key = (struct hash_key){ { (uint64_t)random(), (uint64_t)random() } };
	return key;
}

uint64_t keyed_hash(const struct hash_key *key, const struct vb_gid *gid, uint64_t number)
{
	uint64_t words[3] = { [2] = number };
	memcpy(words, gid->raw, sizeof(gid->raw));
	return vb_siphash(key->words, words, 3);
}
