/* Tag matching: an SRQ whose messages begin with a tag header, and find the buffer that was posted for their tag. The
 * header is the ABI's (infiniband/tm_types.h), as network adapters with this offload speak it.
 *
 * An eager message lands behind its header in the buffer of the first entry that matches. A rendezvous request is
 * fetched by a READ of the QP, which a FIN follows; where that cannot be, its headers land in the buffer, and the
 * program takes it from there. What matches nothing is unexpected: it goes into an ordinary receive, header and all.
 *
 * Holds: the send queue of a QP with such an SRQ is for READs and FINs, and no program's; all that completes is in the
 * SRQ's CQ. An entry that was added while unexpected messages were on their way to the program, which might belong to
 * it, matches nothing until the program has said that it knows of all of them. */
#ifndef VB_CORE_TAGS_H
#define VB_CORE_TAGS_H

#include "core/objects.h"

#define VB_MAX_TAGS       1024 /* entries of an SRQ */
#define VB_TAG_HEADER     16
#define VB_TAG_REQUEST    32 /* of a rendezvous: with the address, key and length of the message */
#define VB_RENDEZVOUS_WRS 32 /* slots of a QP's send queue: two a rendezvous */

enum vb_tag_op_kind { VB_TAG_ADD, VB_TAG_DEL, VB_TAG_SYNC }; /* ibv_ops_wr_opcode */

struct vb_tag_op {
	enum vb_tag_op_kind kind;
	uint64_t wr_id;
	bool is_signaled;
	bool tells_unexpected; /* unexpected is meant */
	uint32_t unexpected;   /* messages with tags that matched none, of which the program knows; ever */
	uint32_t handle;       /* of ADD: written; of DEL: which */
	uint64_t recv_wr_id, tag, mask;
	struct vb_sge sge; /* the buffer; length 0: none */
};

/* Its completion, if signalled, is in the SRQ's CQ when this returns. -EINVAL: no SRQ with tags. -ENOMEM: its list is
 * full. [lane] */
int vb_srq_tag_op(struct vb_lane *lane, struct vb_srq *srq, struct vb_tag_op *op, vb_time now);

/* The engine's own. */

struct vb_tags;
struct vb_request;
void vb_tags_check(struct vb_tags *tags);
struct vb_tags *vb_tags_create(uint32_t capacity); /* free() it */
enum vb_tag_outcome {
	VB_TAG_GOES_ON,    /* target.recv and .tagged are set */
	VB_TAG_DONE,       /* the whole message has been dealt with */
	VB_TAG_NOT_READY,  /* no receive, or no room to fetch: nothing has changed */
	VB_TAG_BAD_BUFFER, /* the entry's, now target.recv, is no memory */
};
/* The first part of a message to an SRQ with tags. */
enum vb_tag_outcome vb_tags_open(struct vb_qp *qp, const struct vb_request *request);
void vb_tags_complete(struct vb_qp *qp, const struct vb_request *last);

#endif
