/* Packets are put into a batch: what they have in common, and where their bytes are. */
#include "roce/roce.h"
#include "base/invariant.h"
#include "roce/batch.h"
#include "core/memory.h"
#include "core/message.h"
#include "roce/multipath.h"
#include "roce/peers.h"
#include "roce/selective.h"

struct vb_outgoing *vb_batch_add(struct vb_batch *batch, struct vb_qp *qp, uint8_t opcode, const struct vb_av *av)
{
	struct vb_outgoing *out = &batch->out[batch->count++];
	memset(&out->packet, 0, sizeof(out->packet));
	out->packet.opcode = opcode;
	out->packet.pkey = VB_PKEY_DEFAULT;
	out->packet.dest_qpn = qp->attr.dest_qpn;
	out->av = av;
	out->iov_first = (uint16_t)batch->iov_count;
	out->iov_count = 0;
	out->flow = qp->flow;
	out->again = VB_SENT_FIRST;
	out->ends_train = false;
	out->to_trains = qp->peer && qp->peer->facts.is_verbena;
	out->qp = qp;
	batch->completions[batch->count - 1] = (struct vb_tx_completion){ .cookie = qp->cookie };
	return out;
}

void vb_batch_set_psn(struct vb_outgoing *out, const struct vb_qp *qp, uint32_t psn)
{
	const struct vb_selective *s = vb_roce(qp)->selective;
	out->packet.psn = psn;
	if (s && s->paths)
		vb_multipath_take(qp, out, psn);
}

void vb_batch_undo(struct vb_batch *batch)
{
	assert(batch->count > 0);
	batch->iov_count = batch->out[--batch->count].iov_first;
}

void vb_batch_add_iov(struct vb_batch *batch, struct vb_outgoing *out, const void *bytes, size_t length)
{
	if (!bytes)
		return;
	batch->iov[batch->iov_count++] = (struct vb_iov){ (void *)bytes, length };
	out->iov_count++;
}

bool vb_batch_is_present(const struct vb_lane *lane, const struct vb_batch *batch)
{
	const struct vb_lane_config *config = &vb_roce_lane(lane)->config;
	assert(batch->count > 0);
	const struct vb_outgoing *out = &batch->out[batch->count - 1];
	for (unsigned i = 0; config->is_present && i < out->iov_count; i++) {
		const struct vb_iov *iov = &batch->iov[out->iov_first + i];
		if (!config->is_present(iov->base, iov->length, false))
			return false;
	}
	return true;
}

/* One entry and several packets: the entry's key is looked up once. If it does not open the whole entry, the part
 * that it opens is sent. */
static bool add_part(struct vb_batch *batch, struct vb_outgoing *out, const struct vb_qp *qp, struct vb_send_wqe *wqe,
	uint32_t offset, uint32_t length)
{
	const struct vb_sge *sge = &wqe->sges[0];
	struct vb_reach part;
	assert(wqe->sge_count == 1 && wqe->psn_count > 1);
	if (!vb_reach_part(&wqe->whole, offset, length, false, &part)) {
		if (vb_reach_whole(qp->pd, sge, &wqe->whole))
			wqe->whole.stamp = NULL;
		if (vb_reach_local(qp->pd, sge, offset, length, 0, &part))
			return false;
	}
	vb_batch_add_iov(batch, out, vb_load(&part, length), length);
	return true;
}

bool vb_batch_add_wqe(struct vb_batch *batch, struct vb_outgoing *out, struct vb_qp *qp, struct vb_send_wqe *wqe,
	uint32_t offset, uint32_t length)
{
	out->packet.payload_length = length;
	if (length == 0)
		return true;
	const uint8_t *own = own_bytes(wqe);
	if (own) {
		vb_batch_add_iov(batch, out, own + offset, length);
		return true;
	}
	if (wqe->sge_count == 1 && wqe->psn_count > 1)
		return add_part(batch, out, qp, wqe, offset, length);
	for (uint32_t i = 0; i < wqe->sge_count && length > 0; i++) {
		const struct vb_sge *sge = &wqe->sges[i];
		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		uint32_t part = sge->length - offset < length ? sge->length - offset : length;
		struct vb_reach reach;
		if (vb_reach_local_known(qp->pd, &qp->known_lkey, sge, offset, part, 0, &reach))
			return false;
		vb_batch_add_iov(batch, out, vb_load(&reach, part), part);
		length -= part;
		offset = 0;
	}
	return length == 0;
}

/* ---- What a completion tells ------------------------------------------------------------------------------------- */

void vb_batch_is_message(struct vb_batch *batch)
{
	assert(batch->count > 0);
	batch->completions[batch->count - 1].cookie |= VB_COOKIE_MESSAGE;
}

void vb_batch_is_response(struct vb_batch *batch)
{
	assert(batch->count > 0);
	batch->completions[batch->count - 1].cookie |= VB_COOKIE_RESPONSE;
}

void vb_batch_hand_out(struct vb_lane *lane, struct vb_batch *batch)
{
	unsigned generation = lane->handed_out.generation & VB_COOKIE_GENERATION;
	uint64_t bytes = 0;
	assert(batch->count <= VB_BATCH_PACKETS && batch->iov_count <= VB_BATCH_IOV);

	for (unsigned i = 0; i < batch->count; i++) {
		const struct vb_packet *packet = &batch->out[i].packet;
		batch->completions[i].cookie |= (uint64_t)packet->psn << VB_COOKIE_PSN_SHIFT | generation |
						(packet->payload_length ? VB_COOKIE_PAYLOAD : 0);
		bytes += vb_packet_data_length(packet);
	}
	vb_count(lane, VB_TX_PACKETS, batch->count);
	vb_count(lane, VB_TX_BYTES, bytes);
	vb_handed_out_add(lane, batch->count);
}
