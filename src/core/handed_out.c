/* Packets at the port: those between transmit and transmit_done. They come back in any order and as late as they
 * like, also when their QP has been reset or is gone.
 *
 * Holds: a completion's cookie says all that is needed of its packet, so nothing is kept for one. It names its QP by
 * index and epoch, never by address: what was handed out in an epoch that is over concerns nobody. The memory of a QP
 * that was destroyed stays until what was out then has come back.
 *
 *   bits 0-31 are the transport's (roce/batch.h), bit 0 of these the generation; 32-47 index of the QP; 48-63 its epoch
 */
#include "core/handed_out.h"
#include "base/invariant.h"
#include "core/lane.h"
#include "core/epochs.h"
#include "core/qp.h"

enum { INDEX_SHIFT = 32, EPOCH_SHIFT = 48 };

/* ---- Going out --------------------------------------------------------------------------------------------------- */

void vb_handed_out_disown(struct vb_qp *qp)
{
	uint64_t epoch = ++qp->lane->epochs;

	qp->cookie = epoch << EPOCH_SHIFT | (uint64_t)(qp->qpn & 0xffff) << INDEX_SHIFT;
	/* Before any completion says that its bytes are the program's again. */
	if (qp->lane->published) {
		atomic_store(&qp->lane->published->epochs[qp->qpn & 0xffff], (uint16_t)epoch);
		atomic_thread_fence(memory_order_seq_cst);
	}
	assert(vb_handed_out_epoch(qp) == (uint16_t)epoch);
}

uint16_t vb_handed_out_epoch(const struct vb_qp *qp)
{
	return (uint16_t)(qp->cookie >> EPOCH_SHIFT);
}

/* ---- Counted ----------------------------------------------------------------------------------------------------- */

void vb_handed_out_add(struct vb_lane *lane, unsigned packets)
{
	lane->handed_out.counts[lane->handed_out.generation & VB_COOKIE_GENERATION] += packets;
	assert(lane->handed_out.counts[lane->handed_out.generation & VB_COOKIE_GENERATION] >= packets);
}

/* The QP whose packet it was, unless that is over. */
struct vb_qp *vb_handed_out_owner(const struct vb_lane *lane, uint64_t cookie)
{
	struct vb_qp *qp = vb_lane_find_qp(lane, (uint32_t)lane->slot << 16 | (cookie >> INDEX_SHIFT & 0xffff));

	return qp && qp->cookie >> EPOCH_SHIFT == cookie >> EPOCH_SHIFT ? qp : NULL;
}

/* The generations change places when somebody waits for the younger one and the older one has come back. */
static void turn_over(struct vb_handed_out *out)
{
	if (out->wanted == out->generation && out->counts[(out->generation + 1) & VB_COOKIE_GENERATION] == 0)
		out->generation++;
}

void vb_handed_out_remove(struct vb_lane *lane, unsigned packets, unsigned odd)
{
	assert(lane->handed_out.counts[0] >= packets - odd && lane->handed_out.counts[1] >= odd);
	lane->handed_out.counts[0] -= packets - odd;
	lane->handed_out.counts[1] -= odd;
	turn_over(&lane->handed_out);
}

/* ---- Waiting for it ---------------------------------------------------------------------------------------------- */

unsigned vb_lane_handed_out(const struct vb_lane *lane)
{
	return lane->handed_out.counts[0] + lane->handed_out.counts[1];
}

uint32_t vb_lane_mark(struct vb_lane *lane)
{
	struct vb_handed_out *out = &lane->handed_out;

	if (out->counts[out->generation & VB_COOKIE_GENERATION] == 0)
		return out->generation - 1; /* the younger one has none yet */
	out->wanted = out->generation;
	turn_over(out);
	return out->wanted;
}

bool vb_lane_is_back(const struct vb_lane *lane, uint32_t mark)
{
	uint32_t later = lane->handed_out.generation - mark;

	return later > 1 || (later == 1 && lane->handed_out.counts[mark & VB_COOKIE_GENERATION] == 0);
}

void vb_lane_publish_epochs(struct vb_lane *lane, struct vb_epochs *epochs)
{
	lane->published = epochs;
}
