/* Segments and acks as packets of the fabric, in the fields that RoCE uses. */
#include "fabric/endpoint.h"
#include "fabric/tcp_ends.h"

/* A number: its low bits as the PSN, the others in `holder`. */
static struct vb_packet say(struct vb_packet headers, uint32_t flow, uint64_t number)
{
	headers.pkey = VB_PKEY_DEFAULT;
	headers.dest_qpn = flow;
	headers.psn = number & VB_PSN_MASK;
	headers.holder = number & ~(uint64_t)VB_PSN_MASK;
	return headers;
}

uint64_t tcp_said(const struct vb_packet *headers)
{
	return headers->holder | headers->psn;
}

/* Blocks as distances, each in a word of the answer's record. */
static struct vb_packet ack_headers(uint32_t flow, const struct tcp_ack *ack)
{
	struct vb_packet headers = { .opcode = ack->block_count ? VB_ATOMIC_ACKNOWLEDGE : VB_ACKNOWLEDGE,
		.becn = ack->is_echo };
	uint64_t words[TCP_BLOCKS] = { 0 };
	for (uint8_t i = 0; i < ack->block_count; i++)
		words[i] = (ack->blocks[i].first - ack->there) << 32 | (ack->blocks[i].end - ack->blocks[i].first);
	headers.atomic_result = words[0];
	headers.swap_add = words[1];
	headers.compare = words[2];
	return say(headers, flow, ack->there);
}

struct tcp_ack tcp_ack_said(const struct vb_packet *headers)
{
	struct tcp_ack ack = { .there = tcp_said(headers), .is_echo = headers->becn };
	const uint64_t words[TCP_BLOCKS] = { headers->atomic_result, headers->swap_add, headers->compare };
	for (uint8_t i = 0; headers->opcode == VB_ATOMIC_ACKNOWLEDGE && i < TCP_BLOCKS && words[i]; i++) {
		const uint64_t first = ack.there + (words[i] >> 32);
		ack.blocks[ack.block_count++] = (struct tcp_block){ first, first + (uint32_t)words[i] };
	}
	return ack;
}

bool tcp_is_segment(const struct vb_packet *headers)
{
	return headers->opcode == VB_WRITE_MIDDLE;
}

uint32_t tcp_ack_packet(struct shard *shard, uint32_t number, uint32_t flow, const struct tcp_ack *ack)
{
	const struct fabric *fabric = shard->fabric;
	const uint32_t bytes = fabric->tcp->ack_overhead + (ack->block_count ? FABRIC_TCP_SACK(ack->block_count) : 0);
	const struct vb_packet headers = ack_headers(flow, ack);
	return endpoint_make_packet(shard, &headers,
		(struct packet){ .src = number,
			.dst = flow_at(fabric, flow)->src,
			.flow = flow_at(fabric, flow)->entropy,
			.wire_bytes = (uint16_t)bytes });
}

uint32_t tcp_segment_packet(struct shard *shard, uint32_t flow, uint64_t segment)
{
	const struct fabric *fabric = shard->fabric;
	const struct tcp *tcp = fabric->tcp;
	const struct flow_state *its = flow_at(fabric, flow);
	const uint64_t mss = fabric->config->mtu;
	const uint32_t bytes =
		(uint32_t)(segment + 1 < tcp_sender_of(fabric, flow)->count ? mss : its->bytes - segment * mss);
	const struct vb_packet headers =
		say((struct vb_packet){ .opcode = VB_WRITE_MIDDLE, .payload_length = bytes }, flow, segment);
	return endpoint_make_packet(shard, &headers,
		(struct packet){ .src = its->src,
			.dst = its->dst,
			.flow = flow_at(fabric, flow)->entropy,
			.traffic_class = its->traffic_class & (FABRIC_CLASSES - 1),
			.takes_marks = tcp->control->takes_marks,
			.wire_bytes = (uint16_t)(bytes + tcp->data_overhead) });
}
