/* Same host: what the files of this room are to each other. All of it needs the lane. */
#ifndef VB_LOCAL_PARTS_H
#define VB_LOCAL_PARTS_H

#include "core/qp.h"
#include "local/local.h"

/* It has a descriptor to send. */
static inline void vb_local_schedule(struct vb_qp *qp)
{
	if (!vb_list_linked(&qp->local->link))
		vb_list_add_tail(&qp->local_peer->ready, &qp->local->link);
}

/* send.c: row of struct vb_transport. */
void vb_local_cut(struct vb_qp *qp, struct vb_send_wqe *wqe);

/* answers.c */
void vb_local_acked(struct vb_qp *qp, uint32_t psn, vb_time now);
/* READs were pulled, or parts of one are here: what was kept behind them is done, and more may start. */
void vb_local_go_on(struct vb_qp *qp, vb_time now);

/* pending.c: false: there is no room */
bool vb_local_tell_pending(struct vb_local_peer *peer, struct vb_local_room *room);
/* Says all that is owed but one pending ack, which goes with its QP's descriptor. */
bool vb_local_send_acks(struct vb_local_peer *peer, struct vb_local_room *room, const struct vb_pending_ack *but);
/* The QP's next descriptor says what is owed, as an answer would. Gives the flag for it. */
uint8_t vb_local_carry_ack(struct vb_qp *qp, struct vb_descriptor *descriptor);

/* pull.c: messages that are lent. */
bool vb_local_pull_message(struct vb_local_peer *peer, struct vb_local_pull *pull, vb_time now);
bool vb_local_message_pulled(
	struct vb_local_peer *peer, enum vb_local_outcome outcome, vb_time now); /* true: the piece was taken */

/* ahead.c: the message being pulled is the first of several. */
/* next: what waits behind it. */
void vb_local_foresee(struct vb_local_peer *peer, const struct vb_descriptor *next, unsigned n);
void vb_local_pull_ahead(struct vb_local_peer *peer, struct vb_local_pull *pull); /* adds to what is pulled */

/* False: the pull has so many already, or so much. */
static inline bool vb_local_pull_has_room(const struct vb_local_pull *pull, uint32_t length, unsigned places)
{
	return pull->lent_count < VB_LOCAL_PULL_ITEMS && pull->length + length <= VB_LOCAL_PULL_MANY &&
	       pull->iov_count + places <= sizeof(pull->iov) / sizeof(pull->iov[0]);
}

static inline void vb_local_pull_add(struct vb_local_pull *pull, uint64_t address, uint32_t length, uint32_t segment)
{
	pull->lent[pull->lent_count++] = (struct vb_lent){ address, length, segment };
	pull->length += length;
}

/* Bytes of a message in one descriptor from offset on, where they are not lent. */
static inline uint32_t vb_local_part_from(const struct vb_send_wqe *wqe, uint32_t offset)
{
	return wqe->length - offset < VB_LOCAL_PART ? wqe->length - offset : VB_LOCAL_PART;
}

static inline uint32_t vb_local_part_length(const struct vb_send_wqe *wqe, uint32_t offset)
{
	return wqe->psn_count == 1 ? wqe->length - offset : vb_local_part_from(wqe, offset);
}

/* The peer has executed something. */
static inline void vb_local_renew(struct vb_qp *qp, vb_time now)
{
	vb_retry_renew(qp);
	qp->requester.backoff = 0;
	qp->requester.progress_at = qp->requester.quiet_since = now;
}

/* read.c */
bool vb_local_can_pull(const struct vb_qp *qp, const struct vb_send_wqe *wqe);
/* The READ at index, the next to be answered, is: as LENT, or IN_PARTS. */
void vb_local_lent(struct vb_qp *qp, uint32_t index, const struct vb_answer *answer);
bool vb_local_ask_again(struct vb_qp *qp, struct vb_local_room *room); /* false: there is no room */
bool vb_local_asks_again(const struct vb_qp *qp, uint32_t psn);
void vb_local_answered_again(
	struct vb_qp *qp, const struct vb_answer *answer, const struct vb_local_heap *heap, vb_time now);
bool vb_local_pull_read(struct vb_local_peer *peer, struct vb_local_pull *pull);
/* Gives the QP that has finished READs, or NULL. */
struct vb_qp *vb_local_read_pulled(struct vb_local_peer *peer, enum vb_local_outcome outcome, vb_time now);
/* Programs are not to see the answer to a message before that message's own completion. So what comes for a QP waits
 * for READs that were answered before it came: as long as they are pulled, in its FIFO; while one is asked for again,
 * at its sender's, for what is asked for is behind it in the FIFOs of both. */
bool vb_local_is_held(struct vb_local_peer *peer, const struct vb_descriptor *descriptor);
bool vb_local_would_overtake(const struct vb_qp *qp, const struct vb_descriptor *descriptor);
void vb_local_forget_reads(struct vb_qp *qp);
void vb_local_check_reads(const struct vb_qp *qp);

/* Where the bytes of a READ's answer are; NULL: there are none, only their number. */
static inline const uint8_t *vb_answer_bytes(const struct vb_answer *answer, const struct vb_local_heap *heap)
{
	if (answer->at == VB_LOCAL_NO_BYTES)
		return NULL;
	return answer->length <= sizeof(answer->bytes) ? answer->bytes : heap->bytes + answer->at;
}

static inline bool vb_answer_lies_in(const struct vb_answer *answer, const struct vb_local_heap *heap)
{
	return answer->length <= sizeof(answer->bytes) || answer->at == VB_LOCAL_NO_BYTES ||
	       (uint64_t)answer->at + answer->length <= heap->length;
}

/* ud.c */
bool vb_local_send_datagrams(struct vb_local_peer *peer, struct vb_local_room *room, vb_time now); /* false: no room */
void vb_local_receive_datagram(
	struct vb_local_peer *peer, const struct vb_descriptor *request, const struct vb_local_heap *heap);
void vb_local_drop_datagrams(struct vb_local_peer *peer, vb_time now);
void vb_local_forget_datagrams(struct vb_qp *qp); /* what of it waits for local peers is not sent any more */
void vb_local_check_datagrams(const struct vb_local_peer *peer);

static inline uint32_t vb_local_heap_left(const struct vb_local_room *room)
{
	return room->heap_bytes - room->heap_used;
}

/* The next descriptor is complete, and so are its bytes. */
static inline void vb_local_add(struct vb_local_room *room)
{
	if (room->heap_ends)
		room->heap_ends[room->descriptor_count] = room->heap_used;
	room->descriptor_count++;
}

/* The next bytes begin a cache line. */
static inline void vb_local_use_heap(struct vb_local_room *room, uint32_t length)
{
	uint32_t left = vb_local_heap_left(room), lines = (length + 63) & ~63u;
	room->heap_used += lines < left ? lines : left;
}

#endif
