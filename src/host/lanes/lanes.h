/* The inside of host/: which lane a queue pair has. A process begins with one lane, its home. A further one is made
 * when another thread makes CQs, or when there is another thread domain, up to the cores that the process may use and
 * VB_LANES_MAX; from then on the lanes are shared in turn. With VERBENA_LANES there are as many as it says, and CQs
 * have them in turn, whichever thread makes them. A QP goes where its thread domain is, or else where its send CQ is
 * (verbs/). A process whose packets must stay in one order, for a capture, injected faults or a forwarder's channel,
 * has the home alone.
 *
 * Where no further lane can be made, mostly for lack of slots, those that exist do. */
#ifndef VB_HOST_LANES_H
#define VB_HOST_LANES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_process;
struct vb_settings;

struct vb_lanes {
	atomic_uint most;
	bool are_in_turn; /* by VERBENA_LANES */
	uint64_t serial;  /* of this process among those of the program's life: a thread remembers of which it knows */
	atomic_uint threads, domains, queues; /* that were given a lane so far */
};

/* Before any host lane is made. */
void vb_lanes_init(struct vb_lanes *lanes, const struct vb_settings *settings);
/* The slot of the index-th lane is carried, and so the home is all that the process may have. -EUSERS: this one is not
 * the home, and the process does without it: another user's broker has come meanwhile. Before the lane is made. */
int vb_lanes_carry(struct vb_lanes *lanes, unsigned index);
/* The part of the indices of QP numbers that the index-th lane has: vb_lane_config. */
void vb_lanes_indices(const struct vb_lanes *lanes, unsigned index, uint32_t *first, uint32_t *count);

#endif
