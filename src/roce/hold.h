/* Packets that came before their turn, kept until it comes: of the peer's requests those beyond the expected PSN, of
 * its responses those beyond the oldest unacknowledged PSN. They are copies, so that the receive buffers go on; there
 * is nothing while there is none. What is held stays until its turn, or until the QP lets all of it go: the peer has
 * been told that it need not send it again. [lane] */
#ifndef VB_ROCE_HOLD_H
#define VB_ROCE_HOLD_H

#include <stdbool.h>
#include <stdint.h>
#include "wire/packet.h"

#define VB_HOLD_PSNS 65536 /* from the expected PSN on; what is further ahead is not held */

struct vb_held {
	struct vb_packet packet; /* its payload is in bytes; phantom payload stays so */
	struct vb_held *next;    /* of its size that are spare */
	uint32_t span;           /* PSNs: of a READ request as many as its responses */
	uint32_t room;           /* bytes there are for its payload */
	uint32_t cost;           /* bytes that it takes of the limits */
	uint8_t bytes[];
};

struct vb_hold {
	struct vb_held **places; /* by PSN & mask; NULL: there is none */
	uint64_t *bits;          /* of PSNs that are here, all of a span */
	uint32_t mask;
	uint32_t count;   /* packets */
	uint32_t bytes;   /* that they cost, and the ring */
	uint32_t end_psn; /* beyond the furthest */
};

enum vb_hold_outcome {
	VB_HOLD_TAKEN,
	VB_HOLD_HAD,  /* it is here already */
	VB_HOLD_FULL, /* too far ahead, no room within the limits, no memory */
};

/* So much of the ring a PSN takes, of one that is as large as it gets for those PSNs. */
#define VB_HOLD_PSN_BYTES (2 * (sizeof(struct vb_held *) + 1))

/* Of payloads: up to 1024, 1408 (what a large packet has on Ethernet without jumbo frames), 2048, 4096 and VB_LARGE_MTU
 * bytes; small ones have their own room. */
#define VB_HOLD_SIZES       5
#define VB_HOLD_SPARE_BYTES (4u << 20)

/* Shared by all stores of a lane. Copies whose turn has come are kept for the next loss, for to have the system give
 * and take as much memory for each takes longer than to copy: as many as were used since all stores were empty, for on
 * a long way they never are while it loses packets. */
struct vb_hold_pool {
	uint32_t of_qp;   /* bytes that a store may take */
	uint64_t of_lane; /* bytes that all may take together */
	uint64_t used;    /* bytes that they take */
	uint64_t most;    /* of used, since that was 0 */
	struct vb_held *spare[VB_HOLD_SIZES];
	uint64_t spare_bytes; /* none of used; with that most at most, or VB_HOLD_SPARE_BYTES if that is more */
};

uint32_t vb_hold_room(uint32_t length); /* bytes that are kept for so long a payload */
/* first: the PSN whose turn it is; packet->psn lies beyond it. */
enum vb_hold_outcome vb_hold_put(
	struct vb_hold *hold, uint32_t first, const struct vb_packet *packet, uint32_t span, struct vb_hold_pool *pool);
const struct vb_held *vb_hold_at(const struct vb_hold *hold, uint32_t psn); /* that begins there; or NULL */
/* Turns from .. to - 1 have passed. */
void vb_hold_pass(struct vb_hold *hold, uint32_t from, uint32_t to, struct vb_hold_pool *pool);
void vb_hold_clear(struct vb_hold *hold, struct vb_hold_pool *pool);
/* Which of VB_BITMAP_PSNS PSNs from psn on are here; none that comes before first, whose turn it is. */
void vb_hold_bitmap(const struct vb_hold *hold, uint32_t first, uint32_t psn, uint64_t *bits);
void vb_hold_check(const struct vb_hold *hold, uint32_t first);
void vb_hold_pool_deinit(struct vb_hold_pool *pool); /* of which nothing is used */

#endif
