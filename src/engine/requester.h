/* The requester's state. PSNs run alongside its send queue: una_psn <= next_psn <= max_psn. Going back means next_psn =
 * una_psn; nothing else remembers what is in flight. */
#ifndef VB_ENGINE_REQUESTER_H
#define VB_ENGINE_REQUESTER_H

#include <stddef.h>
#include "engine/nic.h"

struct vb_echo;

enum vb_probe { VB_PROBE_NONE, VB_PROBE_NEWEST, VB_PROBE_OLDEST };

struct vb_requester {
	/* First line: also what each packet of the peer's looks at. */
	uint32_t cursor;        /* index of the WQE that next_psn belongs to */
	uint32_t una_psn;       /* oldest unacknowledged */
	uint32_t next_psn;      /* next to be sent */
	uint32_t max_psn;       /* beyond the newest ever sent */
	uint32_t rd_atomic_out; /* READ pieces and atomics between una_psn and next_psn that are not answered yet */
	uint32_t since_ackreq;  /* bytes */
	uint32_t ssn;           /* of the newest started message */
	uint32_t credit_limit;  /* LSN: messages up to it may consume a receive */
	uint8_t doomed;         /* enum vb_wc_status: the WQE at the cursor fails with it as soon as it is the oldest */
	uint8_t doomed_cause;   /* enum vb_cause_kind */
	bool has_credits : 1;   /* the peer advertises */
	bool is_asked : 1;      /* the peer has sent a request since our newest was started */
	bool is_answer : 1;     /* what is or was under way last follows such a request */
	bool was_heard : 1;     /* the peer, ever */
	/* recovery.c, from here on */
	bool is_recovering : 1; /* went back from una_psn already: further NAKs for it say nothing new */
	bool is_rnr_waiting : 1;
	bool is_timing : 1;
	bool was_probed : 1;    /* since progress: the newest went already, the oldest is next */
	bool is_probe_in_doubt; /* it was answered; was that it, or what it repeated? */
	uint8_t probe;          /* enum vb_probe: to be sent now */
	uint8_t probed;         /* enum vb_probe: last one sent since progress */
	uint8_t probe_backoff;  /* doublings of the probe interval: since the last round trip that could be measured */
	uint8_t ghosts;         /* heeded since progress */
	uint8_t retries_left, rnr_retries_left;
	uint16_t largest_acked; /* wire bytes */
	uint32_t tries;         /* retries of any kind since progress */
	struct vb_echo *echo;   /* UC, UD: made when first needed */
	vb_time heard_at;

	/* Second line: what sending and acknowledgements look at too. */
	vb_time progress_at; /* last acknowledgement of something, or when the queue became busy */
	vb_time quiet_since; /* last progress or last packet sent */
	vb_time srtt;        /* 0: unknown */
	vb_time rtt_sent_at;
	vb_time rnr_until;
	vb_time patience_before; /* the answer that is in doubt */
	uint32_t doubt_end;      /* no second answer to the probe can come after one to this packet, which left later */
	uint32_t probed_psn;
	uint32_t rtt_psn; /* being timed */
};

_Static_assert(offsetof(struct vb_requester, progress_at) == 64, "the peer's packets look at one line");
_Static_assert(sizeof(struct vb_requester) == 128, "sending and acknowledgements look at two");

void vb_requester_check(const struct vb_qp *qp);
int vb_requester_reset(struct vb_qp *qp, vb_time now);                         /* -ENOMEM */
bool vb_requester_emit(struct vb_qp *qp, struct vb_batch *batch, vb_time now); /* false: nothing to send now */
/* At most so many Middles, right behind the First or Middle that was emitted last, which nothing but their place in the
 * message tells from it; gives their number, often 0. */
uint32_t vb_requester_emit_middles(struct vb_qp *qp, struct vb_batch *batch, uint32_t most, vb_time now);
/* The work request at the cursor, of which something is to be sent, started if need be. NULL: nothing may be now. */
struct vb_send_wqe *vb_requester_next(struct vb_qp *qp, vb_time now);
/* It goes on sending, most likely: what has left need not be asked about now. */
bool vb_requester_asks_later(const struct vb_qp *qp);
bool vb_requester_has_work(const struct vb_qp *qp); /* something is to be sent, if windows and the like allow it */
bool vb_requester_has_unsent(
	const struct vb_qp *qp); /* as exactly as can be said: the cursor may stay at what was sent */
/* Fails the WQE at the cursor once it is the oldest. */
void vb_requester_doom(struct vb_qp *qp, enum vb_wc_status status, enum vb_cause_kind cause, vb_time now);
/* The memory of a request packet turned out not to be there: its work request fails once it is the oldest. */
void vb_requester_fault(struct vb_qp *qp, uint32_t psn, enum vb_cause_kind cause, vb_time now);
/* UC, UD: the port is done with a packet. */
void vb_requester_left(struct vb_qp *qp, uint32_t psn, vb_time now);
void vb_requester_wqe_left(struct vb_qp *qp, struct vb_send_wqe *wqe, vb_time now); /* a packet of that one */
/* After requests were acknowledged or have left: more may start, the doomed may be the oldest, the queue be drained. */
void vb_requester_proceed(struct vb_qp *qp, vb_time now);
bool vb_requester_is_busy(const struct vb_qp *qp); /* something is unacknowledged */

/* acknowledgement.c */
void vb_requester_receive(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);
/* From index on, past the local operations that are done. */
uint32_t vb_after_local_operations(const struct vb_qp *qp, uint32_t index);
/* A fatal NAK to the oldest request: one of those of INVALID_REQUEST to INVALID_RD. */
void vb_requester_refused(struct vb_qp *qp, uint8_t nak, vb_time now);
/* Local operations that are done complete as soon as they are the oldest. */
void vb_retire_local_operations(struct vb_qp *qp);

#endif
