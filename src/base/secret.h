/* Numbers that cannot be predicted from one another: SipHash of a count, under a secret key. */
#ifndef VB_BASE_SECRET_H
#define VB_BASE_SECRET_H

#include <stdint.h>
#include "base/siphash.h"

struct vb_secret {
	uint64_t key[2], count;
};

static inline uint64_t vb_secret_of(const struct vb_secret *secret, uint64_t message)
{
	return vb_siphash(secret->key, &message, 1);
}

static inline uint64_t vb_secret_next(struct vb_secret *secret)
{
	return vb_secret_of(secret, secret->count++);
}

#endif
