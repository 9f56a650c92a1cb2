/* A send queue is a ring: the poster writes at tail under the lock, the lane reads from head to tail without it. Within
 * the ring the lane keeps a cursor (requester.h): WQEs before it are on the wire, the one at it is being sent, those
 * after it wait. */
#ifndef VB_CORE_SEND_QUEUE_H
#define VB_CORE_SEND_QUEUE_H

#include <stdatomic.h>
#include "base/list.h"
#include "base/lock.h"
#include "core/memory.h"
#include "core/objects.h"

struct vb_send_wqe {
	uint64_t wr_id;
	uint8_t opcode; /* enum vb_wr_opcode */
	uint8_t flags;  /* enum vb_send_flags; SIGNALED set too where the QP signals all */
	uint8_t sge_count;
	bool is_started : 1;           /* has PSNs; or, of a local operation, is done */
	bool is_large : 1;             /* cut by the QP's large MTU */
	uint32_t length;               /* of the message */
	uint32_t first_psn, psn_count; /* psn_count 0: local operation */
	uint32_t ssn;                  /* send sequence number of its first wire message, 24 bits */
	uint32_t imm_or_inv;
	union {
		uint32_t rkey;
		uint32_t sender; /* UD: its QP's number while it waits for room towards a local peer, else 0 */
	};
	union {
		uint32_t srqn;    /* XRC */
		uint32_t at_port; /* UC, UD: packets that are handed out, or wait so */
	};
	union {
		struct {
			uint64_t remote_addr;
			vb_time started_at;
		};
		struct vb_list waits; /* UD: in the local peer's datagrams, while there is a sender */
	};
	union {
		struct vb_reach whole; /* SEND and WRITE of several packets and one SGE: all of it, when it was last
					  looked up */
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
			uint64_t address;
			uint32_t removals, segment;
			uint32_t here, asked; /* bytes: that were brought; that were, or were asked for again */
			uint32_t next;        /* index of the next READ that is lent */
			bool is_again, is_missing;
		} lent; /* READ: local/read.c */
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
	union {
		struct vb_sge sges[1]; /* sge_count of them; INLINE: one, where the engine keeps the bytes (kept.c), or
					  none */
		uint8_t inline_bytes[1]; /* length of them, when flags say INLINE, and there is no entry */
	};
};

struct vb_send_queue {
	struct vb_lock lock;
	uint16_t max_sge, max_inline;
	uint8_t *slots;
	uint32_t size, stride, max_wr; /* size: power of two >= max_wr */
	uint32_t staged;               /* tail to be, between vb_sq_begin and vb_sq_end; under lock */
	atomic_uint head, tail;
	atomic_uint released; /* slots before it may be used again: their completions, or later ones, were polled */
};

static inline struct vb_send_wqe *vb_send_wqe_at(const struct vb_send_queue *sq, uint32_t index)
{
	return (struct vb_send_wqe *)(sq->slots + (size_t)(index & (sq->size - 1)) * sq->stride);
}

int vb_sq_init(struct vb_send_queue *sq, uint32_t max_wr, uint32_t max_sge, uint32_t max_inline); /* -ENOMEM */
void vb_sq_deinit(struct vb_send_queue *sq);
/* The oldest WQE is finished: its completion if it is signalled or failed, and its place is free. */
void vb_sq_retire(struct vb_qp *qp, enum vb_wc_status status);
/* All before that index are, and well. The cursor never stays behind them. */
void vb_sq_retire_to(struct vb_qp *qp, uint32_t index);

/* As vb_sq_put, for the engine's own requests. Between vb_sq_begin and vb_sq_end */
int vb_sq_stage(struct vb_qp *qp, const struct vb_send_wr *wr);
/* As vb_sq_end, by a poster who answers the doorbell itself. True: there is something new. */
bool vb_sq_publish(struct vb_qp *qp);
void vb_sq_check(const struct vb_qp *qp);

#endif
