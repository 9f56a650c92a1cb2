/* The inside of queue pairs and lanes, shared by the engine's files and nobody else.
 *
 * A send queue is a ring: the poster writes at tail under sq.lock, the lane reads from head to tail without it. Within
 * the ring the lane keeps a cursor: WQEs before it are on the wire, the one at it is being sent, those after it wait.
 * PSNs run alongside: una_psn <= next_psn <= max_psn. Going back means next_psn = una_psn; nothing else remembers what
 * is in flight. */
#ifndef VB_ENGINE_QP_H
#define VB_ENGINE_QP_H

#include <stdatomic.h>
#include "base/list.h"
#include "base/lock.h"
#include "base/random.h"
#include "engine/congestion.h"
#include "engine/counters.h"
#include "engine/execute.h"
#include "engine/flight.h"
#include "engine/memory.h"
#include "engine/nic.h"
#include "engine/queues.h"
#include "base/timers.h"

#define VB_TURN_BYTES	   65536

/* ---- Send queue ------------------------------------------------------------------------------------------------ */

struct vb_send_wqe {
	uint64_t wr_id;
	uint8_t opcode; /* enum vb_wr_opcode */
	uint8_t flags;  /* enum vb_send_flags; SIGNALED set too where the QP signals all */
	uint8_t sge_count;
	bool is_started;               /* has PSNs; or, of a local operation, is done */
	uint32_t length;               /* of the message */
	uint32_t first_psn, psn_count; /* psn_count 0: local operation */
	uint32_t ssn;                  /* send sequence number of its first wire message, 24 bits */
	uint32_t imm_or_inv;
	uint32_t rkey;
	union {
		uint32_t srqn;    /* XRC */
		uint32_t at_port; /* UC, UD: packets that are handed out */
	};
	uint64_t remote_addr;
	union {
		struct {
			uint64_t compare_add, swap;
		} atomic;
		struct {
			uint32_t length;
			uint8_t type, level;
		} flush;
		struct {
			/* Packets, powers of two: pieces end at their multiples from first_psn on; those before packet
			 * changed_at at multiples of earlier_piece, and there. */
			uint32_t piece, earlier_piece, changed_at;
		} read;
		struct {
			struct vb_av av;
			uint32_t qpn, qkey;
		} ud;
		struct {
			struct vb_mw *mw;
			struct vb_mr *mr;
			uint64_t addr, length;
			uint32_t access, rkey;
		} bind;
	};
	vb_time started_at;
	union {
		struct vb_sge sges[1];   /* sge_count of them */
		uint8_t inline_bytes[1]; /* length of them, when flags say INLINE */
	};
};

struct vb_send_queue {
	struct vb_lock lock;
	uint8_t *slots;
	uint32_t size, stride, max_wr, max_sge, max_inline; /* size: power of two >= max_wr */
	uint32_t staged; /* tail to be, between vb_sq_begin and vb_sq_end; under lock */
	atomic_uint head, tail;
	atomic_uint released; /* slots before it may be used again: their completions, or later ones, were polled */
};

static inline struct vb_send_wqe *vb_send_wqe_at(const struct vb_send_queue *sq, uint32_t index)
{
	return (struct vb_send_wqe *)(sq->slots + (size_t)(index & (sq->size - 1)) * sq->stride);
}

/* ---- Requester ------------------------------------------------------------------------------------------------- */

/* What closes the loop of an unacknowledged transport towards a Verbena peer (echo.c). */
#define VB_ECHO_MARKS 8

struct vb_echo {
	uint64_t sent, drained; /* bytes, ever; what lies between them may still fill the peer's receive buffer */
	uint64_t marks[VB_ECHO_MARKS]; /* what sent was when request n % VB_ECHO_MARKS left */
	uint32_t asked, answered;      /* requests, ever */
	uint64_t asked_at_bytes;       /* sent at the newest request */
	bool is_due;                   /* a request is to leave after the data */
	bool is_blocked;
	vb_time waits_since; /* when it was blocked, or last sent */
	uint32_t qpn;        /* whom to ask: where the newest data went */
	struct vb_av av;
};

/* A reply that is to leave; lives in the lane's ring, also while it is handed out. */
struct vb_echo_reply {
	struct vb_qp *qp; /* the QP that was asked; NULL when it is gone */
	uint32_t qpn, psn;
	struct vb_av av;
};

#define VB_ECHO_REPLIES 64

enum vb_probe { VB_PROBE_NONE, VB_PROBE_NEWEST, VB_PROBE_OLDEST };

struct vb_requester {
	uint32_t cursor;        /* index of the WQE that next_psn belongs to */
	uint32_t una_psn;       /* oldest unacknowledged */
	uint32_t next_psn;      /* next to be sent */
	uint32_t max_psn;       /* beyond the newest ever sent */
	uint32_t rd_atomic_out; /* READ pieces and atomics between una_psn and next_psn that are not answered yet */
	uint32_t since_ackreq;  /* bytes */

	uint32_t ssn;          /* of the newest started message */
	uint32_t credit_limit; /* LSN: messages up to it may consume a receive */
	bool has_credits;      /* the peer advertises */

	enum vb_wc_status doomed; /* the WQE at the cursor fails with this as soon as it is the oldest */
	enum vb_cause_kind doomed_cause;

	/* recovery.c */
	uint8_t retries_left, rnr_retries_left;
	bool is_recovering; /* went back from una_psn already: further NAKs for it say nothing new */
	bool is_rnr_waiting;
	enum vb_probe probe;  /* to be sent now */
	enum vb_probe probed; /* last one sent since progress */
	uint32_t probed_psn;
	uint8_t probe_backoff; /* doublings of the probe interval: since the last round trip that could be measured */
	uint8_t ghosts;        /* heeded since progress */
	bool was_probed;       /* since progress: the newest went already, the oldest is next */
	unsigned tries;        /* retries of any kind since progress */
	vb_time rnr_until;
	vb_time progress_at; /* last acknowledgement of something, or when the queue became busy */
	vb_time quiet_since; /* last progress or last packet sent */
	vb_time srtt;        /* 0: unknown */
	uint32_t rtt_psn;    /* being timed */
	vb_time rtt_sent_at;
	bool is_timing;
	bool is_probe_in_doubt;  /* it was answered; was that it, or what it repeated? */
	vb_time patience_before; /* that answer */
	uint32_t doubt_end;      /* no second answer to the probe can come after one to this packet, which left later */
	vb_time heard_at;
	bool was_heard;
	uint32_t largest_acked;
	bool is_asked;  /* the peer has sent a request since our newest was started */
	bool is_answer; /* what is or was under way last follows such a request */
	struct vb_echo *echo; /* UC, UD: made when first needed */
};

/* ---- Responder ------------------------------------------------------------------------------------------------- */

/* A READ or atomic that was executed, remembered so that a duplicate request can be answered again. */
struct vb_resource {
	bool is_used, is_atomic;
	bool is_write;     /* an ATOMIC WRITE, answered like a READ of nothing; is_atomic too */
	bool is_active;    /* responses next_psn .. end_psn - 1 are to be sent */
	bool is_repeat;    /* the present round answers a duplicate */
	bool was_answered; /* all responses have left at least once */
	uint32_t first_psn, psn_count;
	uint32_t start_psn, next_psn, end_psn; /* of the present round of responses */
	uint32_t end_length;                   /* bytes of the message up to end_psn */
	uint32_t rkey, length;
	uint64_t va;
	uint64_t result; /* atomic: the value before */
	uint32_t msn;
	const struct vb_pd *pd;   /* whose keys the READ may use */
	const struct vb_srq *srq; /* XRC: named by the request */
};

struct vb_ack {
	bool is_wanted;
	bool is_urgent;
	uint8_t syndrome;
	uint32_t psn;
	vb_time deadline;
	uint32_t packets, bytes; /* received since the last ack left */
};

struct vb_responder {
	uint32_t expected_psn, msn;
	bool nak_sent;      /* a NAK for expected_psn is out; no further one until it arrives */
	bool uc_discarding; /* UC: the message lost a packet */
	bool comm_established;
	struct vb_resource *resources; /* max_dest_rd_atomic of them, at first use */
	uint8_t resource_count, resource_next;
	uint8_t active_resources;
	uint8_t verdict; /* on the request at expected_psn, judged and not refused yet: responder.c; 0: none */
	uint8_t refusal; /* the fatal NAK that was said, and of what; 0: none */
	uint32_t refusal_psn;
	struct vb_ack ack;
	bool cnp_wanted;
	bool cnp_was_sent;
	vb_time cnp_sent_at;
};

/* ---- Queue pair ------------------------------------------------------------------------------------------------ */

struct vb_peer;

struct vb_qp {
	struct vb_lane *lane;
	struct vb_pd *pd;
	enum vb_qp_type type;
	uint32_t qpn;
	uint64_t cookie; /* what its packets' receipts have in common: handed_out.c */
	atomic_int state; /* enum vb_qp_state */
	bool signal_all;
	uint16_t flow;
	uint32_t mtu;
	uint8_t mtu_shift;
	uint8_t transport; /* enum vb_transport */
	struct vb_spread_table *spread; /* of a raw QP that has no receives of its own: steering.c */
	uint64_t last_frame;            /* of the lane's, that the QP was given */
	bool is_reliable;  /* RC and XRC: acknowledged, and sent again */
	struct vb_cq *send_cq, *recv_cq;
	struct vb_srq *srq;
	struct vb_xrcd *xrcd; /* of XRC_RECV, which has no recv_cq and srq of its own, and in whose pd no key opens anything */
	struct vb_list xrcd_link;
	void *user;
	struct vb_peer *peer;
	struct vb_send_queue sq;
	struct vb_recv_ring rq; /* without slots when there is an SRQ, and of XRC */
	struct vb_requester requester;
	struct vb_target target;
	struct vb_responder responder;
	struct vb_flight flight; /* what lies between una_psn and next_psn */
	struct vb_congestion congestion;
	struct vb_timer timer;
	struct vb_list ready_link, ack_link;
	struct vb_list condemned_link; /* in the lane's list: it dies at the end of the turn */
	struct vb_list leaving_link;   /* in the lane's list: destroyed, and its bytes may be at the port */
	uint32_t leaving_mark;
	bool requests_first; /* in its next turn: responses and requests take turns at being first */
	struct vb_list mcast; /* of struct vb_mcast_attachment */
	struct vb_notice notice;
	_Atomic(struct vb_qp *) doorbell_next;
	atomic_bool doorbell_rung;
	struct vb_cause cause;
	struct vb_qp_attr attr;
	struct vb_work_count **counts; /* one a kind of work, or NULL; itself NULL unless something is counted */
};

/* ---- Lane ------------------------------------------------------------------------------------------------------ */

/* Packets at the port, in two generations: those of the younger one are counted apart while the older one's come back.
 * So whoever must wait for what is out now does not wait for what leaves meanwhile. */
struct vb_handed_out {
	uint32_t generation;  /* of what is handed out now; its lowest bit is in the cookies */
	uint32_t wanted;      /* the newest generation that somebody waits for */
	unsigned counts[2];   /* by that bit */
	uint16_t lives;       /* of QPs, counted up whenever what one has at the port concerns it no more */
};

struct vb_lane {
	vb_time now; /* of the call in progress: what completions are stamped with */
	struct vb_lane_config config;
	struct vb_qp ***qps; /* 256 chunks of 256, made as needed */
	uint32_t qp_count, next_index;
	struct vb_timers timers;
	struct vb_timers congestion_timers;
	struct vb_list ready;      /* QPs with packets to send */
	struct vb_list raw_ready;  /* raw packet QPs with frames to send */
	uint64_t frames;           /* received, ever */
	struct vb_list acks;       /* QPs with an ack held back, by deadline */
	struct vb_allowance reads; /* bytes of READ responses asked for: what our receive buffer can take */
	struct vb_list notices;
	struct vb_list condemned; /* QPs whose completions were lost; empty between calls */
	struct vb_list mcast; /* of struct vb_mcast_attachment: every attachment of the lane */
	uint32_t mcast_count;
	bool is_marked; /* what is being received carries Congestion Experienced */
	bool acks_forced;
	struct vb_deadline answer; /* vb_lane_awaits_answer */
	bool was_full; /* the last batch had no room left: acks that are due go first in the next */
	struct vb_handed_out handed_out;
	struct vb_list leaving; /* QPs that are gone but for their memory */
	struct vb_echo_reply *echo_replies;       /* ring of VB_ECHO_REPLIES, made at first use */
	uint32_t echo_next, echo_tail;            /* free running: next to send, next free */
	_Atomic(struct vb_qp *) doorbells;        /* stack of QPs that rang */
	struct vb_peer **peers;
	uint32_t peer_buckets, peer_count;
	uint64_t counters[VB_COUNTER_COUNT];
};

static inline enum vb_qp_state vb_state(const struct vb_qp *qp)
{
	return (enum vb_qp_state)atomic_load_explicit(&qp->state, memory_order_acquire);
}

static inline void vb_count(struct vb_lane *lane, enum vb_counter counter, uint64_t n)
{
	lane->counters[counter] += n;
}

static inline bool vb_is_condemned(const struct vb_qp *qp)
{
	return vb_list_linked(&qp->condemned_link);
}

/* May the next packet of data leave? */
static inline bool vb_congestion_is_due(const struct vb_qp *qp, vb_time now)
{
	return qp->congestion.cc.rate == 0 || vb_time_is_due(qp->congestion.next_send_at, now);
}

static inline bool vb_congestion_counts_packets(const struct vb_qp *qp)
{
	return qp->congestion.wants_packets || qp->congestion.cc.rate != 0;
}

/* Packets that a message of length bytes takes; an empty one takes one. */
static inline uint32_t vb_psn_count(const struct vb_qp *qp, uint32_t length)
{
	return length == 0 ? 1 : (uint32_t)(((uint64_t)length + qp->mtu - 1) >> qp->mtu_shift);
}

/* lane.c */
struct vb_qp *vb_lane_find_qp(const struct vb_lane *lane, uint32_t qpn);
int vb_lane_add_qp(struct vb_lane *lane, struct vb_qp *qp); /* gives it its number; -ENOMEM */
void vb_lane_remove_qp(struct vb_lane *lane, struct vb_qp *qp);

/* work_count.c */
void vb_count_work_slowly(struct vb_qp *qp, enum vb_counted kind, enum vb_wc_status status, uint32_t bytes);

static inline void vb_count_work(struct vb_qp *qp, enum vb_counted kind, enum vb_wc_status status, uint32_t bytes)
{
	if (__builtin_expect(qp->counts != NULL, false))
		vb_count_work_slowly(qp, kind, status, bytes);
}

/* qp.c */
/* The QP goes to ERR (RC, XRC, responder side of UC) by itself: cause noted, everything flushed. */
void vb_qp_fail(struct vb_qp *qp, enum vb_cause_kind cause, enum vb_wc_status status, vb_time now);
/* After vb_qp_fail: what was asked of whose memory. */
void vb_qp_note_access(struct vb_qp *qp, enum vb_message message, uint64_t addr, uint32_t rkey, uint32_t length);
const char *vb_access_text(enum vb_message message); /* NULL: a message that accesses no memory by key */
/* A completion of the QP was lost. It dies at the end of the turn, not under whoever completes. */
void vb_qp_condemn(struct vb_qp *qp);
void vb_lane_execute_condemned(struct vb_lane *lane);
void vb_qp_flush(struct vb_qp *qp);
void vb_qp_flush_sends(struct vb_qp *qp);

/* The end of a turn, which is each packet's that came, and each call's that may complete. */
static inline void vb_lane_reap(struct vb_lane *lane)
{
	if (!vb_list_empty(&lane->condemned))
		vb_lane_execute_condemned(lane);
}

/* send_queue.c */
uint32_t vb_sq_init(struct vb_send_queue *sq, uint32_t max_wr, uint32_t max_sge, uint32_t max_inline); /* 0 or ENOMEM */
void vb_sq_deinit(struct vb_send_queue *sq);
/* The lane's side: everything rung since the last call is made ready, or flushed. */
void vb_lane_answer_doorbells(struct vb_lane *lane);
void vb_qp_ring_doorbell(struct vb_qp *qp);
/* The oldest WQE is finished: its completion if it is signalled or failed, and its place is free. */
void vb_sq_retire(struct vb_qp *qp, enum vb_wc_status status);

/* events.c */
void vb_raise(struct vb_lane *lane, struct vb_notice *notice, enum vb_event_kind kind);
void vb_notice_forget(struct vb_notice *notice);
/* What follows from adding a completion to cq. False: it was lost. */
bool vb_cq_tell(struct vb_lane *lane, struct vb_cq *cq, enum vb_cq_outcome outcome);
/* Adds a completion of qp, raises what follows from it. */
void vb_complete(struct vb_qp *qp, struct vb_cq *cq, struct vb_wc *wc, bool solicited);
void vb_complete_recv(struct vb_target *target, struct vb_wc *wc, bool solicited); /* the receive in hand */

/* scheduler.c */
void vb_schedule(struct vb_qp *qp);	/* it may have data to send, when its time comes */
void vb_schedule_now(struct vb_qp *qp); /* or something that does not wait for that */
void vb_unschedule(struct vb_qp *qp); /* nothing of it is to leave */
/* A packet appended to the batch, headers zeroed, addressed to qp's peer. The caller has seen to the room. */
struct vb_outgoing *vb_batch_add(struct vb_batch *batch, struct vb_qp *qp, uint8_t opcode, const struct vb_av *av);
void vb_batch_undo(struct vb_batch *batch);
/* bytes NULL: there are none, only their number. */
void vb_batch_add_iov(struct vb_batch *batch, struct vb_outgoing *out, const void *bytes, size_t length);
/* Adds [offset, offset + length) of a WQE's message; false when an SGE does not allow it. */
bool vb_batch_add_wqe(struct vb_batch *batch, struct vb_outgoing *out, const struct vb_qp *qp,
	const struct vb_send_wqe *wqe, uint32_t offset, uint32_t length);

void vb_sq_check(const struct vb_qp *qp);

/* requester.c */
void vb_requester_check(const struct vb_qp *qp);
int vb_requester_reset(struct vb_qp *qp, vb_time now); /* -ENOMEM */
bool vb_requester_emit(struct vb_qp *qp, struct vb_batch *batch, vb_time now); /* false: nothing to send now */
bool vb_requester_has_work(const struct vb_qp *qp); /* something is to be sent, if windows and the like allow it */
bool vb_requester_has_unsent(const struct vb_qp *qp); /* as exactly as can be said: the cursor may stay at what was sent */
/* Fails the WQE at the cursor once it is the oldest. */
void vb_requester_doom(struct vb_qp *qp, enum vb_wc_status status, enum vb_cause_kind cause, vb_time now);
/* The memory of a request packet turned out not to be there: its work request fails once it is the oldest. */
void vb_requester_fault(struct vb_qp *qp, uint32_t psn, vb_time now);
/* UC, UD: the port is done with a packet. */
void vb_requester_left(struct vb_qp *qp, uint32_t psn, vb_time now);
/* After requests were acknowledged or have left: more may start, the doomed may be the oldest, the queue be drained. */
void vb_requester_proceed(struct vb_qp *qp, vb_time now);

/* acknowledgement.c */
void vb_requester_receive(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);
/* Local operations that are done complete as soon as they are the oldest. */
void vb_retire_local_operations(struct vb_qp *qp);

/* recovery.c */
void vb_recovery_check(const struct vb_qp *qp);
void vb_recovery_reset(struct vb_qp *qp, vb_time now);
void vb_recovery_go_back(struct vb_qp *qp);
void vb_recovery_on_sent(struct vb_qp *qp, uint32_t psn, bool is_new, vb_time now);
/* psn and what is before it is acknowledged, which congestion control is told, with the round trip if that was measured.
 * may_answer_probe: what said so can be the answer to a probe. */
void vb_recovery_on_progress(
	struct vb_qp *qp, uint32_t psn, struct vb_cc_signal *acked, bool may_answer_probe, vb_time now);
/* An answer to something old: the peer is there and works off our duplicates. */
void vb_recovery_on_ghost(struct vb_qp *qp, vb_time now);
/* A NAK, or what amounts to one, for una_psn: resend, unless that was done already. */
void vb_recovery_on_gap(struct vb_qp *qp, vb_time now);
void vb_recovery_on_rnr(struct vb_qp *qp, uint8_t timer_code, vb_time now);
void vb_recovery_on_timer(struct vb_qp *qp, vb_time now);
void vb_recovery_arm(struct vb_qp *qp);
bool vb_requester_is_busy(const struct vb_qp *qp); /* something is unacknowledged */

/* responder.c */
void vb_responder_reset(struct vb_qp *qp);
void vb_responder_receive(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);
void vb_responder_establish(struct vb_qp *qp); /* in RTR: the peer's first packet is there */
/* Payload against the packet's place in its message. */
bool vb_payload_is_right(const struct vb_qp *qp, const struct vb_packet *packet);
void vb_responder_receive_xrc(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);
/* In ERR: true when packet was a request that this QP had refused, and is refused again. */
bool vb_responder_refuse_again(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);
/* responses.c: what the responder sends */
void vb_responses_check(const struct vb_qp *qp);
void vb_responder_ack(struct vb_qp *qp, uint8_t syndrome, uint32_t psn, bool urgent, vb_time now);
void vb_responder_refuse(struct vb_qp *qp, uint8_t nak, uint32_t psn, vb_time now);
uint8_t vb_responder_ack_syndrome(const struct vb_qp *qp);
uint32_t vb_credits_of_code(uint8_t code); /* receives that an ACK's credit code promises; code < 31 */
void vb_responder_drop_resources(struct vb_qp *qp);
bool vb_responder_emit(struct vb_qp *qp, struct vb_batch *batch, vb_time now);
bool vb_responder_emit_ack(struct vb_qp *qp, struct vb_batch *batch);
bool vb_responder_emit_cnp(struct vb_qp *qp, struct vb_batch *batch, vb_time now);
/* The memory of a READ response turned out not to be there: remote operational error. */
void vb_responder_fault(struct vb_qp *qp, uint32_t psn, vb_time now);
bool vb_responder_has_room(const struct vb_qp *qp);
/* A request was executed that takes a response: it is sent, and remembered. before: what an atomic found. */
void vb_responder_answer(struct vb_qp *qp, const struct vb_packet *packet, uint32_t psn_count, uint64_t before);
void vb_responder_duplicate(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);

/* handed_out.c */
/* What qp has at the port concerns it no more: receipts of it say nothing but that its bytes are free. */
void vb_handed_out_disown(struct vb_qp *qp);
void vb_handed_out_add(struct vb_lane *lane, struct vb_batch *batch);
/* The newest packet of the batch has a READ response's bytes, not a request's. */
void vb_handed_out_is_response(struct vb_batch *batch);
/* qp is gone but for the bytes that are at the port; they go when they have come back. */
void vb_qp_leave(struct vb_qp *qp);
void vb_qp_free(struct vb_qp *qp); /* qp.c */

/* uc.c */
void vb_uc_receive(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);
/* ud.c */
void vb_ud_receive(struct vb_qp *qp, const struct vb_path *path, const struct vb_packet *packet);
/* Also from mcast.c: whatever address it came to. */
void vb_ud_deliver(struct vb_qp *qp, const struct vb_path *path, const struct vb_packet *packet);
bool vb_ud_emit(struct vb_qp *qp, struct vb_batch *batch, vb_time now);

/* mcast.c */
void vb_mcast_receive(struct vb_lane *lane, const struct vb_path *path, const struct vb_packet *packet);
struct vb_mcast_attachment {
	struct vb_list lane_link, qp_link;
	struct vb_gid gid;
	struct vb_qp *qp;
};

/* raw.c: a frame for qp came. */
void vb_raw_receive(struct vb_qp *qp, const uint8_t *frame, uint32_t length);

/* echo.c */
/* UD: the next packet goes there. */
void vb_echo_turn_to(struct vb_qp *qp, const struct vb_gid *gid, uint32_t qpn);
/* UC and UD: may a packet that costs so much go to the peer now? If not, the QP waits for an echo, or for others'
 * echoes. */
bool vb_echo_allows(struct vb_qp *qp, uint32_t cost, vb_time now);
void vb_echo_on_sent(struct vb_qp *qp, const struct vb_outgoing *out, uint32_t cost);
void vb_echo_emit_request(struct vb_qp *qp, struct vb_batch *batch);
void vb_echo_on_timer(struct vb_qp *qp, vb_time now);
void vb_echo_give_up(struct vb_qp *qp); /* nothing of what was sent counts any more */
void vb_echo_receive(struct vb_qp *qp, const struct vb_path *path, const struct vb_packet *packet);
bool vb_echo_emit_reply(struct vb_lane *lane, struct vb_batch *batch);
void vb_echo_forget(struct vb_qp *qp); /* the QP goes: nothing of it stays in the ring */

/* send_queue.c: as vb_sq_put, for the engine's own requests. Between vb_sq_begin and vb_sq_end */
int vb_sq_stage(struct vb_qp *qp, const struct vb_send_wr *wr);

/* tags.c */
struct vb_tags;
void vb_tags_check(struct vb_tags *tags);
struct vb_tags *vb_tags_create(uint32_t capacity); /* free() it */
enum vb_tag_outcome {
	VB_TAG_GOES_ON,    /* target.recv and .tagged are set */
	VB_TAG_DONE,       /* the whole message has been dealt with */
	VB_TAG_NOT_READY,  /* no receive, or no room to fetch: nothing has changed */
	VB_TAG_BAD_BUFFER, /* the entry's, now target.recv, is no memory */
};
/* The first packet of a message to an SRQ with tags. */
enum vb_tag_outcome vb_tags_open(struct vb_qp *qp, const struct vb_packet *packet);
void vb_tags_complete(struct vb_qp *qp, const struct vb_packet *last);
void vb_tags_fetched(struct vb_qp *qp, struct vb_wc *wc); /* a work request of its QP's send queue */

static inline bool vb_has_tags(const struct vb_qp *qp)
{
	return qp->srq && qp->srq->tags;
}

/* scatter.c: copies payload to [offset ..) of what the SGEs name. False: one of them does not allow it. */
bool vb_scatter(const struct vb_pd *pd, const struct vb_sge *sges, uint32_t count, uint32_t offset,
	const uint8_t *payload, uint32_t length, bool ends_message);

#endif
