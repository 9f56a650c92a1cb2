/* A lane: its table of QPs, and the way of a received packet to the QP it is for. */
#include <errno.h>
#include <stdlib.h>
#include "base/random.h"
#include "engine/congestion.h"
#include "engine/echo.h"
#include "engine/flight.h"
#include "engine/lane.h"
#include "engine/peers.h"
#include "engine/qp.h"
#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/scheduler.h"
#include "engine/uc.h"
#include "engine/ud.h"

#define MAX_PLACES 65536
#define RESERVED   3 /* indices, at most: vb_lane_add_qp */

/* What is not said is as behind sockets. */
static struct vb_lane_config filled_in(struct vb_lane_config config)
{
	if (!config.index_count)
		config.index_count = MAX_PLACES;
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

int vb_lane_create(const struct vb_lane_config *config, struct vb_lane **created)
{
	struct vb_lane *lane = aligned_alloc(64, sizeof(*lane));
	struct vb_random random;
	if (!lane)
		return -ENOMEM;
	memset(lane, 0, sizeof(*lane));
	lane->qps = lane->few;
	lane->qp_mask = VB_LANE_FEW - 1;
	lane->config = filled_in(*config);
	vb_random_seed(&random, config->seed);
	lane->next_index = vb_random_below(&random, lane->config.index_count / 2);
	vb_allowance_init(&lane->reads, config->receive_buffer ? config->receive_buffer / 2 : UINT64_MAX);
	vb_timers_init(&lane->timers);
	vb_timers_init(&lane->congestion_timers);
	vb_list_init(&lane->ready);
	vb_list_init(&lane->raw_ready);
	for (unsigned i = 0; i < VB_LANE_CLASSES; i++)
		vb_list_init(&lane->held[i]);
	vb_list_init(&lane->acks);
	vb_list_init(&lane->replies);
	vb_list_init(&lane->notices);
	vb_list_init(&lane->condemned);
	vb_list_init(&lane->leaving);
	lane->handed_out.wanted = lane->handed_out.generation - 1;
	vb_list_init(&lane->mcast);
	vb_list_init(&lane->datagram_qps);
	vb_list_init(&lane->wishes);
	vb_list_init(&lane->watched);
	atomic_init(&lane->doorbells, NULL);
	atomic_init(&lane->flushes, NULL);
	*created = lane;
	return 0;
}

void vb_lane_destroy(struct vb_lane *lane)
{
	if (lane->qps != lane->few)
		free(lane->qps);
	for (struct vb_list *node; (node = vb_list_pop(&lane->leaving));)
		vb_qp_free(vb_container_of(node, struct vb_qp, leaving_link));
	free(lane->echo_replies);
	vb_peers_deinit(lane);
	vb_timers_deinit(&lane->timers);
	vb_timers_deinit(&lane->congestion_timers);
	free(lane);
}

void vb_lane_counters(const struct vb_lane *lane, uint64_t *values)
{
	memcpy(values, lane->counters, sizeof(lane->counters));
}

struct vb_qp *vb_lane_next_qp(const struct vb_lane *lane, uint32_t *place)
{
	while (*place <= lane->qp_mask) {
		struct vb_qp *qp = lane->qps[(*place)++];
		if (qp)
			return qp;
	}
	return NULL;
}

struct vb_qp *vb_lane_find_qp(const struct vb_lane *lane, uint32_t qpn)
{
	struct vb_qp *qp = lane->qps[qpn & lane->qp_mask];
	return qp && qp->qpn == qpn ? qp : NULL;
}

bool vb_lane_has_qp(const struct vb_lane *lane, uint32_t number)
{
	return vb_lane_find_qp(lane, number) != NULL;
}

/* Twice the places: whose were different stay so. */
static bool double_places(struct vb_lane *lane)
{
	uint32_t before = lane->qp_mask + 1, places = 2 * before;
	struct vb_qp **qps = calloc(places, sizeof(*qps));
	if (!qps)
		return false;
	for (uint32_t i = 0; i < before; i++)
		if (lane->qps[i])
			qps[lane->qps[i]->qpn & (places - 1)] = lane->qps[i];
	if (lane->qps != lane->few)
		free(lane->qps);
	lane->qps = qps;
	lane->qp_mask = places - 1;
	return true;
}

static bool has_place(const struct vb_lane *lane)
{
	uint32_t places = lane->qp_mask + 1;
	return 2 * (lane->qp_count + 1) <= places || places == MAX_PLACES;
}

static uint32_t most_qps(const struct vb_lane *lane)
{
	uint32_t indices = lane->config.index_count - RESERVED;
	return indices < VB_MAX_QP ? indices : VB_MAX_QP;
}

/* Round robin, so that no number returns soon. 0, 1 and 0xFFFFFF are reserved, hence no index 0, 1 or 0xFFFF. */
uint32_t vb_lane_next_number(struct vb_lane *lane)
{
	for (;;) {
		uint32_t index = lane->config.first_index + lane->next_index++ % lane->config.index_count;
		if (index >= 2 && index != 0xffff)
			return (uint32_t)lane->config.slot << 16 | index;
	}
}

static bool is_taken(const struct vb_lane *lane, uint32_t number)
{
	return lane->qps[number & lane->qp_mask] != NULL;
}

/* A number that was chosen before may need more places than there are QPs. */
static int choose_number(struct vb_lane *lane, uint32_t given, uint32_t *number)
{
	*number = given ? given : vb_lane_next_number(lane);
	while (is_taken(lane, *number)) {
		if (!given)
			*number = vb_lane_next_number(lane);
		else if (lane->qp_mask + 1 == MAX_PLACES)
			return -EADDRINUSE;
		else if (!double_places(lane))
			return -ENOMEM;
	}
	return 0;
}

int vb_lane_add_qp(struct vb_lane *lane, struct vb_qp *qp, uint32_t given)
{
	if (lane->qp_count >= most_qps(lane))
		return -ENOSPC;
	if (!has_place(lane) && !double_places(lane))
		return -ENOMEM;
	int error = choose_number(lane, given, &qp->qpn);
	if (error)
		return error;
	lane->qps[qp->qpn & lane->qp_mask] = qp;
	lane->qp_count++;
	return 0;
}

void vb_lane_remove_qp(struct vb_lane *lane, struct vb_qp *qp)
{
	lane->qps[qp->qpn & lane->qp_mask] = NULL;
	lane->qp_count--;
}

/* What a packet of a connection looks at, of either side: each line by itself, for the processor does not guess them.
 * The lane's own first line is read here and now. */
void vb_lane_prefetch(const struct vb_lane *lane, uint32_t qpn)
{
	const struct vb_qp *qp = lane->qps[qpn & lane->qp_mask];
	if (!qp)
		return;
	const void *lines[] = { qp, &qp->ack_link, &qp->sq, &qp->requester, &qp->requester.progress_at, &qp->responder,
		&qp->flight, &qp->congestion.cc.state, &qp->timer, &qp->attr, &qp->target, &qp->known_rkey };
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		__builtin_prefetch(lines[i]);
}

/* ---- Receiving ------------------------------------------------------------------------------------------------- */

/* 9.6.1.1.3 and 10.9: same low fifteen bits; we are full members, so any membership of the sender's will do. */
static bool pkey_matches(uint16_t pkey)
{
	return (pkey & 0x7fff) == (VB_PKEY_DEFAULT & 0x7fff);
}

static bool path_is_the_connections(const struct vb_qp *qp, const struct vb_path *path)
{
	return vb_gid_equal(&path->src, &qp->attr.av.dgid) && vb_gid_equal(&path->dst, &qp->attr.av.sgid);
}

/* Congestion Experienced: the sender's NIC is told. RoCEv2 annex A17.9.3. But not of a CNP: where all is marked, two
 * QPs that have nothing to send would answer each other's for good. */
static void note_congestion(struct vb_qp *qp, const struct vb_opcode *row)
{
	if (!qp->lane->is_marked)
		return;
	vb_count(qp->lane, VB_CE_RECEIVED, 1);
	qp->responder.ack.is_marked |= !row->is_response;
	if (qp->type == VB_QP_UD || row->message == VB_MESSAGE_CNP || qp->lane->config.cnps.scope == VB_CNP_NEVER)
		return;
	qp->responder.cnp_wanted = true;
	vb_schedule_reply(qp);
}

/* UC has no responses, XRC QPs are a requester or a responder alone. */
static void receive_by_half(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	bool is_response = vb_packet_row(packet)->is_response;
	if (qp->type == VB_QP_UC)
		vb_uc_receive(qp, packet, now);
	else if (qp->type == VB_QP_XRC_SEND && is_response)
		vb_requester_receive(qp, packet, now);
	else if (qp->type == VB_QP_XRC_RECV && !is_response)
		vb_responder_receive_xrc(qp, packet, now);
	else
		vb_count(qp->lane, VB_DROP_TRANSPORT, 1);
}

static void receive_connected(struct vb_qp *qp, bool is_its_path, const struct vb_packet *packet, vb_time now)
{
	const struct vb_opcode *row = vb_packet_row(packet);
	struct vb_requester *rq = &qp->requester;

	if (vb_state(qp) < VB_QPS_RTR) {
		vb_count(qp->lane, VB_DROP_QP_STATE, 1);
		return;
	}
	if (!is_its_path) {
		vb_count(qp->lane, VB_DROP_ADDRESS, 1);
		return;
	}
	if (vb_state(qp) == VB_QPS_ERR) {
		if (!vb_responder_refuse_again(qp, packet, now))
			vb_count(qp->lane, VB_DROP_QP_STATE, 1);
		return;
	}
	rq->heard_at = now;
	rq->was_heard = true;
	note_congestion(qp, row);
	if (row->message == VB_MESSAGE_CNP) {
		vb_count(qp->lane, VB_CNP_RECEIVED, 1);
		qp->congestion.tally.cnps_received++;
		vb_congestion_tell(
			qp, &(struct vb_cc_signal){
				    .event = VB_CC_CNP, .flight = qp->flight.out + qp->flight.in, .now = now });
	} else if (qp->type != VB_QP_RC) {
		receive_by_half(qp, packet, now);
	} else if (row->is_response) {
		vb_requester_receive(qp, packet, now);
	} else {
		vb_responder_receive(qp, packet, now);
	}
}

static void receive_one(struct vb_lane *lane, struct vb_qp *qp, const struct vb_path *path, bool is_its_path,
	const struct vb_packet *packet, vb_time now)
{
	vb_count(lane, VB_RX_BYTES, packet->payload_length);
	lane->holder = packet->holder;
	if (!pkey_matches(packet->pkey) && packet->opcode != VB_CNP) {
		vb_count(lane, VB_DROP_PKEY, 1);
		return;
	}
	if (packet->dest_qpn == VB_QPN_MULTICAST) {
		if ((packet->opcode & 0xe0) == VB_UD && vb_gid_is_multicast(&path->dst))
			vb_mcast_receive(lane, path, packet);
		else
			vb_count(lane, VB_DROP_TRANSPORT, 1);
		return;
	}
	if (!qp || qp->type == VB_QP_RAW) {
		vb_count(lane, VB_DROP_BAD_QPN, 1);
		return;
	}
	if ((packet->opcode & 0xe0) == VB_MANUFACTURER) {
		vb_echo_receive(qp, path, packet);
		return;
	}
	bool is_cnp = packet->opcode == VB_CNP && qp->type != VB_QP_UD;
	if ((packet->opcode & 0xe0) != qp->transport && !is_cnp)
		vb_count(lane, VB_DROP_TRANSPORT, 1);
	else if (qp->type == VB_QP_UD)
		vb_ud_receive(qp, path, packet);
	else
		receive_connected(qp, is_its_path, packet, now);
}

static void receive_in_order(
	struct vb_lane *lane, const struct vb_path *path, const struct vb_packet *packets, size_t n, vb_time now)
{
	struct vb_qp *qp = NULL;
	uint32_t qpn = VB_QPN_MULTICAST;
	bool is_its_path = false;

	lane->now = now;
	lane->acks_forced = false;
	lane->is_marked = (path->traffic_class & 3) == 3;
	vb_count(lane, VB_RX_PACKETS, n);
	for (size_t i = 0; i < n; i++) {
		if (packets[i].dest_qpn != qpn) { /* one look-up a train */
			qpn = packets[i].dest_qpn;
			qp = vb_lane_find_qp(lane, qpn);
			is_its_path = qp && path_is_the_connections(qp, path);
		}
		bool is_run = qp && i + 1 < n && packets[i + 1].opcode == (VB_RC | VB_WRITE_MIDDLE) && !lane->is_marked;
		uint32_t expected = is_run ? qp->responder.expected_psn : 0;
		receive_one(lane, qp, path, is_its_path, &packets[i], now);
		vb_lane_reap(lane);
		if (is_run && qp->responder.expected_psn != expected)
			i += vb_responder_receive_middles(qp, packets + i, n - i);
	}
}

/* Ours put an ack behind the requests that follow it, so that all are one train: it counts as first, for programs rely
 * on seeing what they sent complete before they see the answer to it. */
static bool ends_in_ack(const struct vb_packet *packets, size_t n)
{
	if (n < 2 || packets[n - 1].opcode != (VB_RC | VB_ACKNOWLEDGE))
		return false;
	for (size_t i = 0; i + 1 < n; i++)
		if (vb_packet_row(&packets[i])->is_response)
			return false;
	return true;
}

void vb_lane_receive(
	struct vb_lane *lane, const struct vb_path *path, const struct vb_packet *packets, size_t n, vb_time now)
{
	if (ends_in_ack(packets, n))
		receive_in_order(lane, path, &packets[--n], 1, now);
	receive_in_order(lane, path, packets, n, now);
}
