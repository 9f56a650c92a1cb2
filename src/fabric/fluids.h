/* Messages as fluids: each flows over its links, and all that flow share the links max-min fairly (net/max_min.h). The
 * acks of a message that flows go back over other links, of which they take a part before the fluids share the rest.
 *
 * When something begins, has left or sends acks anew, only those rates are found again that this changes: others stay
 * as long as each fluid has a link that is full, where none has more. One that shares no link with any other costs
 * O(links).
 *
 * Rates are whole bytes per second, rounded down, and what is left of a message is counted in byte-picoseconds per
 * second, so that every machine computes the same.
 * Holds: once rates are found, each fluid has one, and they are those that max_min_find has for all fluids at once, but
 * for a thousandth that is as good as equal. */
#ifndef FABRIC_FLUIDS_H
#define FABRIC_FLUIDS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"
#include "net/max_min.h"

/* One that flows, or whose acks do. It stays where it is until both are over. */
struct fluid {
	struct max_min_flow share;      /* its links, and the rate that was found last */
	const struct max_min_hop *back; /* links of its acks */
	uint32_t back_count;
	uint32_t ack_share; /* bytes of acks for each of its own, in units of MAX_MIN_WHOLE */
	/* Of fluids.c. */
	uint64_t rate;    /* 0: none was found yet */
	uint64_t acks;    /* bytes per second that are counted on the links back */
	uint64_t left[2]; /* the lower half first */
	uint64_t order;   /* of those that begin */
	vb_time at;       /* up to when `left` is right */
	uint32_t place;   /* in the heap */
	uint32_t round;   /* that has seen it */
	bool sends_acks;
};

struct fluids;

/* For links of these capacities, in bytes per second, 1 to 2^47, which are borrowed. NULL: no memory. */
struct fluids *fluids_open(const uint64_t *capacities, uint32_t links);
void fluids_close(struct fluids *fluids);

/* It begins to flow. */
void fluids_add(struct fluids *fluids, struct fluid *fluid, uint64_t bytes, vb_time now);
/* Its acks begin to come, or end: at the fluid's rate, and at the last that it had when all of it has left. */
void fluids_set_acks(struct fluids *fluids, struct fluid *fluid, bool sends_acks);
/* One of which nothing is left at this time, in the order of their ends; it flows no more. NULL: there is none. */
struct fluid *fluids_take(struct fluids *fluids, vb_time now);
/* One that flows does so no more, and its acks come no more, until it goes on with what is left of it, over any links.
 * How long what is left takes at the rate. */
vb_time fluids_stop(struct fluids *fluids, struct fluid *fluid, uint64_t rate, vb_time now);
void fluids_go_on(struct fluids *fluids, struct fluid *fluid, vb_time now);
/* Finds all rates that may have changed. */
void fluids_find_rates(struct fluids *fluids, vb_time now);
bool fluids_have_changed(const struct fluids *fluids); /* rates are to be found */
vb_time fluids_next(const struct fluids *fluids);      /* when the next has left; -1: none flows */
bool fluids_lack_memory(const struct fluids *fluids);  /* something was lost: the run must end */
/* How long so many bytes take at a rate. */
vb_time fluid_time(uint64_t bytes, uint64_t rate);

#endif
