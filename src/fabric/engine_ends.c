/* Endpoints that are engines: the product's own engine, held as a live process holds it, with phantom memory and a QP
 * at each end of a flow. */
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "cc/choice.h"
#include "core/counters.h"
#include "fabric/endpoint.h"
#include "fabric/ns3.h"
#include "fabric/engine_connections.h"
#include "fabric/operations.h"
#include "fabric/round_trips.h"
#include "fabric/telemetry.h"
#include "fabric/trim.h"

#define REGION_BASE  (1ull << 20)
#define REGION_BYTES (1ull << 40)
/* The wire bytes of a middle packet beside its payload: preamble and gap, Ethernet's header and FCS, IPv4, UDP, BTH,
 * ICRC. */
#define ETHERNET_OVERHEAD (8 + 12 + 14 + 4 + 20 + 8 + 12 + 4)
static uint32_t endpoint_of(const struct vb_gid *gid)
{
	return ((uint32_t)gid->raw[13] << 16 | (uint32_t)gid->raw[14] << 8 | gid->raw[15]) - 1;
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static struct vb_lane_config lane_in_nic(const struct fabric *fabric, const struct endpoint *endpoint)
{
	const struct fabric_config *config = fabric->config;
	struct vb_lane_config lane = { .unknown_peer_allowance = VB_UNLIMITED,
		.cc = round_trips_common(fabric),
		.rate_overhead = config->data_overhead ? config->data_overhead : ETHERNET_OVERHEAD,
		.rate_is_strict = true,
		.rate_in_whole_ns = fabric->network->is_whole_ns,
		.acks = { .every_bytes = VB_UNLIMITED,
			.every_packets = config->ack_every ? config->ack_every : 1,
			.by_count_alone = true },
		.replies_first = true,
		.packet_overhead = VB_NONE,
		.never_probes = config->probe_after == 0,
		.turn_bytes = 1 };
	lane.cc.line_rate = network_rate(fabric->network, endpoint->link) / 8;
	return lane;
}

/* A process behind sockets does not know its line's rate. */
static struct vb_lane_config lane_behind_sockets(const struct fabric *fabric)
{
	const struct fabric_config *config = fabric->config;
	struct vb_lane_config lane = vb_lane_behind_sockets(config->receive_buffer);
	lane.acks.every_packets = config->ack_every;
	lane.cc = round_trips_common(fabric);
	return lane;
}

static int open_end(struct fabric *fabric, uint32_t number)
{
	const struct fabric_config *config = fabric->config;
	struct endpoint *endpoint = &fabric->endpoints[number];
	struct vb_gid gid = fabric_gid(number);
	struct vb_nic_config nic = {
		.seed = fabric_chance(config->seed, number, 1), .seed_high = number, .mtu = config->mtu
	};
	struct vb_lane_config lane =
		engine_is_behind_sockets(fabric) ? lane_behind_sockets(fabric) : lane_in_nic(fabric, endpoint);
	lane.seed = fabric_chance(config->seed, number, 2);
	lane.slot = 1;
	lane.cnps = config->cnps;
	lane.acks.tells_marks = config->acks_tell_marks;
	lane.ack_timeout = config->ack_timeout;
	lane.probe_after = config->probe_after;
	lane.recovery = config->recovery;
	lane.paths = config->paths;
	lane.drops_are_told = trim_is_everywhere(fabric->network);
	if (config->acks_tell_marks)
		lane.cnps.scope = VB_CNP_NEVER;
	struct vb_cq_config cq = { .capacity = 1,
		.ignore_overrun = false }; /* it grows with the number of open work requests */
	struct vb_mr_config mr = { .iova = REGION_BASE,
		.length = REGION_BYTES,
		.kind = &vb_memory_phantom,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ };
	int rc = vb_nic_create(&nic, &endpoint->engine.nic);
	if (rc == 0)
		rc = vb_nic_set_gid(endpoint->engine.nic, 0, &gid);
	if (rc == 0)
		rc = vb_lane_create(&lane, &endpoint->engine.lane);
	if (rc == 0)
		rc = vb_pd_create(endpoint->engine.nic, &endpoint->engine.pd);
	if (rc == 0)
		rc = vb_cq_create(endpoint->engine.nic, &cq, &endpoint->engine.cq);
	if (rc == 0)
		rc = vb_mr_register(endpoint->engine.pd, &mr, &endpoint->engine.mr);
	return rc;
}

static int open_all(struct fabric *fabric)
{
	int rc = 0;
	for (uint32_t i = 0; rc == 0 && i < fabric->network->endpoint_count; i++)
		rc = open_end(fabric, i);
	return rc;
}

static void close_end(struct endpoint *endpoint)
{
	if (endpoint->engine.mr) {
		vb_mr_invalidate(endpoint->engine.mr);
		vb_mr_free(endpoint->engine.mr);
	}
	if (endpoint->engine.cq)
		vb_cq_destroy(endpoint->engine.cq);
	if (endpoint->engine.pd)
		vb_pd_destroy(endpoint->engine.pd);
	if (endpoint->engine.lane)
		vb_lane_destroy(endpoint->engine.lane);
	if (endpoint->engine.nic)
		vb_nic_destroy(endpoint->engine.nic);
}

static void close_all(struct fabric *fabric)
{
	connections_close(fabric);
	for (uint32_t i = 0; fabric->endpoints && i < fabric->network->endpoint_count; i++)
		close_end(&fabric->endpoints[i]);
	connections_forget_timers(fabric);
}

/* ---- Sending and receiving --------------------------------------------------------------------------------------- */

static void put(struct shard *shard, struct connection *its, uint32_t number)
{
	struct fabric *fabric = shard->fabric;
	const struct flow_state *flow = flow_at(fabric, number);
	uint64_t left = flow->bytes;
	its->posted += flow->pieces_left;
	assert(its->posted <= its->depth);
	vb_sq_begin(its->requester);
	while (left > 0) {
		uint32_t bytes = left < ENGINE_PIECE_BYTES ? (uint32_t)left : ENGINE_PIECE_BYTES;
		const bool tells = bytes == left && its->tells_arrivals;
		struct vb_sge sge = { REGION_BASE, bytes, vb_mr_key(fabric->endpoints[flow->src].engine.mr) };
		struct vb_send_wr wr = { .wr_id = number,
			.opcode = tells ? VB_WR_RDMA_WRITE_WITH_IMM : VB_WR_RDMA_WRITE,
			.flags = VB_SEND_SIGNALED,
			.sges = &sge,
			.sge_count = 1,
			.imm_or_inv = number,
			.remote_addr = REGION_BASE,
			.rkey = vb_mr_key(fabric->endpoints[flow->dst].engine.mr) };
		int rc = vb_sq_put(its->requester, &wr);
		assert(rc == 0);
		(void)rc;
		left -= bytes;
	}
	vb_sq_end(its->requester, true);
}

/* Messages wait for the send queue in the order in which they begin. */
static void append(const struct fabric *fabric, struct connection *its, uint32_t number)
{
	flow_at(fabric, number)->next = FLOW_NONE;
	if (its->first_waiting == FLOW_NONE)
		its->first_waiting = number;
	else
		flow_at(fabric, its->last_waiting)->next = number;
	its->last_waiting = number;
}

static void put_waiting(struct shard *shard, struct connection *its)
{
	uint32_t number;
	while ((number = its->first_waiting) != FLOW_NONE &&
		its->posted + flow_at(shard->fabric, number)->pieces_left <= its->depth) {
		its->first_waiting = flow_at(shard->fabric, number)->next;
		put(shard, its, number);
	}
}

static void post(struct shard *shard, uint32_t number)
{
	struct fabric *fabric = shard->fabric;
	struct flow_state *flow = flow_at(fabric, number);
	const uint32_t pieces = engine_pieces(flow->bytes);
	struct connection *its = connection_of(shard, flow, pieces);
	if (!its || !engine_make_room(shard, &fabric->endpoints[flow->src], pieces))
		return;
	flow->connection = its->number;
	flow->pieces_left = pieces;
	append(fabric, its, number);
	put_waiting(shard, its);
}

static void hold(const struct fabric *fabric, struct endpoint *endpoint, uint8_t classes, bool replies)
{
	(void)fabric;
	vb_lane_hold(endpoint->engine.lane, classes, replies);
}

static const struct connection *connection_with(const struct vb_qp *qp)
{
	return vb_qp_user(qp);
}

static uint16_t port(const struct fabric *fabric, const struct flow_state *flow)
{
	return connection_at(fabric, flow->connection)->port;
}

/* Of packets that are no answers. */
static void note_port(const struct fabric *fabric, const struct vb_outgoing *out, uint16_t number)
{
	struct connection *its = connection_at(fabric, connection_with(out->qp)->number);
	if (out->qp == its->requester)
		its->port = number;
}

/* A NIC decides on each packet when the wire is free; a process hands over all that it has. */
static bool fill_batch(struct shard *shard, struct endpoint *endpoint)
{
	const unsigned budget = engine_is_behind_sockets(shard->fabric) ? VB_BATCH_PACKETS : 1;
	if (shard->at_hand == 0)
		shard->at_hand = vb_lane_transmit(endpoint->engine.lane, shard->batch, budget, shard->now);
	return shard->at_hand > 0;
}

static uint32_t pull(struct shard *shard, struct endpoint *endpoint, uint32_t number)
{
	if (!fill_batch(shard, endpoint))
		return NO_PACKET;
	const unsigned count = shard->batch->count;
	const struct vb_outgoing *out = &shard->batch->out[count - shard->at_hand--];
	const uint16_t its = ns3_is_wanted(shard->fabric) ? connection_with(out->qp)->entropy : out->flow;
	if (shard->fabric->config->tells_messages)
		note_port(shard->fabric, out, its);
	uint32_t index = endpoint_make_packet(shard, &out->packet,
		(struct packet){ .src = number,
			.dst = endpoint_of(&out->av->dgid),
			.flow = its,
			.traffic_class = out->av->traffic_class >> DSCP_SHIFT,
			.takes_marks = (out->av->traffic_class & CE) != 0 });
	if (shard->told && index != NO_PACKET)
		telemetry_begin(shard, index, connection_with(out->qp)->number);
	if (shard->at_hand == 0)
		vb_lane_transmit_done(endpoint->engine.lane, shard->batch->completions, count, shard->now);
	return index;
}

static bool wants(const struct shard *shard, const struct endpoint *endpoint)
{
	return vb_lane_wants_transmit(endpoint->engine.lane, shard->now);
}

static struct vb_deadline deadline(const struct shard *shard, const struct endpoint *endpoint)
{
	(void)shard;
	return vb_lane_next_deadline(endpoint->engine.lane);
}

static void complete_arrival(struct shard *shard, const struct vb_wc *wc)
{
	struct connection *its = connection_at(shard->fabric, (uint32_t)wc->wr_id);
	assert(shard->fabric->endpoints[its->dst].engine.open_pieces > 0);
	shard->fabric->endpoints[its->dst].engine.open_pieces--;
	if (wc->status != VB_WC_SUCCESS)
		return;
	if (its->is_kept)
		shard->is_out_of_memory |= connection_expect_arrival(shard, its) != 0;
	operation_arrive(shard, wc->imm_or_inv);
}

static void complete(struct shard *shard, const struct vb_wc *wc)
{
	if (wc->opcode & VB_WC_RECV) {
		complete_arrival(shard, wc);
		return;
	}
	const uint32_t number = (uint32_t)wc->wr_id;
	struct flow_state *flow = flow_at(shard->fabric, number);
	struct connection *its = connection_at(shard->fabric, flow->connection);
	if (wc->status != VB_WC_SUCCESS && flow->result.error == 0) {
		if (its->cause == 0) /* what failed the QP flushes what is behind it */
			its->cause = wc->vendor_err;
		flow->result.error = wc->status;
		flow->result.cause = its->cause;
	}
	shard->fabric->endpoints[flow->src].engine.open_pieces--;
	assert(flow->pieces_left > 0 && its->posted > 0);
	its->posted--;
	if (--flow->pieces_left == 0)
		operation_end(shard, number);
	put_waiting(shard, its);
}

static void take_completions(struct shard *shard, const struct endpoint *endpoint)
{
	struct vb_wc wc[8];
	struct vb_event event;
	int n;
	if (vb_cq_is_empty(endpoint->engine.cq))
		return;
	while ((n = vb_cq_poll(endpoint->engine.cq, wc, 8)) > 0)
		for (int i = 0; i < n; i++)
			complete(shard, &wc[i]);
	while (vb_lane_next_event(endpoint->engine.lane, &event))
		;
}

static void ask(const struct endpoint *endpoint)
{
	vb_lane_prefetch_own(endpoint->engine.lane);
	__builtin_prefetch(endpoint->engine.cq);
}

static void ask_for_flow(const struct endpoint *endpoint, const struct short_headers *headers)
{
	if (!headers->is_long)
		vb_lane_prefetch(endpoint->engine.lane, headers->dest_qpn);
}

static void receive(struct shard *shard, struct endpoint *endpoint, uint32_t number, uint32_t index)
{
	const struct packet *packet = &shard->packets[index];
	struct vb_path path = { .src = fabric_gid(packet->src),
		.dst = fabric_gid(number),
		.src_port = 0xC000,
		.hop_limit = 64,
		.traffic_class = packet->is_marked ? CE : ECT };
	struct vb_packet headers = packet_headers(shard, index);
	shard->responses += vb_packet_row(&headers)->is_response;
	headers.dest_qpn = connection_qpn(shard, number, packet->src, headers.dest_qpn);
	if (shard->is_out_of_memory || shard->is_out_of_numbers) {
		packet_put(shard, index);
		return;
	}
	if (shard->told)
		headers.holder = telemetry_arrive(shard, index);
	const bool is_cut = trim_is_cut(packet, &headers);
	packet_put(shard, index);
	if (is_cut)
		vb_lane_receive_trimmed(endpoint->engine.lane, &path, &headers, shard->now);
	else
		vb_lane_receive(endpoint->engine.lane, &path, &headers, 1, shard->now);
	take_completions(shard, endpoint);
}

static void advance(struct shard *shard, struct endpoint *endpoint, uint32_t number)
{
	(void)number;
	vb_lane_advance(endpoint->engine.lane, shard->now);
	take_completions(shard, endpoint);
}

/* ---- What is said ------------------------------------------------------------------------------------------------ */

static uint64_t lane_counter(const struct fabric *fabric, enum vb_counter counter)
{
	uint64_t sum = 0, values[VB_COUNTER_COUNT];
	for (uint32_t i = 0; i < fabric->network->endpoint_count; i++) {
		vb_lane_counters(fabric->endpoints[i].engine.lane, values);
		sum += values[counter];
	}
	return sum;
}

static uint64_t executed(const struct fabric *fabric)
{
	uint64_t responses = 0;
	for (uint32_t i = 0; i < fabric->shard_count; i++)
		responses += fabric->shards[i].responses;
	return lane_counter(fabric, VB_RX_PACKETS) - responses - lane_counter(fabric, VB_DUPLICATES) -
	       lane_counter(fabric, VB_DROP_OUT_OF_ORDER) - lane_counter(fabric, VB_OUT_OF_ORDER);
}

/* A packet's time at the flow's rate, with all retries: by then it has made progress or the flow has failed. */
static vb_time slowest(const struct fabric *fabric)
{
	const struct fabric_config *config = fabric->config;
	const uint64_t bytes = (uint64_t)fabric->largest_packet * (engine_retries(config) + 2u);
	uint64_t rate = 0;
	const struct connection *its;
	for (uint32_t i = 0; (its = pool_next(&fabric->connections, &i)); i++) {
		struct vb_qp_account account;
		if (its->posted > 0 && vb_qp_account(its->requester, &account) && account.rate &&
			(rate == 0 || account.rate < rate))
			rate = account.rate;
	}
	const vb_time paced = rate ? (vb_time)(bytes * VB_S / rate) : 0;
	const vb_time timeout = (engine_is_behind_sockets(fabric) ? 5 : 2) *
				config->ack_timeout; /* behind sockets the first timeout may be four times as long */
	return paced > timeout ? paced : timeout;
}

static void say(const struct fabric *fabric, struct fabric_result *result)
{
	result->resent_packets = lane_counter(fabric, VB_RETRANSMITTED);
	result->probes = lane_counter(fabric, VB_PROBES);
	result->timeouts = lane_counter(fabric, VB_TIMEOUTS);
	result->naks = lane_counter(fabric, VB_NAK_SENT);
	result->cnps = lane_counter(fabric, VB_CNP_SENT);
}

const struct endpoint_kind engine_ends = {
	.open = open_all,
	.open_flows = connections_open,
	.close = close_all,
	.close_flow = connection_close_after,
	.retire_flow = connection_retire_after,
	.expect = connection_expect,
	.post = post,
	.port = port,
	.pull = pull,
	.hold = hold,
	.wants = wants,
	.deadline = deadline,
	.ask = ask,
	.ask_for_flow = ask_for_flow,
	.receive = receive,
	.advance = advance,
	.executed = executed,
	.say = say,
	.patience = VB_S,
	.slowest = slowest,
	.waits_for_wire = true,
};
