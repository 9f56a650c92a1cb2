/* The seam between an endpoint, which has a wire, a timer and flows that begin (endpoints.c), and what is in it: a
 * table of functions. All endpoints of a run have the same kind. */
#ifndef FABRIC_ENDPOINT_H
#define FABRIC_ENDPOINT_H

#include "fabric/state.h"

#define DSCP_SHIFT 5 /* class selector n stands for class n */
#define ECT        2
#define CE         3

struct endpoint_kind {
	int (*open)(struct fabric *fabric); /* all endpoints; -ENOMEM */
	int (*open_flows)(
		struct fabric *fabric); /* when all are open: for the list's flows. NULL: there is nothing to open */
	void (*close)(struct fabric *fabric); /* all endpoints and flows; also after a failed open */
	/* For a message that has ended, when no packet is under way that left before its end: all that may still come
	 * are answers that no one waits for. False: it still has something to send. NULL: messages stay until the end
	 * of the run. */
	bool (*close_flow)(struct fabric *fabric, uint32_t flow);
	/* For a message that has ended lately: gives back what is large, and keeps what close_flow waits for. NULL:
	 * there is nothing to give back. */
	void (*retire_flow)(struct fabric *fabric, uint32_t flow);
	/* Another shard has made a connection to the endpoint. NULL: connections are nothing of their own. */
	void (*expect)(struct shard *shard, uint32_t endpoint, uint32_t connection);
	uint32_t flow_bytes; /* of what it knows of each message: flow_part */
	void (*post)(struct shard *shard, uint32_t flow);
	/* The source port of the packets of a message that is about to end. NULL: its entropy. */
	uint16_t (*port)(const struct fabric *fabric, const struct flow_state *flow);
	/* The next packet to leave; NO_PACKET: there is none, or no memory. While shard->at_hand is not 0, more packets
	 * have been decided on, and are taken at once. */
	uint32_t (*pull)(struct shard *shard, struct endpoint *endpoint, uint32_t number);
	/* Nothing of these classes leaves until the next call, and no reply if `replies`. */
	void (*hold)(const struct fabric *fabric, struct endpoint *endpoint, uint8_t classes, bool replies);
	/* Whether something may leave. */
	bool (*wants)(const struct shard *shard, const struct endpoint *endpoint);
	/* When it wants to be called for its timer; may be early. */
	struct vb_deadline (*deadline)(const struct shard *shard, const struct endpoint *endpoint);
	/* For a packet that will be received: prefetch what the endpoint, then its flow, will look at. NULL: not worth
	 * it. */
	void (*ask)(const struct endpoint *endpoint);
	void (*ask_for_flow)(const struct endpoint *endpoint, const struct short_headers *headers);
	void (*receive)(struct shard *shard, struct endpoint *endpoint, uint32_t number, uint32_t packet);
	void (*advance)(struct shard *shard, struct endpoint *endpoint, uint32_t number);
	/* Requests that all endpoints executed. Activity without progress does not raise it. */
	uint64_t (*executed)(const struct fabric *fabric);
	void (*say)(const struct fabric *fabric, struct fabric_result *result);
	vb_time patience; /* without a request or an end for this long, flows no longer make progress */
	/* The exception: how much longer a flow may need for a packet, by its rate or timeout. NULL: patience includes
	 * it. */
	vb_time (*slowest)(const struct fabric *fabric);
	bool waits_for_wire; /* its deadlines are for sending */
};

extern const struct endpoint_kind engine_ends; /* the engine */
extern const struct endpoint_kind ideal_ends;  /* a source and sink without an engine */
extern const struct endpoint_kind tcp_ends;
extern const struct endpoint_kind flow_ends; /* config->by_flows */

/* A packet, counted. Its size is filled in unless given (packets that are not RoCE), and so are the properties of
 * answers. NO_PACKET: no memory; the shard's is_out_of_memory is set. */
uint32_t endpoint_make_packet(struct shard *shard, const struct vb_packet *headers, struct packet packet);
/* The part of a message that belongs to the kind of endpoint. */
static inline void *flow_part(const struct fabric *fabric, uint32_t flow)
{
	return flow_at(fabric, flow) + 1;
}

#endif
