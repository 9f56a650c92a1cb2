/* Connections of engines: a QP at either end. Each QP is made for its first packet, to send or received, in the shard
 * of its endpoint. Behind sockets those of the list are made at the beginning, since the connections to a peer share
 * what it can receive.
 *
 * Both ends must know both QPs' numbers before the first packet, and shards do not ask each other:
 *   the list's flows   have the numbers that they would have if all QPs were made at the beginning, flow by flow
 *   other messages     the requester's number is the source's to choose. The responder's says which source it is, and
 *                      which of its first connections to this peer. One beyond these has a number without such a
 *                      place on the wire: the requester's, moved to the responders' part. The destination gives that
 *                      QP a number of its own, and finds it by the source and the number on the wire
 * Where there are other jobs, each of the three has its part of an endpoint's numbers.
 *
 * The shard of the source makes the connection, and tells the destination's, which waits for the first packet. */
#ifndef FABRIC_ENGINE_CONNECTIONS_H
#define FABRIC_ENGINE_CONNECTIONS_H

#include "fabric/qp_numbers.h"
#include "fabric/state.h"

struct connection {
	uint32_t next; /* pool.h */
	uint32_t number, src, dst;
	struct vb_qp *requester, *responder;
	struct record *heard;                 /* the destination's, with telemetry: telemetry.h */
	uint32_t cause;                       /* of its failure: enum vb_cause_kind */
	uint32_t depth, posted;               /* of the requester's send queue; work requests in it */
	uint32_t first_waiting, last_waiting; /* messages for which it has no room; first: or FLOW_NONE */
	uint16_t requester_index, responder_index, entropy;
	uint16_t port; /* the requester's source port, if messages are told */
	uint8_t traffic_class;
	uint8_t place;       /* of a job's: which of its source's to this peer; 255: it has none */
	uint8_t quiet_turns; /* since its message ended */
	bool is_listed, is_kept, tells_arrivals;
};

static inline struct connection *connection_at(const struct fabric *fabric, uint32_t number)
{
	return pool_at(&fabric->connections, number);
}

#define ENGINE_PIECE_BYTES (1u << 30) /* of a message, per work request */

static inline uint32_t engine_pieces(uint64_t bytes)
{
	return (uint32_t)((bytes + ENGINE_PIECE_BYTES - 1) / ENGINE_PIECE_BYTES);
}

static inline uint8_t engine_retries(const struct fabric_config *config)
{
	return config->retry_count ? config->retry_count : 7;
}

static inline bool engine_is_behind_sockets(const struct fabric *fabric)
{
	return fabric->config->receive_buffer != 0;
}

int connections_open(struct fabric *fabric);           /* -ENOMEM, -EINVAL: a flow of more than 32 TiB */
void connections_close(struct fabric *fabric);         /* before the lanes */
void connections_forget_timers(struct fabric *fabric); /* after these */
/* By which a source finds the connection that stays open: GPUs that share a NIC, jobs and traffic classes do not share
 * connections. */
uint64_t connection_key(const struct fabric *fabric, const struct flow_state *flow);
/* The connection for a message that begins, with a requester; NULL: the shard's run must end, and it says why. */
struct connection *connection_of(struct shard *shard, struct flow_state *flow, uint32_t pieces);
/* Another shard has made a connection to this endpoint. */
void connection_expect(struct shard *shard, uint32_t endpoint, uint32_t connection);
/* The number, at this endpoint, of the QP that a packet from src is for. It makes the QP of a connection whose first
 * packet this is. No QP has the number of one that is over. */
uint32_t connection_qpn(struct shard *shard, uint32_t endpoint, uint32_t src, uint32_t qpn);
/* Posts the receive request for the next message whose arrival is to be told. */
int connection_expect_arrival(struct shard *shard, struct connection *connection);
/* Room for the completions of so many more work requests; false: no memory. */
bool engine_make_room(struct shard *shard, struct endpoint *endpoint, uint32_t pieces);
/* A message has ended, and no packet that left before its end is under way. False: its QPs still have something to
 * send. Called while no shard runs. */
bool connection_close_after(struct fabric *fabric, uint32_t flow);
void connection_retire_after(struct fabric *fabric, uint32_t flow);

#endif
