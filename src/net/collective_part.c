/* See collective_part.h. */
#include "net/collective_part.h"
#include "base/invariant.h"
#include "net/collective_kinds.h"

enum {
	/* On an edge at a time: 1 MiB, what a network send of NCCL carries at most (2.30.7). Without a bound, pieces
	 * that go up a tree hold up those that come down. */
	PIECES_AHEAD = 8,
	/* The same within a host, where transfers do not queue up but share the ports: they delay each other. */
	PIECES_AHEAD_IN_HOST = 3,
	/* Of a rank's edges none is farther ahead of another. Two trees share the links of each rank: without this
	 * bound one gets ahead for good, ends early, and leaves links idle beside the other. That is 3% of 8 ranks'
	 * time. In deep trees what goes up is further ahead of what comes down, by some pieces for each doubling of
	 * more than 16 hosts: with 16 pieces those of 64 hosts wait, 2% of the time of 256 MiB. */
	PIECES_APART = 16,
	PIECES_APART_MORE = 8,
	HOSTS_OF_PIECES_APART = 16,
	/* A piece's tag: its slot, if it is a part of a sum; below that by which edge it leaves, and by which it comes.
	 * What opens a slot has those of the piece's edge, and a bit. */
	OPENS = 1 << 20,
	SLOT_SHIFT = 16,
	EDGE_SHIFT = 8,
	EDGE_MASK = 0xff,
	/* The edges of two rings. */
	IN_HOST = 0,
	BETWEEN = 1,
};

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

static bool may_send(
	const struct collective *of, const struct collective_algorithm *algorithm, const struct collective_part *part)
{
	const uint32_t step = part->sent;
	switch (algorithm->waiting) {
	case FOR_THE_LAST:
		return part->arrived >= step;
	case FOR_ALL_BEFORE:
		return (~part->arrived & ((1ull << step) - 1)) == 0;
	case FOR_ALL_OF_A_HALF:
		return step < of->ranks - 1 || part->arrived == of->ranks - 1;
	case FOR_A_PLACE:
		return step - part->ended < COLLECTIVE_PLACES;
	case FOR_BOTH_RINGS:
		break;
	}
	const struct collective_needs needs = collective_needs(of, step);
	return part->edge_arrived[IN_HOST] >= needs.in_host && part->edge_arrived[BETWEEN] >= needs.between;
}

static void send_steps(const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place,
	struct collective_part *part, const struct collective_out *out)
{
	const uint32_t steps = collective_steps(of, algorithm);
	while (part->sent < steps && may_send(of, algorithm, part)) {
		const struct collective_step step = algorithm->step(of, place, part->sent);
		const struct collective_sent request = {
			.to = step.to, .bytes = step.bytes, .tag = part->sent, .turn = part->sent
		};
		collective_send(of, place, &request, out);
		part->sent++;
	}
}

/* Of steps that all are waited for a bit each, of others how many there are. */
static void note_step(const struct collective *of, const struct collective_algorithm *algorithm,
	struct collective_part *part, uint32_t step)
{
	switch (algorithm->waiting) {
	case FOR_ALL_BEFORE:
		part->arrived |= 1ull << step;
		break;
	case FOR_ALL_OF_A_HALF:
		part->arrived += step < of->ranks - 1;
		break;
	case FOR_THE_LAST:
	case FOR_A_PLACE:
		part->arrived++;
		break;
	case FOR_BOTH_RINGS:
		part->edge_arrived[collective_is_in_host(of, step) ? IN_HOST : BETWEEN]++;
		break;
	}
}

/* ---- Pipelines --------------------------------------------------------------------------------------------------- */

/* Whether a piece may go on along this edge: it has come by all edges that it needs. */
static bool has_come(const struct collective_part *part, const struct collective_edge *edge, uint32_t piece)
{
	for (uint32_t i = 0; i < COLLECTIVE_EDGES; i++)
		if (edge->needs >> i & 1 && part->edge_arrived[i] <= piece)
			return false;
	return true;
}

static uint32_t ahead_of(const struct collective *of, uint32_t place, uint32_t to)
{
	return of->gpus > 1 && place / of->gpus == to / of->gpus ? PIECES_AHEAD_IN_HOST : PIECES_AHEAD;
}

static uint32_t apart_of(const struct collective *of)
{
	const uint32_t hosts = of->gpus > 1 ? of->ranks / of->gpus : of->ranks;
	uint32_t apart = PIECES_APART;
	for (uint64_t most = HOSTS_OF_PIECES_APART; most < hosts; most *= 2)
		apart += PIECES_APART_MORE;
	return apart;
}

/* Pieces that the edge that is last has sent. */
static uint32_t least_sent(const struct collective_part *part, uint32_t edges)
{
	uint32_t least = UINT32_MAX;
	for (uint32_t i = 0; i < edges; i++)
		least = part->edge_sent[i] < least ? part->edge_sent[i] : least;
	return least;
}

static bool may_send_piece(const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place,
	const struct collective_part *part, const struct collective_edge *edge, uint32_t number)
{
	const uint32_t piece = part->edge_sent[number], copies = collective_copies(of, edge);
	if (piece == collective_pieces(of, edge->bytes) ||
		piece - part->edge_ended[number] / copies >= ahead_of(of, place, edge->to))
		return false;
	if (collective_has_slots(of, algorithm, edge->comes_by) &&
		piece - part->edge_opened[number] >= COLLECTIVE_SLOTS)
		return false;
	return has_come(part, edge, piece);
}

static void send_piece(const struct collective *of, uint32_t place, struct collective_part *part,
	const struct collective_edge *edge, uint32_t number, const struct collective_out *out)
{
	const uint32_t piece = part->edge_sent[number]++;
	const uint32_t slot = edge->is_of_sum ? piece % COLLECTIVE_SLOTS : 0;
	for (uint32_t i = 0; i < collective_copies(of, edge); i++) {
		const struct collective_sent request = { .to = edge->to + i,
			.bytes = collective_piece(of, edge->bytes, piece),
			.tag = slot << SLOT_SHIFT | number << EDGE_SHIFT | edge->comes_by,
			.turn = piece,
			.is_piece = true,
			.is_copy = edge->is_copy,
			.is_of_sum = edge->is_of_sum };
		part->sent++;
		collective_send(of, place, &request, out);
	}
}

/* Of those that have come by an edge: they have gone on, too, by all edges that need them. */
static uint32_t consumed(
	const struct collective_part *part, const struct collective_edge *edges, uint32_t count, uint32_t edge)
{
	uint32_t least = part->edge_arrived[edge];
	for (uint32_t i = 0; i < count; i++)
		if (edges[i].needs >> edge & 1 && part->edge_sent[i] < least)
			least = part->edge_sent[i];
	return least;
}

/* To each place that sends by this edge. */
static void open_slot(const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place,
	struct collective_part *part, uint32_t edge, const struct collective_out *out)
{
	const struct collective_source from = algorithm->source(of, place, edge);
	for (uint32_t i = 0; i < from.count; i++) {
		const uint32_t number = collective_edge_number(of, algorithm, from.first + i, place, edge);
		const struct collective_sent request = { .to = from.first + i,
			.bytes = COLLECTIVE_OPENING_BYTES,
			.tag = OPENS | number << EDGE_SHIFT | edge,
			.is_piece = true,
			.is_copy = from.count > 1,
			.opens = true };
		part->sent++;
		collective_send(of, place, &request, out);
	}
	part->edge_opens[edge]++;
}

static void open_slots(const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place,
	struct collective_part *part, const struct collective_edge *edges, uint32_t count,
	const struct collective_out *out)
{
	for (uint32_t i = 0; i < COLLECTIVE_EDGES; i++) {
		if (part->edge_opens[i] == part->edge_arrived[i] || !collective_has_slots(of, algorithm, i))
			continue;
		const uint32_t pieces = collective_pieces(of, algorithm->source(of, place, i).bytes);
		const uint32_t free = consumed(part, edges, count, i);
		while (part->edge_opens[i] < free && part->edge_opens[i] + COLLECTIVE_SLOTS < pieces)
			open_slot(of, algorithm, place, part, i, out);
	}
}

/* A piece on each edge in turn, so that none is far ahead of another. */
static void send_pieces(const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place,
	struct collective_part *part, const struct collective_out *out)
{
	struct collective_edge edges[COLLECTIVE_EDGES];
	const uint32_t count = algorithm->edges(of, place, edges), apart = apart_of(of);
	for (bool has_sent = true; has_sent;) {
		has_sent = false;
		for (uint32_t i = 0; i < count; i++) {
			if (part->edge_sent[i] - least_sent(part, count) >= apart ||
				!may_send_piece(of, algorithm, place, part, &edges[i], i))
				continue;
			send_piece(of, place, part, &edges[i], i, out);
			has_sent = true;
		}
	}
	open_slots(of, algorithm, place, part, edges, count, out);
}

/* A sum is there when each GPU's part is. */
static void note_piece(const struct collective *of, const struct collective_algorithm *algorithm,
	struct collective_part *part, uint32_t tag)
{
	const uint32_t edge = tag & EDGE_MASK, number = tag >> EDGE_SHIFT & EDGE_MASK;
	assert(edge < COLLECTIVE_EDGES && number < COLLECTIVE_EDGES);
	if (tag & OPENS) {
		part->edge_opened[number]++;
		return;
	}
	if (!algorithm->is_by_switch || edge % EDGES_OF_A_TREE != FROM_CHAIN) {
		part->edge_arrived[edge]++;
		return;
	}
	uint16_t *parts = part->parts[edge / EDGES_OF_A_TREE];
	parts[tag >> SLOT_SHIFT]++;
	for (uint32_t next; parts[next = part->edge_arrived[edge] % COLLECTIVE_SLOTS] == of->gpus;) {
		parts[next] = 0;
		part->edge_arrived[edge]++;
	}
}

/* ---- Both -------------------------------------------------------------------------------------------------------- */

void collective_part_go_on(const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place,
	struct collective_part *part, const struct collective_out *out)
{
	if (algorithm->edges)
		send_pieces(of, algorithm, place, part, out);
	else
		send_steps(of, algorithm, place, part, out);
}

/* As collective_cut_came says it. */
static int is_whole(const struct collective *of, struct number_map *parts, uint32_t tag, uint32_t cut)
{
	return cut ? collective_cut_came(parts, tag, of->nccl.qps, cut - 1) : 1;
}

int collective_part_arrived(const struct collective *of, const struct collective_algorithm *algorithm,
	struct collective_part *part, uint32_t tag, uint32_t cut)
{
	const int came = is_whole(of, &part->cut.came, tag, cut);
	if (came <= 0)
		return came;
	part->received++;
	if (algorithm->edges)
		note_piece(of, algorithm, part, tag);
	else
		note_step(of, algorithm, part, tag);
	return 1;
}

int collective_part_ended(const struct collective *of, const struct collective_algorithm *algorithm,
	struct collective_part *part, uint32_t tag, uint32_t cut)
{
	const int came = is_whole(of, &part->cut.ended, tag, cut);
	if (came <= 0)
		return came;
	part->ended++;
	if (!algorithm->edges)
		return algorithm->waiting == FOR_A_PLACE;
	if (tag & OPENS)
		return 0;
	const uint32_t edge = tag >> EDGE_SHIFT & EDGE_MASK;
	assert(edge < COLLECTIVE_EDGES);
	part->edge_ended[edge]++;
	return 1;
}

bool collective_part_is_done(const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place,
	const struct collective_part *part)
{
	return part->sent == collective_sends(of, algorithm, place) &&
	       part->received == collective_receives(of, algorithm, place);
}

void collective_part_close(struct collective_part *part)
{
	number_map_free(&part->cut.came);
	number_map_free(&part->cut.ended);
}
