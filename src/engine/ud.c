/* UD, both ways: datagrams to whom each work request names, and from anybody who knows the queue key. Nothing is
 * acknowledged; what does not fit is dropped and counted, never an error of the QP.
 * Not here: which QPs a multicast packet is for (mcast.c). IBA vol. 1, 9.8.3. */
#include "base/bytes.h"
#include "engine/batch.h"
#include "engine/echo.h"
#include "engine/events.h"
#include "engine/execute.h"
#include "engine/flight.h"
#include "engine/handed_out.h"
#include "engine/lane.h"
#include "engine/memory.h"
#include "engine/peers.h"
#include "engine/qp.h"
#include "engine/requester.h"
#include "engine/scheduler.h"
#include "engine/send_queue.h"
#include "engine/ud.h"

/* ---- Receiving ------------------------------------------------------------------------------------------------- */

static uint16_t ipv4_checksum(const uint8_t *header)
{
	uint32_t sum = 0;
	for (int i = 0; i < 20; i += 2)
		sum += vb_load_be16(header + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* The forty bytes before a UD payload: the IPv6 header, or zeros and the IPv4 header. A socket shows neither, so they
 * are rebuilt; consumers tell the two apart by the IPv4 checksum. */
static void rebuild_ip_header(uint8_t area[40], const struct vb_path *path, const struct vb_packet *packet)
{
	uint32_t udp_length = 8 + vb_packet_wire_length(packet);
	memset(area, 0, 40);
	if (vb_gid_is_ipv4(&path->dst)) {
		uint8_t *ip = area + 20;
		ip[0] = 0x45;
		ip[1] = path->traffic_class;
		vb_store_be16(ip + 2, (uint16_t)(20 + udp_length));
		ip[6] = 0x40;
		ip[8] = path->hop_limit;
		ip[9] = 17;
		memcpy(ip + 12, path->src.raw + 12, 4);
		memcpy(ip + 16, path->dst.raw + 12, 4);
		vb_store_be16(ip + 10, ipv4_checksum(ip));
	} else {
		vb_store_be32(area, 0x60000000u | (uint32_t)path->traffic_class << 20);
		vb_store_be16(area + 4, (uint16_t)udp_length);
		area[6] = 17;
		area[7] = path->hop_limit;
		memcpy(area + 8, path->src.raw, 16);
		memcpy(area + 24, path->dst.raw, 16);
	}
}

static bool is_accepted(struct vb_qp *qp, const struct vb_packet *packet)
{
	enum vb_qp_state state = vb_state(qp);
	if (state < VB_QPS_RTR || state == VB_QPS_ERR) {
		vb_count(qp->lane, VB_DROP_QP_STATE, 1);
		return false;
	}
	if (packet->qkey != qp->attr.qkey) {
		vb_count(qp->lane, VB_DROP_QKEY, 1);
		return false;
	}
	return true;
}

void vb_ud_deliver(struct vb_qp *qp, const struct vb_path *path, const struct vb_packet *packet)
{
	uint8_t area[40];
	if (!is_accepted(qp, packet))
		return;
	rebuild_ip_header(area, path, packet);
	enum vb_verdict verdict =
		vb_execute_datagram(&qp->target, area, sizeof(area), packet->payload, packet->payload_length);
	if (verdict == VB_NOT_READY) {
		vb_count(qp->lane, VB_DROP_NO_RECV, 1);
		return;
	}
	bool has_imm = vb_packet_row(packet)->has_imm;
	struct vb_wc wc = {
		.status = vb_outcomes[verdict].recv_status,
		.vendor_err = vb_outcomes[verdict].cause,
		.opcode = VB_WC_RECV,
		.byte_len = sizeof(area) + packet->payload_length,
		.src_qpn = packet->src_qpn,
		.flags = VB_WC_GRH | (has_imm ? VB_WC_WITH_IMM : 0),
		.imm_or_inv = has_imm ? packet->imm : 0,
		.sl = vb_gid_is_ipv4(&path->dst) ? 0xA : 0x9,
	};
	vb_complete_recv(&qp->target, &wc, packet->solicited || wc.status != VB_WC_SUCCESS);
}

void vb_ud_receive(struct vb_qp *qp, const struct vb_path *path, const struct vb_packet *packet)
{
	if (vb_nic_has_gid(qp->pd->nic, &path->dst))
		vb_ud_deliver(qp, path, packet);
	else
		vb_count(qp->lane, VB_DROP_ADDRESS, 1);
}

/* ---- Sending --------------------------------------------------------------------------------------------------- */

/* The top bit asks for the QP's own key, which a process may not know. 10.2.5 */
uint32_t vb_ud_qkey(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	return wqe->ud.qkey & 0x80000000u ? qp->attr.qkey : wqe->ud.qkey;
}

void vb_ud_start(struct vb_qp *qp, struct vb_send_wqe *wqe)
{
	struct vb_requester *rq = &qp->requester;
	wqe->is_started = true;
	wqe->first_psn = rq->next_psn;
	wqe->psn_count = wqe->at_port = 1;
	rq->una_psn = rq->next_psn = rq->max_psn = vb_psn_add(rq->next_psn, 1);
	rq->cursor++;
}

bool vb_ud_emit(struct vb_qp *qp, struct vb_batch *batch, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	/* Once: a datagram that is posted meanwhile has not been looked at. */
	const uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
	if (vb_state(qp) != VB_QPS_RTS || rq->doomed || vb_local_route_datagrams(qp, tail) || rq->cursor == tail)
		return false;
	struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, rq->cursor);
	uint8_t opcode = wqe->opcode == VB_WR_SEND_WITH_IMM ? VB_UD_SEND_ONLY_IMM : VB_UD_SEND_ONLY;
	uint32_t cost = wqe->length + qp->overhead;
	if (wqe->length > qp->mtu) {
		vb_requester_doom(qp, VB_WC_LOC_LEN_ERR, VB_CAUSE_LOCAL_LENGTH, now);
		return false;
	}
	vb_echo_turn_to(qp, &wqe->ud.av.dgid, wqe->ud.qpn);
	if (qp->peer && !qp->peer->was_wished)
		vb_peer_wish(qp->lane, qp->peer);
	if (vb_peer_must_be_met(qp) || (vb_local_follows_packets(qp, wqe) && vb_echo_must_drain(qp, now)) ||
		!vb_echo_allows(qp, cost, now))
		return false;
	struct vb_outgoing *out = vb_batch_add(batch, qp, opcode, &wqe->ud.av);

	if (!vb_batch_add_wqe(batch, out, qp, wqe, 0, wqe->length)) {
		vb_batch_undo(batch);
		vb_requester_doom(qp, VB_WC_LOC_PROT_ERR, VB_CAUSE_LOCAL_SGE, now);
		return false;
	}
	vb_handed_out_is_message(batch);
	out->packet.dest_qpn = wqe->ud.qpn;
	out->packet.qkey = vb_ud_qkey(qp, wqe);
	out->packet.src_qpn = qp->qpn;
	out->packet.imm = wqe->imm_or_inv;
	out->packet.solicited = wqe->flags & VB_SEND_SOLICITED;
	out->packet.psn = rq->next_psn;
	vb_echo_on_sent(qp, out, cost);
	vb_ud_start(qp, wqe);
	return true;
}
