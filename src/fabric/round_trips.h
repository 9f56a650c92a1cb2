/* How long paths take without queueing, and congestion control that is configured with each flow's own round trip
 * (VB_CC_PATH). */
#ifndef FABRIC_ROUND_TRIPS_H
#define FABRIC_ROUND_TRIPS_H

#include "fabric/fabric.h"
#include "net/route.h"

struct fabric;
struct shard;

/* From when the first bit leaves until the last arrives, on one of the shortest paths. */
vb_time way_time(
	const struct network *network, const struct routes *routes, uint32_t src, uint32_t dst, uint32_t bytes);
/* Of a full packet, and back of its acknowledgement, including the packets that it waits for if several share one, and
 * how long processes sleep on average. For engines. */
vb_time round_trip_time(const struct fabric_config *config, const struct routes *routes, uint32_t src, uint32_t dst);

/* Whether any parameter of the congestion control is VB_CC_PATH. */
bool round_trips_are_wanted(const struct fabric_config *config);
/* Nothing is opened if none is wanted. -ENOMEM. */
int round_trips_open(struct fabric *fabric);
void round_trips_close(struct fabric *fabric);
/* For endpoints, and QPs that only answer: with the default where the path's is asked for. */
struct vb_cc_config round_trips_common(const struct fabric *fabric);
/* For a flow between these endpoints, from one of the shard's own, if the path's is wanted; valid for the run.
 * -ENOMEM. */
int round_trips_config(struct shard *shard, uint32_t src, uint32_t dst, const struct vb_cc_config **config);

#endif
