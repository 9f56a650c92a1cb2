/* Same host, the responder: what its files are to each other. Needs the lane. */
#ifndef VB_LOCAL_RECEIVE_H
#define VB_LOCAL_RECEIVE_H

#include "core/execute.h"
#include "core/qp.h"
#include "local/parts.h"

/* A descriptor that is being executed, with all that belongs to it. */
struct vb_local_call {
	struct vb_local_peer *peer;
	struct vb_qp *qp;
	const struct vb_descriptor *descriptor;
	struct vb_local_room *room; /* for the bytes of a READ */
	uint64_t before;            /* the value that an atomic found */
	vb_time now;
	struct vb_request request;
};

static inline bool vb_local_carries_payload(const struct vb_opcode *row)
{
	return row->message == VB_MESSAGE_SEND || row->message == VB_MESSAGE_WRITE ||
	       row->message == VB_MESSAGE_ATOMIC_WRITE;
}

static inline bool vb_local_is_lendable_length(uint32_t length)
{
	return length >= VB_LOCAL_LEND_MIN && length <= VB_MAX_MESSAGE_BYTES;
}

/* request.c: is the payload where it can be? The other end may say anything. */
bool vb_local_place_is_right(const struct vb_descriptor *descriptor, const struct vb_local_heap *heap);
/* heap NULL: what of it would lie there is not looked at. */
void vb_local_fill_request(
	struct vb_request *request, const struct vb_descriptor *descriptor, const struct vb_local_heap *heap);

/* receive.c: checks and executes the oldest descriptor. */
void vb_local_take_one(struct vb_local_peer *peer, const struct vb_descriptor *descriptor,
	const struct vb_local_heap *heap, struct vb_local_room *room, vb_time now);

/* verdict.c */
struct vb_answer vb_local_answer_to(const struct vb_descriptor *descriptor, enum vb_answer_kind kind, uint8_t code);
/* The answer leaves with the next room; nothing more is executed before. */
void vb_local_say(struct vb_local_peer *peer, const struct vb_answer *answer);
void vb_local_say_absent(struct vb_local_peer *peer, const struct vb_descriptor *descriptor);
/* Of a request that was expected: the answer says the same of all before it. */
void vb_local_say_of(struct vb_local_peer *peer, struct vb_qp *qp, const struct vb_answer *answer);
/* False: there is no memory to note what the QP owes. */
bool vb_local_may_owe(const struct vb_local_peer *peer, struct vb_qp *qp);
/* It was executed: said together with others of its QP, or with the QP's next descriptor. */
void vb_local_owe(const struct vb_local_call *call);
/* Does what a verdict means for the QP and its peer. */
void vb_local_end_request(struct vb_local_call *call, enum vb_verdict verdict);
/* A READ that was executed and lent is asked for by the heap. Its answer says nothing of other requests. */
void vb_local_read_again(struct vb_local_call *call);

/* pull.c: the request was checked but for its payload. The QP is the local peer's puller until it has ended. */
void vb_local_begin_pull(struct vb_local_call *call);

#endif
