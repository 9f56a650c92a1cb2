/* A lane: the table of its QPs, and what all transports share in it. roce/roce.h has the wire's part. */
#ifndef VB_CORE_LANE_H
#define VB_CORE_LANE_H

#include <stdatomic.h>
#include <stddef.h>
#include "base/list.h"
#include "base/timers.h"
#include "core/counters.h"
#include "core/handed_out.h"
#include "core/objects.h"

struct vb_peer;
struct vb_epochs;

/* QPs of a lane that has few. */
#define VB_LANE_FEW 4
/* QPs of any lane, and places of their table. */
#define VB_LANE_PLACES 65536

struct vb_lane {
	/* Three lines that each packet looks at, whatever it is: the first leads to its QP. */
	_Alignas(64) vb_time now; /* of the call in progress: what completions are stamped with */
	/* QPs by the low bits of their numbers, of which those that there are have different ones. At least twice as
	 * many places as QPs, up to one for each index. */
	struct vb_qp **qps; /* few, or allocated */
	uint32_t qp_mask, qp_count;
	struct vb_qp *few[VB_LANE_FEW];

	struct vb_list ready;   /* QPs with packets to send */
	struct vb_list failing; /* QPs that are to be stopped and flushed; empty between calls */
	struct vb_timers timers;
	struct vb_handed_out handed_out;
	_Atomic(struct vb_qp *) doorbells;            /* stack of QPs that rang */
	_Atomic(struct vb_qp *) flushes;              /* and of those in ERR that were given a receive */
	vb_time patience, ack_timeout, least_silence; /* of its configuration (roce/lane_config.h) */
	struct vb_list watched; /* local peers that UD's datagrams wait for, by when they are blocked */
	struct vb_list leaving; /* QPs that are gone but for their memory */
	uint64_t counters[VB_COUNTER_COUNT];

	/* Of its configuration, too. */
	uint32_t first_index, index_count;
	uint8_t slot;
	bool meets_local_peers;

	bool has_local_peers; /* or had */
	uint32_t next_index;
	struct vb_list notices;
	struct vb_epochs *published; /* epochs of QPs, for other processes; or NULL */
	uint16_t epochs;             /* of QPs, counted up whenever what one has at the port concerns it no more */
	struct vb_peer **peers;
	uint32_t peer_buckets, peer_count;
	struct vb_list wanted;       /* peers that the holder is to look for among its local peers */
	uint32_t datagram_receivers; /* UD QPs in RTR or above; vb_qp_set_state keeps it */
	struct vb_list datagram_qps;
	atomic_bool sends_datagrams; /* it has QPs of UD, or had */
};

_Static_assert(offsetof(struct vb_lane, leaving.prev) == 192, "three lines");

static inline void vb_count(struct vb_lane *lane, enum vb_counter counter, uint64_t n)
{
	lane->counters[counter] += n;
}

void vb_lane_init(struct vb_lane *lane, uint64_t seed); /* its configuration is filled in */
void vb_lane_deinit(struct vb_lane *lane);
struct vb_qp *vb_lane_find_qp(const struct vb_lane *lane, uint32_t qpn);
/* Gives it its number, chosen here if `given` is 0; -ENOMEM, -ENOSPC, -EADDRINUSE. */
int vb_lane_add_qp(struct vb_lane *lane, struct vb_qp *qp, uint32_t given);
void vb_lane_remove_qp(struct vb_lane *lane, struct vb_qp *qp);

void vb_lane_execute_failing(struct vb_lane *lane); /* failure.c */

/* The end of a turn, which is each packet's that came, and each call's that may complete. */
static inline void vb_lane_reap(struct vb_lane *lane)
{
	if (__builtin_expect(!vb_list_empty(&lane->failing), false))
		vb_lane_execute_failing(lane);
}

/* doorbells.c: everything rung since the last call is made ready, or flushed. */
void vb_lane_answer_doorbells(struct vb_lane *lane);
void vb_qp_answer_doorbell(struct vb_qp *qp);

#endif
