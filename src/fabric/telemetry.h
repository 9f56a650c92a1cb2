/* Telemetry: the state of the ports on a packet's path, when it left them, for runs whose congestion control needs it.
 *
 * A packet's record is beside it, in a third array of its shard with the same index, and moves with it to other shards:
 * it exists as long as the packet does. For each connection, the destination keeps the record of the newest packet that
 * asked for an ack, and every ack takes a copy of it back. A run that needs no telemetry has neither. */
#ifndef FABRIC_TELEMETRY_H
#define FABRIC_TELEMETRY_H

#include "cc/telemetry.h"
#include "fabric/state.h"

struct connection;

struct record {
	uint32_t connection;
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
int telemetry_open_connection(const struct fabric *fabric, struct connection *connection);
void telemetry_close_connection(struct connection *connection);

/* The packet leaves its endpoint. */
void telemetry_begin(struct shard *shard, uint32_t packet, uint32_t connection);
/* The packet leaves a switch on this link, which has counted it already. */
void telemetry_note(struct shard *shard, uint32_t link, uint32_t packet, vb_time at);
/* The packet has arrived: the word for its receiver, valid until the next packet arrives. */
uint64_t telemetry_arrive(struct shard *shard, uint32_t packet);

#endif
