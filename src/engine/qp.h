/* A queue pair: what its parts are, each of which is its own file's, and how it fails. The engine's alone. */
#ifndef VB_ENGINE_QP_H
#define VB_ENGINE_QP_H

#include <stdatomic.h>
#include "base/list.h"
#include "base/timers.h"
#include "engine/congestion.h"
#include "engine/execute.h"
#include "engine/flight.h"
#include "engine/local.h"
#include "engine/memory.h"
#include "engine/nic.h"
#include "engine/queues.h"
#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/send_queue.h"

struct vb_peer;
struct vb_spread_table;
struct vb_kept;

#define VB_CACHE_LINE 64

struct vb_qp {
	/* Two lines that each packet of it looks at, whichever way it goes. */
	_Alignas(VB_CACHE_LINE) struct vb_lane *lane;
	struct vb_pd *pd;
	struct vb_peer *peer;
	struct vb_list ready_link;
	uint64_t cookie;  /* what its packets' receipts have in common: handed_out.c */
	atomic_int state; /* enum vb_qp_state */
	uint32_t qpn;
	uint32_t mtu;
	uint16_t flow;
	enum vb_qp_type type : 8;
	uint8_t transport; /* enum vb_transport */

	bool signal_all;
	bool is_reliable : 1;    /* RC and XRC: acknowledged, and sent again */
	bool requests_first : 1; /* in its next turn: responses and requests take turns at being first */
	uint16_t overhead;       /* what a packet costs a window beside its payload */
	uint32_t ask_every;      /* bytes of a message, as windows count them: then a packet asks for an ack */
	struct vb_list ack_link;
	struct vb_list condemned_link; /* in the lane's list: it dies at the end of the turn */
	struct vb_cq *send_cq;
	void *user;
	struct vb_work_count **counts; /* one a kind of work, or NULL; itself NULL unless something is counted */

	/* Its parts: what packets look at comes first in each, and in the order in which they do. */
	_Alignas(VB_CACHE_LINE) struct vb_send_queue sq;
	_Atomic(struct vb_qp *) doorbell_next;
	atomic_bool doorbell_rung;
	_Alignas(VB_CACHE_LINE) struct vb_known_key known_lkey; /* of requests that are sent, and answered */
	_Alignas(VB_CACHE_LINE) struct vb_requester requester;
	_Alignas(VB_CACHE_LINE) struct vb_responder responder;
	_Alignas(VB_CACHE_LINE) struct vb_flight flight; /* what lies between una_psn and next_psn */
	struct vb_congestion congestion;
	struct vb_timer timer;
	_Alignas(VB_CACHE_LINE) struct vb_qp_attr attr;
	struct vb_recv_ring rq; /* without slots when there is an SRQ, and of XRC */
	_Alignas(VB_CACHE_LINE) struct vb_target target;
	_Alignas(VB_CACHE_LINE) struct vb_known_key known_rkey; /* of the peer's requests, or our receives */

	/* What no packet looks at. */
	struct vb_cq *recv_cq;
	struct vb_srq *srq;
	struct vb_local local;       /* descriptors instead of packets */
	struct vb_list leaving_link; /* in the lane's list: destroyed, and its bytes may be at the port */
	uint32_t leaving_mark;
	struct vb_cnp_clock cnp_clock;
	struct vb_peer *destination; /* its address, where CNPs are counted by that */
	struct vb_list xrcd_link;
	struct vb_notice notice;
	struct vb_list mcast;           /* of struct vb_mcast_attachment */
	struct vb_spread_table *spread; /* of a raw QP that has no receives of its own: steering.c */
	uint64_t last_frame;            /* of the lane's, that the QP was given */
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

static inline bool vb_is_condemned(const struct vb_qp *qp)
{
	return vb_list_linked(&qp->condemned_link);
}

/* Packets that a message of length bytes takes; an empty one takes one. */
static inline uint32_t vb_psn_count(const struct vb_qp *qp, uint32_t length)
{
	return length <= qp->mtu ? 1 : (uint32_t)(((uint64_t)length + qp->mtu - 1) / qp->mtu);
}

/* Bytes of the packets before that one of a message. */
static inline uint32_t vb_offset_of(const struct vb_qp *qp, uint32_t index)
{
	return index * qp->mtu;
}

static inline bool vb_has_tags(const struct vb_qp *qp)
{
	return qp->srq && qp->srq->tags;
}

/* As it was made, but for its number. */
void vb_qp_clear(struct vb_qp *qp);
void vb_qp_free(struct vb_qp *qp); /* its memory; nothing of it is at the port any more */

/* qp_failure.c */
void vb_qp_set_state(struct vb_qp *qp, enum vb_qp_state state); /* and counts who receives datagrams */
void vb_qp_enter_error(struct vb_qp *qp); /* ERR, whoever wants it: nothing goes on, and what waits is flushed */
/* The QP goes to ERR (RC, XRC, responder side of UC) by itself: cause noted, everything flushed. */
void vb_qp_fail(struct vb_qp *qp, enum vb_cause_kind cause, enum vb_wc_status status, vb_time now);
/* After vb_qp_fail: what was asked of whose memory. */
void vb_qp_note_access(struct vb_qp *qp, enum vb_message message, uint64_t addr, uint32_t rkey, uint32_t length);
/* A completion of the QP was lost. It dies at the end of the turn, not under whoever completes. */
void vb_qp_condemn(struct vb_qp *qp);
void vb_qp_flush(struct vb_qp *qp);
void vb_qp_flush_sends(struct vb_qp *qp);
const char *vb_access_text(enum vb_message message); /* NULL: a message that accesses no memory by key */

#endif
