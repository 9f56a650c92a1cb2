/* The flows of a source that have not begun: the next is the one with the earliest start, and of several the lowest
 * number. It is a pairing heap, linked by numbers in the flows' records: adding takes one step in any order, removing
 * takes logarithmic time on average. */
#ifndef FABRIC_STARTS_H
#define FABRIC_STARTS_H

#include "fabric/state.h"

/* first: the next flow, or FLOW_NONE. Each function returns the next one afterwards. The flow's result.start is set. */
uint32_t starts_add(struct flow_state *flows, uint32_t first, uint32_t flow);
uint32_t starts_remove(struct flow_state *flows, uint32_t first); /* removes the first */

#endif
