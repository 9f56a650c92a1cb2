/* UD: datagrams arrive, from anybody who knows the queue key. What does not fit is dropped and counted, never an error
 * of the QP. IBA vol. 1, 9.8.3. */
#include "core/datagram.h"
#include <string.h>
#include "base/bytes.h"
#include "base/invariant.h"
#include "core/execute.h"
#include "core/lane.h"
#include "core/memory.h"
#include "wire/packet.h"

#define UDP_HEADER_LENGTH 8

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
static void rebuild_ip_header(uint8_t area[VB_GRH_LENGTH], const struct vb_path *path, uint32_t udp_length)
{
	memset(area, 0, VB_GRH_LENGTH);
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

static bool is_accepted(struct vb_qp *qp, const struct vb_datagram *datagram)
{
	enum vb_qp_state state = vb_state(qp);
	if (state < VB_QPS_RTR || state == VB_QPS_ERR) {
		vb_count(qp->lane, VB_DROP_QP_STATE, 1);
		return false;
	}
	if (datagram->qkey != qp->attr.qkey) {
		vb_count(qp->lane, VB_DROP_QKEY, 1);
		return false;
	}
	return true;
}

static uint32_t udp_length_of(const struct vb_datagram *datagram)
{
	return UDP_HEADER_LENGTH + datagram->row->headers_length + datagram->length + vb_pad(datagram->length) +
	       VB_ICRC_LENGTH;
}

void vb_datagram_deliver(struct vb_qp *qp, const struct vb_datagram *datagram)
{
	uint8_t area[VB_GRH_LENGTH];
	assert(qp->type == VB_QP_UD);
	if (!is_accepted(qp, datagram))
		return;
	rebuild_ip_header(area, datagram->path, udp_length_of(datagram));
	enum vb_verdict verdict =
		vb_execute_datagram(&qp->target, area, sizeof(area), datagram->payload, datagram->length);
	if (verdict == VB_NOT_READY) {
		vb_count(qp->lane, VB_DROP_NO_RECV, 1);
		return;
	}
	bool has_imm = datagram->row->has_imm;
	struct vb_wc wc = {
		.status = vb_outcomes[verdict].recv_status,
		.vendor_err = vb_outcomes[verdict].cause,
		.opcode = VB_WC_RECV,
		.byte_len = sizeof(area) + datagram->length,
		.src_qpn = datagram->src_qpn,
		.flags = VB_WC_GRH | (has_imm ? VB_WC_WITH_IMM : 0),
		.imm_or_inv = has_imm ? datagram->imm : 0,
		.sl = vb_gid_is_ipv4(&datagram->path->dst) ? 0xA : 0x9,
	};
	vb_complete_recv(&qp->target, &wc, datagram->is_solicited || wc.status != VB_WC_SUCCESS);
}

void vb_datagram_receive(struct vb_qp *qp, const struct vb_datagram *datagram)
{
	assert(datagram->row->message == VB_MESSAGE_SEND);
	if (vb_nic_has_gid(qp->pd->nic, &datagram->path->dst))
		vb_datagram_deliver(qp, datagram);
	else
		vb_count(qp->lane, VB_DROP_ADDRESS, 1);
}
