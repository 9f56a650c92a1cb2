/* Same host: what is pulled next, of messages that the other side lends and of READs, and what follows from it. */
#include <string.h>
#include "core/lane.h"
#include "base/invariant.h"
#include "local/receive.h"

/* Pieces of both in turn, so that neither waits for the other's end. */
bool vb_local_pull(struct vb_neighbour *neighbour, struct vb_local_pull *pull, vb_time now)
{
	neighbour->reader = NULL;
	if (!vb_local_wants_pull(neighbour))
		return false;
	neighbour->lane->now = now;
	neighbour->is_readers_turn = !neighbour->is_readers_turn;
	if (neighbour->is_readers_turn && vb_local_pull_read(neighbour, pull))
		return true;
	return vb_local_pull_message(neighbour, pull, now) || vb_local_pull_read(neighbour, pull);
}

/* The message is done. Those that were pulled with it are taken now, each like any other. */
static unsigned take_ahead(struct vb_neighbour *neighbour, vb_time now)
{
	unsigned taken = 0, pulled = neighbour->pulled_ahead;
	while (taken < pulled && !neighbour->puller && !neighbour->has_pending) {
		const struct vb_local_ahead *ahead = &neighbour->ahead[taken];
		if (vb_local_is_held(neighbour, &ahead->request))
			break;
		taken++;
		memcpy(neighbour->tail, ahead->tail, sizeof(ahead->tail));
		neighbour->here = ahead->place;
		vb_local_take_one(neighbour, &ahead->request, NULL, NULL, now);
		neighbour->here = NULL;
	}
	assert(taken <= pulled);
	return taken;
}

unsigned vb_local_pulled(struct vb_neighbour *neighbour, enum vb_local_outcome outcome, vb_time now)
{
	unsigned taken = 0;
	neighbour->lane->now = now;
	if (neighbour->reader) {
		struct vb_qp *finished = vb_local_read_pulled(neighbour, outcome, now);
		if (finished)
			vb_local_go_on(finished, now);
	} else if (vb_local_message_pulled(neighbour, outcome, now)) {
		taken = take_ahead(neighbour, now);
	}
	vb_lane_reap(neighbour->lane);
	return taken;
}
