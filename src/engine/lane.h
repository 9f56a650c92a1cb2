/* A lane: what its QPs share, and how a packet finds the QP it is for. The engine's alone. */
#ifndef VB_ENGINE_LANE_H
#define VB_ENGINE_LANE_H

#include <stdatomic.h>
#include "base/list.h"
#include "base/timers.h"
#include "engine/counters.h"
#include "engine/flight.h"
#include "engine/handed_out.h"
#include "engine/nic.h"
#include "engine/responder.h"

struct vb_peer;
struct vb_echo_reply;

/* QPs of a lane that has few. */
#define VB_LANE_FEW     4
#define VB_LANE_CLASSES 8 /* that a wire tells apart */

struct vb_lane {
	/* What each packet looks at, whatever it is: six lines, of which the first leads to its QP. */
	_Alignas(64) vb_time now; /* of the call in progress: what completions are stamped with */
	/* QPs by the low bits of their numbers, of which those that there are have different ones. At least twice as
	 * many places as QPs, up to one for each index. */
	struct vb_qp **qps; /* few, or allocated */
	uint32_t qp_mask, qp_count;
	struct vb_qp *few[VB_LANE_FEW];
	uint64_t holder; /* what the packet that is being received is to whoever holds the lane: struct vb_packet */

	struct vb_list ready;     /* QPs with packets to send */
	struct vb_list replies;   /* QPs with an ack that does not wait, or a CNP, where those come first */
	struct vb_list acks;      /* QPs with an ack held back, by deadline */
	struct vb_list condemned; /* QPs whose completions were lost; empty between calls */

	struct vb_timers timers;
	struct vb_timers congestion_timers;
	uint32_t echo_next, echo_tail; /* free running: next to send, next free */
	bool is_marked;                /* what is being received carries Congestion Experienced */
	bool acks_forced;
	bool was_full; /* the last batch had no room left: acks that are due go first in the next */
	bool replies_held;
	uint8_t classes_held; /* vb_lane_hold */

	struct vb_handed_out handed_out;
	struct vb_deadline answer; /* vb_lane_awaits_answer */
	struct vb_list raw_ready;  /* raw packet QPs with frames to send */

	struct vb_list watched;            /* neighbours that UD's datagrams wait for, by when they are deaf */
	_Atomic(struct vb_qp *) doorbells; /* stack of QPs that rang */
	_Atomic(struct vb_qp *) flushes;   /* and of those in ERR that were given a receive */
	struct vb_allowance reads;         /* bytes of READ responses asked for: what our receive buffer can take */

	struct vb_lane_config config;
	uint64_t counters[VB_COUNTER_COUNT];

	/* QPs that would be ready, by traffic class; empty where that is not held */
	struct vb_list held[VB_LANE_CLASSES];
	uint32_t next_index;
	uint64_t frames; /* received, ever */
	struct vb_list notices;
	struct vb_list mcast; /* of struct vb_mcast_attachment: every attachment of the lane */
	uint32_t mcast_count;
	struct vb_cnp_clock cnp_clock;
	struct vb_list leaving;             /* QPs that are gone but for their memory */
	struct vb_echo_reply *echo_replies; /* ring of VB_ECHO_REPLIES, made at first use */
	struct vb_peer **peers;
	bool has_neighbours;         /* or had */
	uint32_t datagram_receivers; /* UD QPs in RTR or above; vb_qp_set_state keeps it */
	struct vb_list wishes;       /* peers that the holder is to look for among its neighbours */
	uint32_t peer_buckets, peer_count;
	struct vb_list datagram_qps;
	atomic_bool sends_datagrams; /* it has QPs of UD, or had */
};

static inline void vb_count(struct vb_lane *lane, enum vb_counter counter, uint64_t n)
{
	lane->counters[counter] += n;
}

struct vb_qp *vb_lane_find_qp(const struct vb_lane *lane, uint32_t qpn);
/* Gives it its number, chosen here if `given` is 0; -ENOMEM, -ENOSPC, -EADDRINUSE. */
int vb_lane_add_qp(struct vb_lane *lane, struct vb_qp *qp, uint32_t given);
void vb_lane_remove_qp(struct vb_lane *lane, struct vb_qp *qp);

void vb_lane_execute_condemned(struct vb_lane *lane); /* qp_failure.c */

/* The end of a turn, which is each packet's that came, and each call's that may complete. */
static inline void vb_lane_reap(struct vb_lane *lane)
{
	if (!vb_list_empty(&lane->condemned))
		vb_lane_execute_condemned(lane);
}

#endif
