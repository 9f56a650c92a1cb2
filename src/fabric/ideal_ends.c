/* Endpoints without engines: sources and sinks, which are not RoCE and cost next to nothing.
 *
 * A source serves its flows in turn, packet by packet. A sink takes packets in any order and remembers them all. It
 * answers packets that ask for it, by the ack policy, and the one that completes a flow; an answer gives the number of
 * packets without a gap from the first. If for the timeout nothing was sent and no answer came, the source sends again
 * from that gap. Packets have the same sizes as the engine's. */
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "fabric/endpoint.h"
#include "fabric/operations.h"
#include "fabric/trim.h"

#define TIMEOUT     (4096 * VB_NS << 14) /* the engine's default */
#define RETRIES     7
#define QUIET_TURNS 2

struct source {
	uint64_t count; /* packets; 0: the flow is not open */
	uint64_t next;
	uint64_t sent;                 /* all before it were sent at least once */
	uint64_t there;                /* all before it have arrived, as far as the source knows */
	vb_time active_at;             /* when a packet left, or an answer brought news */
	uint32_t next_open, last_open; /* flows of the same endpoint; last_open: FLOW_NONE for the first */
	bool has_turn, is_listed;      /* is_listed: among its endpoint's open flows */
	uint8_t timeouts;              /* in a row */
	uint8_t quiet_turns;           /* generations since it ended */
};

struct sink {
	uint64_t count;
	uint64_t there;
	uint64_t *seen;       /* a bit for each packet; NULL: none came out of order yet */
	uint32_t next_answer; /* flow to the same endpoint */
	bool is_answer_due;
};

/* The source's part belongs to its shard, the sink's to the destination's. */
struct ideal_flow {
	struct source source;
	struct sink sink;
};

static struct source *source_of(const struct fabric *fabric, uint32_t flow)
{
	return &((struct ideal_flow *)flow_part(fabric, flow))->source;
}

static struct sink *sink_of(const struct fabric *fabric, uint32_t flow)
{
	return &((struct ideal_flow *)flow_part(fabric, flow))->sink;
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static int open_all(struct fabric *fabric)
{
	for (uint32_t i = 0; i < fabric->network->endpoint_count; i++) {
		fabric->endpoints[i].ideal = (struct ideal_end){ .first_answer = FLOW_NONE, .first_open = FLOW_NONE };
		turns_init(&fabric->endpoints[i].ideal.turns);
	}
	return 0;
}

/* It leaves the list of its endpoint's open flows, if the timer has not taken it out. */
static void leave_open(const struct fabric *fabric, struct ideal_end *end, uint32_t flow)
{
	struct source *source = source_of(fabric, flow);
	if (!source->is_listed)
		return;
	source->is_listed = false;
	if (source->last_open == FLOW_NONE)
		end->first_open = source->next_open;
	else
		source_of(fabric, source->last_open)->next_open = source->next_open;
	if (source->next_open != FLOW_NONE)
		source_of(fabric, source->next_open)->last_open = source->last_open;
}

/* The first time, answers to its packets may still be under way; the second time these have arrived, too. */
static bool close_flow(struct fabric *fabric, uint32_t flow)
{
	struct source *source = source_of(fabric, flow);
	const bool is_quiet = !source->has_turn && !sink_of(fabric, flow)->is_answer_due;
	source->quiet_turns = is_quiet ? source->quiet_turns + 1 : 0;
	if (source->quiet_turns < QUIET_TURNS)
		return false;
	leave_open(fabric, &fabric->endpoints[flow_at(fabric, flow)->src].ideal, flow);
	free(sink_of(fabric, flow)->seen);
	return true;
}

static void close_all(struct fabric *fabric)
{
	for (uint32_t i = 0; pool_next(&fabric->flows, &i); i++)
		free(sink_of(fabric, i)->seen);
}

/* ---- Turns ------------------------------------------------------------------------------------------------------- */

static void give_turn(const struct fabric *fabric, struct ideal_end *end, uint32_t flow)
{
	struct source *source = source_of(fabric, flow);
	assert(source->next < source->count);
	if (source->has_turn)
		return;
	source->has_turn = true;
	turn_append_flow(flow_turns(fabric), &end->turns.ready, flow);
}

static void hold(const struct fabric *fabric, struct endpoint *endpoint, uint8_t classes, bool replies)
{
	struct ideal_end *end = &endpoint->ideal;
	turns_hold(flow_turns(fabric), &end->turns, classes);
	end->replies_held = replies;
}

static void owe_answer(const struct fabric *fabric, struct ideal_end *end, uint32_t flow)
{
	struct sink *sink = sink_of(fabric, flow);
	if (sink->is_answer_due)
		return;
	sink->is_answer_due = true;
	sink->next_answer = FLOW_NONE;
	if (end->first_answer == FLOW_NONE)
		end->first_answer = flow;
	else
		sink_of(fabric, end->last_answer)->next_answer = flow;
	end->last_answer = flow;
}

static vb_time timeout_of(const struct fabric *fabric)
{
	return fabric->config->ack_timeout ? fabric->config->ack_timeout : TIMEOUT;
}

static void post(struct shard *shard, uint32_t flow)
{
	const struct fabric *fabric = shard->fabric;
	struct ideal_end *end = &fabric->endpoints[flow_at(fabric, flow)->src].ideal;
	struct source *source = source_of(fabric, flow);
	const uint64_t bytes = flow_at(fabric, flow)->bytes, mtu = fabric->config->mtu;
	assert(source->count == 0);
	const uint64_t count = bytes / mtu + (bytes % mtu != 0);
	*source = (struct source){ .count = count,
		.active_at = shard->now,
		.next_open = end->first_open,
		.last_open = FLOW_NONE,
		.is_listed = true };
	if (end->first_open != FLOW_NONE)
		source_of(fabric, end->first_open)->last_open = flow;
	end->first_open = flow;
	sink_of(fabric, flow)->count = count;
	if (!end->deadline.is_set)
		end->deadline = (struct vb_deadline){ shard->now + timeout_of(fabric), true };
	give_turn(fabric, end, flow);
}

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

/* A packet's number: its low bits as the PSN, the others in `holder`. */
static struct vb_packet say(struct vb_packet headers, uint64_t number)
{
	headers.pkey = VB_PKEY_DEFAULT;
	headers.psn = number & VB_PSN_MASK;
	headers.holder = number & ~(uint64_t)VB_PSN_MASK;
	return headers;
}

static uint64_t said(const struct vb_packet *headers)
{
	return headers->holder | headers->psn;
}

/* As a RoCE packet: an opcode that gives the size, the flow as its QP, and the number. */
static struct vb_packet data_headers(const struct fabric *fabric, uint32_t flow, uint64_t number, uint64_t count)
{
	const struct fabric_config *config = fabric->config;
	const bool is_first = number == 0, is_last = number + 1 == count;
	const uint32_t every = config->ack_every;
	const struct vb_packet headers = { .opcode = is_first ? (is_last ? VB_WRITE_ONLY : VB_WRITE_FIRST)
							      : (is_last ? VB_WRITE_LAST : VB_WRITE_MIDDLE),
		.ackreq = every <= 1 || is_last || (number + 1) % every == 0,
		.payload_length =
			is_last ? (uint32_t)(flow_at(fabric, flow)->bytes - number * config->mtu) : config->mtu,
		.dest_qpn = flow };
	return say(headers, number);
}

static uint32_t pull_answer(struct shard *shard, struct ideal_end *end, uint32_t number)
{
	const struct fabric *fabric = shard->fabric;
	const uint32_t flow = end->first_answer;
	struct sink *sink = sink_of(fabric, flow);
	const struct vb_packet headers =
		say((struct vb_packet){ .opcode = VB_ACKNOWLEDGE, .dest_qpn = flow }, sink->there);
	assert(sink->is_answer_due);
	end->first_answer = sink->next_answer;
	sink->is_answer_due = false;
	return endpoint_make_packet(shard, &headers,
		(struct packet){
			.src = number, .dst = flow_at(fabric, flow)->src, .flow = flow_at(fabric, flow)->entropy });
}

static uint32_t pull_data(struct shard *shard, struct ideal_end *end, uint32_t number)
{
	const struct fabric *fabric = shard->fabric;
	for (uint32_t flow; (flow = turns_take(flow_turns(fabric), &end->turns)) != FLOW_NONE;) {
		struct source *source = source_of(fabric, flow);
		source->has_turn = false;
		if (source->next == source->count)
			continue; /* all packets have arrived meanwhile, or the flow is over */
		const struct vb_packet headers = data_headers(fabric, flow, source->next, source->count);
		shard->resent += source->next < source->sent;
		source->next++;
		if (source->sent < source->next)
			source->sent = source->next;
		source->active_at = shard->now;
		if (source->next < source->count)
			give_turn(fabric, end, flow);
		return endpoint_make_packet(shard, &headers,
			(struct packet){ .src = number,
				.dst = flow_at(fabric, flow)->dst,
				.flow = flow_at(fabric, flow)->entropy,
				.traffic_class = flow_at(fabric, flow)->traffic_class & (FABRIC_CLASSES - 1),
				.takes_marks = true });
	}
	return NO_PACKET;
}

static bool may_answer(const struct ideal_end *end)
{
	return end->first_answer != FLOW_NONE && !end->replies_held;
}

static uint32_t pull(struct shard *shard, struct endpoint *endpoint, uint32_t number)
{
	return may_answer(&endpoint->ideal) ? pull_answer(shard, &endpoint->ideal, number)
					    : pull_data(shard, &endpoint->ideal, number);
}

static bool wants(const struct shard *shard, const struct endpoint *endpoint)
{
	(void)shard;
	return may_answer(&endpoint->ideal) || endpoint->ideal.turns.ready.first != FLOW_NONE;
}

/* ---- Receiving --------------------------------------------------------------------------------------------------- */

/* False: it had arrived before, or there is no memory. */
static bool take(struct shard *shard, struct sink *sink, uint64_t number)
{
	assert(number < sink->count);
	if (number < sink->there)
		return false;
	if (!sink->seen) {
		if (number == sink->there) {
			sink->there++;
			return true;
		}
		sink->seen = calloc(sink->count / 64 + 1, sizeof(*sink->seen));
		shard->is_out_of_memory |= !sink->seen;
		if (!sink->seen)
			return false;
	}
	const uint64_t bit = 1ull << number % 64;
	if (sink->seen[number / 64] & bit)
		return false;
	sink->seen[number / 64] |= bit;
	while (sink->there < sink->count && sink->seen[sink->there / 64] >> sink->there % 64 & 1)
		sink->there++;
	return true;
}

static void end_flow(struct shard *shard, uint32_t flow)
{
	assert(source_of(shard->fabric, flow)->count > 0);
	source_of(shard->fabric, flow)->count = source_of(shard->fabric, flow)->next = 0;
	operation_end(shard, flow);
}

static void take_answer(struct shard *shard, uint32_t flow, uint64_t there)
{
	struct source *source = source_of(shard->fabric, flow);
	if (source->count == 0 || there <= source->there)
		return;
	assert(there <= source->count);
	source->there = there;
	source->active_at = shard->now;
	source->timeouts = 0;
	if (source->next < there)
		source->next = there;
	if (there == source->count)
		end_flow(shard, flow);
}

static void receive(struct shard *shard, struct endpoint *endpoint, uint32_t number, uint32_t index)
{
	(void)number;
	const struct vb_packet headers = packet_headers(shard, index);
	const bool is_cut = trim_is_cut(&shard->packets[index], &headers);
	packet_put(shard, index);
	if (is_cut)
		return; /* it was lost */
	if (headers.opcode == VB_ACKNOWLEDGE) {
		take_answer(shard, headers.dest_qpn, said(&headers));
		return;
	}
	struct sink *sink = sink_of(shard->fabric, headers.dest_qpn);
	const bool is_new = take(shard, sink, said(&headers));
	const bool is_whole = is_new && sink->there == sink->count;
	shard->arrived += is_new;
	if (headers.ackreq || is_whole)
		owe_answer(shard->fabric, &endpoint->ideal, headers.dest_qpn);
	if (is_whole)
		operation_arrive(shard, headers.dest_qpn);
}

/* ---- Time -------------------------------------------------------------------------------------------------------- */

static struct vb_deadline deadline(const struct shard *shard, const struct endpoint *endpoint)
{
	(void)shard;
	return endpoint->ideal.deadline;
}

static void give_up(struct shard *shard, uint32_t flow)
{
	struct flow_result *result = &flow_at(shard->fabric, flow)->result;
	result->error = VB_WC_RETRY_EXC_ERR;
	result->cause = VB_CAUSE_RETRY_EXCEEDED;
	end_flow(shard, flow);
}

/* The source has heard nothing about what it sent. */
static void begin_again(struct shard *shard, struct ideal_end *end, uint32_t flow)
{
	struct source *source = source_of(shard->fabric, flow);
	const uint8_t most = shard->fabric->config->retry_count;
	assert(source->next > source->there);
	shard->timeouts++;
	if (source->timeouts++ == (most ? most : RETRIES)) {
		give_up(shard, flow);
		return;
	}
	source->next = source->there;
	source->active_at = shard->now;
	give_turn(shard->fabric, end, flow);
}

/* Flows that are over leave the list of open flows; of the others, those whose timeout has passed begin again. */
static void advance(struct shard *shard, struct endpoint *endpoint, uint32_t number)
{
	(void)number;
	const struct fabric *fabric = shard->fabric;
	struct ideal_end *end = &endpoint->ideal;
	const vb_time timeout = timeout_of(fabric);
	end->deadline.is_set = false;
	for (uint32_t flow = end->first_open, next; flow != FLOW_NONE; flow = next) {
		struct source *source = source_of(fabric, flow);
		if (source->next > source->there && shard->now - source->active_at >= timeout)
			begin_again(shard, end, flow);
		next = source->next_open;
		if (source->count == 0) {
			leave_open(fabric, end, flow);
			continue;
		}
		const vb_time active = source->next > source->there ? source->active_at : shard->now;
		end->deadline = vb_deadline_earlier(end->deadline, (struct vb_deadline){ active + timeout, true });
	}
}

/* ---- What is said ------------------------------------------------------------------------------------------------ */

static uint64_t executed(const struct fabric *fabric)
{
	uint64_t arrived = 0;
	for (uint32_t i = 0; i < fabric->shard_count; i++)
		arrived += fabric->shards[i].arrived;
	return arrived;
}

/* A lost packet is sent again after one timeout. */
static vb_time slowest(const struct fabric *fabric)
{
	return 2 * timeout_of(fabric);
}

static void say_all(const struct fabric *fabric, struct fabric_result *result)
{
	for (uint32_t i = 0; i < fabric->shard_count; i++) {
		result->resent_packets += fabric->shards[i].resent;
		result->timeouts += fabric->shards[i].timeouts;
	}
}

const struct endpoint_kind ideal_ends = {
	.open = open_all,
	.flow_bytes = sizeof(struct ideal_flow),
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
	.patience = VB_S,
	.slowest = slowest,
	.waits_for_wire = true,
};
