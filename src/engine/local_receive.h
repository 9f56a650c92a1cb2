/* Same host, the responder: what local_receive.c, which takes requests, and local_pull.c, which pulls what they lend,
 * are to each other. Of the lane, and with it to oneself. */
#ifndef VB_ENGINE_LOCAL_RECEIVE_H
#define VB_ENGINE_LOCAL_RECEIVE_H

#include "engine/execute.h"
#include "engine/local.h"

/* local_receive.c */
/* A descriptor as if nothing else waited: its checks, and what becomes of it. */
void vb_local_take_one(struct vb_neighbour *neighbour, const struct vb_descriptor *request,
	const struct vb_local_heap *heap, struct vb_local_room *room, vb_time now);
/* heap NULL: what of it would lie there is not looked at. */
void vb_local_to_packet(
	struct vb_packet *packet, const struct vb_descriptor *request, const struct vb_local_heap *heap);
/* What a verdict means for the QP and who asked. before: of an atomic; room: of a READ. */
void vb_local_end_request(struct vb_neighbour *neighbour, struct vb_qp *qp, const struct vb_descriptor *request,
	const struct vb_packet *packet, enum vb_verdict verdict, struct vb_local_room *room, uint64_t before,
	vb_time now);
struct vb_answer vb_local_answer_to(const struct vb_descriptor *request, enum vb_answer_kind kind, uint8_t code);
/* Of a request that was expected: what it says, it says of all before too. */
void vb_local_say_of(struct vb_neighbour *neighbour, struct vb_qp *qp, const struct vb_answer *answer);

/* local_pull.c */
/* The request, as packet, was checked but for its payload. Until it has ended it is the neighbour's puller's. */
void vb_local_begin_pull(struct vb_neighbour *neighbour, struct vb_qp *qp, const struct vb_descriptor *request,
	const struct vb_packet *packet, struct vb_local_room *room, vb_time now);

#endif
