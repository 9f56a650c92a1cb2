/* TCP by segments, each of the size of a largest one but a flow's last: what a sender, a receiver and a congestion
 * control of it are; tcp_ends.c puts them into endpoints. None of it knows of packets or networks.
 *
 *   RFC 5681  slow start, congestion avoidance, delayed acks      RFC 6298  retransmission timer
 *   RFC 6675  recovery by selective acks (RFC 2018), limited      RFC 6928  the first window
 *             transmit among it                                   RFC 9438  CUBIC        RFC 8257  DCTCP
 *
 * and of RFC 8985 tail loss probes, and that a retransmission is lost where what left after it arrived: by the order of
 * transmissions, not by time. Left out: handshakes, for connections are there as QPs are; reneging; HyStart, F-RTO,
 * pacing; a window of the receiver's. */
#ifndef FABRIC_TCP_H
#define FABRIC_TCP_H

#include "fabric/fabric.h"

/* ---- Congestion control: tcp_congestion.c ------------------------------------------------------------------------ */

/* Windows are segments in fixed point. */
#define TCP_POINT       20
#define TCP_ONE         ((uint64_t)1 << TCP_POINT)
#define TCP_MOST_WINDOW (TCP_ONE << 24)

struct tcp_control {
	uint64_t window, threshold; /* of slow start */
	uint64_t largest;
	/* CUBIC, by the names of RFC 9438. */
	uint64_t w_max, w_est, cwnd_prior;
	vb_time epoch; /* when congestion avoidance began */
	int64_t k;     /* microseconds */
	bool is_in_epoch;
	/* DCTCP. */
	uint32_t alpha;         /* of TCP_ONE */
	uint64_t acked, marked; /* segments, of the window that ends before this one */
	uint64_t window_end, cut_end;
};

struct tcp_acked {
	uint64_t segments;  /* newly */
	uint64_t una, next; /* all before una are acknowledged, next is the first that was never sent */
	bool is_echo;       /* the receiver tells of marks */
	bool may_grow;      /* something is new, no recovery goes on, and the window was used */
	bool may_cut;       /* none is about to be for a loss */
	vb_time now, rtt;   /* smoothed */
};

struct tcp_control_kind {
	const char *name;
	bool takes_marks;
	void (*on_ack)(struct tcp_control *control, const struct tcp_acked *acked);
	/* flight: segments that were under way, no more than the window. */
	void (*on_loss)(struct tcp_control *control, uint64_t flight);    /* once a recovery */
	void (*on_timeout)(struct tcp_control *control, uint64_t flight); /* once for the same segment */
};

extern const struct tcp_control_kind tcp_controls[]; /* by enum fabric_tcp_control */

void tcp_control_init(struct tcp_control *control, uint64_t first_window, uint64_t largest_window);

/* ---- Sending: tcp_sender.c --------------------------------------------------------------------------------------- */

enum { TCP_BLOCKS = FABRIC_TCP_BLOCKS };

struct tcp_ack {
	uint64_t there; /* all before it are */
	struct tcp_block {
		uint64_t first, end;
	} blocks[TCP_BLOCKS];
	uint8_t block_count;
	bool is_echo;
};

enum tcp_state {
	TCP_OPEN,
	TCP_RECOVERY, /* by acks, until `recover` is acknowledged */
	TCP_LOSS,     /* after a timeout, as long */
};

struct tcp_times {
	vb_time rtt; /* as a handshake would have measured it */
	vb_time rto_min;
	vb_time probe;     /* a tail loss probe leaves after so long, or two round trips; 0: there are none */
	vb_time ack_delay; /* and so much later, where one segment alone is under way */
};

struct tcp_sender {
	struct tcp_control control;
	uint64_t count;     /* segments; 0: not open */
	uint64_t una, next; /* as in tcp_acked */
	uint64_t recover;
	uint64_t limited_end; /* before it, what could be sent was bounded by the window */
	/* What lies between una and next: a ring of marks, each with the number of its last transmission. */
	uint64_t *marks;
	uint32_t room;
	uint64_t sacked_end;           /* behind the last that has been sacked */
	uint64_t lost_end;             /* all before it that are not sacked count as lost */
	uint64_t resend_at;            /* none before it is to be sent again */
	uint64_t sacked, lost, resent; /* resent: of the lost */
	uint64_t transmissions;
	uint64_t newest; /* of those that arrived */
	uint64_t oldest; /* of the resent; may be older */
	/* RFC 6298; one segment at a time is timed, and none that was sent twice. */
	uint64_t timed;
	vb_time timed_at, srtt, rttvar;
	struct tcp_times times;
	struct vb_deadline timer;
	uint32_t next_turn, next_open; /* flows of the same endpoint */
	bool has_turn, is_timed, must_resend;
	/* RFC 8985, 7: the timer is for a probe, one is to leave, one is under way. */
	bool is_probe_timer, must_probe, has_probed;
	uint64_t probe;   /* that segment */
	uint8_t state;    /* enum tcp_state */
	uint8_t timeouts; /* in a row */
};

void tcp_sender_open(struct tcp_sender *sender, uint64_t count, struct tcp_times times);
void tcp_sender_close(struct tcp_sender *sender);
bool tcp_sender_may_send(const struct tcp_sender *sender);
/* Of one that may: the segment that leaves now. -ENOMEM. */
int tcp_sender_send(struct tcp_sender *sender, vb_time now, uint64_t *segment, bool *is_resent);
void tcp_sender_take_ack(
	struct tcp_sender *sender, const struct tcp_control_kind *kind, const struct tcp_ack *ack, vb_time now);
enum tcp_time_out {
	TCP_PROBES,
	TCP_TIMED_OUT,
	TCP_GAVE_UP, /* it was too often in a row */
};

/* The timer has come up. */
enum tcp_time_out tcp_sender_time_out(struct tcp_sender *sender, const struct tcp_control_kind *kind, vb_time now);
bool tcp_sender_check(const struct tcp_sender *sender); /* what its file says that holds; for tests */
static inline bool tcp_sender_is_done(const struct tcp_sender *sender)
{
	return sender->una == sender->count;
}

/* ---- Receiving: tcp_receiver.c ----------------------------------------------------------------------------------- */

struct tcp_receiver {
	uint64_t count, there;               /* segments; all before it are there */
	uint64_t *seen;                      /* a bit a segment; NULL: none ever came before its turn */
	uint64_t end;                        /* behind the last that came */
	uint64_t recent[TCP_BLOCKS];         /* which came before their turn last, the newest first */
	vb_time delayed_at;                  /* since when acks are owed */
	uint32_t owed;                       /* segments that came in turn and are not acknowledged */
	uint32_t next_delayed, last_delayed; /* flows to the same endpoint */
	uint8_t recent_count;
	bool is_delayed; /* it is in the list of those */
	bool is_marked;  /* DCTCP.CE */
};

struct tcp_taken {
	bool is_new;
	bool is_out_of_memory;
	uint8_t ack_count; /* that are to leave now, in this order */
	struct tcp_ack acks[2];
};

/* every: segments in turn for an ack. echoes: as DCTCP's receivers do. */
struct tcp_taken tcp_receiver_take(
	struct tcp_receiver *receiver, uint64_t segment, bool is_marked, uint32_t every, bool echoes);
/* Of what is there now; nothing is owed any more. */
struct tcp_ack tcp_receiver_ack(struct tcp_receiver *receiver);

#endif
