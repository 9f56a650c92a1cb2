/* A QP's congestion control (cc/): which it has, what that is told, and that its rate and its timer are kept. What it
 * says of the window is flight.h's.
 *
 * Where it sets a rate, packets of data (requests and responses) keep it: after each the QP waits until next_send_at,
 * outside of the scheduler's lists. Acks, NAKs and CNPs do not wait. A QP that always has something to send keeps its
 * rate though its holder comes late (where its lane has it so); one that had nothing to send has saved nothing up. */
#ifndef VB_ROCE_CONGESTION_H
#define VB_ROCE_CONGESTION_H

#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"
#include "base/timers.h"
#include "cc/cc.h"

struct vb_lane;
struct vb_qp;

/* The account of a QP since its RTS: vb_qp_account. */
struct vb_tally {
	uint64_t acked;   /* bytes of messages, in packets */
	vb_time since;    /* the first packet of a message with bytes */
	vb_time acked_at; /* the newest acknowledgement of such bytes */
	bool has_begun;   /* since is known */
	uint32_t cnps_sent, cnps_received, sent_again, probes;
	vb_time least_rtt; /* 0: none was measured */
	/* Where congestion control has ended: what it was at the end. */
	const struct vb_cc_algorithm *algorithm;
	uint64_t rate;
	uint32_t window_bytes;
	bool is_local;
};

struct vb_congestion {
	bool wants_packets; /* cc is told of each packet */
	bool is_waiting;    /* for next_send_at */
	bool is_behind;     /* has had something to send ever since its last packet: what is late is made up for */
	struct vb_cc cc;
	const struct vb_cc_config *config; /* the QP's own; NULL: the lane's */
	vb_time next_send_at;              /* of a QP with a rate */
	uint64_t rest;                     /* of the division that made it: a rate is kept to the picosecond */
	struct vb_timer timer;             /* next_send_at while it waits for that, and cc's */
	struct vb_tally tally;
};

/* May the next packet of data leave? */
static inline bool vb_congestion_is_due(const struct vb_congestion *congestion, vb_time now)
{
	return congestion->cc.rate == 0 || vb_time_is_due(congestion->next_send_at, now);
}

static inline bool vb_congestion_counts_packets(const struct vb_congestion *congestion)
{
	return congestion->wants_packets || congestion->cc.rate != 0;
}

void vb_congestion_init(struct vb_qp *qp);
int vb_congestion_start(struct vb_qp *qp, vb_time now); /* afresh; -ENOMEM */
/* It recovers selectively from now on: where no algorithm was chosen, another one fits. */
void vb_congestion_note_agreement(struct vb_qp *qp, vb_time now);
/* Its packets are larger from now on, and no window is smaller than one. */
void vb_congestion_note_large(struct vb_qp *qp);
/* The largest window of `queue` goes by the length of the way, and by what the peer holds. */
void vb_congestion_note_shorter_way(struct vb_qp *qp);
void vb_congestion_stop(struct vb_qp *qp); /* nothing is to be sent for now */
void vb_congestion_end(struct vb_qp *qp);
/* Nothing where none runs. */
void vb_congestion_tell(struct vb_qp *qp, const struct vb_cc_signal *signal);
/* A packet of data has left: bytes of it, as rates count them. */
void vb_congestion_count_packet(struct vb_qp *qp, uint32_t bytes, vb_time now);
void vb_congestion_wait(struct vb_qp *qp); /* the QP is scheduled when it may send again */
/* Handles what is due: a QP that waited is scheduled, an algorithm with a timer is asked. */
void vb_congestion_advance(struct vb_lane *lane, vb_time now);
void vb_congestion_check(const struct vb_qp *qp);

#endif
