/* A received packet's way to the QP it is for. */
#include "roce/echo.h"
#include "base/invariant.h"
#include "roce/failover.h"
#include "roce/requester.h"
#include "roce/selective.h"
#include "roce/roce.h"
#include "roce/uc.h"
#include "roce/ud.h"

/* 9.6.1.1.3 and 10.9: same low fifteen bits; we are full members, so any membership of the sender's will do. */
static bool pkey_matches(uint16_t pkey)
{
	return (pkey & 0x7fff) == (VB_PKEY_DEFAULT & 0x7fff);
}

static bool path_is_in_use(const struct vb_qp *qp, const struct vb_path *path)
{
	return vb_gid_equal(&path->src, &qp->attr.av.dgid) && vb_gid_equal(&path->dst, &qp->attr.av.sgid);
}

static bool path_is_the_connections(const struct vb_qp *qp, const struct vb_path *path)
{
	return path_is_in_use(qp, path) || vb_failover_takes(qp, path);
}

/* READ responses come by both rails (rails.h), acknowledgements by the pair that the peer uses. */
static void note_answer(struct vb_qp *qp, const struct vb_path *path, const struct vb_opcode *row, vb_time now)
{
	struct vb_selective *s = vb_roce(qp)->selective;
	if (!s || !s->failover)
		return;
	if (row->message != VB_MESSAGE_READ_RESPONSE || path_is_in_use(qp, path))
		vb_failover_hear(s->failover, now);
	else
		s->failover->hears_beside = true;
}

/* Congestion Experienced: the sender's NIC is told. RoCEv2 annex A17.9.3. But not of a CNP: where all is marked, two
 * QPs that have nothing to send would answer each other's for good. */
static void note_congestion(struct vb_qp *qp, const struct vb_opcode *row)
{
	if (!vb_roce_lane_of(qp)->is_marked)
		return;
	vb_count(qp->lane, VB_CE_RECEIVED, 1);
	vb_roce(qp)->responses.ack.is_marked |= !row->is_response;
	if (qp->type == VB_QP_UD || row->message == VB_MESSAGE_CNP ||
		vb_roce_lane_of(qp)->config.cnps.scope == VB_CNP_NEVER)
		return;
	vb_roce(qp)->responses.cnp_wanted = true;
	vb_schedule_reply(qp);
}

/* UC has no responses, XRC QPs are a requester or a responder alone. */
static void receive_by_half(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	bool is_response = vb_packet_row(packet)->is_response;
	assert(qp->type != VB_QP_RC);
	if (qp->type == VB_QP_UC)
		vb_uc_receive(qp, packet, now);
	else if (qp->type == VB_QP_XRC_SEND && is_response)
		vb_requester_receive(qp, packet, now);
	else if (qp->type == VB_QP_XRC_RECV && !is_response)
		vb_responder_receive_xrc(qp, packet, now);
	else
		vb_count(qp->lane, VB_DROP_TRANSPORT, 1);
}

static void receive_connected(
	struct vb_qp *qp, const struct vb_path *path, bool is_its_path, const struct vb_packet *packet, vb_time now)
{
	const struct vb_opcode *row = vb_packet_row(packet);
	struct vb_requester *rq = &qp->requester;
	assert(qp->type != VB_QP_UD && qp->type != VB_QP_RAW);

	if (vb_state(qp) < VB_QPS_RTR) {
		vb_count(qp->lane, VB_DROP_QP_STATE, 1);
		return;
	}
	if (row->message == VB_MESSAGE_PATH && vb_state(qp) != VB_QPS_ERR) {
		vb_addresses_receive(qp, path, is_its_path, packet, now);
		return;
	}
	if (!is_its_path) {
		vb_count(qp->lane, VB_DROP_ADDRESS, 1);
		return;
	}
	if (vb_state(qp) == VB_QPS_ERR) {
		if (!vb_responder_refuse_again(qp, packet, now))
			vb_count(qp->lane, VB_DROP_QP_STATE, 1);
		return;
	}
	rq->heard_at = now;
	rq->was_heard = true;
	note_congestion(qp, row);
	if (row->message == VB_MESSAGE_CNP) {
		vb_count(qp->lane, VB_CNP_RECEIVED, 1);
		vb_roce(qp)->congestion.tally.cnps_received++;
		vb_congestion_tell(qp, &(struct vb_cc_signal){ .event = VB_CC_CNP,
					       .flight = vb_roce(qp)->flight.out + vb_roce(qp)->flight.in,
					       .now = now });
	} else if (row->message == VB_MESSAGE_HELLO) {
		vb_hello_receive(qp, packet);
	} else if (qp->type != VB_QP_RC) {
		receive_by_half(qp, packet, now);
	} else if (row->is_response) {
		note_answer(qp, path, row, now);
		vb_requester_receive(qp, packet, now);
	} else {
		vb_responder_receive(qp, packet, now);
	}
}

static void receive_one(struct vb_lane *lane, struct vb_qp *qp, const struct vb_path *path, bool is_its_path,
	const struct vb_packet *packet, vb_time now)
{
	vb_count(lane, VB_RX_BYTES, vb_packet_data_length(packet));
	vb_roce_lane(lane)->holder = packet->holder;
	if (!pkey_matches(packet->pkey) && packet->opcode != VB_CNP) {
		vb_count(lane, VB_DROP_PKEY, 1);
		return;
	}
	if (packet->dest_qpn == VB_QPN_MULTICAST) {
		if ((packet->opcode & ~VB_OPERATION_MASK) == VB_UD && vb_gid_is_multicast(&path->dst))
			vb_mcast_receive(lane, path, packet);
		else
			vb_count(lane, VB_DROP_TRANSPORT, 1);
		return;
	}
	if (!qp || qp->type == VB_QP_RAW) {
		vb_count(lane, VB_DROP_BAD_QPN, 1);
		return;
	}
	if (vb_packet_row(packet)->message == VB_MESSAGE_ECHO) {
		vb_echo_receive(qp, path, packet);
		return;
	}
	bool is_cnp = packet->opcode == VB_CNP && qp->type != VB_QP_UD;
	bool is_ours = (packet->opcode & ~VB_OPERATION_MASK) == VB_MANUFACTURER && qp->type == VB_QP_RC;
	if ((packet->opcode & ~VB_OPERATION_MASK) != qp->service && !is_cnp && !is_ours)
		vb_count(lane, VB_DROP_TRANSPORT, 1);
	else if (qp->type == VB_QP_UD)
		vb_ud_receive(qp, path, packet);
	else
		receive_connected(qp, path, is_its_path, packet, now);
}

/* A judgement looks at all that is missing, so there is one for a train. */
static void judge_if_asked(struct vb_qp *qp, vb_time now)
{
	if (qp && vb_roce(qp)->selective && vb_roce(qp)->selective->is_to_judge)
		vb_selective_judge(qp, now);
}

static void receive_in_order(
	struct vb_lane *lane, const struct vb_path *path, const struct vb_packet *packets, size_t n, vb_time now)
{
	struct vb_qp *qp = NULL;
	uint32_t qpn = VB_QPN_MULTICAST;
	bool is_its_path = false;

	lane->now = now;
	vb_roce_lane(lane)->acks_forced = false;
	vb_roce_lane(lane)->is_marked = (path->traffic_class & 3) == 3;
	vb_count(lane, VB_RX_PACKETS, n);
	for (size_t i = 0; i < n; i++) {
		if (packets[i].dest_qpn != qpn) { /* one look-up a train */
			judge_if_asked(qp, now);
			qpn = packets[i].dest_qpn;
			qp = vb_lane_find_qp(lane, qpn);
			is_its_path = qp && path_is_the_connections(qp, path);
		}
		bool is_run = qp && i + 1 < n && packets[i + 1].opcode == (VB_RC | VB_WRITE_MIDDLE) &&
			      !vb_roce_lane(lane)->is_marked;
		uint32_t expected = is_run ? qp->responder.expected_psn : 0;
		receive_one(lane, qp, path, is_its_path, &packets[i], now);
		vb_lane_reap(lane);
		if (is_run && qp->responder.expected_psn != expected)
			i += vb_responder_receive_middles(qp, packets + i, n - i);
	}
	judge_if_asked(qp, now);
}

/* Ours put an ack behind the requests that follow it, so that all are one train: it counts as first, for programs rely
 * on seeing what they sent complete before they see the answer to it. */
static bool ends_in_ack(const struct vb_packet *packets, size_t n)
{
	if (n < 2 || packets[n - 1].opcode != (VB_RC | VB_ACKNOWLEDGE))
		return false;
	for (size_t i = 0; i + 1 < n; i++)
		if (vb_packet_row(&packets[i])->is_response)
			return false;
	return true;
}

void vb_lane_note_overflow(struct vb_lane *lane, uint32_t overflow)
{
	vb_roce_lane(lane)->overflow = overflow;
}

void vb_lane_receive(
	struct vb_lane *lane, const struct vb_path *path, const struct vb_packet *packets, size_t n, vb_time now)
{
	if (ends_in_ack(packets, n))
		receive_in_order(lane, path, &packets[--n], 1, now);
	receive_in_order(lane, path, packets, n, now);
}

/* A QP that goes back finds the gap by the next response, as ever. */
static void receive_trimmed_response(struct vb_qp *qp, uint32_t psn, vb_time now)
{
	enum vb_qp_state state = vb_state(qp);
	assert(qp->type == VB_QP_RC);
	if ((state != VB_QPS_RTS && state != VB_QPS_SQD) || !vb_roce(qp)->selective)
		return;
	vb_flight_be_heard(qp);
	vb_selective_lose_response(qp, psn, now);
}

/* VB_COUNTER_COUNT: it is right. */
static enum vb_counter fault_of_trimmed(
	const struct vb_qp *qp, const struct vb_path *path, const struct vb_packet *packet)
{
	if (!qp)
		return VB_DROP_BAD_QPN;
	if (!pkey_matches(packet->pkey))
		return VB_DROP_PKEY;
	const struct vb_opcode *row = vb_packet_row(packet);
	if (qp->type != VB_QP_RC || (packet->opcode & ~VB_OPERATION_MASK) != VB_RC ||
		(row->is_response && row->message != VB_MESSAGE_READ_RESPONSE))
		return VB_DROP_TRANSPORT;
	if (vb_state(qp) != VB_QPS_RTR && vb_state(qp) != VB_QPS_RTS && vb_state(qp) != VB_QPS_SQD)
		return VB_DROP_QP_STATE;
	return path_is_the_connections(qp, path) ? VB_COUNTER_COUNT : VB_DROP_ADDRESS;
}

void vb_lane_receive_trimmed(
	struct vb_lane *lane, const struct vb_path *path, const struct vb_packet *packet, vb_time now)
{
	struct vb_qp *qp = vb_lane_find_qp(lane, packet->dest_qpn);
	const enum vb_counter fault = fault_of_trimmed(qp, path, packet);

	lane->now = now;
	vb_roce_lane(lane)->acks_forced = false;
	vb_roce_lane(lane)->holder = packet->holder;
	vb_count(lane, VB_RX_PACKETS, 1);
	if (fault != VB_COUNTER_COUNT) {
		vb_count(lane, fault, 1);
		return;
	}
	qp->requester.heard_at = now;
	qp->requester.was_heard = true;
	if (vb_packet_row(packet)->is_response)
		receive_trimmed_response(qp, packet->psn, now);
	else
		vb_responder_receive_trimmed(qp, packet, now);
	vb_lane_reap(lane);
}
