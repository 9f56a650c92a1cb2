/* Work requests under way, whatever carries them: how each starts, fails and is finished. PSNs run alongside the send
 * queue: una_psn <= next_psn <= max_psn. Going back means next_psn = una_psn; nothing else remembers what is under
 * way. */
#ifndef VB_CORE_REQUESTS_H
#define VB_CORE_REQUESTS_H

#include <stddef.h>
#include "core/objects.h"

struct vb_send_wqe;

struct vb_requester {
	/* One line, which each packet of the peer's looks at too. */
	uint32_t cursor;        /* index of the WQE that next_psn belongs to */
	uint32_t una_psn;       /* oldest unacknowledged */
	uint32_t next_psn;      /* next to be sent */
	uint32_t max_psn;       /* beyond the newest ever sent */
	uint32_t rd_atomic_out; /* READ pieces and atomics between una_psn and next_psn that are not answered yet */
	uint32_t ssn;           /* of the newest started message */
	uint32_t credit_limit;  /* LSN: messages up to it may consume a receive */
	uint8_t pending_error;  /* enum vb_wc_status: the WQE at the cursor fails with it as soon as it is the oldest */
	uint8_t pending_cause;  /* enum vb_cause_kind */
	bool has_credits : 1;   /* the peer advertises */
	bool is_asked : 1;      /* the peer has sent a request since our newest was started */
	bool took_receive : 1;  /* the peer's newest request did: the program polls for the next one, too */
	bool is_answer : 1;     /* what is or was under way last answers a request that took no receive */
	bool was_heard : 1;     /* the peer, ever */
	bool is_rnr_waiting : 1;
	bool has_local_operations : 1; /* one came up, ever: it waits for all before it */
	/* retry.c, from here on */
	uint8_t retries_left : 4, rnr_retries_left : 4;
	uint32_t tries;         /* retries of any kind since progress */
	uint16_t largest_acked; /* wire bytes */
	uint8_t backoff; /* doublings of the interval between questions, since an answer said that it is too short */
	vb_time heard_at;
	vb_time progress_at; /* last acknowledgement of something, or when the queue became busy */
	vb_time quiet_since; /* last progress or last packet sent */
	/* Next line. */
	vb_time rnr_until;
};

_Static_assert(offsetof(struct vb_requester, rnr_until) == 64, "the peer's packets look at one line");

/* requests.c */
void vb_requester_reset(struct vb_qp *qp, vb_time now); /* from RTS on */
/* The work request at the cursor, of which something is to be sent, started if need be. NULL: nothing may be now. */
struct vb_send_wqe *vb_requester_next(struct vb_qp *qp, vb_time now);
/* Fails the WQE at the cursor once it is the oldest. */
void vb_requester_doom(struct vb_qp *qp, enum vb_wc_status status, enum vb_cause_kind cause, vb_time now);
/* The memory of a request that was sent turned out not to be there: it fails once it is the oldest. */
void vb_requester_fault(struct vb_qp *qp, uint32_t psn, enum vb_cause_kind cause, vb_time now);
/* UC, UD: the port is done with a packet, or a local peer has a datagram. */
void vb_requester_left(struct vb_qp *qp, uint32_t psn, vb_time now);
void vb_requester_wqe_left(struct vb_qp *qp, struct vb_send_wqe *wqe, vb_time now);
/* The WQE whose packets include psn, which lies between una_psn and max_psn; or NULL. */
struct vb_send_wqe *vb_requester_wqe_of(const struct vb_qp *qp, uint32_t psn);
/* UD: the WQE at the cursor has its PSN, and is handed out. */
void vb_requester_start_datagram(struct vb_qp *qp, struct vb_send_wqe *wqe);
/* After requests were acknowledged or have left: more may start, the failing one may be the oldest. */
void vb_requester_proceed(struct vb_qp *qp, vb_time now);
bool vb_requester_may_send(const struct vb_qp *qp);
/* From index on, past the local operations that are done. */
uint32_t vb_after_local_operations(const struct vb_qp *qp, uint32_t index);
/* Local operations that are done complete as soon as they are the oldest. */
void vb_retire_local_operations(struct vb_qp *qp);
/* A fatal NAK to the oldest request: one of those of INVALID_REQUEST to INVALID_RD. */
void vb_requester_refused(struct vb_qp *qp, uint8_t nak, vb_time now);
void vb_requester_check(const struct vb_qp *qp); /* of a connected QP */

#define VB_BACKOFF_MAX 3 /* doublings of an interval */

/* retry.c: when a request is sent again, as far as that is the same for all. */
void vb_retry_reset(struct vb_qp *qp, vb_time now);
void vb_retry_renew(struct vb_qp *qp);            /* the peer has executed something: all retries are left */
bool vb_retry_use(struct vb_qp *qp, vb_time now); /* true when a retry was left; else the QP fails */
/* Everything from the oldest on is to be sent again. */
void vb_retry_go_back(struct vb_qp *qp);
/* The same, and nothing is sent before that time. */
void vb_retry_wait_until(struct vb_qp *qp, vb_time time);
/* The peer has no receive for the oldest request: code is the timer's. */
void vb_retry_on_rnr(struct vb_qp *qp, uint8_t timer_code, vb_time now);
struct vb_deadline vb_retry_ack_timeout(const struct vb_qp *qp, vb_time base);
vb_time vb_retry_patience_with(const struct vb_qp *qp); /* what is known of the peer, or of any */
vb_time vb_retry_patience(const struct vb_qp *qp);      /* how long the peer's silence says nothing */
/* The timer is set for the wait after "not ready", else for other. */
void vb_retry_arm(struct vb_qp *qp, struct vb_deadline other);
void vb_retry_on_timer(struct vb_qp *qp, vb_time now);

#endif
