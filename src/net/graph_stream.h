/* A stream of a rank: its operations run one after the other, of those that are ready the one of the highest priority
 * first, and of several such the one with the lowest number. */
#ifndef NET_GRAPH_STREAM_H
#define NET_GRAPH_STREAM_H

#include "net/graph.h"

struct graph_stream {
	uint32_t *ready; /* a heap of operations that wait for the stream: the first is the next */
	uint32_t count, room;
	uint32_t busy_with, last; /* GRAPH_NONE; last: the one that left it */
};

/* False: there is no memory. */
bool graph_stream_push(const struct graph *graph, struct graph_stream *stream, uint32_t operation);
uint32_t graph_stream_pop(const struct graph *graph, struct graph_stream *stream); /* there is one */

#endif
