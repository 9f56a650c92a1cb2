/* How long ways take when nobody waits, and congestion controls that are told so of each flow's own (VB_CC_PATH). */
#ifndef FABRIC_ROUND_TRIPS_H
#define FABRIC_ROUND_TRIPS_H

#include "fabric/fabric.h"
#include "net/route.h"

struct fabric;

/* From the first bit's leaving to the last one's arrival, on one of the shortest paths. */
vb_time way_time(
	const struct network *network, const struct routes *routes, uint32_t src, uint32_t dst, uint32_t bytes);
/* Of a whole packet, and back of its acknowledgement: with the packets that it waits for where several have one
 * together, and how long processes sleep on average. Of engines. */
vb_time round_trip_time(const struct fabric_config *config, const struct routes *routes, uint32_t src, uint32_t dst);

/* Is any of the congestion control's parameters VB_CC_PATH? */
bool round_trips_are_wanted(const struct fabric_config *config);
/* Makes a congestion control for each different round trip of the flows; nothing where none is wanted. -ENOMEM. */
int round_trips_open(struct fabric *fabric);
void round_trips_close(struct fabric *fabric);
/* Of endpoints, whose QPs that only answer have it, too: with the default for what is the path's. */
struct vb_cc_config round_trips_common(const struct fabric *fabric);
/* Of a flow from one to the other, where some are wanted; for the run. */
const struct vb_cc_config *round_trips_config(const struct fabric *fabric, uint32_t src, uint32_t dst);

#endif
