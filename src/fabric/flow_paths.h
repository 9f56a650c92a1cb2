/* The links over which messages flow, and what a message takes there alone.
 *
 * A message takes the links that its packets would take. Where a switch sprays or is adaptive it is spread evenly over
 * the ways there. */
#ifndef FABRIC_FLOW_PATHS_H
#define FABRIC_FLOW_PATHS_H

#include "fabric/state.h"
#include "net/max_min.h"
#include "net/unloaded.h"

struct flow_path {
	uint32_t uses;                  /* messages and channels that have it */
	uint32_t hop_count, back_count; /* links there, and back */
	uint64_t rate;                  /* of one message alone, bytes per second */
	uint64_t alike;                 /* a hash: ways that are alike have the same */
	uint32_t way_count, way_back_count;
	uint32_t *way;             /* one way there, and then one back, as links */
	struct max_min_hop hops[]; /* there, then back */
};

/* Of a message alone. */
struct flow_times {
	vb_time tail; /* from when all of it has left until it has arrived; likewise for its first packet */
	vb_time ack;  /* from there until the source has heard of it */
};

struct flow_paths;

/* NULL: no memory. */
struct flow_paths *flow_paths_open(const struct fabric *fabric);
void flow_paths_close(struct flow_paths *paths);
const uint64_t *flow_paths_capacities(const struct flow_paths *paths); /* of links, bytes per second */
/* NULL: no memory. It goes when as many as have it have given it back. */
struct flow_path *flow_path_of(struct flow_paths *paths, uint32_t src, uint32_t dst, uint16_t port);
/* As it is now that links have gone down, or have come up: the same path, once more in use, or another. NULL: no
 * memory.
 */
struct flow_path *flow_path_now(
	struct flow_paths *paths, struct flow_path *path, uint32_t src, uint32_t dst, uint16_t port);
/* Whether no link there, or back, is down. */
bool flow_path_is_up(const struct flow_paths *paths, const struct flow_path *path);
bool flow_path_back_is_up(const struct flow_paths *paths, const struct flow_path *path);
void flow_path_give_back(struct flow_path *path);
struct flow_times flow_path_times(struct flow_paths *paths, const struct flow_path *path, uint64_t bytes);
const struct framing *flow_paths_framing(const struct flow_paths *paths);

#endif
