/* The wire transport's part of a lane, of a QP and of a peer, each beside core's. */
#ifndef VB_ROCE_ROCE_H
#define VB_ROCE_ROCE_H

#include <stddef.h>
#include "core/lane.h"
#include "core/peers.h"
#include "core/qp.h"
#include "roce/congestion.h"
#include "roce/flight.h"
#include "roce/hold.h"
#include "roce/holder.h"
#include "roce/lane_config.h"
#include "roce/recovery.h"
#include "roce/responder.h"

struct vb_echo;
struct vb_echo_reply;
struct vb_selective;

#define VB_LANE_CLASSES 8 /* that a wire tells apart */

/* What packets look at lies before core's part, which begins with what they look at there: few pages. */
struct vb_roce_qp {
	/* Sending and acknowledgements look at these. */
	_Alignas(VB_CACHE_LINE) struct vb_recovery recovery;
	uint32_t since_ackreq; /* bytes */
	uint32_t ask_every;    /* bytes of a message, as windows count them: then a packet asks for an ack */
	struct vb_echo *echo;  /* UC, UD: made when first needed */
	uint64_t last_frame;   /* of the lane's, that a raw QP was given */
	_Alignas(VB_CACHE_LINE) struct vb_responses responses;
	struct vb_selective *selective;                  /* both ends recover so; NULL: go-back-N */
	_Alignas(VB_CACHE_LINE) struct vb_flight flight; /* what lies between una_psn and next_psn */
	uint16_t overhead;                               /* what a packet costs a window beside its payload */
	/* responses and requests take turns at being first in a turn; hello.c, addresses.c */
	bool requests_first : 1, hello_is_due : 1, hello_answer_is_due : 1, path_is_due : 1;
	uint8_t hellos; /* said, of which none is answered */
	struct vb_list ack_link;
	struct vb_congestion congestion;

	/* No packet looks at these. */
	struct vb_cnp_clock cnp_clock;
	struct vb_roce_peer *destination; /* its address, where CNPs are counted by that */
	struct vb_list mcast;             /* of struct vb_mcast_attachment */
	struct vb_spread_table *spread;   /* of a raw QP that has no receives of its own: steering.c */

	struct vb_qp qp;
};

_Static_assert(offsetof(struct vb_roce_qp, responses) == VB_CACHE_LINE, "one line");
_Static_assert(
	offsetof(struct vb_roce_qp, congestion.cc.algorithm) < offsetof(struct vb_roce_qp, flight) + VB_CACHE_LINE,
	"the line of the flight");

struct vb_roce_peer {
	struct vb_peer peer;
	struct vb_cnp_clock cnp_clock; /* of an address */
	struct vb_allowance allowance;
	vb_time least_rtt; /* of all QPs that have measured it; 0: none has */
};

struct vb_roce_lane {
	struct vb_lane lane;

	/* Three lines that each packet looks at. */
	_Alignas(VB_CACHE_LINE) struct vb_list
		replies;               /* QPs with an ack that does not wait, or a CNP, where those come first */
	struct vb_list acks;           /* QPs with an ack held back, by deadline */
	struct vb_list raw_ready;      /* raw packet QPs with frames to send */
	uint32_t echo_next, echo_tail; /* free running: next to send, next free */
	bool is_marked;                /* what is being received carries Congestion Experienced */
	bool acks_forced;
	bool was_full; /* the last batch had no room left: acks that are due go first in the next */
	bool replies_held;
	uint8_t classes_held; /* vb_lane_hold */
	/* The second. */
	uint64_t holder; /* what the packet that is being received is to whoever holds the lane */
	struct vb_timers congestion_timers;
	struct vb_allowance reads; /* bytes of READ responses asked for: what our receive buffer can take */
	/* The third, with what packets look at of the configuration. */
	_Alignas(VB_CACHE_LINE) struct vb_deadline answer; /* vb_lane_awaits_answer */
	struct vb_lane_config config;

	/* QPs that would be ready, by traffic class; empty where that is not held */
	struct vb_list held[VB_LANE_CLASSES];
	struct vb_hold_pool hold; /* of packets that came before their turn, of all QPs */
	uint64_t frames;          /* received, ever */
	uint32_t overflow;        /* vb_lane_note_overflow */
	uint32_t answer_qpn;      /* to whom the answer is awaited, */
	vb_time answer_end;       /* and no longer than this, though its packets come */
	struct vb_list mcast;     /* of struct vb_mcast_attachment: every attachment of the lane */
	uint32_t mcast_count;
	struct vb_cnp_clock cnp_clock;
	struct vb_address addresses[VB_LANE_ADDRESSES]; /* that QPs may go over to: failover.h */
	unsigned address_count;
	struct vb_list early;               /* struct vb_selective.early_link */
	uint32_t early_came;                /* packets that were held since the last vb_early_advance */
	struct vb_list away;                /* struct vb_failover.away_link */
	struct vb_deadline away_due;        /* when one of them asks */
	struct vb_echo_reply *echo_replies; /* ring of VB_ECHO_REPLIES, made at first use */
};

_Static_assert(
	offsetof(struct vb_roce_lane, reads.waiting) <= offsetof(struct vb_roce_lane, replies) + 2 * VB_CACHE_LINE,
	"two lines");
_Static_assert(
	offsetof(struct vb_roce_lane, config.cnps.interval) <= offsetof(struct vb_roce_lane, answer) + VB_CACHE_LINE,
	"one line");

/* All QPs, lanes and peers are made with these parts. */
static inline struct vb_roce_qp *vb_roce(const struct vb_qp *qp)
{
	return vb_container_of(qp, struct vb_roce_qp, qp);
}

static inline struct vb_roce_lane *vb_roce_lane(const struct vb_lane *lane)
{
	return (struct vb_roce_lane *)lane;
}

static inline struct vb_roce_lane *vb_roce_lane_of(const struct vb_qp *qp)
{
	return vb_roce_lane(qp->lane);
}

static inline struct vb_hold_pool *vb_roce_hold_of(const struct vb_qp *qp)
{
	return &vb_roce_lane_of(qp)->hold;
}

static inline struct vb_roce_peer *vb_roce_peer(const struct vb_peer *peer)
{
	return (struct vb_roce_peer *)peer;
}

/* A packet may leave: the QP has its turn at the scheduler. */
static inline void vb_schedule_now(struct vb_qp *qp)
{
	if (!vb_list_linked(&qp->ready_link))
		vb_list_add_tail(&qp->lane->ready, &qp->ready_link);
}

/* The same, unless the QP's rate makes it wait. */
static inline void vb_roce_schedule(struct vb_qp *qp)
{
	if (vb_congestion_is_due(&vb_roce(qp)->congestion, qp->lane->now))
		vb_schedule_now(qp);
	else
		vb_congestion_wait(qp);
}

/* An ack that is held back is so no longer. */
static inline void vb_schedule_no_ack(struct vb_qp *qp)
{
	if (!vb_roce(qp)->responses.is_first)
		vb_list_remove(&vb_roce(qp)->ack_link);
}

/* An ack, NAK or CNP that does not wait. A QP that is queued already keeps its place. */
static inline void vb_schedule_reply(struct vb_qp *qp)
{
	if (!vb_roce_lane_of(qp)->config.replies_first) {
		vb_schedule_now(qp);
		return;
	}
	if (vb_roce(qp)->responses.is_first)
		return;
	vb_list_remove(&vb_roce(qp)->ack_link);
	vb_list_add_tail(&vb_roce_lane_of(qp)->replies, &vb_roce(qp)->ack_link);
	vb_roce(qp)->responses.is_first = true;
}

/* transport.c */
int vb_roce_qp_init(struct vb_qp *qp); /* -ENOMEM */
void vb_roce_qp_deinit(struct vb_qp *qp);
int vb_roce_requests_reset(struct vb_qp *qp, vb_time now); /* -ENOMEM */
void vb_roce_set_mtu(struct vb_qp *qp, uint32_t mtu);
void vb_roce_leave(struct vb_qp *qp);      /* what it has under way, and its congestion control, are gone */
void vb_roce_unschedule(struct vb_qp *qp); /* nothing of it is to leave */
void vb_roce_forget(struct vb_qp *qp);     /* nothing of it stays in the lane */
void vb_roce_clear(struct vb_qp *qp);
bool vb_roce_is_quiet(const struct vb_qp *qp);
void vb_roce_lane_init(struct vb_roce_lane *lane);
void vb_roce_lane_deinit(struct vb_roce_lane *lane);
/* Of rows of struct vb_transport. */
void vb_roce_cut(struct vb_qp *qp, struct vb_send_wqe *wqe);
void vb_roce_go_back(struct vb_qp *qp);
void vb_roce_stop(struct vb_qp *qp);
void vb_roce_end(struct vb_qp *qp);
void vb_roce_forget_srq(struct vb_qp *qp, const struct vb_srq *srq);
bool vb_roce_has_packets(const struct vb_qp *qp);
void vb_roce_check(const struct vb_qp *qp);

/* turn.c: up to a train of the QP's packets. True when it was cut short. */
bool vb_roce_take_turn(struct vb_qp *qp, struct vb_batch *batch, unsigned budget, vb_time now);
/* Acks that do not wait, where those leave first; and echo replies, and acks that are due. */
void vb_roce_emit_first(struct vb_lane *lane, struct vb_batch *batch, unsigned budget, vb_time now);
void vb_roce_emit_replies(struct vb_lane *lane, struct vb_batch *batch, unsigned budget, vb_time now);

#endif
