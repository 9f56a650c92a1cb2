/* Invariant: where both directions are descriptors, no program sees the answer to a message before that message's own
 * completion. */
#include "engine/qp.h"
#include "local.h"

/* Which local peer a request goes to, if it does; another after each loss. */
static unsigned way_of(const struct endpoint *end)
{
	const struct pairing *pairing = end->qp->local_peer ? pairing_of(end->lane, end->peer->lane) : NULL;
	return pairing ? pairing->generation : 0;
}

void answer_posted(struct endpoint *end, struct wr *wr)
{
	wr->way = world.is_local ? way_of(end) : 0;
	wr->heard = end->heard_id;
}

void check_answer(struct endpoint *end, const struct inbound *in)
{
	end->heard_id = in->id;
	if (in->way == 0 || !end->qp || way_of(end) != in->way)
		return;
	for (unsigned i = end->head; i != end->tail; i++) {
		const struct wr *wr = &end->posted[i % MAX_QUEUE];
		if (wr->id <= in->heard && wr->is_signalled && wr->way == in->way)
			broken("qpn %06x: %llu answers %llu, which has not completed", end->qpn,
				(unsigned long long)in->id, (unsigned long long)wr->id);
	}
}
