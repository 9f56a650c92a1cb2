/* Endpoints: the engine that ships, held as a live process holds it. The wire pulls: an endpoint is asked for its next
 * packet when the last has left, so what leaves next is the engine's to decide until the last moment.
 * Holds: an endpoint whose engine has something to send, or to do at a time, is in the calendar. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include "engine/counters.h"
#include "fabric/port.h"

#define REGION_BASE   (1ull << 20)
#define REGION_BYTES  (1ull << 40)
#define PART_BYTES    (1u << 30) /* of a flow, by one work request */
#define DSCP_SHIFT    5		 /* class selector n is class n */
#define ECT	      2
#define CE	      3

struct vb_gid fabric_gid(uint32_t endpoint)
{
	uint32_t n = endpoint + 1;
	return vb_gid_from_ipv4(10, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n);
}

static uint32_t endpoint_of(const struct vb_gid *gid)
{
	return ((uint32_t)gid->raw[13] << 16 | (uint32_t)gid->raw[14] << 8 | gid->raw[15]) - 1;
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

int endpoint_open(struct fabric *fabric, uint32_t number)
{
	const struct fabric_config *config = fabric->config;
	struct endpoint *endpoint = &fabric->endpoints[number];
	struct vb_gid gid = fabric_gid(number);
	struct vb_nic_config nic = { .seed = fabric_chance(config->seed, number, 1), .seed_high = number, .mtu = config->mtu };
	struct vb_lane_config lane = { .seed = fabric_chance(config->seed, number, 2), .slot = 1,
		.stranger_allowance = VB_UNLIMITED, .cc = config->cc, .cnps = config->cnps,
		.acks = { .every_bytes = VB_UNLIMITED, .every_packets = config->ack_every ? config->ack_every : 1,
			.by_count_alone = true },
		.replies_first = true,
		.packet_overhead = VB_NONE, .ack_timeout = config->ack_timeout, .probe_after = config->probe_after,
		.never_probes = config->probe_after == 0, .turn_bytes = 1 };
	struct vb_cq_config cq = { .capacity = 16, .ignore_overrun = false };
	struct vb_mr_config mr = { .iova = REGION_BASE, .length = REGION_BYTES, .kind = &vb_memory_phantom,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ };
	int rc = vb_nic_create(&nic, &endpoint->nic);
	if (rc == 0)
		rc = vb_nic_set_gid(endpoint->nic, 0, &gid);
	if (rc == 0)
		rc = vb_lane_create(&lane, &endpoint->lane);
	if (rc == 0)
		rc = vb_pd_create(endpoint->nic, &endpoint->pd);
	if (rc == 0)
		rc = vb_cq_create(endpoint->nic, &cq, &endpoint->cq);
	if (rc == 0)
		rc = vb_mr_register(endpoint->pd, &mr, &endpoint->mr);
	return rc;
}

void endpoint_close(struct fabric *fabric, uint32_t number)
{
	struct endpoint *endpoint = &fabric->endpoints[number];
	if (endpoint->mr) {
		vb_mr_invalidate(endpoint->mr);
		vb_mr_free(endpoint->mr);
	}
	if (endpoint->cq)
		vb_cq_destroy(endpoint->cq);
	if (endpoint->pd)
		vb_pd_destroy(endpoint->pd);
	if (endpoint->lane)
		vb_lane_destroy(endpoint->lane);
	if (endpoint->nic)
		vb_nic_destroy(endpoint->nic);
}

static int connect_qp(const struct fabric *fabric, uint32_t own, uint32_t peer, uint8_t traffic_class, struct vb_qp *qp,
	uint32_t dest_qpn)
{
	const struct fabric_config *config = fabric->config;
	struct vb_qp_attr attr = { .path_mtu = config->mtu, .dest_qpn = dest_qpn, .access = VB_ACCESS_REMOTE_WRITE,
		.port = 1, .max_rd_atomic = 1, .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
		.timeout = 14, .retry_cnt = config->retry_count ? config->retry_count : 7, .rnr_retry = 7, .av = { .sgid = fabric_gid(own), .dgid = fabric_gid(peer),
			.traffic_class = (uint8_t)(traffic_class << DSCP_SHIFT | ECT) } };
	attr.state = VB_QPS_INIT;
	int rc = vb_qp_modify(qp, &attr, VB_QP_STATE | VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS, 0);
	attr.state = VB_QPS_RTR;
	if (rc == 0)
		rc = vb_qp_modify(qp, &attr, VB_QP_STATE | VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN |
				VB_QP_MAX_DEST_RD_ATOMIC | VB_QP_MIN_RNR_TIMER, 0);
	attr.state = VB_QPS_RTS;
	if (rc == 0)
		rc = vb_qp_modify(qp, &attr, VB_QP_STATE | VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY |
				VB_QP_SQ_PSN | VB_QP_MAX_QP_RD_ATOMIC, 0);
	return rc;
}

static int create_qp(struct fabric *fabric, uint32_t endpoint, struct flow_state *flow, uint32_t depth, struct vb_qp **qp)
{
	struct endpoint *its = &fabric->endpoints[endpoint];
	struct vb_qp_config config = { .type = VB_QP_RC, .pd = its->pd, .send_cq = its->cq, .recv_cq = its->cq,
		.max_send_wr = depth, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .user = flow };
	return vb_qp_create(its->lane, &config, qp);
}

int endpoint_open_flow(struct fabric *fabric, uint32_t number)
{
	const struct flow *flow = &fabric->config->flows->flows[number];
	struct flow_state *state = &fabric->flows[number];
	uint64_t parts = (flow->bytes + PART_BYTES - 1) / PART_BYTES;
	if (parts > VB_MAX_QP_WR)
		return -EINVAL;
	state->src = flow->src;
	state->dst = flow->dst;
	state->parts_left = (uint32_t)parts;
	int rc = create_qp(fabric, flow->src, state, (uint32_t)parts, &state->requester);
	if (rc == 0)
		rc = create_qp(fabric, flow->dst, state, 1, &state->responder);
	if (rc == 0)
		rc = connect_qp(fabric, flow->src, flow->dst, flow->traffic_class, state->requester,
			vb_qp_number(state->responder));
	if (rc == 0)
		rc = connect_qp(fabric, flow->dst, flow->src, flow->traffic_class, state->responder,
			vb_qp_number(state->requester));
	return rc;
}

void endpoint_close_flow(struct fabric *fabric, uint32_t number)
{
	struct flow_state *state = &fabric->flows[number];
	if (state->requester)
		vb_qp_destroy(state->requester);
	if (state->responder)
		vb_qp_destroy(state->responder);
}

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

static uint32_t wire_bytes_of(const struct fabric *fabric, const struct vb_packet *packet)
{
	enum { ETHERNET = 14 + 4 + 8 + 12, IP_UDP = 20 + 8 };
	uint32_t overhead = packet->payload_length ? fabric->data_overhead : fabric->ack_overhead;
	return overhead ? packet->payload_length + overhead : vb_packet_wire_length(packet) + IP_UDP + ETHERNET;
}

static void put_on_wire(struct part *part, uint32_t number, const struct vb_outgoing *out)
{
	struct fabric *fabric = part->fabric;
	uint32_t index = packet_get(part), dst = endpoint_of(&out->av->dgid);
	if (index == NO_PACKET)
		return;
	bool is_response = vb_packet_row(&out->packet)->is_response;
	part->headers[index] = out->packet;
	part->packets[index] = (struct packet){ .src = number, .dst = dst,
		.flow_hash = (uint32_t)fabric_chance(number, dst, out->flow),
		.wire_bytes = (uint16_t)wire_bytes_of(fabric, &out->packet),
		.traffic_class = is_response ? fabric->config->ack_class : out->av->traffic_class >> DSCP_SHIFT,
		.takes_marks = !is_response };
	if (is_response)
		part->acks++;
	else
		part->data_packets++;
	if (fabric->links[fabric->endpoints[number].link].kind == LINK_STOPPABLE)
		port_queue(part, fabric->endpoints[number].link, index);
	else
		link_send(part, fabric->endpoints[number].link, index, part->now);
}

static void await_wire(struct part *part, struct endpoint *endpoint, uint32_t number)
{
	const struct link *link = &part->fabric->links[endpoint->link];
	if (endpoint->is_wire_awaited)
		return;
	endpoint->is_wire_awaited = true;
	events_add(&part->events, link->free_at, event_key(EVENT_WIRE, 0, number));
}

/* Where classes may be stopped, and one that was has a packet: only replies are asked for, if those may leave. */
static unsigned pull_past_stopped(struct part *part, const struct endpoint *endpoint)
{
	const struct port *port = part->fabric->ports[endpoint->link];
	const struct packet reply = { .traffic_class = part->fabric->config->ack_class };
	if (!port->occupied)
		return vb_lane_transmit(endpoint->lane, part->batch, 1, part->now);
	if (port->occupied & 1u << port_class(port, &reply))
		return 0;
	return vb_lane_transmit_replies(endpoint->lane, part->batch, 1, part->now);
}

static void send_next_by_class(struct part *part, struct endpoint *endpoint, uint32_t number)
{
	const struct link *link = &part->fabric->links[endpoint->link];
	while (link->free_at <= part->now) {
		if (port_send_next(part, endpoint->link))
			continue;
		if (pull_past_stopped(part, endpoint) == 0)
			return;
		put_on_wire(part, number, &part->batch->out[0]);
		vb_lane_transmit_done(endpoint->lane, part->batch->receipts, 1, part->now);
		if (part->is_out_of_memory)
			return;
	}
	if (part->fabric->ports[endpoint->link]->occupied || vb_lane_wants_transmit(endpoint->lane, part->now))
		await_wire(part, endpoint, number);
}

static void send_next(struct part *part, struct endpoint *endpoint, uint32_t number)
{
	const struct link *link = &part->fabric->links[endpoint->link];
	if (link->kind == LINK_STOPPABLE) {
		send_next_by_class(part, endpoint, number);
		return;
	}
	while (link->free_at <= part->now) {
		if (vb_lane_transmit(endpoint->lane, part->batch, 1, part->now) == 0)
			return;
		put_on_wire(part, number, &part->batch->out[0]);
		vb_lane_transmit_done(endpoint->lane, part->batch->receipts, 1, part->now);
		if (part->is_out_of_memory)
			return;
	}
	if (vb_lane_wants_transmit(endpoint->lane, part->now))
		await_wire(part, endpoint, number);
}

static void set_timer(struct part *part, struct endpoint *endpoint, uint32_t number)
{
	struct vb_deadline deadline = vb_lane_next_deadline(endpoint->lane);
	if (!deadline.is_set || (endpoint->is_armed && endpoint->armed_for <= deadline.at))
		return;
	vb_time at = deadline.at > part->now ? deadline.at : part->now + 1;
	const struct link *link = &part->fabric->links[endpoint->link];
	if (at < link->free_at) /* what is due waits for the wire */
		at = link->free_at;
	else if (link->kind == LINK_STOPPABLE && part->fabric->ports[endpoint->link]->occupied)
		at += VB_US; /* what is due may have to wait, and it is not said for how long */
	if (endpoint->is_armed && endpoint->armed_for <= at)
		return;
	endpoint->is_armed = true;
	endpoint->armed_for = at;
	events_add(&part->events, at, event_key(EVENT_TIMER, 0, number));
}

/* ---- Flows ------------------------------------------------------------------------------------------------------- */

/* All that is open may complete at one moment: flows fail together. */
static bool make_room_for_completions(struct part *part, struct endpoint *endpoint, uint32_t parts)
{
	const uint32_t capacity = vb_cq_capacity(endpoint->cq);
	endpoint->open_parts += parts;
	if (endpoint->open_parts <= capacity)
		return true;
	uint32_t wanted = endpoint->open_parts > 2 * capacity ? endpoint->open_parts : 2 * capacity;
	part->is_out_of_memory |= vb_cq_resize(endpoint->cq, wanted) != 0;
	return !part->is_out_of_memory;
}

static void post_flow(struct part *part, uint32_t number)
{
	struct fabric *fabric = part->fabric;
	const struct flow *flow = &fabric->config->flows->flows[number];
	struct flow_state *state = &fabric->flows[number];
	uint64_t left = flow->bytes;
	if (!make_room_for_completions(part, &fabric->endpoints[flow->src], state->parts_left))
		return;
	state->result.start = part->now;
	part->flows_begun++;
	vb_sq_begin(state->requester);
	while (left > 0) {
		uint32_t bytes = left < PART_BYTES ? (uint32_t)left : PART_BYTES;
		struct vb_sge sge = { REGION_BASE, bytes, vb_mr_key(fabric->endpoints[flow->src].mr) };
		struct vb_send_wr wr = { .wr_id = number, .opcode = VB_WR_RDMA_WRITE, .flags = VB_SEND_SIGNALED, .sges = &sge,
			.sge_count = 1, .remote_addr = REGION_BASE, .rkey = vb_mr_key(fabric->endpoints[flow->dst].mr) };
		int rc = vb_sq_put(state->requester, &wr);
		assert(rc == 0);
		(void)rc;
		left -= bytes;
	}
	vb_sq_end(state->requester, true);
}

/* Into the queue of its source, by start, then number. */
static void queue_flow(struct fabric *fabric, uint32_t number, vb_time at)
{
	struct flow_state *flows = fabric->flows;
	uint32_t *place = &fabric->endpoints[flows[number].src].first_flow;
	flows[number].result.start = at;
	while (*place != FLOW_NONE &&
		(flows[*place].result.start < at || (flows[*place].result.start == at && *place < number)))
		place = &flows[*place].next;
	flows[number].next = *place;
	*place = number;
}

/* The first of the queue is in the calendar. */
static void await_flow(struct part *part, struct endpoint *endpoint, uint32_t number)
{
	if (endpoint->first_flow == FLOW_NONE)
		return;
	vb_time at = part->fabric->flows[endpoint->first_flow].result.start;
	if (endpoint->is_flow_awaited && endpoint->flow_at <= at)
		return;
	endpoint->is_flow_awaited = true;
	endpoint->flow_at = at;
	events_add(&part->events, at, event_key(EVENT_FLOW, 0, number));
}

static void end_flow(struct part *part, uint32_t number, const struct vb_wc *wc)
{
	struct fabric *fabric = part->fabric;
	struct flow_state *state = &fabric->flows[number];
	if (wc->status != VB_WC_SUCCESS && state->result.error == 0) {
		state->result.error = wc->status;
		state->result.cause = wc->vendor_err;
	}
	fabric->endpoints[state->src].open_parts--;
	if (--state->parts_left > 0)
		return;
	state->result.fct = state->result.error ? -1 : part->now - state->result.start;
	part->flows_done++;
	part->flows_failed += state->result.error != 0;
	part->payload_bytes += state->result.error ? 0 : fabric->config->flows->flows[number].bytes;
	part->last_flow = part->now;
	for (uint32_t next = state->first_waiting; next != FLOW_NONE; next = fabric->flows[next].next_waiting)
		queue_flow(fabric, next, part->now + fabric->config->flows->flows[next].start);
	await_flow(part, &fabric->endpoints[state->src], state->src);
}

static void take_completions(struct part *part, struct endpoint *endpoint)
{
	struct vb_wc wc[8];
	struct vb_event event;
	int n;
	while ((n = vb_cq_poll(endpoint->cq, wc, 8)) > 0)
		for (int i = 0; i < n; i++)
			end_flow(part, (uint32_t)wc[i].wr_id, &wc[i]);
	while (vb_lane_next_event(endpoint->lane, &event))
		;
}

void endpoint_queue_flows(struct fabric *fabric)
{
	const struct flow_list *list = fabric->config->flows;
	for (uint32_t i = list->count; i-- > 0;) /* most lists are sorted: each becomes the first */
		if (list->flows[i].after == FLOW_NONE)
			queue_flow(fabric, i, list->flows[i].start);
	for (uint32_t i = 0; i < fabric->network->endpoint_count; i++)
		await_flow(&fabric->parts[fabric->endpoints[i].part], &fabric->endpoints[i], i);
}

/* ---- What happens -------------------------------------------------------------------------------------------------- */

static void go_on(struct part *part, struct endpoint *endpoint, uint32_t number)
{
	if (!vb_cq_is_empty(endpoint->cq))
		take_completions(part, endpoint);
	send_next(part, endpoint, number);
	set_timer(part, endpoint, number);
}

void endpoint_expect(const struct part *part, uint32_t number, uint32_t index)
{
	const struct endpoint *endpoint = &part->fabric->endpoints[number];
	__builtin_prefetch(&part->headers[index]);
	__builtin_prefetch(endpoint);
}

void endpoint_receive(struct part *part, uint32_t number, uint32_t index)
{
	struct endpoint *endpoint = &part->fabric->endpoints[number];
	const struct packet *packet = &part->packets[index];
	struct vb_path path = { .src = fabric_gid(packet->src), .dst = fabric_gid(number), .src_port = 0xC000,
		.hop_limit = 64, .traffic_class = packet->is_marked ? CE : ECT };
	struct vb_packet headers = part->headers[index];
	part->responses += vb_packet_row(&headers)->is_response;
	packet_put(part, index);
	vb_lane_receive(endpoint->lane, &path, &headers, 1, part->now);
	go_on(part, endpoint, number);
}

void endpoint_wake(struct part *part, uint32_t number)
{
	struct endpoint *endpoint = &part->fabric->endpoints[number];
	send_next(part, endpoint, number);
	set_timer(part, endpoint, number);
}

void endpoint_on_wire(struct part *part, uint32_t number)
{
	struct endpoint *endpoint = &part->fabric->endpoints[number];
	endpoint->is_wire_awaited = false;
	send_next(part, endpoint, number);
	set_timer(part, endpoint, number);
}

void endpoint_on_timer(struct part *part, uint32_t number)
{
	struct endpoint *endpoint = &part->fabric->endpoints[number];
	if (!endpoint->is_armed || endpoint->armed_for != part->now)
		return; /* an earlier one has done it */
	endpoint->is_armed = false;
	vb_lane_advance(endpoint->lane, part->now);
	go_on(part, endpoint, number);
}

void endpoint_on_flow(struct part *part, uint32_t number)
{
	struct endpoint *endpoint = &part->fabric->endpoints[number];
	uint32_t flow;
	if (!endpoint->is_flow_awaited || endpoint->flow_at != part->now)
		return; /* an earlier one has done it */
	endpoint->is_flow_awaited = false;
	while ((flow = endpoint->first_flow) != FLOW_NONE && part->fabric->flows[flow].result.start <= part->now) {
		endpoint->first_flow = part->fabric->flows[flow].next;
		post_flow(part, flow);
	}
	await_flow(part, endpoint, number);
	send_next(part, endpoint, number);
	set_timer(part, endpoint, number);
}
