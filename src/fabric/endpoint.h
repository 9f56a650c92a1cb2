/* The seam between an endpoint, which has a wire, a timer and flows that begin (endpoints.c), and what is in it: a
 * table of functions, a run's endpoints all having the same. */
#ifndef FABRIC_ENDPOINT_H
#define FABRIC_ENDPOINT_H

#include "fabric/state.h"

#define DSCP_SHIFT 5 /* class selector n is class n */
#define ECT        2
#define CE         3

struct endpoint_kind {
	int (*open)(struct fabric *fabric); /* all endpoints; -ENOMEM */
	int (*open_flow)(struct fabric *fabric, uint32_t flow);
	void (*close)(struct fabric *fabric); /* and flows; of what was half opened, too */
	/* Of a flow that has ended, when no packet is under way that left before: nothing more comes for it but
	 * answers to nobody. False: it has something to say yet. NULL: there is nothing to close. */
	bool (*close_flow)(struct fabric *fabric, uint32_t flow);
	void (*post)(struct shard *shard, uint32_t flow);
	/* What leaves next, NO_PACKET: nothing, or there is no memory. While shard->at_hand says so there is more that
	 * has been decided on, and is taken at once. */
	uint32_t (*pull)(struct shard *shard, struct endpoint *endpoint, uint32_t number);
	/* Of these classes nothing leaves until told otherwise, and no reply. */
	void (*hold)(const struct fabric *fabric, struct endpoint *endpoint, uint8_t classes, bool replies);
	/* Something may leave. */
	bool (*wants)(const struct shard *shard, const struct endpoint *endpoint);
	/* When it wants to be told the time; may be early. */
	struct vb_deadline (*deadline)(const struct shard *shard, const struct endpoint *endpoint);
	/* Of a packet that will be received: what the endpoint, then its flow, will look at is fetched. NULL: not
	 * worth it. */
	void (*ask)(const struct endpoint *endpoint);
	void (*ask_for_flow)(const struct endpoint *endpoint, const struct short_headers *headers);
	void (*receive)(struct shard *shard, struct endpoint *endpoint, uint32_t number, uint32_t packet);
	void (*advance)(struct shard *shard, struct endpoint *endpoint, uint32_t number);
	/* Requests of all endpoints: what goes on though nothing gets on does not raise it. */
	uint64_t (*executed)(const struct fabric *fabric);
	void (*say)(const struct fabric *fabric, struct fabric_result *result);
	vb_time patience; /* without a request, or an end, for longer no flow gets on any more */
	/* But for who needs longer for a packet, by his rate or his timeout. NULL: patience has that in it. */
	vb_time (*slowest)(const struct fabric *fabric);
	bool waits_for_wire; /* what is due is something to send */
};

extern const struct endpoint_kind engine_ends; /* the engine */
extern const struct endpoint_kind ideal_ends;  /* a source and sink without one */
extern const struct endpoint_kind tcp_ends;

/* A packet, counted: its size, where it is not RoCE's, is there, and what answers are like is filled in. NO_PACKET: no
 * memory, and the shard says so. */
uint32_t endpoint_make_packet(struct shard *shard, const struct vb_packet *headers, struct packet packet);
/* What tells flows between the same two apart, where there is no other. */
static inline uint16_t endpoint_entropy(const struct fabric *fabric, uint32_t flow)
{
	return fabric->source_ports ? fabric->source_ports[flow] : (uint16_t)(flow ^ flow >> 16);
}

#endif
