/* A queue pair, as far as it is the same whatever carries its requests, and how it fails. roce/roce.h and local/local.h
 * have the parts of the transports. */
#ifndef VB_CORE_QP_H
#define VB_CORE_QP_H

#include <stdatomic.h>
#include "base/list.h"
#include "base/timers.h"
#include "core/execute.h"
#include "core/memory.h"
#include "core/objects.h"
#include "core/queues.h"
#include "core/requests.h"
#include "core/send_queue.h"
#include "core/transport.h"

struct vb_peer;
struct vb_spread_table;
struct vb_kept;
struct vb_local_peer;
struct vb_local;

#define VB_CACHE_LINE 64

/* How much of the peer's requests was executed. */
struct vb_responder {
	uint32_t expected_psn, msn;
	bool nak_sent : 1;      /* a NAK for expected_psn is out; no further one until it arrives */
	bool uc_discarding : 1; /* UC: the message lost a packet */
	bool comm_established : 1;
};

struct vb_qp {
	/* Two lines that each packet of it looks at, whichever way it goes. */
	_Alignas(VB_CACHE_LINE) struct vb_lane *lane;
	struct vb_pd *pd;
	struct vb_peer *peer;
	struct vb_list ready_link;
	uint64_t cookie;  /* what its packets' completions have in common: handed_out.c */
	atomic_int state; /* enum vb_qp_state */
	uint32_t qpn;
	uint16_t mtu;
	uint16_t large_mtu; /* of messages that begin now; 0: the same (roce/large.h) */
	uint16_t flow;
	enum vb_qp_type type : 8;
	uint8_t service; /* of its packets' opcodes: enum vb_service */

	struct vb_responder responder;
	bool signal_all;                  /* not beside bits that change: who posts reads it without the lane's lock */
	bool is_reliable;                 /* RC and XRC: acknowledged, and sent again */
	bool is_failing : 1;              /* in the lane's list: the rest is done at the end of the turn */
	bool fails_oldest : 1;            /* its oldest work request completes with failing_status then */
	uint8_t failing_status;           /* enum vb_wc_status; SUCCESS: it fails for a completion that was lost */
	const struct vb_transport *way;   /* of its requests */
	struct vb_local_peer *local_peer; /* where its requests go as descriptors; NULL: as packets */
	const struct vb_transport *transport;
	struct vb_cq *send_cq;
	void *user;
	struct vb_work_count **counts; /* one a kind of work, or NULL; itself NULL unless something is counted */

	/* Its parts: what packets look at comes first in each, and in the order in which they do. */
	_Alignas(VB_CACHE_LINE) struct vb_send_queue sq;
	_Atomic(struct vb_qp *) doorbell_next;
	atomic_bool doorbell_rung;
	_Alignas(VB_CACHE_LINE) struct vb_known_key known_lkey; /* of requests that are sent, and answered */
	struct vb_local *local;                                 /* its part of local/ */
	_Alignas(VB_CACHE_LINE) struct vb_requester requester;
	struct vb_timer timer;
	struct vb_list wait_link,
		*waits_in; /* the list of those that wait for something that the link is, or was last, in */
	_Alignas(VB_CACHE_LINE) struct vb_qp_attr attr;
	struct vb_recv_ring rq; /* without slots when there is an SRQ, and of XRC */
	_Alignas(VB_CACHE_LINE) struct vb_target target;
	_Alignas(VB_CACHE_LINE) struct vb_known_key known_rkey; /* of the peer's requests, or our receives */

	/* No packet looks at the rest. */
	struct vb_cq *recv_cq;
	struct vb_srq *srq;
	struct vb_list failing_link; /* in the lane's list */
	struct vb_list leaving_link; /* in the lane's list: destroyed, and its bytes may be at the port */
	uint32_t leaving_mark;
	struct vb_list xrcd_link;
	struct vb_notice notice;
	_Atomic(struct vb_qp *) flush_next;
	atomic_bool flush_rung;
	/* of XRC_RECV, which has no recv_cq and srq of its own, and in whose pd no key opens anything */
	struct vb_xrcd *xrcd;
	struct vb_cause cause;
	struct vb_list kept;          /* UD: bytes of requests whose regions are closed: kept.c */
	struct vb_kept *abandoned;    /* and of those that are gone themselves, while packets may be at the port */
	struct vb_list datagram_link; /* UD: in the lane's datagram_qps */
};

_Static_assert(offsetof(struct vb_qp, sq) == 2 * VB_CACHE_LINE, "two lines");

static inline enum vb_qp_state vb_state(const struct vb_qp *qp)
{
	return (enum vb_qp_state)atomic_load_explicit(&qp->state, memory_order_acquire);
}

static inline bool vb_is_failing(const struct vb_qp *qp)
{
	return qp->is_failing;
}

static inline void vb_schedule(struct vb_qp *qp)
{
	qp->way->schedule(qp);
}

/* Something is unacknowledged. */
static inline bool vb_requester_is_busy(const struct vb_qp *qp)
{
	return qp->requester.una_psn != qp->requester.max_psn;
}

/* Full packets of mtu bytes, and the rest, that length bytes take; none take one. */
static inline uint32_t vb_packets_of(uint32_t length, uint32_t mtu)
{
	return length <= mtu ? 1 : (uint32_t)(((uint64_t)length + mtu - 1) / mtu);
}

/* The most bytes that a packet of its requests carries. */
static inline uint32_t vb_largest_payload(const struct vb_qp *qp)
{
	return qp->large_mtu ? qp->large_mtu : qp->mtu;
}

/* Those that each packet of the work request but the last carries. */
static inline uint32_t vb_mtu_of(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	return wqe->is_large ? qp->large_mtu : qp->mtu;
}

static inline bool vb_has_tags(const struct vb_qp *qp)
{
	return qp->srq && qp->srq->tags;
}

/* The QP waits in that list until it is scheduled by whoever empties the list. It waits in one list at most. */
static inline void vb_wait_in(struct vb_qp *qp, struct vb_list *list)
{
	if (vb_list_linked(&qp->wait_link) && qp->waits_in == list)
		return;
	vb_list_remove(&qp->wait_link);
	vb_list_add_tail(list, &qp->wait_link);
	qp->waits_in = list;
}

/* failure.c */
void vb_qp_set_state(struct vb_qp *qp, enum vb_qp_state state); /* and counts who receives datagrams */
void vb_qp_enter_error(struct vb_qp *qp); /* ERR, whoever wants it: nothing goes on, and what waits is flushed */
/* The QP goes to ERR by itself (UC and UD, if the sender is at fault: to SQE). The cause is noted and the state changes
 * now; what waits is completed in error at the end of the turn, by vb_lane_reap. */
void vb_qp_fail(struct vb_qp *qp, enum vb_cause_kind cause, enum vb_wc_status status, vb_time now);
/* After vb_qp_fail: what was asked of whose memory. */
void vb_qp_note_access(struct vb_qp *qp, enum vb_message message, uint64_t addr, uint32_t rkey, uint32_t length);
/* A READ by the peer was allowed, and its memory is not there. */
void vb_qp_fail_read(struct vb_qp *qp, uint32_t psn, enum vb_cause_kind cause, vb_time now);
void vb_qp_flush(struct vb_qp *qp);
void vb_qp_flush_sends(struct vb_qp *qp);
const char *vb_access_text(enum vb_message message); /* NULL: a message that accesses no memory by key */

#endif
