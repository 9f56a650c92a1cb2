/* A lane: what it is made of, and what is known where its peers are. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/peers.h"
#include "base/invariant.h"
#include "core/qp.h"
#include "engine/nic.h"
#include "engine/qp.h"
#include "local/local.h"
#include "roce/peers.h"
#include "roce/roce.h"

/* A field that is 0 is as behind sockets. */
static struct vb_lane_config filled_in(struct vb_lane_config config)
{
	if (!config.index_count)
		config.index_count = VB_LANE_PLACES;
	if (!config.turn_bytes)
		config.turn_bytes = 65536;
	if (!config.acks.every_bytes)
		config.acks.every_bytes = 65536;
	if (!config.acks.every_packets)
		config.acks.every_packets = VB_UNLIMITED;
	if (!config.cnps.interval)
		config.cnps.interval = 50 * VB_US;
	if (config.packet_overhead == VB_NONE)
		config.packet_overhead = 0;
	else if (!config.packet_overhead)
		config.packet_overhead = VB_PACKET_OVERHEAD;
	if (!config.hold_bytes)
		config.hold_bytes = VB_HOLD_BYTES;
	if (!config.hold_lane_bytes)
		config.hold_lane_bytes = VB_HOLD_LANE_BYTES;
	if (!config.probe_after)
		config.probe_after = 1 * VB_MS;
	return config;
}

struct vb_lane_config vb_lane_behind_sockets(uint32_t receive_buffer)
{
	return (struct vb_lane_config){
		.receive_buffer = receive_buffer,
		.patience = 32 * VB_MS, /* a peer's process may wait as long for its core, where there are many */
		.turn_bytes = VB_TRAIN_BYTES,
		.acks = { .spared_bytes = 384 * 1024 },
		.ack_delay =
			20 * VB_US, /* so that a program's answer leaves together with the ack of what it answers */
	};
}

/* Of the lane's configuration, what is the same whatever carries packets. */
static void configure(struct vb_lane *lane, const struct vb_lane_config *config)
{
	lane->slot = config->slot;
	lane->first_index = config->first_index;
	lane->index_count = config->index_count;
	lane->patience = config->patience;
	lane->ack_timeout = config->ack_timeout;
	lane->least_silence = config->probe_after;
	lane->meets_local_peers = config->meets_local_peers;
}

int vb_lane_create(const struct vb_lane_config *config, struct vb_lane **created)
{
	struct vb_roce_lane *roce = aligned_alloc(VB_CACHE_LINE, sizeof(*roce));
	if (!roce)
		return -ENOMEM;
	memset(roce, 0, sizeof(*roce));
	roce->config = filled_in(*config);
	configure(&roce->lane, &roce->config);
	vb_lane_init(&roce->lane, config->seed);
	vb_roce_lane_init(roce);
	*created = &roce->lane;
	assert(vb_list_empty(&roce->lane.ready));
	return 0;
}

void vb_lane_destroy(struct vb_lane *lane)
{
	for (struct vb_list *node; (node = vb_list_pop(&lane->leaving));)
		vb_qp_free(vb_container_of(node, struct vb_qp, leaving_link));
	vb_roce_lane_deinit(vb_roce_lane(lane));
	vb_lane_deinit(lane);
	free(vb_roce_lane(lane));
}

int vb_lane_set_local_peer(
	struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot, struct vb_local_peer *local_peer)
{
	struct vb_peer *peer = vb_peer_know(lane, gid, slot);
	if (!peer)
		return -ENOMEM;
	vb_peer_set_local_peer(lane, peer, local_peer);
	if (local_peer && local_peer->is_lost)
		vb_peers_lose(lane, local_peer);
	return 0;
}

/* The lines of a lane and of its wire part that each packet looks at. */
void vb_lane_prefetch_own(const struct vb_lane *lane)
{
	const struct vb_roce_lane *roce = vb_roce_lane(lane);
	const void *lines[] = { lane, &lane->ready.prev, &lane->doorbells, &lane->counters[VB_RX_PACKETS],
		&roce->replies, &roce->holder, &roce->answer };
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		__builtin_prefetch(lines[i], 1);
}

/* Lines that a packet of a connection looks at, of either side: each line by itself, for the processor does not guess
 * them. The lane's own first line is read here and now. */
void vb_lane_prefetch(const struct vb_lane *lane, uint32_t qpn)
{
	const struct vb_qp *qp = lane->qps[qpn & lane->qp_mask];
	if (!qp)
		return;
	const struct vb_roce_qp *roce = vb_roce(qp);
	const void *lines[] = { qp, &qp->responder, &qp->sq, &qp->requester, &qp->timer, &qp->attr, &qp->target,
		&qp->known_rkey, &roce->recovery, &roce->responses, &roce->flight, &roce->congestion.cc.state };
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		__builtin_prefetch(lines[i]);
}
