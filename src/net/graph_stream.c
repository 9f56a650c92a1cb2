/* See graph_stream.h. */
#include "net/graph_stream.h"
#include <stdlib.h>
#include "base/invariant.h"

static bool is_before(const struct graph *graph, uint32_t a, uint32_t b)
{
	const int8_t one = graph->operations[a].priority, other = graph->operations[b].priority;
	return one != other ? one > other : a < b;
}

static void swap(uint32_t *a, uint32_t *b)
{
	const uint32_t was = *a;
	*a = *b;
	*b = was;
}

bool graph_stream_push(const struct graph *graph, struct graph_stream *stream, uint32_t operation)
{
	if (stream->count == stream->room) {
		const uint32_t room = stream->room ? 2 * stream->room : 4;
		uint32_t *larger = realloc(stream->ready, room * sizeof(*larger));
		if (!larger)
			return false;
		stream->ready = larger;
		stream->room = room;
	}
	uint32_t at = stream->count++;
	stream->ready[at] = operation;
	for (; at > 0 && is_before(graph, stream->ready[at], stream->ready[(at - 1) / 2]); at = (at - 1) / 2)
		swap(&stream->ready[at], &stream->ready[(at - 1) / 2]);
	return true;
}

uint32_t graph_stream_pop(const struct graph *graph, struct graph_stream *stream)
{
	const uint32_t operation = stream->ready[0];
	assert(stream->count > 0);
	stream->ready[0] = stream->ready[--stream->count];
	for (uint32_t at = 0, next; (next = 2 * at + 1) < stream->count; at = next) {
		if (next + 1 < stream->count && is_before(graph, stream->ready[next + 1], stream->ready[next]))
			next++;
		if (!is_before(graph, stream->ready[next], stream->ready[at]))
			break;
		swap(&stream->ready[next], &stream->ready[at]);
	}
	return operation;
}
