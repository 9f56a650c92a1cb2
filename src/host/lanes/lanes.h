/* The inside of host/, whose lane is which. A process begins with one, its home. A further one is made when somebody
 * new needs
 * it: another thread that makes CQs, or another thread domain, up to the cores that the process may use, and
 * VB_LANES_MAX; from then on they are shared in turn. With VERBENA_LANES there are as many as it says, and CQs have
 * them in turn, whoever makes them. A QP goes where its thread domain is, or else its send CQ (verbs/). What goes
 * through all of a process in order, a capture, injected faults, a courier's channel, has the home alone.
 *
 * Where none can be made, for lack of slots mostly, those that there are do. */
#ifndef VB_HOST_LANES_H
#define VB_HOST_LANES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_process;
struct vb_settings;

struct vb_lanes {
	atomic_uint most;
	bool are_in_turn; /* VERBENA_LANES */
	uint64_t serial;  /* no other process of this program's life has it: what a thread remembers is of one */
	atomic_uint threads, domains, queues; /* that had one so far */
};

/* Before any driver is made. */
void vb_lanes_init(struct vb_lanes *lanes, const struct vb_settings *settings);
/* The slot of the index-th lane is carried, and so its home is all that a process may have. -EUSERS: this one is no
 * home, and the process does without it: another user's broker has come meanwhile. Before the lane is made. */
int vb_lanes_carry(struct vb_lanes *lanes, unsigned index);
/* The part of the indices of QP numbers that the index-th lane has: vb_lane_config. */
void vb_lanes_indices(const struct vb_lanes *lanes, unsigned index, uint32_t *first, uint32_t *count);

#endif
