/* Telemetry: what the ports on a packet's way were like as it left them, where the run's congestion control goes by
 * that.
 *
 * A packet's record lies beside it, in a third array of its shard with the same index, and goes with it into other
 * shards: it is there as long as the packet, and nobody else owns it. Of each flow what its newest packet that asked
 * for an ack has brought is kept at its destination, and every ack that leaves takes a copy back. A run that needs
 * none has neither. */
#ifndef FABRIC_TELEMETRY_H
#define FABRIC_TELEMETRY_H

#include "cc/telemetry.h"
#include "fabric/state.h"

struct record {
	uint32_t flow;
	uint8_t hop_count;
	struct record_hop {
		vb_time at;
		uint64_t tx_bytes;
		uint64_t queue_bytes;
		uint32_t link;
	} hops[VB_CC_HOPS];
};

bool telemetry_is_wanted(const struct fabric_config *config);
int telemetry_open(struct fabric *fabric); /* -ENOMEM */
void telemetry_close(struct fabric *fabric);
/* At its destination; -ENOMEM. */
int telemetry_open_flow(struct fabric *fabric, struct flow_state *flow);
void telemetry_close_flow(struct flow_state *flow);

/* The packet leaves its endpoint. */
void telemetry_begin(struct shard *shard, uint32_t packet, uint32_t flow);
/* It leaves a switch, on that link, which counts it already. */
void telemetry_note(struct shard *shard, uint32_t link, uint32_t packet, vb_time at);
/* It is there: the word for who gets it, until the next packet comes. */
uint64_t telemetry_arrive(struct shard *shard, uint32_t packet);

#endif
