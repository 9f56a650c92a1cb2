/* Invariant: nothing waits for ever. What is posted completes within a bounded time, whatever the network does. */
#include "sim.h"

#define PATIENCE (10 * VB_S)

void check_progress(void)
{
	for (unsigned i = 0; i < world.connection_count; i++) {
		for (int k = 0; k < 2; k++) {
			struct endpoint *end = &world.connections[i].ends[k];
			if (!end->qp || end->head == end->tail)
				continue;
			vb_time waits = vb_time_diff(world.now, end->progress_at);
			bool is_signalled = false;
			for (unsigned j = end->head; j != end->tail; j++)
				is_signalled |= end->posted[j % MAX_QUEUE].is_signalled;
			if (is_signalled && waits > PATIENCE)
				broken("connection %u, qpn %06x: %u requests, and none completes for %lld ms", i, end->qpn,
					end->tail - end->head, (long long)(waits / VB_MS));
		}
	}
}
