/* The operations of a rank that are to come: the next is the one that is due earliest, and of several the
 * one of the lowest job, then of the lowest tag. It is a pairing heap, linked by numbers in their records: adding takes
 * one step in any order, removing takes logarithmic time on average. */
#ifndef FABRIC_STARTS_H
#define FABRIC_STARTS_H

#include "fabric/state.h"

/* first: the next, or FLOW_NONE. Each function returns the next one afterwards. `due` is set. */
uint32_t starts_add(const struct fabric *fabric, uint32_t first, uint32_t flow);
uint32_t starts_remove(const struct fabric *fabric, uint32_t first); /* removes the first */

#endif
