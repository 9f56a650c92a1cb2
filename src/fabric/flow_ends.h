/* Endpoints whose messages are no packets: each flows over its path (fluids.h), as fast as what else is under way lets
 * it. */
#ifndef FABRIC_FLOW_ENDS_H
#define FABRIC_FLOW_ENDS_H

#include "fabric/state.h"

void flow_ends_on_fluids(struct shard *shard);                               /* EVENT_FLUIDS */
void flow_ends_on_stage(struct shard *shard, uint32_t flow, uint32_t stage); /* EVENT_STAGE */
void flow_ends_on_outage(struct shard *shard, uint32_t fault);               /* EVENT_OUTAGE */

#endif
