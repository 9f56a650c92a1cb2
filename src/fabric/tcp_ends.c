/* Endpoints with TCP: each flow is a connection, which exists before the flow begins. Acks are sent before data, and
 * flows send in turn.
 *
 * A packet passes through its host's CPU before it leaves and after it arrives, in two separate queues. The next packet
 * to leave is chosen when the CPU begins with it, and it begins while there is room for packets that are done. A CPU
 * that takes no time chooses when the wire is free. */
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "fabric/endpoint.h"
#include "fabric/operations.h"
#include "fabric/round_trips.h"
#include "fabric/tcp_ends.h"

#define RTO_MIN     (200 * VB_MS)
#define ACK_DELAY   (40 * VB_MS)
#define MOST_SILENT (240 * VB_S) /* twice the longest time between two timeouts of a flow */

enum { ACK_EVERY = 2, FIRST_WINDOW = 10, QUIET_TURNS = 2 };

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static int open_all(struct fabric *fabric)
{
	const struct fabric_config *config = fabric->config;
	struct tcp *tcp = fabric->tcp = calloc(1, sizeof(*tcp));
	if (!tcp)
		return -ENOMEM;
	tcp->ends = calloc(fabric->network->endpoint_count + 1, sizeof(*tcp->ends));
	if (!tcp->ends)
		return -ENOMEM;
	tcp->control = &tcp_controls[config->tcp.control];
	tcp->ack_delay = config->tcp.ack_delay ? config->tcp.ack_delay : ACK_DELAY;
	tcp->ack_every = config->ack_every ? config->ack_every : ACK_EVERY;
	tcp->cpu_batch = config->tcp.cpu_batch ? config->tcp.cpu_batch : 1;
	tcp->data_overhead = config->data_overhead ? config->data_overhead : FABRIC_TCP_OVERHEAD;
	tcp->ack_overhead = config->ack_overhead ? config->ack_overhead : FABRIC_TCP_OVERHEAD;
	tcp->has_cpu = config->tcp.cpu_packet || config->tcp.cpu_byte;
	for (uint32_t i = 0; i < fabric->network->endpoint_count; i++) {
		struct tcp_end *end = fabric->endpoints[i].tcp = &tcp->ends[i];
		*end = (struct tcp_end){ .batch = FLOW_NONE,
			.first_open = FLOW_NONE,
			.first_delayed = FLOW_NONE,
			.acks.first = NO_PACKET,
			.sent.first = NO_PACKET,
			.come.first = NO_PACKET,
			.sending.flow = FLOW_NONE,
			.receiving.flow = FLOW_NONE };
		turns_init(&end->turns);
	}
	return 0;
}

static uint64_t segments_of(const struct fabric *fabric, uint32_t flow)
{
	const uint64_t bytes = flow_at(fabric, flow)->bytes, mss = fabric->config->mtu;
	return bytes / mss + (bytes % mss != 0);
}

static uint64_t window_of(const struct fabric *fabric, uint64_t bytes, uint64_t segments)
{
	const uint64_t window = bytes / fabric->config->mtu;
	if (bytes)
		segments = window ? window : 1;
	return segments * TCP_ONE < TCP_MOST_WINDOW ? segments * TCP_ONE : TCP_MOST_WINDOW;
}

/* It leaves the list of its endpoint's open flows, if the timer has not taken it out. */
static void leave_open(const struct fabric *fabric, struct tcp_end *end, uint32_t flow)
{
	struct tcp_sender *sender = tcp_sender_of(fabric, flow);
	if (!sender->is_listed)
		return;
	sender->is_listed = false;
	if (sender->last_open == FLOW_NONE)
		end->first_open = sender->next_open;
	else
		tcp_sender_of(fabric, sender->last_open)->next_open = sender->next_open;
	if (sender->next_open != FLOW_NONE)
		tcp_sender_of(fabric, sender->next_open)->last_open = sender->last_open;
}

/* Its number may be another flow's now, whose packets are no batch with its own. */
static void forget_number(struct tcp_end *end, uint32_t flow)
{
	if (end->sending.flow == flow)
		end->sending.flow = FLOW_NONE;
	if (end->receiving.flow == flow)
		end->receiving.flow = FLOW_NONE;
}

/* The first time, acks of its segments may still be under way; the second time these have arrived, too. */
static bool close_flow(struct fabric *fabric, uint32_t flow)
{
	struct tcp_sender *sender = tcp_sender_of(fabric, flow);
	const bool is_quiet = !sender->has_turn && !tcp_receiver_of(fabric, flow)->is_delayed;
	assert(sender->count == 0);
	sender->quiet_turns = is_quiet ? sender->quiet_turns + 1 : 0;
	if (sender->quiet_turns < QUIET_TURNS)
		return false;
	leave_open(fabric, fabric->endpoints[flow_at(fabric, flow)->src].tcp, flow);
	forget_number(fabric->endpoints[flow_at(fabric, flow)->src].tcp, flow);
	forget_number(fabric->endpoints[flow_at(fabric, flow)->dst].tcp, flow);
	free(tcp_receiver_of(fabric, flow)->seen);
	return true;
}

static void close_all(struct fabric *fabric)
{
	struct tcp *tcp = fabric->tcp;
	if (!tcp)
		return;
	for (uint32_t i = 0; pool_next(&fabric->flows, &i); i++) {
		tcp_sender_close(tcp_sender_of(fabric, i));
		free(tcp_receiver_of(fabric, i)->seen);
	}
	free(tcp->ends);
	free(tcp);
}

/* ---- Lists ------------------------------------------------------------------------------------------------------- */

static void give_turn(const struct fabric *fabric, struct tcp_end *end, uint32_t flow)
{
	struct tcp_sender *sender = tcp_sender_of(fabric, flow);
	if (sender->has_turn || !tcp_sender_may_send(sender))
		return;
	sender->has_turn = true;
	turn_append_flow(flow_turns(fabric), &end->turns.ready, flow);
}

static void append(struct shard *shard, struct packet_list *list, uint32_t index)
{
	shard->packets[index].next = NO_PACKET;
	if (list->first == NO_PACKET)
		list->first = index;
	else
		shard->packets[list->last].next = index;
	list->last = index;
	list->count++;
}

static uint32_t take_first(struct shard *shard, struct packet_list *list)
{
	assert(list->count > 0);
	const uint32_t index = list->first;
	list->first = shard->packets[index].next;
	list->count--;
	return index;
}

static bool is_held(const struct shard *shard, const struct tcp_end *end, uint32_t index)
{
	return end->turns.classes_held & 1u << shard->packets[index].traffic_class;
}

/* ---- The CPU ----------------------------------------------------------------------------------------------------- */

/* When the CPU is done with one more packet. */
static vb_time work(const struct shard *shard, struct cpu *cpu, uint32_t index)
{
	const struct fabric_tcp *costs = &shard->fabric->config->tcp;
	const struct tcp *tcp = shard->fabric->tcp;
	if (!tcp->has_cpu)
		return shard->now;
	const struct vb_packet headers = packet_headers(shard, index);
	const bool was_idle = cpu->free_at < shard->now;
	if (was_idle || cpu->flow != headers.dest_qpn || cpu->batched == tcp->cpu_batch)
		cpu->batched = 0;
	cpu->flow = headers.dest_qpn;
	cpu->free_at = (was_idle ? shard->now : cpu->free_at) + costs->cpu_byte * headers.payload_length;
	if (cpu->batched++ == 0)
		cpu->free_at += costs->cpu_packet;
	return cpu->free_at;
}

/* Packets that are done may wait for the wire: up to two batches. */
static bool has_room(const struct tcp *tcp, const struct tcp_end *end)
{
	return end->sent.count < (tcp->has_cpu ? 2 * tcp->cpu_batch : 1);
}

static bool may_begin(const struct shard *shard, const struct tcp_end *end)
{
	return end->sending.free_at <= shard->now && has_room(shard->fabric->tcp, end);
}

static bool has_ack(const struct shard *shard, const struct tcp_end *end)
{
	return end->acks.first != NO_PACKET && !is_held(shard, end, end->acks.first);
}

static bool has_work(const struct shard *shard, const struct tcp_end *end)
{
	return has_ack(shard, end) || end->batch != FLOW_NONE || end->turns.ready.first != FLOW_NONE;
}

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

static void expect_timer(struct tcp_end *end, const struct tcp_sender *sender)
{
	end->expiry = vb_deadline_earlier(end->expiry, sender->timer);
}

static void queue_ack(
	struct shard *shard, struct tcp_end *end, uint32_t number, uint32_t flow, const struct tcp_ack *ack)
{
	const uint32_t index = tcp_ack_packet(shard, number, flow, ack);
	if (index != NO_PACKET)
		append(shard, &end->acks, index);
}

static uint32_t make_segment(struct shard *shard, struct tcp_end *end, uint32_t flow)
{
	struct tcp_sender *sender = tcp_sender_of(shard->fabric, flow);
	uint64_t segment;
	assert(sender->count > 0);
	bool is_resent;
	if (tcp_sender_send(sender, shard->now, &segment, &is_resent)) {
		shard->is_out_of_memory = true;
		return NO_PACKET;
	}
	expect_timer(end, sender);
	shard->resent += is_resent;
	return tcp_segment_packet(shard, flow, segment);
}

/* The flow whose turn it is keeps it for a batch, if it can use it. */
static uint32_t next_flow(const struct fabric *fabric, struct tcp_end *end)
{
	const struct tcp *tcp = fabric->tcp;
	uint32_t flow = end->batch;
	end->batch = FLOW_NONE;
	if (flow != FLOW_NONE && tcp_sender_may_send(tcp_sender_of(fabric, flow)))
		return flow;
	if (flow != FLOW_NONE)
		tcp_sender_of(fabric, flow)->has_turn = false;
	end->batch_left = tcp->cpu_batch;
	while ((flow = turns_take(flow_turns(fabric), &end->turns)) != FLOW_NONE) {
		if (tcp_sender_may_send(tcp_sender_of(fabric, flow)))
			break;
		tcp_sender_of(fabric, flow)->has_turn = false;
	}
	return flow;
}

static uint32_t begin_segment(struct shard *shard, struct tcp_end *end)
{
	const uint32_t flow = next_flow(shard->fabric, end);
	if (flow == FLOW_NONE)
		return NO_PACKET;
	const uint32_t index = make_segment(shard, end, flow);
	assert(end->batch_left > 0);
	if (--end->batch_left > 0) {
		end->batch = flow;
		return index;
	}
	tcp_sender_of(shard->fabric, flow)->has_turn = false;
	give_turn(shard->fabric, end, flow);
	return index;
}

/* The CPU takes the next packets, while it may. */
static void feed(struct shard *shard, struct tcp_end *end)
{
	while (may_begin(shard, end) && has_work(shard, end)) {
		const uint32_t index = has_ack(shard, end) ? take_first(shard, &end->acks) : begin_segment(shard, end);
		if (index == NO_PACKET)
			return;
		shard->packets[index].at = work(shard, &end->sending, index);
		append(shard, &end->sent, index);
	}
}

/* A CPU can begin when it is free, even if the wire is not. */
static void feed_cpu(struct shard *shard, struct tcp_end *end)
{
	if (shard->fabric->tcp->has_cpu)
		feed(shard, end);
}

static bool is_ready(const struct shard *shard, const struct tcp_end *end)
{
	return end->sent.first != NO_PACKET && shard->packets[end->sent.first].at <= shard->now &&
	       !is_held(shard, end, end->sent.first);
}

static uint32_t pull(struct shard *shard, struct endpoint *endpoint, uint32_t number)
{
	struct tcp_end *end = endpoint->tcp;
	(void)number;
	feed(shard, end);
	if (!is_ready(shard, end))
		return NO_PACKET;
	const uint32_t index = take_first(shard, &end->sent);
	feed_cpu(shard, end);
	return index;
}

static bool wants(const struct shard *shard, const struct endpoint *endpoint)
{
	const struct tcp_end *end = endpoint->tcp;
	return is_ready(shard, end) || (may_begin(shard, end) && has_work(shard, end));
}

static void hold(const struct fabric *fabric, struct endpoint *endpoint, uint8_t classes, bool replies)
{
	struct tcp_end *end = endpoint->tcp;
	(void)replies; /* they belong to a class, too */
	turns_hold(flow_turns(fabric), &end->turns, classes);
	if (end->batch == FLOW_NONE)
		return;
	const uint8_t class = flow_at(fabric, end->batch)->traffic_class & (FABRIC_CLASSES - 1);
	if (!(classes & 1u << class))
		return;
	turn_append_flow(flow_turns(fabric), &end->turns.held[class], end->batch);
	end->batch = FLOW_NONE;
}

static void post(struct shard *shard, uint32_t flow)
{
	const struct fabric *fabric = shard->fabric;
	const struct fabric_config *config = fabric->config;
	const struct tcp *tcp = fabric->tcp;
	const uint32_t src = flow_at(fabric, flow)->src, dst = flow_at(fabric, flow)->dst;
	struct tcp_end *end = fabric->endpoints[src].tcp;
	struct tcp_sender *sender = tcp_sender_of(fabric, flow);
	assert(sender->count == 0);
	const vb_time rtt = way_time(fabric->network, fabric->routes, src, dst, config->mtu + tcp->data_overhead) +
			    way_time(fabric->network, fabric->routes, dst, src, tcp->ack_overhead);
	tcp_sender_open(sender, segments_of(fabric, flow),
		(struct tcp_times){ .rtt = rtt,
			.rto_min = config->tcp.rto_min ? config->tcp.rto_min : RTO_MIN,
			.probe = config->probe_after,
			.ack_delay = tcp->ack_delay });
	tcp_control_init(&sender->control, window_of(fabric, config->cc.first_window, FIRST_WINDOW),
		window_of(fabric, config->cc.max_window, TCP_MOST_WINDOW / TCP_ONE));
	tcp_receiver_of(fabric, flow)->count = segments_of(fabric, flow);
	sender->next_open = end->first_open;
	sender->last_open = FLOW_NONE;
	sender->is_listed = true;
	if (end->first_open != FLOW_NONE)
		tcp_sender_of(fabric, end->first_open)->last_open = flow;
	end->first_open = flow;
	give_turn(fabric, end, flow);
}

/* ---- Receiving --------------------------------------------------------------------------------------------------- */

/* Keeps the list of delayed acks, sorted by since when. */
static void set_delayed(const struct shard *shard, struct tcp_end *end, uint32_t flow, bool is_owed)
{
	const struct fabric *fabric = shard->fabric;
	struct tcp_receiver *receiver = tcp_receiver_of(fabric, flow);
	if (receiver->is_delayed == is_owed)
		return;
	receiver->is_delayed = is_owed;
	assert(!is_owed || receiver->owed > 0);
	if (is_owed) {
		receiver->delayed_at = shard->now;
		receiver->next_delayed = FLOW_NONE;
		receiver->last_delayed = end->last_delayed;
		*(end->first_delayed == FLOW_NONE ? &end->first_delayed
						  : &tcp_receiver_of(fabric, end->last_delayed)->next_delayed) = flow;
		end->last_delayed = flow;
		return;
	}
	if (end->first_delayed == flow)
		end->first_delayed = receiver->next_delayed;
	else
		tcp_receiver_of(fabric, receiver->last_delayed)->next_delayed = receiver->next_delayed;
	if (end->last_delayed == flow)
		end->last_delayed = receiver->last_delayed;
	else
		tcp_receiver_of(fabric, receiver->next_delayed)->last_delayed = receiver->last_delayed;
}

static void take_segment(
	struct shard *shard, struct tcp_end *end, uint32_t number, const struct vb_packet *headers, bool is_marked)
{
	const struct tcp *tcp = shard->fabric->tcp;
	const uint32_t flow = headers->dest_qpn;
	struct tcp_receiver *receiver = tcp_receiver_of(shard->fabric, flow);
	const struct tcp_taken taken =
		tcp_receiver_take(receiver, tcp_said(headers), is_marked, tcp->ack_every, tcp->control->takes_marks);
	shard->is_out_of_memory |= taken.is_out_of_memory;
	shard->arrived += taken.is_new;
	for (uint8_t i = 0; i < taken.ack_count; i++)
		queue_ack(shard, end, number, flow, &taken.acks[i]);
	if (taken.ack_count > 0)
		set_delayed(shard, end, flow, false);
	set_delayed(shard, end, flow, receiver->owed > 0);
	if (taken.is_new && receiver->there == receiver->count)
		operation_arrive(shard, flow);
}

static void end_flow(struct shard *shard, uint32_t flow)
{
	tcp_sender_close(tcp_sender_of(shard->fabric, flow));
	operation_end(shard, flow);
}

static void take_ack(struct shard *shard, struct tcp_end *end, const struct vb_packet *headers)
{
	const struct tcp *tcp = shard->fabric->tcp;
	const uint32_t flow = headers->dest_qpn;
	struct tcp_sender *sender = tcp_sender_of(shard->fabric, flow);
	const struct tcp_ack ack = tcp_ack_said(headers);
	if (sender->count == 0)
		return;
	tcp_sender_take_ack(sender, tcp->control, &ack, shard->now);
	if (tcp_sender_is_done(sender)) {
		end_flow(shard, flow);
		return;
	}
	expect_timer(end, sender);
	give_turn(shard->fabric, end, flow);
}

static void take(struct shard *shard, struct tcp_end *end, uint32_t number, uint32_t index)
{
	const struct vb_packet headers = packet_headers(shard, index);
	const bool is_marked = shard->packets[index].is_marked;
	packet_put(shard, index);
	if (tcp_is_segment(&headers))
		take_segment(shard, end, number, &headers, is_marked);
	else
		take_ack(shard, end, &headers);
}

static void take_what_came(struct shard *shard, struct tcp_end *end, uint32_t number)
{
	while (end->come.first != NO_PACKET && shard->packets[end->come.first].at <= shard->now)
		take(shard, end, number, take_first(shard, &end->come));
}

static void receive(struct shard *shard, struct endpoint *endpoint, uint32_t number, uint32_t index)
{
	struct tcp_end *end = endpoint->tcp;
	shard->packets[index].at = work(shard, &end->receiving, index);
	append(shard, &end->come, index);
	take_what_came(shard, end, number);
	feed_cpu(shard, end);
}

/* ---- Time -------------------------------------------------------------------------------------------------------- */

static struct vb_deadline deadline(const struct shard *shard, const struct endpoint *endpoint)
{
	const struct tcp_end *end = endpoint->tcp;
	const struct tcp *tcp = shard->fabric->tcp;
	struct vb_deadline first = end->expiry;
	if (end->first_delayed != FLOW_NONE)
		first = vb_deadline_earlier(
			first, (struct vb_deadline){
				       tcp_receiver_of(shard->fabric, end->first_delayed)->delayed_at + tcp->ack_delay,
				       true });
	if (end->come.first != NO_PACKET)
		first = vb_deadline_earlier(first, (struct vb_deadline){ shard->packets[end->come.first].at, true });
	if (end->sent.first != NO_PACKET && shard->packets[end->sent.first].at > shard->now)
		first = vb_deadline_earlier(first, (struct vb_deadline){ shard->packets[end->sent.first].at, true });
	if (end->sending.free_at > shard->now && has_room(tcp, end) && has_work(shard, end))
		first = vb_deadline_earlier(first, (struct vb_deadline){ end->sending.free_at, true });
	return first;
}

static void time_out(struct shard *shard, struct tcp_end *end, uint32_t flow)
{
	const struct tcp *tcp = shard->fabric->tcp;
	struct flow_result *result = &flow_at(shard->fabric, flow)->result;
	const enum tcp_time_out is = tcp_sender_time_out(tcp_sender_of(shard->fabric, flow), tcp->control, shard->now);
	if (is != TCP_GAVE_UP) {
		shard->timeouts += is == TCP_TIMED_OUT;
		give_turn(shard->fabric, end, flow);
		return;
	}
	result->error = VB_WC_RETRY_EXC_ERR;
	result->cause = VB_CAUSE_RETRY_EXCEEDED;
	end_flow(shard, flow);
}

/* Flows that are over leave the list of open flows. */
static void look_at_timers(struct shard *shard, struct tcp_end *end)
{
	end->expiry.is_set = false;
	for (uint32_t flow = end->first_open, next; flow != FLOW_NONE; flow = next) {
		struct tcp_sender *sender = tcp_sender_of(shard->fabric, flow);
		if (sender->timer.is_set && sender->timer.at <= shard->now)
			time_out(shard, end, flow);
		next = sender->next_open;
		if (sender->count == 0)
			leave_open(shard->fabric, end, flow);
		else
			expect_timer(end, sender);
	}
}

static void send_delayed_acks(struct shard *shard, struct tcp_end *end, uint32_t number)
{
	const struct tcp *tcp = shard->fabric->tcp;
	for (uint32_t flow; (flow = end->first_delayed) != FLOW_NONE;) {
		struct tcp_receiver *receiver = tcp_receiver_of(shard->fabric, flow);
		if (receiver->delayed_at + tcp->ack_delay > shard->now)
			return;
		const struct tcp_ack ack = tcp_receiver_ack(receiver);
		queue_ack(shard, end, number, flow, &ack);
		set_delayed(shard, end, flow, false);
	}
}

static void advance(struct shard *shard, struct endpoint *endpoint, uint32_t number)
{
	struct tcp_end *end = endpoint->tcp;
	take_what_came(shard, end, number);
	if (end->expiry.is_set && end->expiry.at <= shard->now)
		look_at_timers(shard, end);
	send_delayed_acks(shard, end, number);
	feed_cpu(shard, end);
}

/* ---- The result -------------------------------------------------------------------------------------------------- */

/* A timeout counts as progress, at least towards failure: a flow has a limited number of them. */
static uint64_t executed(const struct fabric *fabric)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < fabric->shard_count; i++)
		count += fabric->shards[i].arrived + fabric->shards[i].timeouts;
	return count;
}

static void say_all(const struct fabric *fabric, struct fabric_result *result)
{
	for (uint32_t i = 0; i < fabric->shard_count; i++) {
		result->resent_packets += fabric->shards[i].resent;
		result->timeouts += fabric->shards[i].timeouts;
	}
}

const struct endpoint_kind tcp_ends = {
	.open = open_all,
	.flow_bytes = sizeof(struct tcp_flow),
	.close = close_all,
	.close_flow = close_flow,
	.post = post,
	.pull = pull,
	.hold = hold,
	.wants = wants,
	.deadline = deadline,
	.receive = receive,
	.advance = advance,
	.executed = executed,
	.say = say_all,
	.patience = MOST_SILENT,
};
