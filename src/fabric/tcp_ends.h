/* What endpoints that have TCP consist of, and their packets (tcp_packets.c). */
#ifndef FABRIC_TCP_ENDS_H
#define FABRIC_TCP_ENDS_H

#include "fabric/state.h"
#include "fabric/tcp.h"

struct packet_list {
	uint32_t first, last, count; /* by `next` */
};

struct cpu {
	vb_time free_at;
	uint32_t flow, batched; /* that it has done last, and how many of it one after the other */
};

struct tcp_end {
	struct turns turns;         /* of flows that may send */
	uint32_t batch, batch_left; /* whose turn it is until so many more are sent; FLOW_NONE */
	uint32_t first_open;
	uint32_t first_delayed, last_delayed; /* flows of others that are owed acks, by since when; FLOW_NONE */
	struct vb_deadline expiry;            /* of the first timer of its flows; may be early */
	struct packet_list acks;              /* that the CPU has not begun with */
	struct packet_list sent, come;        /* through the CPU; packet.at: when it is done with it */
	struct cpu sending, receiving;
};

struct tcp {
	struct tcp_sender *senders;     /* by flow, each of its source's shard */
	struct tcp_receiver *receivers; /* and of its destination's */
	struct tcp_end *ends;
	const struct tcp_control_kind *control;
	vb_time ack_delay;
	uint32_t ack_every, cpu_batch, data_overhead, ack_overhead;
	bool has_cpu;
};

/* Counted; NO_PACKET: no memory, and the shard says so. From the endpoint of this number to the flow's source... */
uint32_t tcp_ack_packet(struct shard *shard, uint32_t number, uint32_t flow, const struct tcp_ack *ack);
/* ... and from there to its destination. */
uint32_t tcp_segment_packet(struct shard *shard, uint32_t flow, uint64_t segment);

bool tcp_is_segment(const struct vb_packet *headers);
uint64_t tcp_said(const struct vb_packet *headers); /* the segment's number */
struct tcp_ack tcp_ack_said(const struct vb_packet *headers);

#endif
