/* Where a flow failed: at a link that went down for good and left no path, in either direction; otherwise at the link
 * on its paths that lost or dropped the most packets. */
#ifndef SIM_CULPRITS_H
#define SIM_CULPRITS_H

#include <stddef.h>
#include "sim/simulation.h"

/* Fills in simulation->culprits and failure_culprits, if flows failed. -ENOMEM. */
int culprits_find(struct simulation *simulation);
/* Why and where a failed flow failed. */
const char *culprit_text(const struct simulation *simulation, uint32_t flow, char *text, size_t size);
/* Likewise of a message among result.failures. */
const char *failure_text(const struct simulation *simulation, uint32_t failure, char *text, size_t size);

#endif
