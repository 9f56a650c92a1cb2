/* run.mode flows: messages are no packets, but flow over their paths and share links max-min fairly (fabric/fluids.h).
 */
#ifndef SIM_FLOW_MODE_H
#define SIM_FLOW_MODE_H

#include "sim/simulation.h"

/* -EINVAL and why, with the key and what to do: the scenario has what packets alone can have. */
int flow_mode_check(const struct scenario *scenario, char *why, size_t size);
/* The number'th remark about what such a run does not model; NULL: there are no more. */
const char *flow_mode_label(const struct simulation *simulation, unsigned number);

#endif
