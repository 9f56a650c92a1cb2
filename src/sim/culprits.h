/* Where a flow failed: at a link that went down for good and left no way, there or back; else at the link on its ways
 * that lost or dropped the most packets. */
#ifndef SIM_CULPRITS_H
#define SIM_CULPRITS_H

#include <stddef.h>
#include "sim/simulation.h"

/* Fills in simulation->culprits, where flows failed. -ENOMEM. */
int culprits_find(struct simulation *simulation);
/* Why a flow that failed did so, and where. */
const char *culprit_text(const struct simulation *simulation, uint32_t flow, char *text, size_t size);

#endif
