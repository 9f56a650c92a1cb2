/* Execution: what a request does to memory and receives here, whatever brought it. A transport judges what is its own
 * first (PSNs, the order of a message's packets, their lengths), and says afterwards what the verdict means to the
 * sender: an ack or a NAK, nothing, or an answer record. */
#ifndef VB_CORE_EXECUTE_H
#define VB_CORE_EXECUTE_H

#include <stddef.h>
#include "core/memory.h"
#include "core/queues.h"
#include "core/request.h"

/* The result of a request. */
enum vb_verdict {
	VB_EXECUTED,
	VB_NOT_READY, /* there is no receive: nothing has changed, it may come again */
	VB_BAD_SEQUENCE,
	VB_BAD_LENGTH,
	VB_NOT_PERMITTED,
	VB_TOO_MANY_READS,
	VB_BAD_RKEY,
	VB_RECV_TOO_SHORT,
	VB_BAD_RECV_SGE,
	VB_BAD_INVALIDATE,
	VB_BAD_SRQ,
};

/* The meaning of a refusal: the NAK, what an open receive completes with, else the event, and the cause. IBA vol. 1,
 * table 59 (responder error behaviour). Of EXECUTED: success and no cause. NOT_READY refuses nothing. */
struct vb_outcome {
	uint8_t nak;
	enum vb_wc_status recv_status;
	enum vb_event_kind event;
	enum vb_cause_kind cause;
};

extern const struct vb_outcome vb_outcomes[];

/* The message in progress, of an SRQ with tags. */
struct vb_tagged {
	uint8_t wc_opcode; /* TM_RECV or TM_NO_TAG */
	uint8_t wc_flags;
	uint8_t skip; /* bytes of the first packet that are not the program's */
	uint32_t priv;
	uint64_t tag;
};

/* The target of the peer's requests: memory, receives and where those complete, and the message in progress.
 * The QP's own, but of XRC_RECV those of the SRQ that a request names (xrc.c). */
struct vb_target {
	struct vb_qp *qp;
	const struct vb_pd *pd; /* whose keys open memory to the peer */
	struct vb_srq *srq;     /* NULL: the QP's own ring */
	struct vb_cq *cq;
	const struct vb_recv_wqe *recv; /* of the message in progress: in the ring, or srq_copy */
	uint64_t va;                    /* WRITE in progress */
	uint32_t rkey, write_length;
	uint32_t received; /* bytes of the message in progress */
	uint8_t open;      /* enum vb_message of it; VB_NO_MESSAGE */
	/* Behind the first line. */
	struct vb_reach whole; /* WRITE of several packets in progress: all that it goes to, as its first found it */
	struct vb_recv_wqe *srq_copy; /* room for one request taken from an SRQ */
	struct vb_tagged tagged;
};

_Static_assert(offsetof(struct vb_target, whole) == 64, "one line");

void vb_target_reset(struct vb_target *target); /* no message is in progress */
void vb_target_check(const struct vb_target *target);

/* A request of any length, if it is an Only. One that continues a message fits the message that is open. A READ is only
 * checked: the transport reads as it answers. before: the value that an atomic found. */
enum vb_verdict vb_execute(struct vb_target *target, const struct vb_request *request, uint64_t *before);

/* Is there no message in progress for one that begins one, or the one that it continues? */
bool vb_target_expects(const struct vb_target *target, const struct vb_opcode *row);

/* Where the next length bytes of the message in progress go, for a caller that puts them there itself: a request
 * without payload says then that they are there. Adds to iov, of VB_MAX_SGE entries. False: not to ordinary memory, or
 * not allowed. */
bool vb_execute_places(const struct vb_target *target, uint32_t length, struct vb_iov *iov, unsigned *count);

/* The payload of the next Middle of the WRITE in progress, if its key is as it was; else nothing has changed, and
 * vb_execute says what is wrong. */
bool vb_execute_middle(struct vb_target *target, const uint8_t *payload, uint32_t length);

/* A message of its own into the next receive: first head, if any, then payload. It lies there, in target.recv, and is
 * not completed. */
enum vb_verdict vb_execute_datagram(
	struct vb_target *target, const uint8_t *head, uint32_t head_length, const uint8_t *payload, uint32_t length);

/* The effect of a fatal verdict on a connection's request: the receive in hand completes in error, or the program
 * hears of it by an event; the QP is in ERR. */
void vb_execute_refusal(
	struct vb_target *target, const struct vb_request *request, enum vb_verdict verdict, vb_time now);

/* receive_work.c: the receive in hand completes. */
void vb_complete_recv(struct vb_target *target, struct vb_wc *wc, bool solicited);
/* The next receive request, held in recv; NULL when there is none. */
const struct vb_recv_wqe *vb_recv_take(struct vb_target *target);
void vb_recv_done(struct vb_target *target); /* recv is completed: free its place */
bool vb_recv_scatter(
	const struct vb_target *target, uint32_t offset, const uint8_t *payload, uint32_t length, bool ends_message);

#endif
