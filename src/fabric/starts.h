/* The flows of a source that are still to begin: the next is the one with the earliest start, of several the one with
 * the lowest number. A pairing heap, linked by numbers in the records of the flows: adding takes one step whatever the
 * order, removing as many as the logarithm of how many there are, on average. */
#ifndef FABRIC_STARTS_H
#define FABRIC_STARTS_H

#include "fabric/state.h"

/* first: the next of them, FLOW_NONE if there is none. Each gives the next one afterwards. The flow's result.start is
 * set. */
uint32_t starts_add(struct flow_state *flows, uint32_t first, uint32_t flow);
uint32_t starts_remove(struct flow_state *flows, uint32_t first); /* the first */

#endif
