/* See starts.h. */
#include "base/invariant.h"
#include "fabric/starts.h"

static bool is_before(const struct flow_state *flows, uint32_t a, uint32_t b)
{
	const vb_time at = flows[a].result.start, other = flows[b].result.start;
	return at != other ? at < other : a < b;
}

/* The earlier of two roots stays a root; the other becomes its first child. */
static uint32_t merge(struct flow_state *flows, uint32_t a, uint32_t b)
{
	if (a == FLOW_NONE || b == FLOW_NONE)
		return a == FLOW_NONE ? b : a;
	const uint32_t first = is_before(flows, a, b) ? a : b, child = first == a ? b : a;
	assert(first != child);
	flows[child].next = flows[first].first_child;
	flows[first].first_child = child;
	return first;
}

uint32_t starts_add(struct flow_state *flows, uint32_t first, uint32_t flow)
{
	flows[flow].next = flows[flow].first_child = FLOW_NONE;
	return merge(flows, first, flow);
}

/* Its children become one heap: first neighbours in pairs, then the pairs one after the other. */
uint32_t starts_remove(struct flow_state *flows, uint32_t first)
{
	assert(first != FLOW_NONE);
	uint32_t pairs = FLOW_NONE, root = FLOW_NONE, rest;
	for (uint32_t a = flows[first].first_child; a != FLOW_NONE; a = rest) {
		const uint32_t b = flows[a].next;
		rest = b == FLOW_NONE ? FLOW_NONE : flows[b].next;
		const uint32_t pair = merge(flows, a, b);
		flows[pair].next = pairs;
		pairs = pair;
	}
	for (; pairs != FLOW_NONE; pairs = rest) {
		rest = flows[pairs].next;
		root = merge(flows, root, pairs);
	}
	assert(root == FLOW_NONE || !is_before(flows, root, first));
	return root;
}
