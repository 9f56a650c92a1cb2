/* Responder: judges RC and XRC request packets and says what the sender is to hear of them.
 * Holds: packets execute in PSN order, each once, unless messages are to begin again when a packet is lost.
 * Not here: what a request does (execute.c), what is sent back and when (responses.c), UC (uc.c). IBA vol. 1, 9.7.4 and
 * 9.7.5. */
#include <stdlib.h>
#include <string.h>
#include "roce/roce.h"
#include "base/invariant.h"
#include "core/events.h"
#include "core/responder.h"
#include "core/execute.h"
#include "roce/request_packet.h"
#include "roce/large.h"
#include "roce/responder.h"
#include "roce/requester.h"
#include "roce/selective.h"
#include "core/xrc.h"

void vb_responses_reset(struct vb_qp *qp)
{
	struct vb_responses *rs = &vb_roce(qp)->responses;
	vb_list_remove(&vb_roce(qp)->ack_link);
	free(rs->resources);
	memset(rs, 0, sizeof(*rs));
	vb_roce(qp)->cnp_clock = (struct vb_cnp_clock){ 0 };
	assert(vb_roce(qp)->responses.active_resources == 0);
}

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

/* First and Middle are full, Last is not empty, Only may be. 9.7.4.1.6. */
bool vb_payload_is_right(const struct vb_packet *packet, uint32_t full)
{
	switch ((enum vb_payload)vb_packet_row(packet)->payload) {
	case VB_PAYLOAD_FULL:
		return packet->payload_length == full;
	case VB_PAYLOAD_LAST:
		return packet->payload_length >= 1 && packet->payload_length <= full;
	case VB_PAYLOAD_ONLY:
		return packet->payload_length <= full;
	case VB_PAYLOAD_EIGHT:
		return packet->payload_length == 8;
	default:
		return packet->payload_length == 0;
	}
}

/* A message is cut by the path MTU or, where both ends do so, by the large one, which its First tells. */
static uint32_t full_of(const struct vb_qp *qp, const struct vb_packet *packet)
{
	if (vb_begins_message(vb_packet_row(packet)))
		return vb_large_taken(qp, packet->payload_length);
	return vb_roce(qp)->responses.full;
}

/* Checks the packet, and then the request. */
static enum vb_verdict judge(struct vb_qp *qp, const struct vb_packet *packet, uint64_t *before)
{
	const struct vb_opcode *row = vb_packet_row(packet);
	if (!vb_target_expects(&qp->target, row))
		return VB_BAD_SEQUENCE;
	if (!vb_payload_is_right(packet, full_of(qp, packet)))
		return VB_BAD_LENGTH;
	if (vb_is_answered_by_a_response(row) && !vb_responder_has_room(qp))
		return VB_TOO_MANY_READS;
	struct vb_request request;
	vb_request_of_packet(&request, packet);
	return vb_execute(&qp->target, &request, before);
}

/* ---- Verdicts ---------------------------------------------------------------------------------------------------- */

static void accept(struct vb_qp *qp, const struct vb_packet *packet, uint64_t before, vb_time now)
{
	struct vb_responses *rs = &vb_roce(qp)->responses;
	const struct vb_opcode *row = vb_packet_row(packet);
	uint32_t psn_count = row->message == VB_MESSAGE_READ ? vb_large_span(qp, packet) : 1;

	assert(packet->psn == qp->responder.expected_psn);
	qp->responder.expected_psn = vb_psn_add(packet->psn, psn_count);
	qp->responder.nak_sent = false;
	vb_requester_note_asked(qp, row);
	bool is_whole = row->place == VB_LAST || row->place == VB_ONLY;
	if (row->place == VB_FIRST)
		rs->full = (uint16_t)packet->payload_length;
	vb_requester_note_answer(qp, is_whole, now);
	if (is_whole)
		qp->responder.msn = vb_psn_add(qp->responder.msn, 1);
	rs->ack.packets++;
	rs->ack.bytes += packet->payload_length;
	if (vb_is_answered_by_a_response(row))
		vb_responder_answer(qp, packet, psn_count, before);
	else if (packet->ackreq)
		vb_responder_ack(qp, vb_responder_ack_syndrome(qp), packet->psn, false, now);
}

/* A fatal NAK, which leaves although the QP is in ERR by then. */
static void refuse(struct vb_qp *qp, const struct vb_packet *packet, enum vb_verdict verdict, vb_time now)
{
	struct vb_request request;
	assert(verdict != VB_EXECUTED && verdict != VB_NOT_READY);
	vb_responder_drop_resources(qp);
	vb_request_of_packet(&request, packet);
	vb_execute_refusal(&qp->target, &request, verdict, now);
	vb_responder_refuse(qp, vb_outcomes[verdict].nak, packet->psn, now);
}

static void conclude(
	struct vb_qp *qp, const struct vb_packet *packet, enum vb_verdict verdict, uint64_t before, vb_time now)
{
	switch (verdict) {
	case VB_EXECUTED:
		accept(qp, packet, before, now);
		break;
	case VB_NOT_READY:
		vb_count(qp->lane, VB_RNR_SENT, 1);
		qp->responder.nak_sent = true;
		vb_responder_ack(qp, VB_AETH_RNR | (qp->attr.min_rnr_timer & 31), packet->psn, true, now);
		break;
	default:
		/* Answers to what came before go first; the peer asks again. */
		if (vb_roce(qp)->responses.active_resources > 0) {
			vb_roce(qp)->responses.verdict = (uint8_t)verdict;
			vb_count(qp->lane, VB_DROP_OUT_OF_ORDER, 1);
			break;
		}
		refuse(qp, packet, verdict, now);
		break;
	}
}

/* A request is judged once. */
void vb_responder_execute(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	uint64_t before = 0;
	enum vb_verdict verdict = (enum vb_verdict)vb_roce(qp)->responses.verdict;

	if (verdict == VB_EXECUTED)
		verdict = judge(qp, packet, &before);
	if (!vb_is_failing(qp)) /* else its program never hears of it, and so the peer does not */
		conclude(qp, packet, verdict, before, now);
}

/* Go-back-0: what has come of the message in progress is forgotten, it comes again from its first packet on. */
static void forget_message(struct vb_qp *qp)
{
	if (qp->target.open == VB_NO_MESSAGE)
		return;
	qp->responder.expected_psn = (qp->responder.expected_psn - qp->target.received / qp->mtu) & VB_PSN_MASK;
	qp->target.open = VB_NO_MESSAGE;
	assert(qp->target.open == VB_NO_MESSAGE);
}

/* Go-back-N: a NAK, once, for the PSN that is missing. */
static void go_back(struct vb_qp *qp, vb_time now)
{
	vb_count(qp->lane, VB_OUT_OF_ORDER, 1);
	if (qp->responder.nak_sent) {
		vb_count(qp->lane, VB_DROP_OUT_OF_ORDER, 1);
		return;
	}
	qp->responder.nak_sent = true;
	vb_count(qp->lane, VB_NAK_SENT, 1);
	vb_responder_ack(qp, VB_NAK_PSN_SEQUENCE, qp->responder.expected_psn, true, now);
	if (qp->transport->restarts_messages)
		forget_message(qp);
}

static void receive_ahead(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	if (!vb_roce(qp)->selective || !vb_early_receive(qp, packet, now))
		go_back(qp, now);
}

/* A refusal refuses every request up to it, unless that one waits for a response of its own: of such, a
 * READ that the refusal cut short is refused where it begins. */
bool vb_responder_refuse_again(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	struct vb_responses *rs = &vb_roce(qp)->responses;
	const struct vb_opcode *row = vb_packet_row(packet);
	int32_t ahead = vb_psn_diff(packet->psn, rs->refusal_psn);

	if (!rs->refusal || row->is_response || row->message == VB_MESSAGE_CNP || ahead > 0)
		return false;
	if (ahead < 0 && vb_is_answered_by_a_response(row)) {
		if (row->message != VB_MESSAGE_READ || packet->dma_length > VB_MAX_MESSAGE_BYTES ||
			(uint32_t)-ahead >= vb_large_span(qp, packet))
			return false;
		rs->refusal_psn = packet->psn;
	}
	vb_count(qp->lane, VB_DUPLICATES, 1);
	vb_responder_refuse(qp, rs->refusal, rs->refusal_psn, now);
	return true;
}

void vb_responder_receive(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	enum vb_qp_state state = vb_state(qp);

	if (state != VB_QPS_RTR && state != VB_QPS_RTS && state != VB_QPS_SQD) {
		vb_count(qp->lane, VB_DROP_QP_STATE, 1);
		return;
	}
	if (packet->opcode == VB_READ_LARGE && !vb_large_is_taken(qp)) {
		vb_count(qp->lane, VB_DROP_TRANSPORT, 1);
		return;
	}
	vb_responder_establish(qp);
	uint32_t expected = qp->responder.expected_psn;
	int32_t ahead = vb_psn_diff(packet->psn, expected);
	if (ahead == 0) {
		vb_responder_execute(qp, packet, now);
		if (vb_early_has_any(qp))
			vb_early_proceed(qp, expected, now);
	} else if (ahead > 0)
		receive_ahead(qp, packet, now);
	else
		vb_responder_duplicate(qp, packet, now);
}

/* What is lost counts as a gap, also where it is the expected packet itself. */
void vb_responder_receive_trimmed(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	assert(qp->type == VB_QP_RC);
	bool is_duplicate = vb_psn_diff(packet->psn, qp->responder.expected_psn) < 0;
	if (is_duplicate && vb_roce(qp)->selective)
		vb_responder_duplicate(qp, packet, now);
	else if (is_duplicate)
		vb_count(qp->lane, VB_DUPLICATES, 1);
	else if (vb_roce(qp)->selective)
		vb_early_note_trimmed(qp, packet->psn, now);
	else
		go_back(qp, now);
}

static bool is_next_middle(const struct vb_qp *qp, const struct vb_packet *packet)
{
	return packet->opcode == (VB_RC | VB_WRITE_MIDDLE) && packet->psn == qp->responder.expected_psn &&
	       packet->dest_qpn == qp->qpn && packet->payload_length == vb_roce(qp)->responses.full && !packet->ackreq;
}

size_t vb_responder_receive_middles(struct vb_qp *qp, const struct vb_packet *packets, size_t n)
{
	struct vb_responses *rs = &vb_roce(qp)->responses;
	size_t taken = 1;
	if (qp->type != VB_QP_RC || vb_early_has_any(qp) || qp->target.open != VB_MESSAGE_WRITE ||
		vb_state(qp) == VB_QPS_ERR)
		return 0;
	while (taken < n && packets[taken].pkey == packets[0].pkey && is_next_middle(qp, &packets[taken]) &&
		vb_execute_middle(&qp->target, packets[taken].payload, packets[taken].payload_length)) {
		qp->responder.expected_psn = vb_psn_add(qp->responder.expected_psn, 1);
		taken++;
	}
	vb_requester_note_answer(qp, false, qp->lane->now);
	uint32_t bytes = (uint32_t)(taken - 1) * rs->full;
	rs->ack.packets += (uint32_t)taken - 1;
	rs->ack.bytes += bytes;
	vb_count(qp->lane, VB_RX_BYTES, bytes);
	assert(taken <= n);
	return taken - 1;
}

/* The SRQ that the request names is looked up when it is the request's turn: a duplicate may name one that is gone. */
void vb_responder_receive_xrc(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	assert(qp->type == VB_QP_XRC_RECV);
	if (packet->psn == qp->responder.expected_psn && !vb_xrc_turn_to(qp, packet->xrc_srqn))
		conclude(qp, packet, VB_BAD_SRQ, 0, now);
	else
		vb_responder_receive(qp, packet, now);
}
