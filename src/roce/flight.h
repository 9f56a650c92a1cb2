/* How much may be under way, and who goes on when there is room again.
 *
 * Before a QP sends it asks vb_flight_allows; what has left, came back or is lost it says with _add, _remove and
 * _clear. Three things bound it:
 *
 *   its window         its own, by congestion control (congestion.h), or of the echo (echo.c). Its own acknowledgements
 *                      wake it.
 *   the peer's         allowance: what all QPs of a lane together may have under way to one slot of a peer address, for
 *                      each has one receive buffer.
 *   the lane's         allowance for READs: what may be under way towards our own receive buffer.
 *
 * Who finds an allowance used up waits in its list. As bytes come back the first gets its turn; it alone takes of the
 * allowance until its turn at the scheduler ends, and then hands on. An allowance or window of which nothing is used
 * lets anything through, whatever its size: else a small one would stop all traffic. */
#ifndef VB_ROCE_FLIGHT_H
#define VB_ROCE_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"
#include "base/time.h"

struct vb_peer;
struct vb_qp;

/* The cost of a packet beside its bytes, where the lane does not say otherwise: a socket buffer charges for each
 * datagram. */
#define VB_PACKET_OVERHEAD 256
/* A READ is asked for in pieces of so many bytes, each a READ request of its own, so that its responses can be
 * held to a window: vb_flight_read_piece. */
#define VB_READ_PIECE_MIN 65536
#define VB_READ_PIECE_MAX 1048576
#define VB_MAX_WINDOW     (2 * (VB_READ_PIECE_MAX + VB_READ_PIECE_MAX / 4)) /* two pieces, also of an MTU of 1024 */
#define VB_ECHO_WINDOW    131072

/* A way is long if it takes so many times that: there most of a window is on its way, and packets leave evenly, so that
 * the receive buffer sees little of it at a time. */
#define VB_LONG_WAY       (4 * VB_MS)
#define VB_LONG_WAYS_MOST 32

/* So many times as much may be under way as on a short one. 0: it is not known how long it is. */
static inline uint32_t vb_flight_ways(vb_time least_rtt)
{
	vb_time ways = least_rtt / VB_LONG_WAY;
	return ways < 1 ? 1 : ways < VB_LONG_WAYS_MOST ? (uint32_t)ways : VB_LONG_WAYS_MOST;
}

struct vb_allowance {
	uint64_t limit, used; /* bytes */
	struct vb_qp *turn;   /* was woken, is scheduled, and goes first; NULL: nobody */
	bool is_turn_used;
	struct vb_list waiting; /* QPs, by their wait_link */
};

/* A QP's part. */
struct vb_flight {
	uint32_t out, in; /* bytes under way: of requests; of READ responses asked for */
	bool is_silent;   /* nobody answers it: what it asked for may never come, and others need not wait for it */
};

void vb_allowance_init(struct vb_allowance *allowance, uint64_t limit);
void vb_allowance_set_limit(struct vb_allowance *allowance, uint64_t limit);
void vb_allowance_check(const struct vb_allowance *allowance);

/* Nothing of it counts any more, and it waits for nothing. */
void vb_flight_stop(struct vb_qp *qp);

/* May so much more be under way? If not, the QP is scheduled when that may have changed. */
bool vb_flight_allows(struct vb_qp *qp, uint32_t out, uint32_t in);
/* Would that fill the windows? A hint, to ask for an acknowledgement in time. */
bool vb_flight_nears_end(const struct vb_qp *qp, uint32_t out);
/* All windows are at least so large, and of one that is shared this QP's part. */
bool vb_flight_is_ample(const struct vb_qp *qp, uint32_t bytes);
/* For who was allowed in this turn: how many packets of so much each may go on. */
uint64_t vb_flight_room(const struct vb_qp *qp, uint32_t out);
void vb_flight_add(struct vb_qp *qp, uint32_t out, uint32_t in);
void vb_flight_remove(struct vb_qp *qp, uint32_t out, uint32_t in);
void vb_flight_clear(struct vb_qp *qp); /* all that is under way is lost, or sent again */
/* The QP's turn at the scheduler is over. */
void vb_flight_end_turn(struct vb_qp *qp);

/* From now on it goes to another peer, or to nobody who bounds it (NULL); what is under way counts there. */
void vb_flight_turn_to(struct vb_qp *qp, struct vb_peer *peer);
void vb_flight_fall_silent(struct vb_qp *qp);
void vb_flight_be_heard(struct vb_qp *qp);
/* Packets of a READ, of mtu bytes, that are to be asked for at a time. */
uint32_t vb_flight_read_piece(const struct vb_qp *qp, uint32_t mtu);

void vb_flight_check(const struct vb_qp *qp);

#endif
