/* SipHash of an address and a number, under a secret key. For tables that are filled from outside, so that nobody can
 * choose the bucket, and for numbers that only a receiver at an address can know. */
#ifndef VB_BROKER_KEYED_HASH_H
#define VB_BROKER_KEYED_HASH_H

#include <stdint.h>
#include "base/gid.h"

struct hash_key {
	uint64_t words[2];
};

/* From the kernel's random numbers. */
struct hash_key hash_key_new(void);
uint64_t keyed_hash(const struct hash_key *key, const struct vb_gid *gid, uint64_t number);

#endif
