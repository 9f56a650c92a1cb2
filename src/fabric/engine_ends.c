/* Endpoints that are engines: the product's own engine, held as a live process holds it, with phantom memory and a QP
 * at each end of a flow. */
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "cc/choice.h"
#include "core/counters.h"
#include "fabric/endpoint.h"
#include "fabric/operations.h"
#include "fabric/round_trips.h"
#include "fabric/telemetry.h"

#define REGION_BASE  (1ull << 20)
#define REGION_BYTES (1ull << 40)
/* The wire bytes of a middle packet beside its payload: preamble and gap, Ethernet's header and FCS, IPv4, UDP, BTH,
 * ICRC. */
#define ETHERNET_OVERHEAD (8 + 12 + 14 + 4 + 20 + 8 + 12 + 4)
/* In generations, until nothing of a flow is under way: its requests have arrived, their acks and CNPs, and the CNPs
 * for marked acks. */
#define QUIET_TURNS 3
#define PIECE_BYTES (1u << 30) /* of a flow, per work request */

static uint32_t endpoint_of(const struct vb_gid *gid)
{
	return ((uint32_t)gid->raw[13] << 16 | (uint32_t)gid->raw[14] << 8 | gid->raw[15]) - 1;
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static bool is_behind_sockets(const struct fabric *fabric)
{
	return fabric->config->receive_buffer != 0;
}

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
		is_behind_sockets(fabric) ? lane_behind_sockets(fabric) : lane_in_nic(fabric, endpoint);
	lane.seed = fabric_chance(config->seed, number, 2);
	lane.slot = 1;
	lane.cnps = config->cnps;
	lane.acks.tells_marks = config->acks_tell_marks;
	lane.ack_timeout = config->ack_timeout;
	lane.probe_after = config->probe_after;
	lane.restarts_messages = config->restarts_messages;
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

/* Makes room for the flows of each endpoint, one endpoint after the other. */
static int open_connections(struct fabric *fabric)
{
	const struct flow_list *list = fabric->config->flows;
	uint32_t first = 0;
	fabric->connections = malloc((2 * (size_t)list->count + 1) * sizeof(*fabric->connections));
	if (!fabric->connections)
		return -ENOMEM;
	for (uint32_t i = 0; i < list->count; i++) {
		fabric->endpoints[list->flows[i].src].engine.connection_count++;
		fabric->endpoints[list->flows[i].dst].engine.connection_count++;
	}
	for (uint32_t i = 0; i < fabric->network->endpoint_count; i++) {
		struct engine_end *end = &fabric->endpoints[i].engine;
		end->first_connection = first;
		first += end->connection_count;
		end->connection_count = 0; /* counts up as flows are opened */
	}
	return 0;
}

static int open_all(struct fabric *fabric)
{
	int rc = open_connections(fabric);
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

/* Every lane has slot 1. */
static uint32_t number_of(uint16_t index)
{
	return 1u << 16 | index;
}

static uint8_t retries(const struct fabric_config *config)
{
	return config->retry_count ? config->retry_count : 7;
}

static int connect_qp(const struct fabric *fabric, uint32_t own, uint32_t peer, uint8_t traffic_class, struct vb_qp *qp,
	uint32_t dest_qpn)
{
	const struct fabric_config *config = fabric->config;
	const bool takes_marks = !is_behind_sockets(fabric) || vb_cc_takes_marks_live(config->cc.algorithm);
	struct vb_qp_attr attr = { .path_mtu = config->mtu,
		.dest_qpn = dest_qpn,
		.access = VB_ACCESS_REMOTE_WRITE,
		.port = 1,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = retries(config),
		.rnr_retry = 7,
		.av = { .sgid = fabric_gid(own),
			.dgid = fabric_gid(peer),
			.traffic_class = (uint8_t)(traffic_class << DSCP_SHIFT | (takes_marks ? ECT : 0)) } };
	attr.state = VB_QPS_INIT;
	int rc = vb_qp_modify(qp, &attr, VB_QP_STATE | VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS, 0);
	attr.state = VB_QPS_RTR;
	if (rc == 0)
		rc = vb_qp_modify(qp, &attr,
			VB_QP_STATE | VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN |
				VB_QP_MAX_DEST_RD_ATOMIC | VB_QP_MIN_RNR_TIMER,
			0);
	attr.state = VB_QPS_RTS;
	if (rc == 0)
		rc = vb_qp_modify(qp, &attr,
			VB_QP_STATE | VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_SQ_PSN |
				VB_QP_MAX_QP_RD_ATOMIC,
			0);
	return rc;
}

static int create_qp(const struct fabric *fabric, uint32_t endpoint, uint16_t index, struct flow_state *flow,
	uint32_t depth, struct vb_qp **qp)
{
	struct endpoint *its = &fabric->endpoints[endpoint];
	struct vb_qp_config config = { .type = VB_QP_RC,
		.pd = its->engine.pd,
		.send_cq = its->engine.cq,
		.recv_cq = its->engine.cq,
		.max_send_wr = depth,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.number = number_of(index),
		.user = flow };
	return vb_qp_create(its->engine.lane, &config, qp);
}

/* As processes learn about each other from their brokers. */
static void introduce(const struct fabric *fabric, uint32_t endpoint, uint32_t peer)
{
	const struct vb_peer_facts facts = { .is_verbena = true, .receive_buffer = fabric->config->receive_buffer };
	const struct vb_gid gid = fabric_gid(peer);
	if (is_behind_sockets(fabric))
		vb_lane_set_peer(fabric->endpoints[endpoint].engine.lane, &gid, &facts);
}

/* ---- Connections ------------------------------------------------------------------------------------------------- */

/* The lane gives out numbers one by one. A flow's QPs have the numbers that they would have if all had been made at the
 * beginning, in the order of the flows. Each QP is made for its first packet, to send or received, in the shard of its
 * endpoint. Behind sockets all are made at the beginning, since the connections to a peer share what it can receive. */
static uint16_t take_index(struct fabric *fabric, uint32_t endpoint, uint32_t flow)
{
	struct engine_end *end = &fabric->endpoints[endpoint].engine;
	fabric->connections[end->first_connection + end->connection_count++] = flow;
	return (uint16_t)vb_lane_next_number(end->lane);
}

static int open_requester(const struct fabric *fabric, uint32_t number)
{
	const struct flow *flow = &fabric->config->flows->flows[number];
	struct flow_state *state = &fabric->flows[number];
	assert(!state->requester);
	introduce(fabric, flow->src, flow->dst);
	int rc = create_qp(fabric, flow->src, state->requester_index, state, state->pieces_left, &state->requester);
	if (rc == 0 && fabric->round_trips)
		rc = vb_qp_set_congestion_control(state->requester, round_trips_config(fabric, flow->src, flow->dst));
	return rc ? rc
		  : connect_qp(fabric, flow->src, flow->dst, flow->traffic_class, state->requester,
			    number_of(state->responder_index));
}

/* All open work requests may complete at once: flows fail together. */
static bool make_room_for_completions(struct shard *shard, struct endpoint *endpoint, uint32_t pieces)
{
	const uint32_t capacity = vb_cq_capacity(endpoint->engine.cq);
	endpoint->engine.open_pieces += pieces;
	if (endpoint->engine.open_pieces <= capacity)
		return true;
	uint32_t wanted = endpoint->engine.open_pieces > 2 * capacity ? endpoint->engine.open_pieces : 2 * capacity;
	shard->is_out_of_memory |= vb_cq_resize(endpoint->engine.cq, wanted) != 0;
	assert(wanted >= endpoint->engine.open_pieces);
	return !shard->is_out_of_memory;
}

/* A flow whose arrival is awaited ends with an immediate, for which its destination has posted a receive request. So
 * the engine reports the arrival there, as it does to programs. */
static int expect_arrival(struct fabric *fabric, uint32_t number)
{
	const struct vb_recv_wr wr = { .wr_id = number };
	struct endpoint *endpoint = &fabric->endpoints[fabric->flows[number].dst];
	if (!make_room_for_completions(&fabric->shards[endpoint->shard], endpoint, 1))
		return -ENOMEM;
	return vb_rq_post(fabric->flows[number].responder, &wr);
}

static int open_responder(struct fabric *fabric, uint32_t number)
{
	const struct flow *flow = &fabric->config->flows->flows[number];
	struct flow_state *state = &fabric->flows[number];
	assert(!state->responder);
	introduce(fabric, flow->dst, flow->src);
	int rc = telemetry_open_flow(fabric, state);
	if (rc == 0)
		rc = create_qp(fabric, flow->dst, state->responder_index, state, 1, &state->responder);
	if (rc == 0)
		rc = connect_qp(fabric, flow->dst, flow->src, flow->traffic_class, state->responder,
			number_of(state->requester_index));
	return rc || !operation_is_awaited(fabric, number) ? rc : expect_arrival(fabric, number);
}

static int open_flow(struct fabric *fabric, uint32_t number)
{
	const struct flow *flow = &fabric->config->flows->flows[number];
	struct flow_state *state = &fabric->flows[number];
	uint64_t pieces = (flow->bytes + PIECE_BYTES - 1) / PIECE_BYTES;
	if (pieces > VB_MAX_QP_WR)
		return -EINVAL;
	state->pieces_left = (uint32_t)pieces;
	state->requester_index = take_index(fabric, flow->src, number);
	state->responder_index = take_index(fabric, flow->dst, number);
	if (!is_behind_sockets(fabric))
		return 0;
	int rc = open_requester(fabric, number);
	return rc ? rc : open_responder(fabric, number);
}

static uint16_t index_at(const struct fabric *fabric, uint32_t endpoint, uint32_t flow)
{
	const struct flow_state *state = &fabric->flows[flow];
	return state->dst == endpoint ? state->responder_index : state->requester_index;
}

/* The flow to this QP of the endpoint, or FLOW_NONE. Numbers are consecutive, apart from a few that are not given out.
 */
static uint32_t flow_to(const struct fabric *fabric, uint32_t endpoint, uint32_t qpn)
{
	const struct engine_end *end = &fabric->endpoints[endpoint].engine;
	const uint32_t *flows = &fabric->connections[end->first_connection];
	if (end->connection_count == 0)
		return FLOW_NONE;
	const uint16_t first = index_at(fabric, endpoint, flows[0]), wanted = (uint16_t)(qpn - first);
	uint32_t at = wanted < end->connection_count ? wanted : end->connection_count - 1;
	while (at > 0 && (uint16_t)(index_at(fabric, endpoint, flows[at]) - first) > wanted)
		at--;
	const struct flow_state *found = &fabric->flows[flows[at]];
	return found->dst == endpoint && found->responder_index == (uint16_t)qpn ? flows[at] : FLOW_NONE;
}

/* A packet for a QP that does not exist: the first packet of a flow to get through, or an answer to a flow that is
 * over. */
static void expect(struct shard *shard, uint32_t endpoint, uint32_t qpn)
{
	const uint32_t flow = flow_to(shard->fabric, endpoint, qpn);
	if (flow != FLOW_NONE && !shard->fabric->flows[flow].is_closed)
		shard->is_out_of_memory |= open_responder(shard->fabric, flow) != 0;
}

static void destroy(struct vb_qp **qp)
{
	if (*qp)
		vb_qp_destroy(*qp);
	*qp = NULL;
}

static bool is_quiet(const struct flow_state *flow)
{
	return vb_qp_is_quiet(flow->requester) && (!flow->responder || vb_qp_is_quiet(flow->responder));
}

static bool close_flow(struct fabric *fabric, uint32_t number)
{
	struct flow_state *flow = &fabric->flows[number];
	if (is_behind_sockets(fabric))
		return true; /* they stay open */
	assert(flow->pieces_left == 0);
	flow->quiet_turns = is_quiet(flow) ? flow->quiet_turns + 1 : 0;
	if (flow->quiet_turns < QUIET_TURNS)
		return false;
	vb_qp_leave_timer(flow->requester, &flow->timer);
	destroy(&flow->requester);
	destroy(&flow->responder);
	telemetry_close_flow(flow);
	flow->is_closed = true;
	return true;
}

static void close_all(struct fabric *fabric)
{
	for (uint32_t i = 0; fabric->flows && i < fabric->config->flows->count; i++) {
		destroy(&fabric->flows[i].requester);
		destroy(&fabric->flows[i].responder);
		telemetry_close_flow(&fabric->flows[i]);
	}
	for (uint32_t i = 0; fabric->endpoints && i < fabric->network->endpoint_count; i++)
		close_end(&fabric->endpoints[i]);
	free(fabric->connections);
}

/* ---- Sending and receiving --------------------------------------------------------------------------------------- */

static void post(struct shard *shard, uint32_t number)
{
	struct fabric *fabric = shard->fabric;
	const struct flow *flow = &fabric->config->flows->flows[number];
	struct flow_state *state = &fabric->flows[number];
	uint64_t left = flow->bytes;
	assert(state->pieces_left > 0);
	shard->is_out_of_memory |= !state->requester && open_requester(fabric, number) != 0;
	if (shard->is_out_of_memory ||
		!make_room_for_completions(shard, &fabric->endpoints[flow->src], state->pieces_left))
		return;
	vb_sq_begin(state->requester);
	while (left > 0) {
		uint32_t bytes = left < PIECE_BYTES ? (uint32_t)left : PIECE_BYTES;
		const bool tells = bytes == left && operation_is_awaited(fabric, number);
		struct vb_sge sge = { REGION_BASE, bytes, vb_mr_key(fabric->endpoints[flow->src].engine.mr) };
		struct vb_send_wr wr = { .wr_id = number,
			.opcode = tells ? VB_WR_RDMA_WRITE_WITH_IMM : VB_WR_RDMA_WRITE,
			.flags = VB_SEND_SIGNALED,
			.sges = &sge,
			.sge_count = 1,
			.remote_addr = REGION_BASE,
			.rkey = vb_mr_key(fabric->endpoints[flow->dst].engine.mr) };
		int rc = vb_sq_put(state->requester, &wr);
		assert(rc == 0);
		(void)rc;
		left -= bytes;
	}
	vb_sq_end(state->requester, true);
}

static void hold(const struct fabric *fabric, struct endpoint *endpoint, uint8_t classes, bool replies)
{
	(void)fabric;
	vb_lane_hold(endpoint->engine.lane, classes, replies);
}

static uint32_t flow_of(const struct shard *shard, const struct vb_qp *qp)
{
	return (uint32_t)((const struct flow_state *)vb_qp_user(qp) - shard->fabric->flows);
}

/* A NIC decides on each packet when the wire is free; a process hands over all that it has. */
static bool fill_batch(struct shard *shard, struct endpoint *endpoint)
{
	const unsigned budget = is_behind_sockets(shard->fabric) ? VB_BATCH_PACKETS : 1;
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
	uint32_t index = endpoint_make_packet(shard, &out->packet,
		(struct packet){ .src = number,
			.dst = endpoint_of(&out->av->dgid),
			.flow = shard->fabric->source_ports ? endpoint_entropy(shard->fabric, flow_of(shard, out->qp))
							    : out->flow,
			.traffic_class = out->av->traffic_class >> DSCP_SHIFT,
			.takes_marks = (out->av->traffic_class & CE) != 0 });
	if (shard->told && index != NO_PACKET)
		telemetry_begin(shard, index, flow_of(shard, out->qp));
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

static void complete(struct shard *shard, const struct vb_wc *wc)
{
	const uint32_t flow = (uint32_t)wc->wr_id;
	struct flow_state *state = &shard->fabric->flows[flow];
	if (wc->opcode & VB_WC_RECV) {
		assert(shard->fabric->endpoints[state->dst].engine.open_pieces > 0);
		shard->fabric->endpoints[state->dst].engine.open_pieces--;
		if (wc->status == VB_WC_SUCCESS)
			operation_arrive(shard, flow);
		return;
	}
	if (wc->status != VB_WC_SUCCESS && state->result.error == 0) {
		state->result.error = wc->status;
		state->result.cause = wc->vendor_err;
	}
	shard->fabric->endpoints[state->src].engine.open_pieces--;
	assert(state->pieces_left > 0);
	if (--state->pieces_left == 0)
		operation_end(shard, flow);
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
	if (!vb_lane_has_qp(endpoint->engine.lane, headers.dest_qpn))
		expect(shard, number, headers.dest_qpn);
	if (shard->is_out_of_memory) {
		packet_put(shard, index);
		return;
	}
	if (shard->told)
		headers.holder = telemetry_arrive(shard, index);
	packet_put(shard, index);
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
	const uint64_t bytes = (uint64_t)fabric->largest_packet * (retries(config) + 2u);
	uint64_t rate = 0;
	for (uint32_t i = 0; i < config->flows->count; i++) {
		struct vb_qp_account account;
		if (fabric->flows[i].pieces_left && fabric->flows[i].requester &&
			vb_qp_account(fabric->flows[i].requester, &account) && account.rate &&
			(rate == 0 || account.rate < rate))
			rate = account.rate;
	}
	const vb_time paced = rate ? (vb_time)(bytes * VB_S / rate) : 0;
	const vb_time timeout = (is_behind_sockets(fabric) ? 5 : 2) *
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
	.open_flow = open_flow,
	.close = close_all,
	.close_flow = close_flow,
	.post = post,
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
