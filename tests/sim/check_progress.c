/* Invariant: nothing waits for ever. A requester gets on, packet by packet, or gives up within a bounded time, whatever
 * the network does. How long a message takes is not bounded: of a megabyte, on a network that is black and between
 * hosts that stand still for most of the time, a few packets pass at a time.
 *
 * The bound, in time that the requester's lane runs, for a lane that stands still serves no timer:
 * - Between two acknowledgements there are RETRIES + 1 tries, each of an ack timeout, or of four: with a peer that is
 * merely
 *   slow the first, and each that an answer begins again, takes that long.
 * - An answer that tells nothing new begins the timeout again, so many times as the engine heeds it; one that says that
 *   the peer has no receive, always, after it has been waited for.
 * - Who goes back lets go of the windows and stands in line for them. Each QP of the lane may have them for a try; one
 *   of UC and UD until it gives up the echo. */
#include "engine/check.h"
#include "engine/qp.h"
#include "sim.h"

#define HEEDED   64             /* answers that tell nothing new: STALE_ACKS_HEEDED of recovery.c */
#define RNR_WAIT (1280 * VB_US) /* of the longest timer code that connection.c gives */
#define ECHO     (100 * VB_MS)  /* ECHO_PATIENCE of echo.c */
#define LATE     VB_MS          /* a timer, for its lane is busy */
#define PATIENCE (10 * VB_S)    /* whatever the sum may be; of UC and UD, that have no retries */

void progress_made(struct endpoint *end)
{
	end->progress_at = lane_running_time(end->lane);
	end->peer_progress_at = lane_running_time(end->peer->lane);
	end->oldest_psn = vb_qp_oldest_psn(end->qp);
	end->heard = end->refused = 0;
}

static bool has_moved(const struct endpoint *end)
{
	return vb_qp_oldest_psn(end->qp) != end->oldest_psn;
}

static struct endpoint *find_endpoint(uint32_t qpn)
{
	for (unsigned i = 0; i < world.connection_count; i++)
		for (unsigned k = 0; k < 2; k++)
			if (world.connections[i].ends[k].qp && world.connections[i].ends[k].qpn == qpn)
				return &world.connections[i].ends[k];
	return NULL;
}

void progress_answered(struct endpoint *end, bool is_refusal)
{
	if (!end)
		return;
	if (has_moved(end))
		progress_made(end);
	else if (is_refusal)
		end->refused++;
}

void progress_heard(const struct vb_packet *packet)
{
	const struct vb_opcode *row = vb_packet_row(packet);
	struct endpoint *end = row->is_response ? find_endpoint(packet->dest_qpn) : NULL;
	if (!end)
		return;
	if (has_moved(end))
		progress_made(end);
	else if ((packet->syndrome & VB_AETH_TYPE_MASK) == VB_AETH_RNR)
		end->refused++;
	else if (end->heard < HEEDED)
		end->heard++;
}

/* One of the lane's QPs after the other. */
static vb_time longest_try(const struct lane *lane)
{
	vb_time sum = 0;
	for (unsigned i = 0; i < world.connection_count; i++) {
		struct connection *connection = &world.connections[i];
		for (unsigned k = 0; k < 2; k++)
			if (connection->ends[k].lane == lane)
				sum += LATE + (connection->type == VB_QP_RC ? 4 * connection->ack_timeout : ECHO);
	}
	return sum;
}

static vb_time patience(const struct endpoint *end)
{
	if (end->type != VB_QP_RC)
		return PATIENCE;
	vb_time tries = RETRIES + 1 + end->heard + end->refused;
	vb_time bound = tries * longest_try(end->lane) + end->refused * RNR_WAIT;
	if (end->qp->local_peer) /* the one stands still, and then the other */
		bound *= 2;
	return bound < PATIENCE ? bound : PATIENCE;
}

static bool awaits_something(const struct endpoint *end)
{
	for (unsigned i = end->head; i != end->tail; i++)
		if (end->posted[i % MAX_QUEUE].is_signalled)
			return true;
	return false;
}

static void check_endpoint(struct endpoint *end)
{
	if (!end->qp || !awaits_something(end))
		return;
	if (has_moved(end))
		progress_made(end);
	vb_time waits = vb_time_diff(lane_running_time(end->lane), end->progress_at);
	vb_time peer_ran = vb_time_diff(lane_running_time(end->peer->lane), end->peer_progress_at);
	if (end->qp->local_peer && peer_ran < waits) /* a peer that stands still is never an error */
		waits = peer_ran;
	if (waits > patience(end))
		broken("connection %u, qpn %06x: %u requests, none gets on for %lld ms of %lld (%u answers, %u RNRs)",
			end->connection->index, end->qpn, end->tail - end->head, (long long)(waits / VB_MS),
			(long long)(patience(end) / VB_MS), end->heard, end->refused);
}

void check_progress(void)
{
	for (unsigned i = 0; i < world.connection_count; i++) {
		check_endpoint(&world.connections[i].ends[0]);
		check_endpoint(&world.connections[i].ends[1]);
	}
}
