/* The newest arrivals, by which packets are missed that have not arrived: seen.c. [lane] */
#ifndef VB_ROCE_SEEN_H
#define VB_ROCE_SEEN_H

#include "core/objects.h"

/* A packet that is known to have arrived. */
struct vb_arrival {
	bool is_set;
	uint32_t psn;
	vb_time sent_at;
	vb_time took; /* from then until it was known */
};

/* By what has arrived, what has not is missed. */
struct vb_seen {
	struct vb_arrival request;  /* of those that the peer has, the one that was sent last */
	struct vb_arrival held;     /* of those that bitmaps told of */
	struct vb_arrival response; /* of responses, and of acknowledgements */
	struct vb_arrival in_turn;  /* of those that are no repeats the furthest, when the newest of them was sent */
};

/* The peer has the request. */
void vb_seen_request(struct vb_qp *qp, uint32_t psn, vb_time now);
/* A bitmap told of it. */
void vb_seen_held(struct vb_qp *qp, uint32_t psn, vb_time now);
/* The response is here, or what acknowledges the packet. */
void vb_seen_response(struct vb_qp *qp, uint32_t psn, vb_time now);
/* The newest arrival of a packet behind that of psn, by which it is missed; NULL: none. is_answered: it has responses;
 * is_response: psn is one of them, and the peer has the request. slack: so much later may it be beside that, since that
 * came by another rail. */
const struct vb_arrival *vb_seen_behind(
	const struct vb_qp *qp, uint32_t psn, bool is_answered, bool is_response, vb_time *slack);
/* Anything that was sent after it has arrived. */
bool vb_seen_any_after(const struct vb_qp *qp, uint32_t psn);

#endif
