/* The state of endpoints with TCP, and their packets (tcp_packets.c). */
#ifndef FABRIC_TCP_ENDS_H
#define FABRIC_TCP_ENDS_H

#include "fabric/endpoint.h"
#include "fabric/tcp.h"

struct packet_list {
	uint32_t first, last, count; /* linked by `next` */
};

struct cpu {
	vb_time free_at;
	uint32_t flow, batched; /* the flow of the last packet, and how many of it in a row */
};

struct tcp_end {
	struct turns turns;         /* of flows that may send */
	uint32_t batch, batch_left; /* the flow whose turn it is, for so many more packets; FLOW_NONE */
	uint32_t first_open;
	uint32_t first_delayed,
		last_delayed;          /* flows of other endpoints with delayed acks, sorted by since when; FLOW_NONE */
	struct vb_deadline expiry;     /* of the first timer of its flows; may be early */
	struct packet_list acks;       /* that the CPU has not begun with */
	struct packet_list sent, come; /* that are with the CPU, or done; packet.at: when they are done */
	struct cpu sending, receiving;
};

struct tcp {
	struct tcp_end *ends;
	const struct tcp_control_kind *control;
	vb_time ack_delay;
	uint32_t ack_every, cpu_batch, data_overhead, ack_overhead;
	bool has_cpu;
};

/* The sender belongs to the source's shard, the receiver to the destination's. */
struct tcp_flow {
	struct tcp_sender sender;
	struct tcp_receiver receiver;
};

static inline struct tcp_sender *tcp_sender_of(const struct fabric *fabric, uint32_t flow)
{
	return &((struct tcp_flow *)flow_part(fabric, flow))->sender;
}

static inline struct tcp_receiver *tcp_receiver_of(const struct fabric *fabric, uint32_t flow)
{
	return &((struct tcp_flow *)flow_part(fabric, flow))->receiver;
}

/* Counted; NO_PACKET: no memory, and is_out_of_memory is set. From this endpoint to the flow's source... */
uint32_t tcp_ack_packet(struct shard *shard, uint32_t number, uint32_t flow, const struct tcp_ack *ack);
/* ... and from the source to the destination. */
uint32_t tcp_segment_packet(struct shard *shard, uint32_t flow, uint64_t segment);

bool tcp_is_segment(const struct vb_packet *headers);
uint64_t tcp_said(const struct vb_packet *headers); /* the segment's number */
struct tcp_ack tcp_ack_said(const struct vb_packet *headers);

#endif
