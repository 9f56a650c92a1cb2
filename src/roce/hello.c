/* Two QPs agree on selective repeat: each says hello to a peer whose host takes hellos, and the peer answers. Until the
 * answer is there, and with whoever gives none, a QP recovers by going back. A hello says nothing that must be in
 * order, and one that is lost is said again when something else seems lost. Its PSN is the first one of who asks, which
 * both ends know from the connection's setup, and a stranger or a late packet of another connection does not. An answer
 * makes both halves of a QP selective; when one end is and the other is not yet, a NAK still means that all behind it
 * comes again, and a bitmap is taken for such a NAK (acknowledgement.c). Not here: which hosts take hellos
 * (broker/discovery.c). */
#include "roce/roce.h"
#include "base/invariant.h"
#include "roce/batch.h"
#include "roce/failover.h"
#include "roce/large.h"
#include "roce/peers.h"
#include "roce/selective.h"

enum { HELLOS = 16 }; /* to a QP that does not answer */

static bool may_agree(const struct vb_qp *qp)
{
	return vb_roce_lane_of(qp)->config.recovery == VB_RECOVERY_AGREED && qp->type == VB_QP_RC;
}

enum vb_recovers vb_hello_outcome(const struct vb_qp *qp)
{
	enum vb_recovery_kind kind = vb_roce_lane_of(qp)->config.recovery;
	if (vb_roce(qp)->selective)
		return VB_RECOVERS_SELECTIVELY;
	if (kind != VB_RECOVERY_AGREED)
		return VB_RECOVERS_BY_SETTING;
	if (qp->type != VB_QP_RC)
		return VB_RECOVERS_BY_TYPE;
	return qp->peer && qp->peer->facts.takes_hellos ? VB_RECOVERS_BEFORE_ANSWER : VB_RECOVERS_BY_PEER;
}

void vb_hello_want(struct vb_qp *qp)
{
	struct vb_roce_qp *roce = vb_roce(qp);
	if (!may_agree(qp) || roce->selective || roce->hellos == HELLOS || !qp->peer || !qp->peer->facts.takes_hellos)
		return;
	assert(roce->hellos < HELLOS);
	roce->hellos++;
	roce->hello_is_due = true;
}

/* Of requests: our own, or the peer's. */
static uint32_t first_psn(const struct vb_qp *qp, bool is_own)
{
	return (is_own ? qp->attr.sq_psn : qp->attr.rq_psn) & VB_PSN_MASK;
}

static void fill(const struct vb_qp *qp, struct vb_packet *packet)
{
	const struct vb_lane_config *config = &vb_roce_lane_of(qp)->config;
	const struct vb_selective *s = vb_roce(qp)->selective;
	packet->hold_bytes = config->hold_bytes;
	packet->large_mtu = vb_large_offer(qp);
	packet->hello =
		(config->fails_over ? VB_HELLO_TAKES_PATHS : 0) | (s && s->large.is_heard ? VB_HELLO_HEARD_LARGE : 0);
}

void vb_hello_emit(struct vb_qp *qp, struct vb_batch *batch)
{
	struct vb_roce_qp *roce = vb_roce(qp);
	assert(qp->type == VB_QP_RC && (roce->hello_is_due || roce->hello_answer_is_due));
	struct vb_outgoing *out = vb_batch_add(batch, qp, VB_HELLO, &qp->attr.av);
	out->packet.psn = first_psn(qp, !roce->hello_answer_is_due);
	fill(qp, &out->packet);
	if (roce->hello_answer_is_due)
		out->packet.hello |= VB_HELLO_ANSWERS;
	roce->hello_is_due = roce->hello_answer_is_due = false;
}

void vb_hello_emit_large(struct vb_qp *qp, struct vb_batch *batch)
{
	struct vb_large *large = &vb_roce(qp)->selective->large;
	struct vb_outgoing *out = vb_batch_add(batch, qp, VB_HELLO, &qp->attr.av);
	assert(large->is_due && large->agreed);
	out->packet.psn = first_psn(qp, true);
	fill(qp, &out->packet);
	vb_large_pad(batch, out, large->agreed + VB_LARGE_HEADERS);
	large->is_due = false;
}

static bool has_asked(const struct vb_qp *qp)
{
	const struct vb_selective *s = vb_roce(qp)->selective;
	return vb_roce(qp)->hellos > 0 || (s && s->large.asked > 0);
}

void vb_hello_receive(struct vb_qp *qp, const struct vb_packet *packet)
{
	enum vb_qp_state state = vb_state(qp);
	bool is_connected = state == VB_QPS_RTR || state == VB_QPS_RTS || state == VB_QPS_SQD;
	bool is_answer = packet->hello & VB_HELLO_ANSWERS;
	bool is_asked_for = !is_answer || (has_asked(qp) && state != VB_QPS_RTR);
	if (!may_agree(qp) || !is_connected || !is_asked_for || packet->psn != first_psn(qp, is_answer)) {
		vb_count(qp->lane, VB_DROP_TRANSPORT, 1);
		return;
	}
	if (vb_selective_begin(qp, packet->hold_bytes))
		return; /* without memory: it goes on as it did */
	vb_congestion_note_agreement(qp, qp->lane->now);
	vb_large_agree(qp, packet->large_mtu);
	if (vb_large_note_hello(qp, packet))
		vb_congestion_note_large(qp);
	if (state != VB_QPS_RTR && vb_large_ask_in_turn(qp, packet))
		vb_roce_schedule(qp);
	vb_roce(qp)->hello_is_due = false;
	if (packet->hello & VB_HELLO_TAKES_PATHS)
		vb_failover_agree(qp, is_answer);
	if (is_answer)
		return;
	vb_roce(qp)->hello_answer_is_due = true;
	vb_schedule_reply(qp);
}
