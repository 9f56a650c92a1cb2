/* What a simulated link does to a packet: first the line, which all paths of a direction share, then the channel of the
 * packet's path. Pure: time and bytes come in, times of delivery come out.
 *
 * Bytes are those of IP packets. A packet that is lost has taken its place in the queue and its time on the line, as
 * one that a receiver finds damaged has. Holds: the same seed and the same packets have the same fates. Each packet
 * draws the same numbers whichever faults are on. Packets of one path leave in their order, but for those that are
 * reordered. */
#ifndef TESTS_LINK_CHANNEL_H
#define TESTS_LINK_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>
#include "base/bursts.h"
#include "base/random.h"
#include "base/time.h"

/* ---- A queue that is emptied at a rate --------------------------------------------------------------------------- */

struct link_queue {
	uint64_t rate;   /* bits a second; 0: there is none, and packets pass at once */
	uint64_t length; /* bytes; a packet that finds no room is dropped */
	bool has_begun;
	vb_time free_at; /* when all that was admitted has left */
	uint64_t most;   /* bytes, the longest that it was */
};

/* False: no room. Else *leaves_at is when the last bit of the packet has left. */
bool link_queue_admit(struct link_queue *queue, uint32_t bytes, vb_time now, vb_time *leaves_at);

/* ---- A path in one direction ------------------------------------------------------------------------------------- */

struct link_faults {
	uint64_t rate, queue;                                /* as of struct link_queue */
	uint64_t delay, reorder_by, dead_after, alive_after; /* vb_time spans; dead_after 0: never dead */
	uint64_t loss, reorder, duplicate;                   /* parts in a million */
	uint64_t burst;                                      /* the mean run of losses; 0: each by itself */
};

struct link_counts {
	uint64_t came, came_bytes, delivered, delivered_bytes;
	uint64_t overflowed; /* found the queue full, of the line or of the path */
	uint64_t lost, dead, reordered, duplicated;
	uint64_t under_way_ns; /* of all that is delivered together, in queues and on the way */
};

struct link_channel {
	struct link_faults faults;
	struct link_queue queue;
	struct vb_random random;
	struct vb_bursts bursts;
	vb_time begun_at;
	struct link_counts *counts;
};

/* counts is the caller's and stays where it is. begun_at: dead_after and alive_after count from there. */
void link_channel_init(struct link_channel *channel, const struct link_faults *faults, uint64_t seed, vb_time begun_at,
	struct link_counts *counts);

#define LINK_COPIES 2
/* How often the packet is delivered, and when: due[0] is the first copy's. line is of the direction. */
unsigned link_channel_admit(
	struct link_channel *channel, struct link_queue *line, uint32_t bytes, vb_time now, vb_time due[LINK_COPIES]);

#endif
