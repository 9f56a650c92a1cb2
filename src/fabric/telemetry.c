/* See telemetry.h. */
#include "base/invariant.h"
#include "fabric/telemetry.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "fabric/engine_connections.h"
#include "fabric/ns3.h"
#include "fabric/port.h"

bool telemetry_is_wanted(const struct fabric_config *config)
{
	return config->endpoint == FABRIC_ENGINE && config->cc.algorithm &&
	       config->cc.algorithm->goes_by & VB_CC_BY_TELEMETRY;
}

int telemetry_open(struct fabric *fabric)
{
	if (!telemetry_is_wanted(fabric->config))
		return 0;
	fabric->is_telling = true;
	for (uint32_t i = 0; i < fabric->shard_count; i++) {
		fabric->shards[i].told = calloc(1, sizeof(*fabric->shards[i].told));
		if (!fabric->shards[i].told)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < fabric->network->link_count; i++)
		fabric->links[i].is_telling = network_is_switch(fabric->network->links[i].from);
	return 0;
}

void telemetry_close(struct fabric *fabric)
{
	for (uint32_t i = 0; fabric->shards && i < fabric->shard_count; i++) {
		free(fabric->shards[i].told);
		free(fabric->shards[i].records);
	}
}

int telemetry_open_connection(const struct fabric *fabric, struct connection *connection)
{
	assert(!connection->heard);
	if (fabric->is_telling)
		connection->heard = calloc(1, sizeof(*connection->heard));
	return fabric->is_telling && !connection->heard ? -ENOMEM : 0;
}

void telemetry_close_connection(struct connection *connection)
{
	free(connection->heard);
	connection->heard = NULL;
}

static void copy(struct record *to, const struct record *from)
{
	memcpy(to, from, offsetof(struct record, hops) + from->hop_count * sizeof(from->hops[0]));
}

/* A connection's record is used only at its destination, so by one shard. */
void telemetry_begin(struct shard *shard, uint32_t packet, uint32_t connection)
{
	struct record *record = &shard->records[packet];
	if (shard->packets[packet].is_answer) {
		assert(connection_at(shard->fabric, connection)->heard);
		copy(record, connection_at(shard->fabric, connection)->heard);
	} else {
		record->connection = connection;
		record->hop_count = 0;
	}
}

void telemetry_note(struct shard *shard, uint32_t number, uint32_t packet, vb_time at)
{
	const struct link *link = &shard->fabric->links[number];
	struct record *record = &shard->records[packet];
	if (shard->packets[packet].is_frame || shard->packets[packet].is_answer || record->hop_count == VB_CC_HOPS)
		return;
	record->hops[record->hop_count++] = (struct record_hop){ .at = at,
		.tx_bytes = link->bytes - shard->packets[packet].wire_bytes,
		.queue_bytes = shard->fabric->ports[number]->bytes,
		.link = number };
}

static uint64_t bytes_per_s(const struct fabric *fabric, uint32_t number)
{
	const uint32_t ps = fabric->links[number].ps_per_byte;
	return ps ? (uint64_t)VB_S / ps : network_rate(fabric->network, number) / 8;
}

static uint64_t tell(struct shard *shard, const struct record *record)
{
	const struct network *network = shard->fabric->network;
	shard->told->count = record->hop_count;
	for (uint32_t i = 0; i < record->hop_count; i++) {
		const struct record_hop *hop = &record->hops[i];
		const struct vb_cc_hop exact = { .at = hop->at,
			.tx_bytes = hop->tx_bytes,
			.rate = bytes_per_s(shard->fabric, hop->link),
			.queue_bytes = hop->queue_bytes,
			.port = hop->link };
		const struct switch_profile *its = network_profile(network, network->links[hop->link].from);
		shard->told->hops[i] = its->telemetry == TELLS_AS_NS3 ? ns3_told(exact) : exact;
	}
	return vb_cc_telemetry_word(shard->told);
}

uint64_t telemetry_arrive(struct shard *shard, uint32_t packet)
{
	const struct record *record = &shard->records[packet];
	if (shard->packets[packet].is_answer)
		return tell(shard, record);
	assert(connection_at(shard->fabric, record->connection)->heard);
	if (shard->headers[packet].ackreq)
		copy(connection_at(shard->fabric, record->connection)->heard, record);
	return 0;
}
