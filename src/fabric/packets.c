/* Packets of one part: two arrays, with one index, or three where ports tell (telemetry.h), and one for those of which
 * the second has no room for all headers. */
#include <stdlib.h>
#include "net/grow.h"
#include "fabric/telemetry.h"

static bool grow_records(struct part *part, uint32_t room)
{
	struct record *records = realloc(part->records, room * sizeof(*records));
	if (records)
		part->records = records;
	return records;
}

static bool grow(struct part *part)
{
	uint32_t room = part->packet_room ? part->packet_room * 2 : 1024;
	struct packet *packets = realloc(part->packets, room * sizeof(*packets));
	if (packets)
		part->packets = packets;
	struct short_headers *headers = realloc(part->headers, room * sizeof(*headers));
	if (headers)
		part->headers = headers;
	if (!packets || !headers || (part->told && !grow_records(part, room)))
		return false;
	part->packet_room = room;
	return true;
}

uint32_t packet_get(struct part *part)
{
	uint32_t packet = part->free_packet;
	if (packet != NO_PACKET) {
		part->free_packet = part->packets[packet].next;
		return packet;
	}
	if (part->packet_count == part->packet_room && !grow(part)) {
		part->is_out_of_memory = true;
		return NO_PACKET;
	}
	return part->packet_count++;
}

static void put(struct part *part, uint32_t packet)
{
	part->packets[packet].next = part->free_packet;
	part->free_packet = packet;
}

void packet_put(struct part *part, uint32_t packet)
{
	part->under_way[part->packets[packet].generation] -= !part->packets[packet].is_frame;
	if (part->packets[packet].has_cargo) {
		cargo_lose(part, packet);
	} else if (part->headers[packet].is_long) {
		uint32_t number = part->packets[packet].word;
		part->long_headers[number].psn = part->free_long;
		part->free_long = number;
	}
	put(part, packet);
}

uint32_t packet_copy(struct part *part, uint32_t packet)
{
	uint32_t copy = packet_get(part);
	if (copy != NO_PACKET && part->packets[packet].has_cargo) {
		if (cargo_copy(part, copy, packet))
			return copy;
		put(part, copy);
		return NO_PACKET;
	}
	const struct vb_packet headers = packet_headers(part, packet);
	if (copy == NO_PACKET || !packet_fill(part, copy, &part->packets[packet], &headers))
		return NO_PACKET;
	if (part->records)
		part->records[copy] = part->records[packet];
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

static uint32_t put_long(struct part *part, const struct vb_packet *headers)
{
	uint32_t number = part->free_long;
	if (number != NO_PACKET) {
		part->free_long = part->long_headers[number].psn;
	} else {
		if (!grow_by_one(&part->long_headers, &part->long_room, part->long_count, sizeof(*headers)))
			return NO_PACKET;
		number = part->long_count++;
	}
	part->long_headers[number] = *headers;
	return number;
}

bool packet_fill(struct part *part, uint32_t index, const struct packet *its, const struct vb_packet *headers)
{
	struct packet *packet = &part->packets[index];
	const bool is_long = !is_short(headers);
	*packet = *its;
	part->under_way[packet->generation] += !packet->is_frame;
	part->headers[index] = (struct short_headers){ .opcode = headers->opcode,
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
	packet->word = put_long(part, headers);
	if (packet->word != NO_PACKET)
		return true;
	part->is_out_of_memory = true;
	part->under_way[packet->generation] -= !packet->is_frame;
	put(part, index);
	return false;
}

struct vb_packet packet_headers(const struct part *part, uint32_t index)
{
	const struct short_headers brief = part->headers[index];
	const uint32_t word = part->packets[index].word;
	if (brief.is_long)
		return part->long_headers[word];
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
