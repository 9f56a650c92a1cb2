/* Same host: what was executed and is still to be said, and when it leaves.
 * Holds: an answer of its own goes before anything more is executed; what is owed goes before the next descriptor, or
 * with it. */
#include <stdlib.h>
#include "base/invariant.h"
#include "core/lane.h"
#include "local/parts.h"

uint8_t vb_local_carry_ack(struct vb_qp *qp, struct vb_descriptor *descriptor)
{
	struct vb_pending_ack *ack = qp->local->ack;
	if (!ack || ack->to != qp->local_peer || !vb_list_linked(&ack->link) || ack->goes_alone)
		return 0;
	vb_list_remove(&ack->link);
	ack->is_carried = true;
	descriptor->acked = ack->psn;
	assert(!vb_list_linked(&ack->link));
	return VB_LOCAL_ACKED;
}

static bool tell_one(struct vb_pending_ack *ack, struct vb_local_room *room)
{
	if (room->answer_count == room->answer_max)
		return false;
	vb_list_remove(&ack->link);
	room->answers[room->answer_count++] = (struct vb_answer){
		.dest_qpn = ack->dest_qpn, .src_qpn = ack->src_qpn, .psn = ack->psn, .kind = VB_ANSWER_DONE
	};
	room->is_awaited |= ack->is_awaited;
	if (ack->is_orphan)
		free(ack);
	assert(room->answer_count <= room->answer_max);
	return true;
}

bool vb_local_send_acks(struct vb_local_peer *peer, struct vb_local_room *room, const struct vb_pending_ack *but)
{
	for (struct vb_list *node = peer->pending_acks.next, *next; node != &peer->pending_acks; node = next) {
		struct vb_pending_ack *ack = vb_container_of(node, struct vb_pending_ack, link);
		next = node->next;
		if (ack != but && !tell_one(ack, room))
			return false;
	}
	return true;
}

/* An ABSENT answer acknowledges nothing before it, so what is owed is said first. */
bool vb_local_tell_pending(struct vb_local_peer *peer, struct vb_local_room *room)
{
	if (!peer->has_pending)
		return true;
	if (peer->pending.kind == VB_ANSWER_ABSENT && !vb_local_send_acks(peer, room, NULL))
		return false;
	if (room->answer_count == room->answer_max)
		return false;
	room->answers[room->answer_count++] = peer->pending;
	room->is_awaited = true;
	peer->has_pending = false;
	assert(!peer->has_pending);
	return true;
}
