/* See starts.h. */
#include "base/invariant.h"
#include "fabric/starts.h"

static bool is_before(const struct fabric *fabric, uint32_t a, uint32_t b)
{
	const struct flow_state *one = flow_at(fabric, a), *other = flow_at(fabric, b);
	if (one->due != other->due)
		return one->due < other->due;
	return one->job != other->job ? one->job < other->job : one->tag < other->tag;
}

/* The earlier of two roots stays a root; the other becomes its first child. */
static uint32_t merge(const struct fabric *fabric, uint32_t a, uint32_t b)
{
	if (a == FLOW_NONE || b == FLOW_NONE)
		return a == FLOW_NONE ? b : a;
	const uint32_t first = is_before(fabric, a, b) ? a : b, child = first == a ? b : a;
	assert(first != child);
	flow_at(fabric, child)->next = flow_at(fabric, first)->first_child;
	flow_at(fabric, first)->first_child = child;
	return first;
}

uint32_t starts_add(const struct fabric *fabric, uint32_t first, uint32_t flow)
{
	flow_at(fabric, flow)->next = flow_at(fabric, flow)->first_child = FLOW_NONE;
	return merge(fabric, first, flow);
}

/* Its children become one heap: first neighbours in pairs, then the pairs one after the other. */
uint32_t starts_remove(const struct fabric *fabric, uint32_t first)
{
	assert(first != FLOW_NONE);
	uint32_t pairs = FLOW_NONE, root = FLOW_NONE, rest;
	for (uint32_t a = flow_at(fabric, first)->first_child; a != FLOW_NONE; a = rest) {
		const uint32_t b = flow_at(fabric, a)->next;
		rest = b == FLOW_NONE ? FLOW_NONE : flow_at(fabric, b)->next;
		const uint32_t pair = merge(fabric, a, b);
		flow_at(fabric, pair)->next = pairs;
		pairs = pair;
	}
	for (; pairs != FLOW_NONE; pairs = rest) {
		rest = flow_at(fabric, pairs)->next;
		root = merge(fabric, root, pairs);
	}
	assert(root == FLOW_NONE || !is_before(fabric, root, first));
	return root;
}
