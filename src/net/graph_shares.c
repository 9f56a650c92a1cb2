/* See graph_shares.h. */
#include "net/graph_shares.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "net/collective_part.h"
#include "net/rank_groups.h"

/* A message's tag: the receiver's operation, the line, and the sender's step. A line is one of the parts, and of its
 * QPs that of a request that is cut; a whole request has none. */
#define OF_SHARE (1ull << 63)
enum { LINE_SHIFT = 21, MOST_RANKS = 1 << (LINE_SHIFT - 1) };
_Static_assert(MESSAGE_MOST_CHANNEL < 1 << (32 - LINE_SHIFT), "a tag has room for as many lines as there are channels");

/* A rank's share of a collective. */
struct graph_share {
	struct collective_part *parts;   /* from its first message or its beginning until its end */
	uint32_t part_count, parts_left; /* left: those that are not done */
	uint32_t member;
	struct graph_chain chain; /* that let the last part end */
	bool has_begun, has_ended;
};

/* Of a group: its members in the order in which a ring passes them (rank_groups.h), and where each is in it. */
struct graph_order {
	uint32_t *members, *places, gpus;
};

bool graph_shares_have(uint64_t tag)
{
	return tag & OF_SHARE;
}

/* ---- Parts ------------------------------------------------------------------------------------------------------- */

static const struct graph_operation *operation_of(const struct graph_shares *shares, uint32_t number)
{
	assert(shares->graph->operations[number].kind == GRAPH_COLLECTIVE);
	return &shares->graph->operations[number];
}

static struct graph_share *share_of(const struct graph_shares *shares, uint32_t number)
{
	assert(shares->state_of[number] < shares->count);
	return &shares->shares[shares->state_of[number]];
}

/* Of more ranks a step takes all of a tag. */
static bool has_lines(const struct collective *of)
{
	return of->ranks < MOST_RANKS;
}

struct collective graph_shares_collective(const struct graph_shares *shares, uint32_t number)
{
	struct collective whole = graph_collective_of(shares->graph, number);
	whole.gpus = shares->orders[operation_of(shares, number)->group].gpus;
	if (has_lines(&whole))
		whole.nccl = shares->nccl;
	return whole;
}

/* One behind the QPs opens slots. */
static uint32_t lines_of_a_part(const struct nccl_settings *nccl)
{
	return (nccl->qps ? nccl->qps : 1) + 1;
}

bool graph_shares_have_room(const struct hosts *hosts, const struct nccl_settings *nccl)
{
	const uint32_t nics = hosts->gpus ? hosts->nics : 1, ports = hosts->ports ? hosts->ports : 1;
	const uint32_t used = nccl->channels && nccl->channels < nics ? nccl->channels : nics;
	return (uint64_t)used * ports * lines_of_a_part(nccl) <= MESSAGE_MOST_CHANNEL;
}

static uint32_t parts_of(const struct graph_shares *shares, const struct collective *whole)
{
	const uint32_t parts = collective_parts(whole, &shares->hosts);
	return has_lines(whole) && parts * lines_of_a_part(&whole->nccl) <= MESSAGE_MOST_CHANNEL ? parts : 1;
}

/* A part of an operation, at the operation's rank. */
struct piece {
	struct collective of;
	const struct collective_algorithm *algorithm;
	struct collective_part *part;
	uint32_t number, place, parts; /* the operation, where its rank is, and of how many parts it is */
};

static uint32_t rank_at(const struct graph_shares *shares, const struct piece *piece, uint32_t place, uint32_t *member)
{
	const uint32_t group = operation_of(shares, piece->number)->group;
	*member = shares->orders[group].members[collective_rank_at(&piece->of, place)];
	return graph_rank_of(&shares->graph->groups[group], *member);
}

/* Without what is kept of it, if the share is not open. */
static struct piece piece_of(const struct graph_shares *shares, uint32_t number, uint32_t part)
{
	const struct graph_share *share = share_of(shares, number);
	const struct graph_order *order = &shares->orders[operation_of(shares, number)->group];
	const struct collective whole = graph_shares_collective(shares, number);
	const uint32_t parts = parts_of(shares, &whole);
	struct piece piece = {
		.of = whole, .part = share->parts ? &share->parts[part] : NULL, .number = number, .parts = parts
	};
	if (parts > 1)
		piece.of = collective_part_of(&whole, &shares->hosts, part);
	piece.algorithm = collective_find(&piece.of);
	piece.place = collective_place_of(&piece.of, order->places[share->member]);
	return piece;
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

/* For one call. */
struct call {
	struct collective_out out;
	struct graph_shares *shares;
	const struct piece *piece;
	const struct graph_chain *chain;
	struct job_sink *sink;
	vb_time at;
};

static uint32_t line_of(const struct piece *piece, uint32_t turn)
{
	return piece->of.part + turn * piece->parts;
}

static uint32_t tag_of(const struct piece *piece, const struct collective_sent *sent)
{
	assert(has_lines(&piece->of) ? sent->tag < 1u << LINE_SHIFT : sent->cut == 0);
	return has_lines(&piece->of) ? line_of(piece, sent->cut) << LINE_SHIFT | sent->tag : sent->tag;
}

static void send(const struct collective_out *out, const struct collective_sent *sent)
{
	const struct call *call = (const struct call *)out;
	const struct piece *piece = call->piece;
	const struct graph_operation *its = operation_of(call->shares, piece->number);
	uint32_t member;
	const uint32_t dst = rank_at(call->shares, piece, sent->to, &member);
	const struct graph_carried carried = { .chain = *call->chain, .from = its->rank, .to = dst, .sent = call->at };
	call->sink->send(call->sink,
		&(struct message){ .src = its->rank,
			.dst = dst,
			.bytes = sent->bytes,
			.start = call->at,
			.tag = OF_SHARE | (uint64_t)graph_same_at(call->shares->graph, piece->number, member) << 32 |
			       tag_of(piece, sent),
			.channel = collective_opens_each(piece->algorithm) ? 0 : 1 + line_of(piece, sent->qp),
			.part = (uint16_t)piece->of.part,
			.entropy = (uint16_t)sent->qp,
			.traffic_class = its->traffic_class,
			.tells_arrival = true,
			.is_piece = sent->is_piece,
			.is_copy = sent->is_copy,
			.is_of_sum = sent->is_of_sum,
			.carried = &carried });
}

/* The fields of a tag. */
static uint32_t operation_in(uint64_t tag)
{
	return (uint32_t)(tag >> 32) & INT32_MAX;
}

static uint32_t line_in(const struct piece *any, uint64_t tag)
{
	return has_lines(&any->of) ? (uint32_t)tag >> LINE_SHIFT : 0;
}

static uint32_t step_in(const struct piece *any, uint64_t tag)
{
	return has_lines(&any->of) ? (uint32_t)tag & ((1u << LINE_SHIFT) - 1) : (uint32_t)tag;
}

/* ---- Shares ------------------------------------------------------------------------------------------------------ */

static void close_parts(struct graph_share *share)
{
	for (uint32_t i = 0; share->parts && i < share->part_count; i++)
		collective_part_close(&share->parts[i]);
	free(share->parts);
	share->parts = NULL;
}

static bool open_share(struct graph_shares *shares, uint32_t number, struct job_sink *sink)
{
	struct graph_share *share = share_of(shares, number);
	const struct collective whole = graph_shares_collective(shares, number);
	if (share->parts || share->has_ended)
		return !share->has_ended;
	share->parts_left = share->part_count = parts_of(shares, &whole);
	share->parts = calloc(share->part_count, sizeof(*share->parts));
	if (!share->parts)
		sink->lack_memory(sink);
	return share->parts;
}

static bool is_done(const struct piece *piece)
{
	return collective_part_is_done(&piece->of, piece->algorithm, piece->place, piece->part);
}

/* The chain is that of the message that ended the last part, which may be one of its own. */
static uint32_t close_share(struct graph_shares *shares, uint32_t number, const struct graph_chain *chain)
{
	struct graph_share *share = share_of(shares, number);
	assert(!share->has_ended);
	close_parts(share);
	share->has_ended = true;
	share->chain = *chain;
	return number;
}

/* Sends what the chain's end lets go of this part, which is not done. */
static uint32_t go_on(struct graph_shares *shares, uint32_t number, uint32_t part, vb_time at,
	const struct graph_chain *chain, struct job_sink *sink)
{
	const struct piece piece = piece_of(shares, number, part);
	const struct call call = { { send }, shares, &piece, chain, sink, at };
	collective_part_go_on(&piece.of, piece.algorithm, piece.place, piece.part, &call.out);
	const bool is_last = is_done(&piece) && --share_of(shares, number)->parts_left == 0;
	return is_last ? close_share(shares, number, chain) : GRAPH_NONE;
}

uint32_t graph_shares_begin(struct graph_shares *shares, uint32_t number, vb_time at, struct job_sink *sink)
{
	const struct graph_chain none = { .origin = number };
	const struct collective whole = graph_shares_collective(shares, number);
	uint32_t done = GRAPH_NONE;
	assert(!share_of(shares, number)->has_begun);
	share_of(shares, number)->has_begun = true;
	if (whole.ranks == 1)
		return close_share(shares, number, &none);
	if (open_share(shares, number, sink))
		for (uint32_t part = 0, parts = parts_of(shares, &whole); part < parts; part++)
			done = go_on(shares, number, part, at, &none, sink);
	return done;
}

uint32_t graph_shares_arrived(struct graph_shares *shares, uint64_t tag, vb_time at,
	const struct graph_carried *carried, struct job_sink *sink)
{
	const struct graph_chain chain = graph_chain_after(carried, tag, at);
	const uint32_t number = operation_in(tag);
	if (!open_share(shares, number, sink))
		return GRAPH_NONE;
	const struct piece any = piece_of(shares, number, 0);
	const uint32_t part = line_in(&any, tag) % any.parts;
	const struct piece piece = piece_of(shares, number, part);
	const int came = collective_part_arrived(
		&piece.of, piece.algorithm, piece.part, step_in(&any, tag), line_in(&any, tag) / any.parts);
	if (came < 0)
		sink->lack_memory(sink);
	return came > 0 && share_of(shares, number)->has_begun ? go_on(shares, number, part, at, &chain, sink)
							       : GRAPH_NONE;
}

/* The tag names the receiver's operation, and this is of the sender. A part that is done has nothing left to send: it
 * heeds no end. */
uint32_t graph_shares_ended(struct graph_shares *shares, uint32_t rank, uint64_t tag, vb_time at,
	const struct graph_carried *carried, struct job_sink *sink)
{
	const struct graph_chain chain = graph_chain_after(carried, tag, at);
	const struct graph_group *group = &shares->graph->groups[operation_of(shares, operation_in(tag))->group];
	const uint32_t number = graph_same_at(shares->graph, operation_in(tag), graph_member(group, rank));
	if (share_of(shares, number)->has_ended)
		return GRAPH_NONE;
	const struct piece any = piece_of(shares, number, 0);
	const uint32_t part = line_in(&any, tag) % any.parts;
	const struct piece piece = piece_of(shares, number, part);
	if (is_done(&piece))
		return GRAPH_NONE;
	const int may = collective_part_ended(
		&piece.of, piece.algorithm, piece.part, step_in(&any, tag), line_in(&any, tag) / any.parts);
	if (may < 0)
		sink->lack_memory(sink);
	return may > 0 ? go_on(shares, number, part, at, &chain, sink) : GRAPH_NONE;
}

const struct graph_chain *graph_shares_chain(const struct graph_shares *shares, uint32_t number)
{
	return &share_of(shares, number)->chain;
}

/* ---- How many ---------------------------------------------------------------------------------------------------- */

enum { MESSAGES_SEEN = 16 };

uint64_t graph_shares_sends(const struct graph_shares *shares, uint32_t number)
{
	const struct collective whole = graph_shares_collective(shares, number);
	uint64_t sends = 0;
	for (uint32_t part = 0, parts = parts_of(shares, &whole); whole.ranks > 1 && part < parts; part++) {
		const struct piece piece = piece_of(shares, number, part);
		sends += collective_cut_sends(&piece.of, piece.algorithm, piece.place);
	}
	return sends;
}

/* Of a part's messages, those that leave the rank's host: so many of all as of a few, evenly spread. Those
 * that are cut count once for each QP. */
static double leaving(const struct graph_shares *shares, const struct piece *piece, uint32_t most_seen)
{
	const uint32_t sends = collective_sends(&piece->of, piece->algorithm, piece->place);
	const uint32_t seen = sends < most_seen ? sends : most_seen;
	const uint32_t from = hosts_host_of(&shares->hosts, operation_of(shares, piece->number)->rank);
	uint32_t count = 0, member;
	for (uint32_t i = 0; i < seen; i++) {
		const uint32_t message = (uint32_t)((uint64_t)i * sends / seen);
		const uint32_t place = collective_message(&piece->of, piece->algorithm, piece->place, message).to;
		if (from != hosts_host_of(&shares->hosts, rank_at(shares, piece, place, &member)))
			count += collective_cuts(&piece->of, piece->place, place);
	}
	return seen ? (double)count * sends / seen : 0;
}

double graph_shares_leaving(const struct graph_shares *shares, uint32_t number)
{
	const struct collective whole = graph_shares_collective(shares, number);
	const uint32_t parts = parts_of(shares, &whole);
	double count = 0;
	for (uint32_t part = 0; whole.ranks > 1 && part < parts; part++) {
		const struct piece piece = piece_of(shares, number, part);
		count += leaving(shares, &piece, parts < MESSAGES_SEEN ? MESSAGES_SEEN / parts : 1);
	}
	return count;
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static int open_order(struct graph_order *order, const struct graph_group *group, const struct hosts *hosts)
{
	order->members = malloc(((size_t)group->count + 1) * sizeof(*order->members));
	order->places = malloc(((size_t)group->count + 1) * sizeof(*order->places));
	if (!order->members || !order->places ||
		rank_groups_gather(hosts, group->ranks, group->count, order->members, &order->gpus))
		return -ENOMEM;
	for (uint32_t place = 0; place < group->count; place++)
		order->places[order->members[place]] = place;
	return 0;
}

static int open_orders(struct graph_shares *shares)
{
	int error = 0;
	for (uint32_t i = 0; !error && i < shares->graph->group_count; i++)
		error = open_order(&shares->orders[i], &shares->graph->groups[i], &shares->hosts);
	return error;
}

static void open_shares(struct graph_shares *shares)
{
	const struct graph *graph = shares->graph;
	for (uint32_t i = 0; i < graph->count; i++) {
		const struct graph_operation *its = &graph->operations[i];
		if (its->kind != GRAPH_COLLECTIVE)
			continue;
		shares->shares[shares->count].member = graph_member(&graph->groups[its->group], its->rank);
		shares->state_of[i] = shares->count++;
	}
}

int graph_shares_open(struct graph_shares *shares, const struct graph *graph, const struct hosts *hosts,
	const struct nccl_settings *nccl)
{
	uint32_t collectives = 0;
	for (uint32_t i = 0; i < graph->count; i++)
		collectives += graph->operations[i].kind == GRAPH_COLLECTIVE;
	*shares = (struct graph_shares){ .graph = graph,
		.hosts = *hosts,
		.nccl = *nccl,
		.state_of = malloc(((size_t)graph->count + 1) * sizeof(*shares->state_of)),
		.shares = calloc((size_t)collectives + 1, sizeof(*shares->shares)),
		.orders = calloc((size_t)graph->group_count + 1, sizeof(*shares->orders)) };
	if (!shares->state_of || !shares->shares || !shares->orders || open_orders(shares)) {
		graph_shares_close(shares);
		return -ENOMEM;
	}
	open_shares(shares);
	assert(shares->count == collectives);
	return 0;
}

void graph_shares_close(struct graph_shares *shares)
{
	for (uint32_t i = 0; i < shares->count; i++)
		close_parts(&shares->shares[i]);
	for (uint32_t i = 0; shares->orders && i < shares->graph->group_count; i++) {
		free(shares->orders[i].members);
		free(shares->orders[i].places);
	}
	free(shares->state_of);
	free(shares->shares);
	free(shares->orders);
	*shares = (struct graph_shares){ 0 };
}
