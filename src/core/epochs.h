/* The state of QPs and keys that a process publishes to others that pull bytes from it. */
#ifndef VB_CORE_EPOCHS_H
#define VB_CORE_EPOCHS_H

#include <stdatomic.h>
#include <stdint.h>

#define VB_EPOCHS_KEYS 4096u /* power of two */

/* Published by a process to those that pull from it, which read it as they read what they pull. All its devices
 * and lanes share one. */
struct vb_epochs {
	uint64_t nonce; /* the holder's */
	/* By some bits of a key: how often such a one was closed. Goes up before who closed it hears that it is. */
	_Atomic uint32_t removals[VB_EPOCHS_KEYS];
	_Atomic uint16_t epochs[65536]; /* the present epoch of the QP with that index in its number */
};

static inline uint32_t vb_epochs_place(uint32_t key)
{
	return key >> 8 & (VB_EPOCHS_KEYS - 1); /* the low byte is no secret's: keys.h */
}

#endif
