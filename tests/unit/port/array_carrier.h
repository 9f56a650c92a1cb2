/* A carrier for tests of the framing: what is sent lies in an array, from which it is received again. It says where
 * each message would have left, and refuses what it is told to refuse. */
#ifndef VB_TESTS_ARRAY_CARRIER_H
#define VB_TESTS_ARRAY_CARRIER_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/list.h"
#include "port/carrier.h"

enum { ARRAY_CARRIER_MESSAGES = 128, ARRAY_CARRIER_FD = 77 };

struct array_message {
	struct vb_path path;
	uint32_t length, segment; /* segment: as sent, 0 for a single datagram */
	uint8_t bytes[65536];
};

struct array_carrier {
	struct vb_carrier carrier;
	unsigned count, next; /* of messages: sent, and the first that was not received yet */
	struct array_message *messages;
	unsigned routes, sends, receives; /* calls */
	int refuses_trains;               /* with this errno; 0: not */
	uint32_t mtu;       /* a larger datagram is refused with EMSGSIZE, or its train with refuses_trains */
	int fails_route_to; /* a steering number, ENETDOWN; -1: none */
	uint64_t overflow;
	bool is_abandoned, is_closed;
};

static inline struct array_carrier *array_carrier_of(const struct vb_carrier *carrier)
{
	return vb_container_of((struct vb_carrier *)carrier, struct array_carrier, carrier);
}

static inline uint16_t array_carrier_port(const struct vb_carrier *carrier, uint8_t steering, uint16_t flow)
{
	return (uint16_t)(0xC000 + steering * 8 + (flow & carrier->flow_mask));
}

static void array_carrier_route(struct vb_carrier *carrier, struct vb_tx_message *messages, unsigned count)
{
	struct array_carrier *array = array_carrier_of(carrier);

	array->routes++;
	for (unsigned i = 0; i < count; i++) {
		struct vb_tx_message *m = &messages[i];
		m->error = m->steering == array->fails_route_to ? ENETDOWN : 0;
		if (!m->error)
			m->src_port = array_carrier_port(carrier, m->steering, m->flow);
	}
}

static void array_carrier_keep(struct array_carrier *array, const struct vb_tx_message *m)
{
	if (array->count == ARRAY_CARRIER_MESSAGES)
		abort();
	struct array_message *kept = &array->messages[array->count++];
	kept->path = (struct vb_path){ .src = *m->src,
		.dst = *m->dst,
		.src_port = m->src_port,
		.traffic_class = m->traffic_class,
		.hop_limit = m->hop_limit,
		.ifindex = 1 };
	kept->length = 0;
	kept->segment = m->segment;
	for (unsigned i = 0; i < m->iov_count; i++) {
		memcpy(kept->bytes + kept->length, m->iov[i].iov_base, m->iov[i].iov_len);
		kept->length += (uint32_t)m->iov[i].iov_len;
	}
}

static void array_carrier_send(struct vb_carrier *carrier, struct vb_tx_message *messages, unsigned count, vb_time now)
{
	struct array_carrier *array = array_carrier_of(carrier);

	array->sends++;
	for (unsigned i = 0; i < count; i++) {
		struct vb_tx_message *m = &messages[i];
		uint32_t size = m->segment;
		for (unsigned k = 0; k < m->iov_count && !m->segment; k++)
			size += (uint32_t)m->iov[k].iov_len;
		if (m->error)
			continue;
		if (m->segment && array->refuses_trains)
			m->error = array->refuses_trains;
		else if (array->mtu && size > array->mtu)
			m->error = EMSGSIZE;
		else
			array_carrier_keep(array, m);
	}
}

static unsigned array_carrier_receive(struct vb_carrier *carrier, struct vb_rx_message messages[VB_CARRIER_RX])
{
	struct array_carrier *array = array_carrier_of(carrier);
	unsigned given = 0;

	array->receives++;
	for (; given < VB_CARRIER_RX && array->next < array->count; given++) {
		struct array_message *m = &array->messages[array->next++];
		messages[given] = (struct vb_rx_message){
			.path = m->path,
			.bytes = m->bytes,
			.length = m->length,
			.segment = m->segment ? m->segment : m->length,
		};
	}
	return given;
}

static unsigned array_carrier_fds(const struct vb_carrier *carrier, int fds[VB_CARRIER_FDS])
{
	fds[0] = ARRAY_CARRIER_FD;
	return 1;
}

static uint64_t array_carrier_overflow(const struct vb_carrier *carrier)
{
	return array_carrier_of(carrier)->overflow;
}

static void array_carrier_abandon(struct vb_carrier *carrier, bool closes)
{
	array_carrier_of(carrier)->is_abandoned = true;
}

static void array_carrier_close(struct vb_carrier *carrier)
{
	array_carrier_of(carrier)->is_closed = true;
}

static const struct vb_carrier_ops array_carrier_ops = {
	.route = array_carrier_route,
	.send = array_carrier_send,
	.receive = array_carrier_receive,
	.fds = array_carrier_fds,
	.overflow = array_carrier_overflow,
	.abandon = array_carrier_abandon,
	.close = array_carrier_close,
};

/* Forgets what it carried. */
static inline void array_carrier_clear(struct array_carrier *array)
{
	array->count = array->next = array->routes = array->sends = array->receives = 0;
}

static inline void array_carrier_init(struct array_carrier *array)
{
	*array = (struct array_carrier){ .carrier = { .ops = &array_carrier_ops, .largest_train = VB_TRAIN_BYTES },
		.fails_route_to = -1 };
	array->messages = calloc(ARRAY_CARRIER_MESSAGES, sizeof(*array->messages));
}

static inline void array_carrier_deinit(struct array_carrier *array)
{
	free(array->messages);
}

#endif
