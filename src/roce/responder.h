/* The responder's state: what of a connection's requests was executed, and what is still to be said of it. */
#ifndef VB_ROCE_RESPONDER_H
#define VB_ROCE_RESPONDER_H

#include <stddef.h>
#include "roce/holder.h"

/* A READ or atomic that was executed, remembered so that a duplicate request can be answered again. */
struct vb_resource {
	bool is_used, is_atomic;
	bool is_write;     /* an ATOMIC WRITE, answered like a READ of nothing; is_atomic too */
	bool is_active;    /* responses next_psn .. end_psn - 1 are to be sent */
	bool is_repeat;    /* the present round answers a duplicate */
	bool was_answered; /* all responses have left at least once */
	uint16_t mtu;      /* by which they are cut */
	uint32_t first_psn, psn_count;
	uint32_t start_psn, next_psn, end_psn; /* of the present round of responses */
	uint32_t end_length;                   /* bytes of the message up to end_psn */
	uint32_t rkey, length;
	uint64_t va;
	uint64_t result; /* atomic: the value before */
	uint32_t msn;
	const struct vb_pd *pd;   /* whose keys the READ may use */
	const struct vb_srq *srq; /* XRC: named by the request */
};

struct vb_ack {
	vb_time deadline;
	uint32_t psn;
	uint32_t packets, bytes; /* received since the last ack left */
	uint8_t syndrome;
	bool is_wanted;
	bool is_urgent;
	bool is_marked;  /* something since the last ack carried Congestion Experienced */
	uint64_t holder; /* of what it answers */
};

/* When a CNP was sent last: by one QP, or whoever shares it. */
struct vb_cnp_clock {
	vb_time sent_at;
	bool was_sent;
};

/* Answers to the peer's requests that have not left yet. */
struct vb_responses {
	bool cnp_wanted;
	bool is_first;   /* in the lane's list of replies */
	uint8_t verdict; /* on the request at expected_psn, judged and not refused yet: responder.c; 0: none */
	uint8_t active_resources, resource_count, resource_next;
	uint8_t refusal; /* the fatal NAK that was said, and of what; 0: none */
	uint16_t full;   /* bytes of a full packet of the message that is open */
	uint32_t refusal_psn;
	struct vb_ack ack;
	struct vb_resource *resources; /* for what the peer is granted, at first use */
};

_Static_assert(sizeof(struct vb_responses) <= 64, "one line");

void vb_responses_reset(struct vb_qp *qp);
/* The request at the expected PSN, whose turn it is. */
void vb_responder_execute(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);
void vb_responder_receive(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);
void vb_responder_receive_trimmed(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);
/* Of a train whose first packet was just accepted: takes the Middles behind it that want nothing but their place, and
 * gives their number. */
size_t vb_responder_receive_middles(struct vb_qp *qp, const struct vb_packet *packets, size_t n);
/* Payload against the packet's place in its message, of which full packets carry so many bytes. */
bool vb_payload_is_right(const struct vb_packet *packet, uint32_t full);
void vb_responder_receive_xrc(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);
/* In ERR: true when packet was a request that this QP had refused, and is refused again. */
bool vb_responder_refuse_again(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);

/* responses.c: what the responder sends */
void vb_responses_check(const struct vb_qp *qp);
void vb_responder_ack(struct vb_qp *qp, uint8_t syndrome, uint32_t psn, bool urgent, vb_time now);
void vb_responder_refuse(struct vb_qp *qp, uint8_t nak, uint32_t psn, vb_time now);
uint8_t vb_responder_ack_syndrome(const struct vb_qp *qp);
uint32_t vb_credits_of_code(uint8_t code); /* receives that an ACK's credit code promises; code < 31 */
void vb_responder_drop_resources(struct vb_qp *qp);
bool vb_responder_emit(struct vb_qp *qp, struct vb_batch *batch, vb_time now);
/* At most so many Middles, right behind the First or Middle that was emitted last; gives their number. */
uint32_t vb_responder_emit_middles(struct vb_qp *qp, struct vb_batch *batch, uint32_t most);
/* The ack that is about to leave says by BECN that packets were marked. */
bool vb_responder_tells_marks(const struct vb_qp *qp);
bool vb_responder_emit_ack(struct vb_qp *qp, struct vb_batch *batch);
bool vb_responder_emit_cnp(struct vb_qp *qp, struct vb_batch *batch, vb_time now);
/* The memory of a READ response turned out not to be there: remote operational error. */
void vb_responder_fault(struct vb_qp *qp, uint32_t psn, vb_time now);
/* READ responses that the peer has missed are to leave once more. */
bool vb_responder_has_repeats(const struct vb_qp *qp);
bool vb_responder_has_room(const struct vb_qp *qp);
/* A request was executed that takes a response: it is sent, and remembered. before: what an atomic found. */
void vb_responder_answer(struct vb_qp *qp, const struct vb_packet *packet, uint32_t psn_count, uint64_t before);
void vb_responder_duplicate(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);

#endif
