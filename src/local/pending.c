/* Same host: what was executed and is still to be said, and when it leaves.
 * Holds: an answer of its own goes before anything more is executed; what is owed goes before the next descriptor, or
 * with it. */
#include <stdlib.h>
#include "base/invariant.h"
#include "core/lane.h"
#include "local/parts.h"

uint8_t vb_local_carry_debt(struct vb_qp *qp, struct vb_descriptor *descriptor)
{
	struct vb_debt *debt = qp->local->debt;
	if (!debt || debt->to != qp->neighbour || !vb_list_linked(&debt->link))
		return 0;
	vb_list_remove(&debt->link);
	descriptor->acked = debt->psn;
	assert(!vb_list_linked(&debt->link));
	return VB_LOCAL_ACKED;
}

static bool tell_one(struct vb_debt *debt, struct vb_local_room *room)
{
	if (room->answer_count == room->answer_max)
		return false;
	vb_list_remove(&debt->link);
	room->answers[room->answer_count++] = (struct vb_answer){
		.dest_qpn = debt->dest_qpn, .src_qpn = debt->src_qpn, .psn = debt->psn, .kind = VB_ANSWER_DONE
	};
	if (debt->is_orphan)
		free(debt);
	assert(room->answer_count <= room->answer_max);
	return true;
}

bool vb_local_tell_debts(struct vb_neighbour *neighbour, struct vb_local_room *room, const struct vb_debt *but)
{
	for (struct vb_list *node = neighbour->debts.next, *next; node != &neighbour->debts; node = next) {
		struct vb_debt *debt = vb_container_of(node, struct vb_debt, link);
		next = node->next;
		if (debt != but && !tell_one(debt, room))
			return false;
	}
	return true;
}

/* An ABSENT answer acknowledges nothing before it, so what is owed is said first. */
bool vb_local_tell_pending(struct vb_neighbour *neighbour, struct vb_local_room *room)
{
	if (!neighbour->has_pending)
		return true;
	if (neighbour->pending.kind == VB_ANSWER_ABSENT && !vb_local_tell_debts(neighbour, room, NULL))
		return false;
	if (room->answer_count == room->answer_max)
		return false;
	room->answers[room->answer_count++] = neighbour->pending;
	neighbour->has_pending = false;
	assert(!neighbour->has_pending);
	return true;
}
