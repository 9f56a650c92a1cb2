/* See collective_slots.h. */
#include "net/collective_slots.h"
#include "base/invariant.h"
#include "net/collective_kinds.h"

/* GPUs take a switch's copies out of its way at once. */
bool collective_has_slots(const struct collective *of, const struct collective_algorithm *algorithm, uint32_t edge)
{
	const uint32_t which = edge % EDGES_OF_A_TREE;
	if (algorithm->is_by_switch && (which == FROM_CHAIN || which == FROM_SWITCH))
		return which == FROM_CHAIN;
	return of->nccl.buffer > 0;
}

/* The first pieces find their slots open. */
static uint32_t openings_of(const struct collective *of, uint64_t bytes)
{
	const uint32_t pieces = collective_pieces(of, bytes);
	return pieces > COLLECTIVE_SLOTS ? pieces - COLLECTIVE_SLOTS : 0;
}

uint32_t collective_openings(
	const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place, uint32_t edge)
{
	if (!collective_has_slots(of, algorithm, edge))
		return 0;
	const struct collective_source source = algorithm->source(of, place, edge);
	return openings_of(of, source.bytes) * source.count;
}

uint32_t collective_opened(
	const struct collective *of, const struct collective_algorithm *algorithm, const struct collective_edge *edge)
{
	return collective_has_slots(of, algorithm, edge->comes_by) ? openings_of(of, edge->bytes) : 0;
}

uint32_t collective_edge_number(const struct collective *of, const struct collective_algorithm *algorithm,
	uint32_t sender, uint32_t to, uint32_t edge)
{
	struct collective_edge edges[COLLECTIVE_EDGES];
	const uint32_t count = algorithm->edges(of, sender, edges);
	uint32_t number = 0;
	while (number < count && (edges[number].to != to || edges[number].comes_by != edge))
		number++;
	assert(number < count);
	return number;
}
