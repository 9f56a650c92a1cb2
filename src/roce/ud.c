/* UD, both ways: datagrams to whom each work request names, and from anybody who knows the queue key. Nothing is
 * acknowledged; what does not fit is dropped and counted, never an error of the QP.
 * Not here: which QPs a multicast packet is for (mcast.c). IBA vol. 1, 9.8.3. */
#include "roce/roce.h"
#include "base/invariant.h"
#include "base/bytes.h"
#include "roce/batch.h"
#include "roce/echo.h"
#include "core/events.h"
#include "core/execute.h"
#include "core/memory.h"
#include "roce/peers.h"
#include "roce/requester.h"
#include "core/send_queue.h"
#include "roce/ud.h"

void vb_ud_receive(struct vb_qp *qp, const struct vb_path *path, const struct vb_packet *packet)
{
	struct vb_datagram datagram = vb_ud_datagram(path, packet);
	vb_datagram_receive(qp, &datagram);
}

bool vb_ud_emit(struct vb_qp *qp, struct vb_batch *batch, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	/* Once: a datagram that is posted meanwhile has not been looked at. */
	const uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
	if (vb_state(qp) != VB_QPS_RTS || rq->pending_error || qp->transport->divert(qp, tail) || rq->cursor == tail)
		return false;
	struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, rq->cursor);
	uint8_t opcode = wqe->opcode == VB_WR_SEND_WITH_IMM ? VB_UD_SEND_ONLY_IMM : VB_UD_SEND_ONLY;
	uint32_t cost = wqe->length + vb_roce(qp)->overhead;
	if (wqe->length > qp->mtu) {
		vb_requester_doom(qp, VB_WC_LOC_LEN_ERR, VB_CAUSE_LOCAL_LENGTH, now);
		return false;
	}
	vb_echo_turn_to(qp, &wqe->ud.av.dgid, wqe->ud.qpn);
	if (qp->peer && !qp->peer->was_wanted)
		vb_peer_want(qp->lane, qp->peer);
	if (vb_peer_must_be_met(qp) || (qp->transport->follows_packets(qp, wqe) && vb_echo_must_drain(qp, now)) ||
		!vb_echo_allows(qp, cost, now))
		return false;
	struct vb_outgoing *out = vb_batch_add(batch, qp, opcode, &wqe->ud.av);

	if (!vb_batch_add_wqe(batch, out, qp, wqe, 0, wqe->length)) {
		vb_batch_undo(batch);
		vb_requester_doom(qp, VB_WC_LOC_PROT_ERR, VB_CAUSE_LOCAL_SGE, now);
		return false;
	}
	vb_batch_is_message(batch);
	out->packet.dest_qpn = wqe->ud.qpn;
	out->packet.qkey = vb_datagram_qkey(qp, wqe);
	out->packet.src_qpn = qp->qpn;
	out->packet.imm = wqe->imm_or_inv;
	out->packet.solicited = wqe->flags & VB_SEND_SOLICITED;
	out->packet.psn = rq->next_psn;
	vb_echo_on_sent(qp, out, cost);
	vb_requester_start_datagram(qp, wqe);
	assert(wqe->is_started);
	return true;
}
