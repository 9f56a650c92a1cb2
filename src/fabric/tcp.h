/* TCP in segments, all of maximum size except a flow's last: a sender, a receiver and a congestion control. tcp_ends.c
 * puts them into endpoints; this code does not know packets or networks.
 *
 *   RFC 5681  slow start, congestion avoidance, delayed acks  RFC 6298  retransmission timer
 *   RFC 6675  recovery by selective acks (RFC 2018), with     RFC 6928  the first window
 *             limited transmit                                RFC 9438  CUBIC
 *   RFC 8257  DCTCP
 *
 * and from RFC 8985 tail loss probes, and that a retransmission is lost if a later transmission has arrived: by the
 * order of transmissions, not by time. Left out are handshakes (connections exist, as QPs do), reneging, HyStart,
 * F-RTO, pacing, and a window of the receiver. */
#ifndef FABRIC_TCP_H
#define FABRIC_TCP_H

#include "fabric/fabric.h"

/* ---- Congestion control: tcp_congestion.c ------------------------------------------------------------------------ */

/* Windows are segments in fixed point. */
#define TCP_POINT       20
#define TCP_ONE         ((uint64_t)1 << TCP_POINT)
#define TCP_MOST_WINDOW (TCP_ONE << 24)

struct tcp_control {
	uint64_t window, threshold; /* threshold: of slow start */
	uint64_t largest;
	/* CUBIC, with the names of RFC 9438. */
	uint64_t w_max, w_est, cwnd_prior;
	vb_time epoch; /* when congestion avoidance began */
	int64_t k;     /* in microseconds */
	bool is_in_epoch;
	/* DCTCP. */
	uint32_t alpha;         /* of TCP_ONE */
	uint64_t acked, marked; /* segments of the window that ends before cut_end */
	uint64_t window_end, cut_end;
};

struct tcp_acked {
	uint64_t segments;  /* newly acknowledged */
	uint64_t una, next; /* all before una are acknowledged; next was never sent */
	bool is_echo;       /* the receiver reports marks */
	bool may_grow;      /* something is new, no recovery is in progress, and the window was used */
	bool may_cut;       /* no cut for a loss is about to follow */
	vb_time now, rtt;   /* rtt: smoothed */
};

struct tcp_control_kind {
	const char *name;
	bool takes_marks;
	void (*on_ack)(struct tcp_control *control, const struct tcp_acked *acked);
	/* flight: segments that were under way, at most the window. */
	void (*on_loss)(struct tcp_control *control, uint64_t flight);    /* once per recovery */
	void (*on_timeout)(struct tcp_control *control, uint64_t flight); /* once for the same segment */
};

extern const struct tcp_control_kind tcp_controls[]; /* by enum fabric_tcp_control */

void tcp_control_init(struct tcp_control *control, uint64_t first_window, uint64_t largest_window);

/* ---- Sending: tcp_sender.c --------------------------------------------------------------------------------------- */

enum { TCP_BLOCKS = FABRIC_TCP_BLOCKS };

struct tcp_ack {
	uint64_t there; /* all before it have arrived */
	struct tcp_block {
		uint64_t first, end;
	} blocks[TCP_BLOCKS];
	uint8_t block_count;
	bool is_echo;
};

enum tcp_state {
	TCP_OPEN,
	TCP_RECOVERY, /* by acks, until `recover` is acknowledged */
	TCP_LOSS,     /* after a timeout, until the same */
};

struct tcp_times {
	vb_time rtt; /* as a handshake would have measured it */
	vb_time rto_min;
	vb_time probe; /* a tail loss probe is sent after so long, and after two round trips at least; 0: no probes */
	vb_time ack_delay; /* and so much later if only one segment is under way */
};

struct tcp_sender {
	struct tcp_control control;
	uint64_t count;     /* segments; 0: not open */
	uint64_t una, next; /* as in tcp_acked */
	uint64_t recover;
	uint64_t limited_end; /* the window was the bound when segments before it were sent */
	/* The segments between una and next: a ring of marks, each with the number of its last transmission. */
	uint64_t *marks;
	uint32_t room;
	uint64_t sacked_end;           /* after the last segment that was sacked */
	uint64_t lost_end;             /* all before it that are not sacked count as lost */
	uint64_t resend_at;            /* no segment before it needs to be sent again */
	uint64_t sacked, lost, resent; /* resent: of the lost ones */
	uint64_t transmissions;
	uint64_t newest; /* of the transmissions that arrived */
	uint64_t oldest; /* of the retransmissions; may be older */
	/* RFC 6298: one segment at a time is timed, and only if it was sent once. */
	uint64_t timed;
	vb_time timed_at, srtt, rttvar;
	struct tcp_times times;
	struct vb_deadline timer;
	uint32_t next_open, last_open; /* flows of the same endpoint; last_open: FLOW_NONE for the first */
	bool is_listed;                /* among these */
	uint8_t quiet_turns;           /* generations since it ended */
	bool has_turn, is_timed, must_resend;
	/* RFC 8985, 7: the timer is for a probe, a probe is to be sent, one is under way. */
	bool is_probe_timer, must_probe, has_probed;
	uint64_t probe;   /* the segment of that probe */
	uint8_t state;    /* enum tcp_state */
	uint8_t timeouts; /* in a row */
};

void tcp_sender_open(struct tcp_sender *sender, uint64_t count, struct tcp_times times);
void tcp_sender_close(struct tcp_sender *sender);
bool tcp_sender_may_send(const struct tcp_sender *sender);
/* For a sender that may send: the segment that leaves now. -ENOMEM. */
int tcp_sender_send(struct tcp_sender *sender, vb_time now, uint64_t *segment, bool *is_resent);
void tcp_sender_take_ack(
	struct tcp_sender *sender, const struct tcp_control_kind *kind, const struct tcp_ack *ack, vb_time now);
enum tcp_time_out {
	TCP_PROBES,
	TCP_TIMED_OUT,
	TCP_GAVE_UP, /* too many in a row */
};

/* The timer has expired. */
enum tcp_time_out tcp_sender_time_out(struct tcp_sender *sender, const struct tcp_control_kind *kind, vb_time now);
bool tcp_sender_check(const struct tcp_sender *sender); /* checks what the file says that holds; for tests */
static inline bool tcp_sender_is_done(const struct tcp_sender *sender)
{
	return sender->una == sender->count;
}

/* ---- Receiving: tcp_receiver.c ----------------------------------------------------------------------------------- */

struct tcp_receiver {
	uint64_t count, there;               /* segments; all before `there` have arrived */
	uint64_t *seen;                      /* a bit for each segment; NULL: none came out of order yet */
	uint64_t end;                        /* after the last that has arrived */
	uint64_t recent[TCP_BLOCKS];         /* segments that came out of order, newest first */
	vb_time delayed_at;                  /* since when an ack is delayed */
	uint32_t owed;                       /* segments that came in order and are not acknowledged */
	uint32_t next_delayed, last_delayed; /* flows to the same endpoint */
	uint8_t recent_count;
	bool is_delayed; /* it is in the list of delayed acks */
	bool is_marked;  /* DCTCP.CE */
};

struct tcp_taken {
	bool is_new;
	bool is_out_of_memory;
	uint8_t ack_count; /* to be sent now, in this order */
	struct tcp_ack acks[2];
};

/* every: segments in order per ack. echoes: as DCTCP's receivers do. */
struct tcp_taken tcp_receiver_take(
	struct tcp_receiver *receiver, uint64_t segment, bool is_marked, uint32_t every, bool echoes);
/* For all that has arrived; afterwards nothing is owed. */
struct tcp_ack tcp_receiver_ack(struct tcp_receiver *receiver);

#endif
