/* How much may be under way: flight.h says what bounds it.
 * Holds: an allowance's use is the sum of what its QPs have under way, and of READs that of all but the silent; who
 * waits for one is woken: somebody has the turn and is scheduled, or bytes are under way that will come back; nobody
 * waits in two lists, or while it has the turn that the list is for.
 * Not here: who the peers are (peers.c), how congestion control gets at its window (congestion.c), whose turn it is
 * when several may send (scheduler.c). */
#include "roce/roce.h"
#include "base/invariant.h"
#include "roce/echo.h"
#include "roce/peers.h"

/* ---- Allowances -------------------------------------------------------------------------------------------------- */

void vb_allowance_init(struct vb_allowance *allowance, uint64_t limit)
{
	*allowance = (struct vb_allowance){ .limit = limit };
	vb_list_init(&allowance->waiting);
}

/* The first that waits gets its turn. Until that ends nobody comes before it, though less room might be enough for
 * another: else many small ones would keep a large one waiting for ever. */
static void wake(struct vb_allowance *allowance)
{
	if (allowance->turn || (allowance->used > 0 && allowance->used >= allowance->limit))
		return;
	struct vb_list *node = vb_list_pop(&allowance->waiting);
	if (!node)
		return;
	allowance->turn = vb_container_of(node, struct vb_qp, wait_link);
	allowance->is_turn_used = false;
	vb_schedule_now(allowance->turn);
	assert(vb_list_linked(&allowance->turn->ready_link));
}

void vb_allowance_set_limit(struct vb_allowance *allowance, uint64_t limit)
{
	allowance->limit = limit;
	wake(allowance);
}

static void give_back(struct vb_allowance *allowance, uint32_t bytes)
{
	assert(allowance->used >= bytes);
	if (bytes == 0)
		return;
	allowance->used -= bytes;
	wake(allowance);
}

static void hand_on(struct vb_allowance *allowance, const struct vb_qp *qp)
{
	if (allowance->turn != qp)
		return;
	allowance->turn = NULL;
	wake(allowance);
}

static void stop_waiting(struct vb_qp *qp)
{
	vb_list_remove(&qp->wait_link);
}

/* A QP that was given the turn and finds too little room for all that it wants keeps the first place. */
static void wait_first(struct vb_qp *qp, struct vb_list *list)
{
	vb_list_remove(&qp->wait_link);
	vb_list_add_head(list, &qp->wait_link);
	qp->waits_in = list;
}

static bool may_take(struct vb_allowance *allowance, struct vb_qp *qp, uint32_t bytes)
{
	bool has_turn = allowance->turn == qp;
	bool is_next = has_turn || (!allowance->turn && vb_list_empty(&allowance->waiting));

	if (is_next && (allowance->used == 0 || allowance->used + bytes <= allowance->limit)) {
		allowance->is_turn_used |= has_turn;
		return true;
	}
	if (has_turn)
		allowance->turn = NULL;
	if (has_turn && !allowance->is_turn_used)
		wait_first(qp, &allowance->waiting);
	else
		vb_wait_in(qp, &allowance->waiting);
	return false;
}

void vb_allowance_check(const struct vb_allowance *allowance)
{
	assert(vb_list_empty(&allowance->waiting) || allowance->turn || allowance->used > 0);
	assert(!allowance->turn || vb_list_linked(&allowance->turn->ready_link));
	assert(!allowance->turn || !vb_list_linked(&allowance->turn->wait_link));
	vb_list_for_each (node, &allowance->waiting)
		assert(vb_container_of(node, struct vb_qp, wait_link)->waits_in == &allowance->waiting);
}

/* ---- A QP's flight ----------------------------------------------------------------------------------------------- */

void vb_flight_stop(struct vb_qp *qp)
{
	stop_waiting(qp);
	vb_flight_clear(qp);
	vb_roce(qp)->flight.is_silent = false;
	vb_flight_end_turn(qp);
	assert(!vb_list_linked(&qp->wait_link));
}

static uint32_t window_of(const struct vb_qp *qp)
{
	return qp->is_reliable ? vb_roce(qp)->congestion.cc.window_bytes : VB_ECHO_WINDOW;
}

bool vb_flight_allows(struct vb_qp *qp, uint32_t out, uint32_t in)
{
	const struct vb_flight *flight = &vb_roce(qp)->flight;
	uint32_t used = flight->out + flight->in;

	if (used > 0 && (used + out + in > window_of(qp) || flight->is_silent))
		return false;
	if (out && qp->peer && !may_take(&vb_roce_peer(qp->peer)->allowance, qp, out))
		return false;
	if (in && !may_take(&vb_roce_lane_of(qp)->reads, qp, in))
		return false;
	stop_waiting(qp);
	return true;
}

bool vb_flight_nears_end(const struct vb_qp *qp, uint32_t out)
{
	const struct vb_allowance *allowance = qp->peer ? &vb_roce_peer(qp->peer)->allowance : NULL;
	return vb_roce(qp)->flight.out + vb_roce(qp)->flight.in + out > window_of(qp) ||
	       (allowance && allowance->used + out > allowance->limit);
}

bool vb_flight_is_ample(const struct vb_qp *qp, uint32_t bytes)
{
	return window_of(qp) >= bytes &&
	       (!qp->peer || vb_roce_peer(qp->peer)->allowance.limit >= (uint64_t)bytes * qp->peer->users);
}

static uint64_t fitting(uint64_t limit, uint64_t used, uint32_t out)
{
	return used < limit ? (limit - used) / out : 0;
}

uint64_t vb_flight_room(const struct vb_qp *qp, uint32_t out)
{
	uint64_t room = fitting(window_of(qp), vb_roce(qp)->flight.out + vb_roce(qp)->flight.in, out);
	uint64_t shared =
		qp->peer ? fitting(vb_roce_peer(qp->peer)->allowance.limit, vb_roce_peer(qp->peer)->allowance.used, out)
			 : room;
	if (vb_roce(qp)->flight.is_silent)
		return 0;
	return shared < room ? shared : room;
}

void vb_flight_add(struct vb_qp *qp, uint32_t out, uint32_t in)
{
	vb_roce(qp)->flight.out += out;
	vb_roce(qp)->flight.in += in;
	if (qp->peer)
		vb_roce_peer(qp->peer)->allowance.used += out;
	if (!vb_roce(qp)->flight.is_silent)
		vb_roce_lane_of(qp)->reads.used += in;
}

void vb_flight_remove(struct vb_qp *qp, uint32_t out, uint32_t in)
{
	assert(out <= vb_roce(qp)->flight.out && in <= vb_roce(qp)->flight.in);
	vb_roce(qp)->flight.out -= out;
	vb_roce(qp)->flight.in -= in;
	if (qp->peer)
		give_back(&vb_roce_peer(qp->peer)->allowance, out);
	if (!vb_roce(qp)->flight.is_silent)
		give_back(&vb_roce_lane_of(qp)->reads, in);
}

void vb_flight_clear(struct vb_qp *qp)
{
	vb_flight_remove(qp, vb_roce(qp)->flight.out, vb_roce(qp)->flight.in);
	assert(vb_roce(qp)->flight.out == 0 && vb_roce(qp)->flight.in == 0);
}

void vb_flight_end_turn(struct vb_qp *qp)
{
	if (qp->peer)
		hand_on(&vb_roce_peer(qp->peer)->allowance, qp);
	hand_on(&vb_roce_lane_of(qp)->reads, qp);
}

void vb_flight_turn_to(struct vb_qp *qp, struct vb_peer *peer)
{
	struct vb_peer *before = qp->peer;
	if (before) {
		if (vb_list_linked(&qp->wait_link)) /* it asks again, there */
			vb_schedule(qp);
		stop_waiting(qp);
		hand_on(&vb_roce_peer(before)->allowance, qp);
		give_back(&vb_roce_peer(before)->allowance, vb_roce(qp)->flight.out);
		vb_peer_put(before);
	}
	qp->peer = peer;
	if (peer)
		vb_roce_peer(peer)->allowance.used += vb_roce(qp)->flight.out;
	assert(qp->peer == peer);
}

void vb_flight_fall_silent(struct vb_qp *qp)
{
	if (vb_roce(qp)->flight.is_silent)
		return;
	vb_roce(qp)->flight.is_silent = true;
	give_back(&vb_roce_lane_of(qp)->reads, vb_roce(qp)->flight.in);
}

void vb_flight_be_heard(struct vb_qp *qp)
{
	if (!vb_roce(qp)->flight.is_silent)
		return;
	vb_roce(qp)->flight.is_silent = false;
	vb_roce_lane_of(qp)->reads.used += vb_roce(qp)->flight.in;
}

/* Two fit into the windows, so that one is asked for while the other comes; where the peer takes but one READ at a
 * time, one does, for each is a round trip. Large, for each costs a request and breaks a train twice; but when the
 * windows shrink, so do the pieces, for it is by pieces that responses can be held back. The bounds are of path MTUs;
 * of large packets the least piece is up to twice the lower one, and none is more than an eighth above the upper. */
uint32_t vb_flight_read_piece(const struct vb_qp *qp, uint32_t mtu)
{
	uint64_t window = window_of(qp), halves = qp->attr.max_rd_atomic > 1 ? 4 : 2;
	if (window > vb_roce_lane_of(qp)->reads.limit)
		window = vb_roce_lane_of(qp)->reads.limit;
	uint32_t piece = 1;
	while ((piece + 1) * mtu <= VB_READ_PIECE_MIN ||
		(2 * piece * mtu <= VB_READ_PIECE_MAX + VB_READ_PIECE_MAX / 8 &&
			halves * piece * (mtu + vb_roce(qp)->overhead) <= window))
		piece *= 2;
	assert(piece > 0 && (piece & (piece - 1)) == 0);
	return piece;
}

void vb_flight_check(const struct vb_qp *qp)
{
	const struct vb_flight *flight = &vb_roce(qp)->flight;
	const struct vb_echo *echo = vb_roce(qp)->echo;
	assert(!flight->is_silent || qp->is_reliable);
	assert(!echo || flight->out == echo->sent - echo->drained);
	assert(!vb_list_linked(&qp->wait_link) || vb_state(qp) == VB_QPS_RTS || vb_state(qp) == VB_QPS_SQD);
	if (vb_list_linked(&qp->wait_link) && qp->waits_in != &vb_roce_lane_of(qp)->reads.waiting)
		assert(qp->peer && (qp->waits_in == &vb_roce_peer(qp->peer)->allowance.waiting ||
					   qp->waits_in == &qp->peer->curious));
}
