/* Invariant: every posted work request completes exactly once, in order, and with a status for which there is a
 * reason. */
#include <string.h>
#include "engine/qp.h"
#include "sim.h"

static bool may_die_of(const struct endpoint *end, enum vb_wc_status status)
{
	const struct connection *connection = end->connection;
	if (connection->may_break || connection->state != UP)
		return true;
	if (world.is_local && status == VB_WC_RETRY_EXC_ERR && local_excuses(end))
		return true;
	if (end->qp->local_peer) /* which loses nothing, and whose peer may stand still for as long as it likes */
		return false;
	/* UC and UD ask nobody before they send: sockets that overflow lose RC's packets too, and its retries may run
	 * out. */
	bool is_overrun = world.overflowed * 33 > world.packets;
	/* Where a socket holds any number they are late instead: what waits there for half of the time that all tries
	 * take is lost on half of them. */
	vb_time lag = lane_lag(connection->ends[0].lane) + lane_lag(connection->ends[1].lane);
	bool is_late = lag > (RETRIES + 1) / 2 * connection->ack_timeout;
	return status == VB_WC_RETRY_EXC_ERR && (world.network.may_exhaust || is_overrun || is_late ||
							vb_time_before(world.now, world.network.excused_until));
}

void check_death(struct endpoint *end)
{
	struct vb_cause cause;
	vb_qp_cause(end->qp, &cause);
	trace("connection %u: qpn %06x died: %s, psn %u, %u tries", end->connection->index, end->qpn,
		vb_cause_text(cause.kind), cause.psn, cause.tries);
	if (vb_qp_state(end->qp) != (end->type == VB_QP_RC ? VB_QPS_ERR : VB_QPS_SQE))
		broken("qpn %06x died and is in state %d", end->qpn, vb_qp_state(end->qp));
	if (!may_die_of(end, cause.status))
		broken("qpn %06x died for no reason: %s (status %d), psn %u, %u tries, stuck for %lld us", end->qpn,
			vb_cause_text(cause.kind), cause.status, cause.psn, cause.tries,
			(long long)(cause.stuck_for / VB_US));
	end->is_dead = true;
	connection_broke(end->connection);
}

static uint32_t wc_opcode_of(enum vb_wr_opcode opcode)
{
	switch (opcode) {
	case VB_WR_RDMA_WRITE:
	case VB_WR_RDMA_WRITE_WITH_IMM:
		return VB_WC_RDMA_WRITE;
	case VB_WR_RDMA_READ:
		return VB_WC_RDMA_READ;
	case VB_WR_ATOMIC_CMP_AND_SWP:
		return VB_WC_COMP_SWAP;
	case VB_WR_ATOMIC_FETCH_AND_ADD:
		return VB_WC_FETCH_ADD;
	case VB_WR_FLUSH:
		return VB_WC_FLUSH;
	case VB_WR_ATOMIC_WRITE:
		return VB_WC_ATOMIC_WRITE;
	case VB_WR_LOCAL_INV:
		return VB_WC_LOCAL_INV;
	case VB_WR_BIND_MW:
		return VB_WC_BIND_MW;
	default:
		return VB_WC_SEND;
	}
}

static void release(struct endpoint *end, struct wr *wr)
{
	if (wr->slot >= 0)
		end->slot_users[wr->slot]--;
	if (wr->kind == WR_READ && wr->from_slot != wr->slot)
		end->slot_users[wr->from_slot]--;
	if (wr->uses_window)
		end->peer->window_users--;
}

/* The bytes are the program's again: whoever still reads them is not to believe them. */
static void reuse(struct endpoint *end, const struct wr *wr)
{
	for (unsigned i = 0; i < wr->sge_count; i++)
		memset(end->local.bytes + (wr->sges[i].addr - end->local.iova), 0xEE, wr->sges[i].length);
}

static void succeeded(struct endpoint *end, struct wr *wr)
{
	check_sent(end, wr);
	release(end, wr);
	end->head++;
}

static void sent(struct endpoint *end, const struct vb_wc *wc)
{
	struct wr *wr;
	for (;;) {
		if (end->head == end->tail)
			broken("qpn %06x: completion of %llu, and nothing is posted", end->qpn,
				(unsigned long long)wc->wr_id);
		wr = &end->posted[end->head % MAX_QUEUE];
		if (wr->id == wc->wr_id)
			break;
		if (wr->is_signalled)
			broken("qpn %06x: completion of %llu (status %u), the next should be %llu", end->qpn,
				(unsigned long long)wc->wr_id, wc->status, (unsigned long long)wr->id);
		succeeded(end, wr);
	}
	progress_made(end);
	if (wc->status == VB_WC_SUCCESS) {
		if (!wr->is_signalled)
			broken("qpn %06x: %llu was unsignalled and completes", end->qpn, (unsigned long long)wr->id);
		if (wc->opcode != wc_opcode_of(wr->opcode))
			broken("qpn %06x: completion's opcode %u for request %d", end->qpn, wc->opcode, wr->opcode);
		if ((wr->kind == WR_READ || wr->kind == WR_ATOMIC) && wc->byte_len != wr->length)
			broken("qpn %06x: byte_len %u of %u", end->qpn, wc->byte_len, wr->length);
		succeeded(end, wr);
		return;
	}
	trace("qpn %06x: %llu fails with status %u", end->qpn, (unsigned long long)wr->id, wc->status);
	if (wc->status != VB_WC_WR_FLUSH_ERR && end->connection->state == UP && !may_die_of(end, wc->status))
		broken("qpn %06x: status %u has no reason", end->qpn, wc->status);
	if (wr->kind == WR_ATOMIC)
		atomic_unknown(end, wr);
	if (world.is_local)
		reuse(end, wr);
	release(end, wr);
	end->head++;
}

static void received(struct endpoint *end, const struct vb_wc *wc)
{
	struct host *host = end->host;
	bool is_shared = wc->wr_id >= 5000;
	unsigned id = (unsigned)(wc->wr_id - (is_shared ? 5000 : 1000)), i = is_shared ? id % SHARED_RECVS : id;
	unsigned index = is_shared ? id / SHARED_RECVS : 0;
	if (is_shared != end->has_srq || (is_shared ? index >= POOLS : i >= RECVS) || (index > 0) != end->is_target)
		broken("qpn %06x: a receive completes that is not its own: %llu", end->qpn,
			(unsigned long long)wc->wr_id);
	if (wc->status == VB_WC_SUCCESS && end->is_target && index != end->inbound[end->inbound_head % MAX_QUEUE].pool)
		broken("qpn %06x: a message for one SRQ takes a receive of another", end->qpn);
	struct pool *pool = &host->pools[index];
	bool *posted = is_shared ? &pool->posted[i] : &end->recv_posted[i];
	if (!*posted)
		broken("qpn %06x: receive %u completes twice", end->qpn, i);
	*posted = false;
	const uint8_t *bytes = (is_shared ? pool->recvs.bytes : end->recvs.bytes) + (size_t)i * SEND_MAX;
	if (wc->status == VB_WC_SUCCESS)
		check_received(end, wc, bytes);
	else if (end->connection->state == UP && !end->connection->may_break)
		broken("qpn %06x: receive fails with status %u, for no reason", end->qpn, wc->status);
	if (chance(300000) && end->connection->state != ENDING) /* what is posted then is flushed too late */
		recv_refill(end, 1);
	if (chance(300000))
		recv_refill_shared(host, 1);
}

void check_completion(struct host *host, const struct vb_wc *wc)
{
	struct endpoint *end = wc->qp_user;
	note(wc->wr_id);
	note((uint64_t)wc->status << 32 | wc->byte_len);
	world.completions++;
	if (end->host != host || !end->qp || wc->qpn != end->qpn)
		broken("a completion of QPN %06x, which is gone", wc->qpn);
	if (wc->status == VB_WC_WR_FLUSH_ERR && !end->is_dead && end->connection->state == UP)
		broken("qpn %06x: a flush without a death", end->qpn);
	end->completed++;
	twins_completed(end, wc);
	if (wc->wr_id >> 40)
		sent(end, wc);
	else
		received(end, wc);
}

/* The QPs are in ERR and their lanes have run: nothing may be left but what was unsignalled and done. */
void check_all_completed(struct connection *connection)
{
	for (unsigned k = 0; k < 2; k++) {
		struct endpoint *end = &connection->ends[k];
		if (!end->qp)
			continue;
		for (unsigned i = end->head; i != end->tail; i++)
			if (end->posted[i % MAX_QUEUE].is_signalled)
				broken("qpn %06x is in ERR, and request %llu has not completed", end->qpn,
					(unsigned long long)end->posted[i % MAX_QUEUE].id);
		for (unsigned i = 0; i < RECVS; i++)
			if (end->recv_posted[i])
				broken("qpn %06x is in ERR, and receive %u has not completed", end->qpn, i);
	}
}
