/* Selective repeat, between two ends that have agreed on it: what comes before its turn is held, and only what is
 * missing is sent again. On the wire data packets are RC's own; what is held is told of by bitmaps. Everything is
 * executed, acknowledged and completed in the order of PSNs, as with go-back-N.
 *
 *   hello.c      whether both ends do so
 *   hold.c       the store of packets that came before their turn
 *   early.c      the responder's: such requests, and what it says of them
 *   sent.c       what the requester knows of each packet under way
 *   seen.c       by which arrival a packet is missed
 *   lateness.c   how late a packet may be
 *   wqe_of_psn.c which work request a packet is of
 *   selective.c  the requester's: what is lost, and when it is sent again
 *
 * Source of the clock: RACK, RFC 8985, sections 4 and 6, without its counts of duplicates. [lane] */
#ifndef VB_ROCE_SELECTIVE_H
#define VB_ROCE_SELECTIVE_H

#include "core/objects.h"
#include "cc/cc.h"
#include "roce/hold.h"
#include "roce/large.h"
#include "roce/multipath.h"
#include "roce/seen.h"
#include "roce/sent.h"

struct vb_batch;
struct vb_failover;
struct vb_send_wqe;

#define VB_REPEATS 32

/* While something is missing, so many times as many READs and atomics may be outstanding as the peer has granted: else
 * all would wait for the one that is repeated. The responder remembers as many. */
#define VB_GRANTED_BEHIND 2

/* Responses of a READ that are to be sent once more, and nothing around them. */
struct vb_repeat {
	uint32_t psn, end_psn;
};

/* Of twice what may be held: those in reach, from that of the newest executed PSN on, have a bit each. */
#define VB_BITMAPS (2 * VB_HOLD_PSNS / VB_BITMAP_PSNS)

#define VB_RESENT  8
#define VB_TRIMMED 8

/* A packet that was sent again as lost: whether it had only been late comes out when the second one has arrived. */
struct vb_resent {
	uint32_t psn;
	uint32_t after_ns; /* so long it had been waited for */
	vb_time sent_at;   /* again */
	vb_time took;      /* from then until it had arrived; 0: it has not */
};

struct vb_selective {
	struct vb_qp *qp;
	struct vb_multipath *paths;   /* NULL: one, the QP's flow */
	struct vb_failover *failover; /* NULL: it has no other pair of addresses */
	struct vb_large large;

	/* The responder's. */
	struct vb_hold requests;
	struct vb_list early_link;        /* in the lane's, while it goes on to execute what is held */
	bool has_held;                    /* ever */
	uint64_t untold[VB_BITMAPS / 64]; /* of each bitmap: something in it is to be told */
	uint32_t held_untold;             /* packets that came since the newest bitmap left */
	uint32_t duplicate;               /* as in a bitmap: what came twice, and how often something did */
	uint32_t told_duplicate;          /* in the newest bitmap */
	uint32_t trimmed[VB_TRIMMED];     /* packets that are to be named: the newest, if there are more */
	uint8_t trimmed_next, trimmed_count;
	uint32_t told_overflow; /* the lane's overflow, as the newest bitmap has told */
	struct vb_repeat repeats[VB_REPEATS];
	uint8_t repeat_first, repeat_count;

	/* The requester's. */
	struct vb_hold responses;
	struct vb_sent sent;
	uint32_t executed_psn;  /* the peer has executed what comes before, also beyond una_psn */
	struct vb_seen seen;    /* of the first rail, if there are two (rails.h) */
	struct vb_deadline due; /* when more counts as lost, if nothing comes before that */
	vb_time lateness;       /* how late packets have been, beyond what the network may do (lateness.c) */
	struct vb_resent resent[VB_RESENT];
	uint8_t resent_next;
	uint32_t wqe_index;      /* of the work request that was looked for last */
	bool is_to_judge;        /* when what is being received has been */
	bool has_overflown;      /* the peer has told of it, and congestion control was not */
	uint32_t own_overflow;   /* the lane's, as congestion control was told */
	uint32_t again;          /* packets sent again, ever */
	uint32_t peer_duplicate; /* as the peer last told */
	vb_time least_rtt;       /* 0: unknown */
	vb_time guessed_rtt; /* until one is known: so long nothing had been acknowledged when account first began */
	/* seen.c, while account is kept and nothing comes twice; 0: none */
	vb_time shorter_rtt, shorter_at; /* so long what was sent again seems to have taken, and when it arrived */
	vb_time believed_rtt;            /* that is the least now */
	vb_time rtt, rtt_at;             /* measured since account is kept, and not told; when one was told last */
	uint32_t rtt_psn;                /* of the former */
	uint32_t cut_psn;                /* congestion control has been told of losses of what comes before */
	uint8_t in_earnest;              /* packets that were lost indeed since one was only late */
	uint32_t peer_hold;              /* bytes that the peer holds */
};

/* ---- Agreement (hello.c) ------------------------------------------------------------------------------------------
 */

/* The peer is to be asked, if its host takes hellos and it has not answered. */
void vb_hello_want(struct vb_qp *qp);
void vb_hello_emit(struct vb_qp *qp, struct vb_batch *batch);
void vb_hello_emit_large(struct vb_qp *qp, struct vb_batch *batch); /* as long as a large packet: large.h */
void vb_hello_receive(struct vb_qp *qp, const struct vb_packet *packet);
enum vb_recovers vb_hello_outcome(const struct vb_qp *qp);

/* The QP recovers so from now on. -ENOMEM */
int vb_selective_begin(struct vb_qp *qp, uint32_t peer_hold);
void vb_selective_begin_requests(struct vb_qp *qp); /* from RTS on: PSNs begin anew */
void vb_selective_stop_requests(struct vb_qp *qp);  /* nothing of its requests is under way */
void vb_selective_end(struct vb_qp *qp);
void vb_selective_check(const struct vb_qp *qp);

/* ---- The requester's (selective.c) ------------------------------------------------------------------------------- */

/* A round trip that was measured while something is missing; 0: none, or one was told less than a round trip ago. */
vb_time vb_selective_rtt(struct vb_qp *qp, vb_time now);
void vb_selective_note_rtt(struct vb_qp *qp, vb_time rtt);
/* Something is missing. */
bool vb_selective_keeps_account(const struct vb_qp *qp);
/* Something to be sent again. */
bool vb_selective_has_lost(const struct vb_qp *qp);
/* The oldest of it, if the windows let it, or as a probe, which they do not hold back. */
bool vb_selective_emit(struct vb_qp *qp, struct vb_batch *batch, bool is_probe, vb_time now);
/* So many more PSNs are more than the peer would hold. */
bool vb_selective_is_full(const struct vb_qp *qp, uint32_t span);
void vb_selective_on_sent(struct vb_qp *qp, uint32_t psn, uint32_t span, bool is_again, vb_time now);
/* Of PSNs from .. to - 1 of the WQE, what is no longer under way, and of how many bytes the arrival was told. */
struct vb_settled {
	uint32_t out, in, told;
};
struct vb_settled vb_selective_settled(
	const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t from, uint32_t to);
/* They are acknowledged now, or answered by responses. */
void vb_selective_pass(struct vb_qp *qp, uint32_t from, uint32_t to, bool is_answered, vb_time now);
/* una_psn was to move to psn, and waits for responses. */
void vb_selective_await(struct vb_qp *qp, uint32_t psn, vb_time now);
/* A response to what is not the oldest. */
void vb_selective_hold(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);
void vb_selective_receive_bitmap(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);
/* A probe is to leave: what has left before it is older. */
void vb_selective_before_probe(struct vb_qp *qp);
/* The newest packet under way of which nothing is known. */
uint32_t vb_selective_newest_missing(const struct vb_qp *qp);
/* The peer may not have executed the READ, and would take a request for a part of it for all of it. */
bool vb_selective_must_be_whole(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t index);
void vb_selective_forget_sent(struct vb_qp *qp); /* everything is sent again, or nothing is under way */
/* A response has come without its bytes, which a switch has cut off. */
void vb_selective_lose_response(struct vb_qp *qp, uint32_t psn, vb_time now);
/* The oldest response was asked for by itself, twice, and nothing else has come: those of the same request are lost. */
void vb_selective_lose_responses(struct vb_qp *qp, vb_time now);
/* More may be lost, by all that is known now: it is found out now, or when the train that is being received has been.
 */
void vb_selective_judge(struct vb_qp *qp, vb_time now);
void vb_selective_judge_soon(struct vb_qp *qp);
/* The held response whose turn it is; NULL: none. */
const struct vb_held *vb_selective_next_response(const struct vb_qp *qp);
/* A response of the READ or atomic: the peer has executed that. */
void vb_selective_note_executed(struct vb_qp *qp, uint32_t end_psn);

/* The work request that psn, from una_psn up to next_psn, belongs to (wqe_of_psn.c). */
struct vb_send_wqe *vb_wqe_of_psn(const struct vb_qp *qp, uint32_t psn);

/* ---- Lateness (lateness.c) ----------------------------------------------------------------------------------------
 */

vb_time vb_lateness_window(const struct vb_qp *qp); /* beyond the round trip */
void vb_lateness_note_resent(struct vb_qp *qp, uint32_t psn, vb_time now);
/* The packet is there, by itself or sent again; of one that was never taken for lost that says nothing. */
void vb_lateness_note_arrival(struct vb_qp *qp, uint32_t psn, vb_time now);
/* The packet came to where it had been already. */
void vb_lateness_note_duplicate(struct vb_qp *qp, uint32_t psn);

/* ---- The responder's (early.c) ----------------------------------------------------------------------------------- */

/* False: nothing of what came early can be held, and a NAK is to say so. */
bool vb_early_receive(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);
void vb_early_stop(struct vb_qp *qp); /* nothing more is executed */
/* Requests are held. */
bool vb_early_has_any(const struct vb_qp *qp);
/* A bitmap is to leave, rather than an ACK. */
bool vb_early_is_told(const struct vb_qp *qp);
void vb_early_emit_bitmap(struct vb_qp *qp, struct vb_batch *batch, uint32_t expected_psn, uint32_t msn);
/* A request that was executed long ago came again: the peer may not have heard what is held. */
void vb_early_note_trimmed(struct vb_qp *qp, uint32_t psn, vb_time now);
void vb_early_note_duplicate(struct vb_qp *qp, uint32_t psn);
/* The QP is about to go. True: it says once more what it has executed, for packets of it were lost. */
bool vb_early_takes_leave(struct vb_qp *qp, vb_time now);
/* expected_psn was `from` before the newest request was executed: those behind it that are held are. */
void vb_early_proceed(struct vb_qp *qp, uint32_t from, vb_time now);
/* The next of many: more than have come meanwhile, so that there is an end to it, and not so many that the receive
 * buffer overflows. Due as long as a QP is in the lane's list. */
void vb_early_advance(struct vb_lane *lane, vb_time now);

#endif
