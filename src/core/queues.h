/* Queues that several lanes may share: completion queues and shared receive queues, each with its own short lock. */
#ifndef VB_CORE_QUEUES_H
#define VB_CORE_QUEUES_H

#include <stdatomic.h>
#include "base/list.h"
#include "base/lock.h"
#include "core/objects.h"

/* Something the holder is to be told about an object. Raised in a lane, pulled by vb_lane_next_event: while pending is
 * not 0 the node hangs in the list of exactly one lane. */
enum vb_notice_of { VB_NOTICE_OF_QP, VB_NOTICE_OF_CQ, VB_NOTICE_OF_SRQ };

struct vb_notice {
	struct vb_list link;
	atomic_ullong pending; /* bit n: enum vb_event_kind n */
	enum vb_notice_of of;
};

struct vb_cq {
	struct vb_nic *nic;
	struct vb_lock lock;
	struct vb_wc *ring; /* size slots, a power of two */
	uint32_t size, capacity;
	atomic_uint head, tail; /* free running; tail is written under the lock */
	enum { VB_CQ_QUIET, VB_CQ_NEXT, VB_CQ_SOLICITED } armed;
	atomic_bool is_polled;  /* since it notified: of what is there now nobody was told */
	uint32_t last_waking;   /* index of the last completion that was solicited, or failed */
	atomic_bool is_overrun; /* written under the lock */
	bool ignore_overrun;
	atomic_uint users; /* send and receive sides of QPs */
	void *user;
	struct vb_notice notice;
};

enum vb_cq_outcome { VB_CQ_STORED, VB_CQ_NOTIFY, VB_CQ_OVERRUN, VB_CQ_LOST };
/* Adds a completion. NOTIFY: it was armed for this one and is quiet now; OVERRUN: it was full, the completion is lost,
 * and from now on all others are: told once, afterwards LOST. solicited: ask for solicited-only arming. */
enum vb_cq_outcome vb_cq_push(struct vb_cq *cq, const struct vb_wc *wc, bool solicited);
/* The same in two steps, for who holds the lock: the place of the next completion, which is written before the lock is
 * released, several under one taking. wakes: it is solicited, or failed. NULL: it is lost. */
struct vb_wc *vb_cq_claim(struct vb_cq *cq, bool wakes, enum vb_cq_outcome *outcome);

void vb_cq_check(const struct vb_cq *cq);

/* Takes the completions of a QP out again: it is reset or gone. */
void vb_cq_forget_qp(struct vb_cq *cq, uint32_t qpn);

/* A receive work request as a queue holds it. */
struct vb_recv_wqe {
	uint64_t wr_id;
	uint32_t length; /* of all SGEs */
	uint32_t sge_count;
	struct vb_sge sges[];
};

/* A ring of receive work requests: a QP's own or an SRQ's. Posting under the lock; taking by one lane (QP) or under the
 * lock (SRQ). */
struct vb_recv_ring {
	struct vb_lock lock;
	uint8_t *slots;
	uint32_t size, stride, max_wr, max_sge; /* size: power of two >= max_wr */
	atomic_uint head, tail;
};

int vb_recv_ring_init(struct vb_recv_ring *ring, uint32_t max_wr, uint32_t max_sge);
void vb_recv_ring_deinit(struct vb_recv_ring *ring);
/* -ENOMEM full, -EINVAL too many SGEs or a total beyond 2^31. Takes the lock. */
int vb_recv_ring_post(struct vb_recv_ring *ring, const struct vb_recv_wr *wr);
uint32_t vb_recv_ring_count(const struct vb_recv_ring *ring);
/* The oldest, left in the ring; NULL when empty. Single consumer. */
const struct vb_recv_wqe *vb_recv_ring_peek(const struct vb_recv_ring *ring);
void vb_recv_ring_pop(struct vb_recv_ring *ring);
void vb_recv_ring_check(const struct vb_recv_ring *ring);
static inline size_t vb_recv_wqe_bytes(uint32_t max_sge)
{
	return sizeof(struct vb_recv_wqe) + max_sge * sizeof(struct vb_sge);
}

struct vb_srq {
	struct vb_pd *pd;
	struct vb_xrcd *xrcd; /* of an XRC SRQ, as the two below */
	struct vb_cq *cq;     /* also of one with tags */
	struct vb_tags *tags; /* or NULL */
	uint32_t number;      /* 0: not an XRC SRQ */
	struct vb_recv_ring ring;
	uint32_t limit; /* 0: disarmed; under ring.lock */
	atomic_uint users;
	void *user;
	struct vb_notice notice;
};

/* Copies the oldest request out (room for the SRQ's max_sge). False when empty. *limit_reached: the number left fell
 * below the armed limit, which is disarmed now. */
bool vb_srq_take(struct vb_srq *srq, struct vb_recv_wqe *wqe, bool *limit_reached);
void vb_srq_check(const struct vb_srq *srq);

#endif
