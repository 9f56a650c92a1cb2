/* The unreliable transports: UC's receiving side, and UD both ways with multicast. Nothing is acknowledged; what does
 * not fit is dropped and counted, never an error of the QP. IBA vol. 1, 9.8.2 (UC), 9.8.3 (UD), 10.5 (multicast). */
#include <errno.h>
#include <stdlib.h>
#include "base/bytes.h"
#include "engine/qp.h"

/* ---- UC -------------------------------------------------------------------------------------------------------- */

static void uc_discard(struct vb_qp *qp, enum vb_counter reason)
{
	vb_count(qp->lane, reason, 1);
	qp->target.open = VB_NO_MESSAGE;
	qp->responder.uc_discarding = true; /* up to the next First or Only */
}

static bool uc_length_is_right(const struct vb_qp *qp, const struct vb_opcode *row, const struct vb_packet *packet)
{
	if (row->payload == VB_PAYLOAD_FULL)
		return packet->payload_length == qp->mtu;
	if (row->payload == VB_PAYLOAD_LAST && packet->payload_length == 0)
		return false;
	return packet->payload_length <= qp->mtu;
}

static void uc_complete(struct vb_qp *qp, const struct vb_packet *packet, uint32_t byte_len, bool is_write)
{
	struct vb_wc wc = {
		.opcode = is_write ? VB_WC_RECV_RDMA_WITH_IMM : VB_WC_RECV,
		.byte_len = byte_len,
		.src_qpn = qp->attr.dest_qpn,
		.flags = vb_packet_row(packet)->has_imm ? VB_WC_WITH_IMM : 0,
		.imm_or_inv = packet->imm,
	};
	vb_complete_recv(&qp->target, &wc, packet->solicited);
}

static void uc_fail_recv(struct vb_qp *qp, enum vb_wc_status status, enum vb_cause_kind cause, vb_time now)
{
	struct vb_wc wc = { .status = status, .vendor_err = cause };
	vb_complete_recv(&qp->target, &wc, true);
	vb_qp_fail(qp, cause, status, now);
}

static void uc_send(struct vb_qp *qp, const struct vb_packet *packet, bool ends, vb_time now)
{
	struct vb_target *target = &qp->target;
	const struct vb_recv_wqe *recv = vb_recv_take(&qp->target);
	if (!recv) {
		uc_discard(qp, VB_DROP_NO_RECV);
		return;
	}
	if (target->received + packet->payload_length > recv->length) {
		uc_fail_recv(qp, VB_WC_LOC_LEN_ERR, VB_CAUSE_RECV_TOO_SHORT, now);
		return;
	}
	if (!vb_recv_scatter(&qp->target, target->received, packet->payload, packet->payload_length, ends)) {
		uc_fail_recv(qp, VB_WC_LOC_PROT_ERR, VB_CAUSE_RECV_SGE, now);
		return;
	}
	target->received += packet->payload_length;
	if (ends)
		uc_complete(qp, packet, target->received, false);
}

static void uc_write(struct vb_qp *qp, const struct vb_packet *packet, bool begins, bool ends)
{
	struct vb_target *target = &qp->target;
	struct vb_reach reach = { 0 };

	if (begins) {
		target->va = packet->va;
		target->rkey = packet->rkey;
		target->write_length = packet->dma_length;
		if (packet->dma_length > VB_MAX_MESSAGE_BYTES ||
			(packet->dma_length > 0 && vb_reach_remote(qp->target.pd, qp->qpn, target->rkey, target->va, target->write_length,
							   VB_ACCESS_REMOTE_WRITE, &reach))) {
			uc_discard(qp, VB_DROP_UC_ACCESS);
			return;
		}
	}
	uint32_t total = target->received + packet->payload_length;
	if (ends ? total != target->write_length : total >= target->write_length) {
		uc_discard(qp, VB_DROP_LENGTH);
		return;
	}
	if (!(qp->attr.access & VB_ACCESS_REMOTE_WRITE) ||
		(packet->payload_length > 0 && vb_reach_remote(qp->target.pd, qp->qpn, target->rkey, target->va + target->received,
						       packet->payload_length, VB_ACCESS_REMOTE_WRITE, &reach))) {
		uc_discard(qp, VB_DROP_UC_ACCESS);
		return;
	}
	bool has_imm = vb_packet_row(packet)->has_imm;
	if (has_imm && !vb_recv_take(&qp->target)) {
		uc_discard(qp, VB_DROP_NO_RECV);
		return;
	}
	vb_place(&reach, packet->payload, packet->payload_length, ends);
	target->received = total;
	if (ends)
		vb_count_work(qp, VB_COUNTED_REMOTE_WRITE, VB_WC_SUCCESS, total);
	if (has_imm)
		uc_complete(qp, packet, target->write_length, true);
}

void vb_uc_receive(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	struct vb_responder *rs = &qp->responder;
	struct vb_target *target = &qp->target;
	const struct vb_opcode *row = vb_packet_row(packet);
	enum vb_qp_state state = vb_state(qp);
	bool begins = row->place == VB_FIRST || row->place == VB_ONLY,
	     ends = row->place == VB_LAST || row->place == VB_ONLY;

	if (state < VB_QPS_RTR || state == VB_QPS_ERR) {
		vb_count(qp->lane, VB_DROP_QP_STATE, 1);
		return;
	}
	if (state == VB_QPS_RTR && !rs->comm_established) {
		rs->comm_established = true;
		vb_raise(qp->lane, &qp->notice, VB_EVENT_COMM_EST);
	}
	bool in_sequence = packet->psn == rs->expected_psn && target->open == row->message;
	rs->expected_psn = vb_psn_add(packet->psn, 1);
	if (begins) { /* whatever its PSN, it starts afresh; a message that was open is abandoned */
		target->received = 0;
		rs->uc_discarding = false;
	} else if (rs->uc_discarding || !in_sequence) {
		uc_discard(qp, VB_DROP_UC_SEQUENCE);
		return;
	}
	if (!uc_length_is_right(qp, row, packet)) {
		uc_discard(qp, VB_DROP_LENGTH);
		return;
	}
	target->open = ends ? VB_NO_MESSAGE : row->message;
	if (row->message == VB_MESSAGE_SEND)
		uc_send(qp, packet, ends, now);
	else
		uc_write(qp, packet, begins, ends);
}

/* ---- UD, receiving --------------------------------------------------------------------------------------------- */

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

static void ud_deliver(struct vb_qp *qp, const struct vb_path *path, const struct vb_packet *packet)
{
	uint8_t area[40];
	const struct vb_recv_wqe *recv = vb_recv_take(&qp->target);
	if (!recv) {
		vb_count(qp->lane, VB_DROP_NO_RECV, 1);
		return;
	}
	struct vb_wc wc = {
		.opcode = VB_WC_RECV,
		.byte_len = 40 + packet->payload_length,
		.src_qpn = packet->src_qpn,
		.flags = VB_WC_GRH | (vb_packet_row(packet)->has_imm ? VB_WC_WITH_IMM : 0),
		.imm_or_inv = packet->imm,
		.sl = vb_gid_is_ipv4(&path->dst) ? 0xA : 0x9,
	};
	rebuild_ip_header(area, path, packet);
	if (recv->length < wc.byte_len) {
		wc.status = VB_WC_LOC_LEN_ERR;
		wc.vendor_err = VB_CAUSE_RECV_TOO_SHORT;
	} else if (!vb_recv_scatter(&qp->target, 0, area, 40, false) ||
		   !vb_recv_scatter(&qp->target, 40, packet->payload, packet->payload_length, true)) {
		wc.status = VB_WC_LOC_PROT_ERR;
		wc.vendor_err = VB_CAUSE_RECV_SGE;
	}
	vb_complete_recv(&qp->target, &wc, packet->solicited || wc.status != VB_WC_SUCCESS);
}

static bool ud_accepts(struct vb_qp *qp, const struct vb_packet *packet)
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

void vb_ud_receive(struct vb_qp *qp, const struct vb_path *path, const struct vb_packet *packet, vb_time now)
{
	(void)now;
	if (!vb_nic_has_gid(qp->pd->nic, &path->dst)) {
		vb_count(qp->lane, VB_DROP_ADDRESS, 1);
		return;
	}
	if (ud_accepts(qp, packet))
		ud_deliver(qp, path, packet);
}

/* ---- Multicast ------------------------------------------------------------------------------------------------- */

static struct vb_mcast_attachment *find_attachment(const struct vb_qp *qp, const struct vb_gid *gid)
{
	vb_list_for_each (node, &qp->mcast) {
		struct vb_mcast_attachment *attachment = vb_container_of(node, struct vb_mcast_attachment, qp_link);
		if (vb_gid_equal(&attachment->gid, gid))
			return attachment;
	}
	return NULL;
}

int vb_qp_attach_mcast(struct vb_qp *qp, const struct vb_gid *gid)
{
	if (qp->type != VB_QP_UD || !vb_gid_is_multicast(gid))
		return -EINVAL;
	if (find_attachment(qp, gid))
		return 0;
	struct vb_mcast_attachment *attachment =
		qp->lane->mcast_count < VB_MAX_MCAST_ATTACH ? malloc(sizeof(*attachment)) : NULL;
	if (!attachment)
		return -ENOMEM;
	attachment->gid = *gid;
	attachment->qp = qp;
	vb_list_add_tail(&qp->lane->mcast, &attachment->lane_link);
	vb_list_add_tail(&qp->mcast, &attachment->qp_link);
	qp->lane->mcast_count++;
	return 0;
}

int vb_qp_detach_mcast(struct vb_qp *qp, const struct vb_gid *gid)
{
	struct vb_mcast_attachment *attachment = find_attachment(qp, gid);
	if (!attachment)
		return -EINVAL;
	vb_list_remove(&attachment->lane_link);
	vb_list_remove(&attachment->qp_link);
	qp->lane->mcast_count--;
	free(attachment);
	return 0;
}

void vb_ud_receive_mcast(struct vb_lane *lane, const struct vb_path *path, const struct vb_packet *packet, vb_time now)
{
	(void)now;
	bool is_wanted = false;
	vb_list_for_each (node, &lane->mcast) {
		struct vb_mcast_attachment *attachment = vb_container_of(node, struct vb_mcast_attachment, lane_link);
		if (!vb_gid_equal(&attachment->gid, &path->dst))
			continue;
		is_wanted = true;
		if (ud_accepts(attachment->qp, packet))
			ud_deliver(attachment->qp, path, packet);
	}
	if (!is_wanted)
		vb_count(lane, VB_DROP_BAD_QPN, 1);
}

/* ---- UD, sending ----------------------------------------------------------------------------------------------- */

bool vb_ud_emit(struct vb_qp *qp, struct vb_batch *batch, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	if (vb_state(qp) != VB_QPS_RTS || rq->doomed ||
		rq->cursor == atomic_load_explicit(&qp->sq.tail, memory_order_acquire))
		return false;
	struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, rq->cursor);
	uint8_t opcode = wqe->opcode == VB_WR_SEND_WITH_IMM ? VB_UD_SEND_ONLY_IMM : VB_UD_SEND_ONLY;
	uint32_t cost = wqe->length + VB_PACKET_OVERHEAD;
	if (wqe->length > qp->mtu) {
		vb_requester_doom(qp, VB_WC_LOC_LEN_ERR, VB_CAUSE_LOCAL_LENGTH, now);
		return false;
	}
	vb_echo_turn_to(qp, &wqe->ud.av.dgid, wqe->ud.qpn);
	if (!vb_echo_allows(qp, cost, now))
		return false;
	struct vb_outgoing *out = vb_batch_add(batch, qp, opcode, &wqe->ud.av);

	if (!vb_batch_add_wqe(batch, out, qp, wqe, 0, wqe->length)) {
		vb_batch_undo(batch);
		vb_requester_doom(qp, VB_WC_LOC_PROT_ERR, VB_CAUSE_LOCAL_SGE, now);
		return false;
	}
	wqe->is_started = true;
	wqe->psn_count = 1;
	out->packet.dest_qpn = wqe->ud.qpn;
	/* The top bit asks for the QP's own key, which a process may not know. 10.2.5 */
	out->packet.qkey = wqe->ud.qkey & 0x80000000u ? qp->attr.qkey : wqe->ud.qkey;
	out->packet.src_qpn = qp->qpn;
	out->packet.imm = wqe->imm_or_inv;
	out->packet.solicited = wqe->flags & VB_SEND_SOLICITED;
	out->packet.psn = rq->next_psn;
	out->completes_wqe = true;
	vb_echo_on_sent(qp, out, cost);
	rq->una_psn = rq->next_psn = rq->max_psn = vb_psn_add(rq->next_psn, 1);
	rq->awaiting_done++;
	rq->cursor++;
	return true;
}
