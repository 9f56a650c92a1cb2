/* What is at the port: packets between transmit and transmit_done. They come back in any order and as late as they
 * like, also when their QP has been reset or is gone.
 *
 * Holds: a receipt's cookie says all that is needed of its packet, so nothing is kept for one. It names its QP by index
 * and life, never by address: what was handed out in a life that is over concerns nobody. The memory of a QP that was
 * destroyed stays until what was out then has come back.
 *
 *   bits  0 generation, 1 of an unreliable message, 2 has a READ response's bytes, 3 has bytes; 8-31 PSN; 32-47 index
 *   of the
 *   QP; 48-63 its life */
#include <errno.h>
#include "base/invariant.h"
#include "engine/handed_out.h"
#include "engine/lane.h"
#include "engine/local.h"
#include "engine/qp.h"
#include "engine/requester.h"
#include "engine/responder.h"

enum { GENERATION = 1, MESSAGE = 2, RESPONSE = 4, PAYLOAD = 8 };
enum { PSN_SHIFT = 8, INDEX_SHIFT = 32, LIFE_SHIFT = 48 };

/* ---- Going out ------------------------------------------------------------------------------------------------- */

void vb_handed_out_disown(struct vb_qp *qp)
{
	uint64_t life = ++qp->lane->handed_out.lives;

	qp->cookie = life << LIFE_SHIFT | (uint64_t)(qp->qpn & 0xffff) << INDEX_SHIFT;
	/* Before any completion says that its bytes are the program's again. */
	if (qp->lane->handed_out.published) {
		atomic_store(&qp->lane->handed_out.published->lives[qp->qpn & 0xffff], (uint16_t)life);
		atomic_thread_fence(memory_order_seq_cst);
	}
}

uint16_t vb_handed_out_life(const struct vb_qp *qp)
{
	return (uint16_t)(qp->cookie >> LIFE_SHIFT);
}

void vb_handed_out_is_message(struct vb_batch *batch)
{
	batch->receipts[batch->count - 1].cookie |= MESSAGE;
}

void vb_handed_out_is_response(struct vb_batch *batch)
{
	batch->receipts[batch->count - 1].cookie |= RESPONSE;
}

void vb_handed_out_add(struct vb_lane *lane, struct vb_batch *batch)
{
	unsigned generation = lane->handed_out.generation & GENERATION;
	uint64_t bytes = 0;

	for (unsigned i = 0; i < batch->count; i++) {
		const struct vb_packet *packet = &batch->out[i].packet;
		batch->receipts[i].cookie |=
			(uint64_t)packet->psn << PSN_SHIFT | generation | (packet->payload_length ? PAYLOAD : 0);
		bytes += packet->payload_length;
	}
	vb_count(lane, VB_TX_PACKETS, batch->count);
	vb_count(lane, VB_TX_BYTES, bytes);
	lane->handed_out.counts[generation] += batch->count;
}

/* ---- Coming back ----------------------------------------------------------------------------------------------- */

/* The QP whose packet it was, unless that is over. */
static struct vb_qp *find_owner(const struct vb_lane *lane, uint64_t cookie)
{
	struct vb_qp *qp = vb_lane_find_qp(lane, (uint32_t)lane->config.slot << 16 | (cookie >> INDEX_SHIFT & 0xffff));

	return qp && qp->cookie >> LIFE_SHIFT == cookie >> LIFE_SHIFT ? qp : NULL;
}

static void take_note(struct vb_lane *lane, const struct vb_receipt *receipt, vb_time now)
{
	struct vb_qp *qp = find_owner(lane, receipt->cookie);
	uint32_t psn = receipt->cookie >> PSN_SHIFT & VB_PSN_MASK;

	if (receipt->error)
		vb_count(lane, VB_TX_ERRORS, 1);
	if (!qp)
		return;
	bool lacks_memory = receipt->error == EFAULT && (receipt->cookie & PAYLOAD);
	if (lacks_memory && (receipt->cookie & RESPONSE))
		vb_responder_fault(qp, psn, now);
	else if (lacks_memory)
		vb_requester_fault(qp, psn, VB_CAUSE_LOCAL_FAULT, now);
	if (receipt->cookie & MESSAGE)
		vb_requester_left(qp, psn, now);
}

/* The generations change places when somebody waits for the younger one and the older one has come back. */
static void turn_over(struct vb_handed_out *out)
{
	if (out->wanted == out->generation && out->counts[(out->generation + 1) & GENERATION] == 0)
		out->generation++;
}

static void free_left(struct vb_lane *lane)
{
	while (!vb_list_empty(&lane->leaving)) {
		struct vb_qp *qp = vb_container_of(lane->leaving.next, struct vb_qp, leaving_link);
		if (!vb_lane_is_back(lane, qp->leaving_mark))
			return;
		vb_list_remove(&qp->leaving_link);
		vb_qp_free(qp);
	}
}

void vb_lane_transmit_done(struct vb_lane *lane, const struct vb_receipt *receipts, unsigned count, vb_time now)
{
	unsigned odd = 0;

	lane->now = now;
	for (unsigned i = 0; i < count; i++) {
		odd += receipts[i].cookie & GENERATION;
		if ((receipts[i].cookie & MESSAGE) || receipts[i].error)
			take_note(lane, &receipts[i], now);
	}
	assert(lane->handed_out.counts[0] >= count - odd && lane->handed_out.counts[1] >= odd);
	lane->handed_out.counts[0] -= count - odd;
	lane->handed_out.counts[1] -= odd;
	turn_over(&lane->handed_out);
	free_left(lane);
	vb_lane_reap(lane);
}

/* ---- Waiting for it -------------------------------------------------------------------------------------------- */

unsigned vb_lane_handed_out(const struct vb_lane *lane)
{
	return lane->handed_out.counts[0] + lane->handed_out.counts[1];
}

uint32_t vb_lane_mark(struct vb_lane *lane)
{
	struct vb_handed_out *out = &lane->handed_out;

	if (out->counts[out->generation & GENERATION] == 0)
		return out->generation - 1; /* the younger one has none yet */
	out->wanted = out->generation;
	turn_over(out);
	return out->wanted;
}

bool vb_lane_is_back(const struct vb_lane *lane, uint32_t mark)
{
	uint32_t later = lane->handed_out.generation - mark;

	return later > 1 || (later == 1 && lane->handed_out.counts[mark & GENERATION] == 0);
}

void vb_qp_leave(struct vb_qp *qp)
{
	if (vb_lane_handed_out(qp->lane) == 0) {
		vb_qp_free(qp);
		return;
	}
	qp->leaving_mark = vb_lane_mark(qp->lane);
	vb_list_add_tail(&qp->lane->leaving, &qp->leaving_link);
}
