/* The packets of a shard: two arrays with one index, and a third where ports record telemetry (telemetry.h). Headers
 * that do not fit the second array are in one of their own. */
#include <stdlib.h>
#include "base/invariant.h"
#include "net/grow.h"
#include "fabric/telemetry.h"

static bool grow_records(struct shard *shard, uint32_t room)
{
	struct record *records = realloc(shard->records, room * sizeof(*records));
	if (records)
		shard->records = records;
	return records;
}

static bool grow(struct shard *shard)
{
	assert(shard->packet_count == shard->packet_room);
	uint32_t room = shard->packet_room ? shard->packet_room * 2 : 1024;
	struct packet *packets = realloc(shard->packets, room * sizeof(*packets));
	if (packets)
		shard->packets = packets;
	struct short_headers *headers = realloc(shard->headers, room * sizeof(*headers));
	if (headers)
		shard->headers = headers;
	if (!packets || !headers || (shard->told && !grow_records(shard, room)))
		return false;
	shard->packet_room = room;
	return true;
}

uint32_t packet_get(struct shard *shard)
{
	uint32_t packet = shard->free_packet;
	if (packet != NO_PACKET) {
		shard->free_packet = shard->packets[packet].next;
		return packet;
	}
	if (shard->packet_count == shard->packet_room && !grow(shard)) {
		shard->is_out_of_memory = true;
		return NO_PACKET;
	}
	return shard->packet_count++;
}

static void put(struct shard *shard, uint32_t packet)
{
	assert(packet < shard->packet_count);
	shard->packets[packet].next = shard->free_packet;
	shard->free_packet = packet;
}

void packet_put(struct shard *shard, uint32_t packet)
{
	shard->under_way[shard->packets[packet].generation] -= !shard->packets[packet].is_frame;
	if (shard->packets[packet].has_cargo) {
		cargo_lose(shard, packet);
	} else if (shard->headers[packet].is_long) {
		uint32_t number = shard->packets[packet].word;
		assert(number < shard->long_count);
		shard->long_headers[number].psn = shard->free_long;
		shard->free_long = number;
	}
	put(shard, packet);
}

uint32_t packet_copy(struct shard *shard, uint32_t packet)
{
	uint32_t copy = packet_get(shard);
	if (copy != NO_PACKET && shard->packets[packet].has_cargo) {
		if (cargo_copy(shard, copy, packet))
			return copy;
		put(shard, copy);
		return NO_PACKET;
	}
	const struct vb_packet headers = packet_headers(shard, packet);
	if (copy == NO_PACKET || !packet_fill(shard, copy, &shard->packets[packet], &headers))
		return NO_PACKET;
	if (shard->records)
		shard->records[copy] = shard->records[packet];
	return copy;
}

/* ---- Headers ----------------------------------------------------------------------------------------------------- */

static bool is_aeth_alone(const struct vb_opcode *row)
{
	return row->headers[0] == VB_AETH && row->headers[1] == VB_END && row->payload == VB_PAYLOAD_NONE;
}

static bool is_short(const struct vb_packet *headers)
{
	const struct vb_opcode *row = vb_packet_row(headers);
	return (row->headers[0] == VB_END || is_aeth_alone(row)) && headers->holder == 0 &&
	       headers->pkey == VB_PKEY_DEFAULT && headers->dest_qpn <= VB_QPN_MASK && headers->psn <= VB_PSN_MASK;
}

static uint32_t put_long(struct shard *shard, const struct vb_packet *headers)
{
	uint32_t number = shard->free_long;
	if (number != NO_PACKET) {
		shard->free_long = shard->long_headers[number].psn;
	} else {
		if (!grow_by_one(&shard->long_headers, &shard->long_room, shard->long_count, sizeof(*headers)))
			return NO_PACKET;
		number = shard->long_count++;
	}
	shard->long_headers[number] = *headers;
	return number;
}

bool packet_fill(struct shard *shard, uint32_t index, const struct packet *its, const struct vb_packet *headers)
{
	struct packet *packet = &shard->packets[index];
	const bool is_long = !is_short(headers);
	*packet = *its;
	shard->under_way[packet->generation] += !packet->is_frame;
	shard->headers[index] = (struct short_headers){ .opcode = headers->opcode,
		.dest_qpn = headers->dest_qpn,
		.psn = headers->psn,
		.solicited = headers->solicited,
		.migreq = headers->migreq,
		.ackreq = headers->ackreq,
		.fecn = headers->fecn,
		.becn = headers->becn,
		.is_long = is_long };
	if (!is_long) {
		packet->word = is_aeth_alone(vb_packet_row(headers)) ? headers->msn << 8 | headers->syndrome
								     : headers->payload_length;
		return true;
	}
	packet->word = put_long(shard, headers);
	if (packet->word != NO_PACKET)
		return true;
	shard->is_out_of_memory = true;
	shard->under_way[packet->generation] -= !packet->is_frame;
	put(shard, index);
	return false;
}

struct vb_packet packet_headers(const struct shard *shard, uint32_t index)
{
	const struct short_headers brief = shard->headers[index];
	const uint32_t word = shard->packets[index].word;
	if (brief.is_long)
		return shard->long_headers[word];
	struct vb_packet headers = { .opcode = brief.opcode,
		.solicited = brief.solicited,
		.migreq = brief.migreq,
		.ackreq = brief.ackreq,
		.fecn = brief.fecn,
		.becn = brief.becn,
		.pkey = VB_PKEY_DEFAULT,
		.dest_qpn = brief.dest_qpn,
		.psn = brief.psn };
	if (is_aeth_alone(&vb_opcodes[brief.opcode])) {
		headers.msn = word >> 8;
		headers.syndrome = (uint8_t)word;
	} else {
		headers.payload_length = word;
	}
	return headers;
}
