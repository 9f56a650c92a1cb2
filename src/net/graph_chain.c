/* See graph_chain.h. */
#include "net/graph_chain.h"

struct graph_chain graph_chain_after(const struct graph_carried *message, uint64_t tag, vb_time at)
{
	struct graph_chain chain = message->chain;
	const vb_time took = at - message->sent;
	if (chain.transfers++ == 0 || took > chain.longest.took)
		chain.longest = (struct graph_transfer){ tag, message->from, message->to, message->sent, took };
	return chain;
}
