/* Same host, the responder: WRITEs that wait behind the one that is being pulled, and are pulled with it. What the
 * kernel does before it copies anything costs as much as some pages' copying.
 * Holds: what is pulled was opened by its request's key just before, and nothing on the way to its execution can close
 * that; each is executed in its turn, and its last bytes land then, so that no later one's may lie on an earlier one's
 * last. */
#include "core/execute.h"
#include "base/invariant.h"
#include "core/lane.h"
#include "local/receive.h"
#include "core/memory.h"
#include "core/qp.h"

/* One that brings nothing but its bytes: no completion here, and no word of what we have asked, upon which keys may
 * close. */
static bool is_plain(const struct vb_qp *qp, const struct vb_descriptor *request)
{
	return qp->type == VB_QP_RC && request->opcode == (uint8_t)(qp->service | VB_WRITE_ONLY) &&
	       request->place == VB_LOCAL_LENT && !(request->flags & VB_LOCAL_ACKED);
}

static bool follows(const struct vb_descriptor *first, const struct vb_descriptor *request, unsigned distance)
{
	return request->dest_qpn == first->dest_qpn && request->src_qpn == first->src_qpn &&
	       request->psn == vb_psn_add(first->psn, distance) && request->lent.epoch == first->lent.epoch &&
	       vb_local_is_lendable_length(request->length);
}

void vb_local_foresee(struct vb_local_peer *peer, const struct vb_descriptor *next, unsigned n)
{
	const struct vb_descriptor *first = &peer->pulled;
	const struct vb_qp *qp = peer->puller;
	unsigned count = 0;
	if (is_plain(qp, first))
		while (count < n && count < VB_LOCAL_PULL_ITEMS - 1 && is_plain(qp, &next[count]) &&
			follows(first, &next[count], count + 1)) {
			peer->ahead[count].request = next[count];
			count++;
		}
	peer->ahead_count = count;
	assert(count < VB_LOCAL_PULL_ITEMS);
}

static bool overlap(const uint8_t *a, size_t a_length, const uint8_t *b, size_t b_length)
{
	return (uintptr_t)a < (uintptr_t)b + b_length && (uintptr_t)b < (uintptr_t)a + a_length;
}

/* Last bytes of those before would land on what was pulled behind them. Places are whole but for their last bytes. */
static bool is_ended_over(const struct vb_local_pull *pull, const uint8_t *bytes, uint32_t length)
{
	for (unsigned i = 0; i < pull->iov_count; i += 2) {
		const uint8_t *end = (const uint8_t *)pull->iov[i].base + pull->iov[i].length;
		if (overlap(end, pull->iov[i + 1].length, bytes, length))
			return true;
	}
	return false;
}

void vb_local_pull_ahead(struct vb_local_peer *peer, struct vb_local_pull *pull)
{
	const struct vb_target *target = &peer->puller->target;
	if (pull->iov_count != 2)
		return;
	for (unsigned i = 0; i < peer->ahead_count; i++) {
		struct vb_local_ahead *ahead = &peer->ahead[i];
		const struct vb_descriptor *request = &ahead->request;
		uint32_t body = request->length - (uint32_t)sizeof(ahead->tail);
		struct vb_reach place;
		if (!vb_local_pull_has_room(pull, request->length, 2) ||
			vb_reach_remote(target->pd, target->qp->qpn, request->rkey, request->va, request->length,
				VB_ACCESS_REMOTE_WRITE, &place) ||
			place.kind || is_ended_over(pull, place.bytes, body))
			return;
		vb_local_pull_add(pull, request->lent.address, request->length, request->lent.segment);
		pull->iov[pull->iov_count++] = (struct vb_iov){ place.bytes, body };
		pull->iov[pull->iov_count++] = (struct vb_iov){ ahead->tail, sizeof(ahead->tail) };
		ahead->place = place.bytes;
		peer->pulled_ahead = i + 1;
	}
	assert(peer->pulled_ahead <= peer->ahead_count);
}
