/* The inside of host/, riddles: random numbers in our memory. A neighbour that has read its own, and says it, has
 * proved that the kernel lets it read us. */
#ifndef VB_HOST_RIDDLES_H
#define VB_HOST_RIDDLES_H

#include <stdint.h>

#define VB_RIDDLES 256u

/* VB_RIDDLES numbers in memory of their own, at a random address: who hears where a riddle is learns of no other
 * address.
 * NULL: no memory. */
uint64_t *vb_riddles_create(void);
void vb_riddles_destroy(uint64_t *riddles); /* or NULL */

#endif
