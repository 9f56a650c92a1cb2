/* Algorithms by which pieces of the data follow each other: chains and double binary trees. */
#include "net/collective_kinds.h"
#include "base/invariant.h"

/* ---- Chains ------------------------------------------------------------------------------------------------------ */

uint32_t collective_chain_down(const struct collective *of, uint32_t place, struct collective_edge *edges)
{
	if (place + 1 == of->ranks)
		return 0;
	edges[0] = (struct collective_edge){ .to = place + 1, .needs = place > 0, .comes_by = 0, .bytes = of->bytes };
	return 1;
}

uint32_t collective_chain_up(const struct collective *of, uint32_t place, struct collective_edge *edges)
{
	if (place == 0)
		return 0;
	edges[0] = (struct collective_edge){
		.to = place - 1, .needs = place + 1 < of->ranks, .comes_by = 0, .bytes = of->bytes
	};
	return 1;
}

uint32_t collective_chain_down_receives(const struct collective *of, uint32_t place)
{
	return place > 0 ? collective_pieces(of->bytes) : 0;
}

uint32_t collective_chain_up_receives(const struct collective *of, uint32_t place)
{
	return place + 1 < of->ranks ? collective_pieces(of->bytes) : 0;
}

/* ---- Double binary trees ----------------------------------------------------------------------------------------- */

/* NCCL's trees (2.30.7, src/graph/trees.cc): the parent of a node whose lowest bit is b has b cleared and the next bit
 * set, or if there is no such node only b cleared; node 0 is the root. In the second tree nodes are mirrored, or with
 * an odd number moved on by one, so that a leaf of one tree is an inner node of the other. */
static uint32_t parent_of(uint32_t node, uint32_t n)
{
	const uint32_t bit = node & -node, up = (node ^ bit) | bit << 1;
	assert(node > 0);
	return up < n ? up : node ^ bit;
}

/* At most one below and one above it. */
static uint32_t children_of(uint32_t node, uint32_t n, uint32_t children[2])
{
	uint32_t count = 0;
	for (uint32_t by = 1u << 30; by > 0; by >>= 1)
		if (node > by && parent_of(node - by, n) == node)
			children[count++] = node - by;
	for (uint32_t by = 1; by < n - node; by <<= 1)
		if (parent_of(node + by, n) == node) {
			assert(count < 2);
			children[count++] = node + by;
		}
	return count;
}

static uint32_t node_of(uint32_t place, uint32_t n, uint32_t tree)
{
	if (tree == 0)
		return place;
	return n % 2 ? (place + n - 1) % n : n - 1 - place;
}

static uint32_t place_of(uint32_t node, uint32_t n, uint32_t tree)
{
	if (tree == 0)
		return node;
	return n % 2 ? (node + 1) % n : n - 1 - node;
}

/* What comes to a node of this tree: by edge 0 from its parent, by 1 and 2 from its children below and above. */
static uint8_t edge_of(uint32_t tree, uint32_t which)
{
	return (uint8_t)(3 * tree + which);
}

static uint64_t bytes_of_tree(const struct collective *of, uint32_t tree)
{
	return tree ? of->bytes / 2 : of->bytes - of->bytes / 2;
}

/* Up: sums of both children; down: what the parent has sent, and at the root what the children have. */
static uint32_t add_tree(const struct collective *of, uint32_t place, uint32_t tree, struct collective_edge *edges)
{
	const uint32_t n = of->ranks, node = node_of(place, n, tree);
	const uint64_t bytes = bytes_of_tree(of, tree);
	uint32_t children[2], count = 0;
	const uint32_t child_count = children_of(node, n, children);
	uint8_t from_children = 0;
	for (uint32_t i = 0; i < child_count; i++)
		from_children |= (uint8_t)(1u << edge_of(tree, 1 + (children[i] > node)));
	if (bytes == 0)
		return 0;
	if (node > 0) {
		const uint32_t parent = parent_of(node, n);
		edges[count++] = (struct collective_edge){ .to = place_of(parent, n, tree),
			.needs = from_children,
			.comes_by = edge_of(tree, 1 + (node > parent)),
			.bytes = bytes };
	}
	for (uint32_t i = 0; i < child_count; i++)
		edges[count++] = (struct collective_edge){ .to = place_of(children[i], n, tree),
			.needs = node > 0 ? (uint8_t)(1u << edge_of(tree, 0)) : from_children,
			.comes_by = edge_of(tree, 0),
			.bytes = bytes };
	return count;
}

uint32_t collective_double_tree(const struct collective *of, uint32_t place, struct collective_edge *edges)
{
	const uint32_t count = add_tree(of, place, 0, edges);
	return count + add_tree(of, place, 1, edges + count);
}

/* By each edge to a neighbour as many come as go. */
uint32_t collective_double_tree_receives(const struct collective *of, uint32_t place)
{
	uint32_t children[2], receives = 0;
	for (uint32_t tree = 0; tree < 2; tree++) {
		const uint32_t node = node_of(place, of->ranks, tree);
		receives += (children_of(node, of->ranks, children) + (node > 0)) *
			    collective_pieces(bytes_of_tree(of, tree));
	}
	return receives;
}
