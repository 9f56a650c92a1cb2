/* Same host: what is pulled next, of messages that the other side lends and of READs, and what follows from it. */
#include <string.h>
#include "core/lane.h"
#include "base/invariant.h"
#include "local/receive.h"

/* Pieces of both in turn, so that neither waits for the other's end. */
bool vb_local_pull(struct vb_local_peer *peer, struct vb_local_pull *pull, vb_time now)
{
	peer->reader = NULL;
	if (!vb_local_wants_pull(peer))
		return false;
	peer->lane->now = now;
	peer->is_readers_turn = !peer->is_readers_turn;
	if (peer->is_readers_turn && vb_local_pull_read(peer, pull))
		return true;
	return vb_local_pull_message(peer, pull, now) || vb_local_pull_read(peer, pull);
}

/* The message is done. Those that were pulled with it are taken now, each like any other. */
static unsigned take_ahead(struct vb_local_peer *peer, vb_time now)
{
	unsigned taken = 0, pulled = peer->pulled_ahead;
	while (taken < pulled && !peer->puller && !peer->has_pending) {
		const struct vb_local_ahead *ahead = &peer->ahead[taken];
		if (vb_local_is_held(peer, &ahead->request))
			break;
		taken++;
		memcpy(peer->tail, ahead->tail, sizeof(ahead->tail));
		peer->here = ahead->place;
		vb_local_take_one(peer, &ahead->request, NULL, NULL, now);
		peer->here = NULL;
	}
	assert(taken <= pulled);
	return taken;
}

unsigned vb_local_pulled(struct vb_local_peer *peer, enum vb_local_outcome outcome, vb_time now)
{
	unsigned taken = 0;
	peer->lane->now = now;
	if (peer->reader) {
		struct vb_qp *finished = vb_local_read_pulled(peer, outcome, now);
		if (finished)
			vb_local_go_on(finished, now);
	} else if (vb_local_message_pulled(peer, outcome, now)) {
		taken = take_ahead(peer, now);
	}
	vb_lane_reap(peer->lane);
	return taken;
}
