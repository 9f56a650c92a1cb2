/* The inside of host/, challenges: random numbers in our memory. A local peer that has read its own, and says it, has
 * proved that the kernel lets it read us. */
#ifndef VB_HOST_CHALLENGES_H
#define VB_HOST_CHALLENGES_H

#include <stdint.h>

#define VB_CHALLENGES 256u

/* VB_CHALLENGES numbers in memory of their own, at a random address: a peer that hears where its number is learns of no
 * other address. NULL: no memory. */
uint64_t *vb_challenges_create(void);
void vb_challenges_destroy(uint64_t *challenges); /* or NULL */

#endif
