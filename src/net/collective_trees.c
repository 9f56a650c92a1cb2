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

static struct collective_source source_of(bool is_there, uint32_t place, uint64_t bytes)
{
	return is_there && bytes ? (struct collective_source){ place, 1, bytes } : (struct collective_source){ 0 };
}

struct collective_source collective_chain_down_source(const struct collective *of, uint32_t place, uint32_t edge)
{
	return source_of(edge == 0 && place > 0, place - 1, of->bytes);
}

struct collective_source collective_chain_up_source(const struct collective *of, uint32_t place, uint32_t edge)
{
	return source_of(edge == 0 && place + 1 < of->ranks, place + 1, of->bytes);
}

/* Once round from the first to the last, all of it by each. */
struct collective_law collective_chain_law(const struct collective *of)
{
	const uint32_t gpus = of->gpus > 1 ? of->gpus : 1, hosts = (of->ranks + gpus - 1) / gpus;
	const bool is_in_host = hosts == 1;
	return (struct collective_law){ .alphas = of->ranks - 1,
		.bytes = (double)of->bytes,
		.hops_in_host = of->ranks - hosts - (double)is_in_host,
		.hops_between = hosts - 1 - (double)!is_in_host,
		.piece = of->bytes ? collective_piece(of, of->bytes, 0) : 0 };
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

/* Over hosts with several GPUs the nodes are hosts, and those of a host are a chain from its first place (NCCL's
 * ncclTreeBasePostset). Otherwise each rank is a host. */
static uint32_t gpus_of(const struct collective *of)
{
	return of->gpus > 1 && of->ranks % of->gpus == 0 ? of->gpus : 1;
}

static uint8_t edge_of(uint32_t tree, uint32_t which)
{
	return (uint8_t)(EDGES_OF_A_TREE * tree + which);
}

static uint64_t bytes_of_tree(const struct collective *of, uint32_t tree)
{
	return tree ? of->bytes / 2 : of->bytes - of->bytes / 2;
}

/* A place's neighbours in a tree, by the edge by which they send to it. */
struct neighbours {
	uint32_t at[EDGES_OF_A_TREE];
	uint16_t there; /* a bit for each */
};

static void add_neighbour(struct neighbours *neighbours, uint32_t edge, uint32_t place)
{
	neighbours->at[edge] = place;
	neighbours->there |= (uint16_t)(1u << edge);
}

static struct neighbours neighbours_of(const struct collective *of, uint32_t place, uint32_t tree)
{
	const uint32_t gpus = gpus_of(of), n = of->ranks / gpus, gpu = place % gpus;
	const uint32_t node = node_of(place / gpus, n, tree);
	struct neighbours its = { .there = 0 };
	uint32_t children[2];
	if (gpu + 1 < gpus)
		add_neighbour(&its, FROM_CHAIN, place + 1);
	if (gpu > 0) {
		add_neighbour(&its, FROM_ABOVE, place - 1);
		return its;
	}
	if (node > 0)
		add_neighbour(&its, FROM_ABOVE, place_of(parent_of(node, n), n, tree) * gpus);
	for (uint32_t i = children_of(node, n, children); i-- > 0;)
		add_neighbour(
			&its, children[i] > node ? FROM_HIGHER : FROM_LOWER, place_of(children[i], n, tree) * gpus);
	return its;
}

/* By which edge what a place sends up comes to the place above it. */
static uint8_t comes_up_by(const struct collective *of, uint32_t place, uint32_t above, uint32_t tree)
{
	const struct neighbours its = neighbours_of(of, above, tree);
	uint32_t edge = FROM_LOWER;
	while (!(its.there >> edge & 1) || its.at[edge] != place)
		edge++;
	assert(edge < EDGES_OF_A_TREE);
	return edge_of(tree, edge);
}

/* Up: sums of all that is below; down: what came from above, and at the root those sums. */
static uint32_t add_tree(const struct collective *of, uint32_t place, uint32_t tree, struct collective_edge *edges)
{
	const struct neighbours its = neighbours_of(of, place, tree);
	const uint16_t above = 1u << FROM_ABOVE, below = (uint16_t)(its.there & ~above);
	const uint64_t bytes = bytes_of_tree(of, tree);
	const bool is_root = !(its.there & above);
	uint32_t count = 0;
	if (bytes == 0)
		return 0;
	if (!is_root)
		edges[count++] = (struct collective_edge){ .to = its.at[FROM_ABOVE],
			.needs = (uint16_t)(below << edge_of(tree, 0)),
			.comes_by = comes_up_by(of, place, its.at[FROM_ABOVE], tree),
			.bytes = bytes };
	for (uint32_t i = FROM_LOWER; i <= FROM_CHAIN; i++)
		if (its.there >> i & 1)
			edges[count++] = (struct collective_edge){ .to = its.at[i],
				.needs = (uint16_t)((is_root ? below : above) << edge_of(tree, 0)),
				.comes_by = edge_of(tree, FROM_ABOVE),
				.bytes = bytes };
	return count;
}

uint32_t collective_double_tree(const struct collective *of, uint32_t place, struct collective_edge *edges)
{
	const uint32_t count = add_tree(of, place, 0, edges);
	return count + add_tree(of, place, 1, edges + count);
}

/* A neighbour sends by the edge by which it is sent to. */
struct collective_source collective_double_tree_source(const struct collective *of, uint32_t place, uint32_t edge)
{
	const uint32_t tree = edge / EDGES_OF_A_TREE, which = edge % EDGES_OF_A_TREE;
	const struct neighbours its = neighbours_of(of, place, tree);
	return source_of(its.there >> which & 1, its.at[which], bytes_of_tree(of, tree));
}

/* Its steps, and what the busiest host or rank sends or gets in buffers of S bytes. An inner node sends half of the
 * data up and to two children, and as a leaf of the other tree up: of three nodes none has two children, of two none is
 * an inner one. In a chain of GPUs the inner ones have all of it up and down. */
static struct collective_law law_of_trees(const struct collective *of, uint32_t nodes, uint32_t steps_in_host)
{
	const uint64_t half = bytes_of_tree(of, 0);
	uint32_t depth = 0;
	while (nodes > 1u << depth)
		depth++;
	return (struct collective_law){ .alphas = 2 * (depth + steps_in_host),
		.hops_in_host = 2 * steps_in_host - (double)(depth == 0),
		.hops_between = 2 * depth - (double)(depth > 0),
		.piece = half ? collective_piece(of, half, 0) : 0,
		.bytes = (nodes > 3           ? 2
				 : nodes == 3 ? 1.5
					      : 1) *
			 (double)of->bytes };
}

struct collective_law collective_double_tree_law(const struct collective *of)
{
	const uint32_t gpus = gpus_of(of), n = of->ranks / gpus;
	struct collective_law law = law_of_trees(of, n, gpus - 1);
	if (n == 1 && gpus > 2)
		law.bytes = 2 * (double)of->bytes;
	return law;
}

/* ---- Trees of hosts whose switches reduce ------------------------------------------------------------------------ */

/* Up to the switch, whose sums the first GPU's program counts, and which it sends on. */
static uint32_t add_switched_tree(
	const struct collective *of, uint32_t place, uint32_t tree, struct collective_edge *edges)
{
	const uint32_t head = place / of->gpus * of->gpus, nodes = of->ranks / of->gpus;
	const struct collective between = { .ranks = nodes, .bytes = of->bytes };
	const uint64_t bytes = bytes_of_tree(of, tree);
	const uint16_t sum = (uint16_t)(1u << edge_of(tree, FROM_CHAIN));
	uint32_t count = 0;
	if (bytes == 0)
		return 0;
	if (place == head)
		count = add_tree(&between, place / of->gpus, tree, edges);
	const bool is_root = node_of(place / of->gpus, nodes, tree) == 0;
	for (uint32_t i = 0; i < count; i++) {
		if (is_root || edges[i].comes_by != edge_of(tree, FROM_ABOVE))
			edges[i].needs |= sum;
		edges[i].to *= of->gpus;
	}
	edges[count++] = (struct collective_edge){
		.to = head, .comes_by = edge_of(tree, FROM_CHAIN), .is_of_sum = true, .bytes = bytes
	};
	if (place != head)
		return count;
	const struct neighbours its = neighbours_of(&between, place / of->gpus, tree);
	edges[count++] = (struct collective_edge){ .to = head,
		.needs = is_root ? (uint16_t)(its.there << edge_of(tree, 0)) | sum
				 : (uint16_t)(1u << edge_of(tree, FROM_ABOVE)),
		.comes_by = edge_of(tree, FROM_SWITCH),
		.is_copy = true,
		.bytes = bytes };
	return count;
}

uint32_t collective_nvls(const struct collective *of, uint32_t place, struct collective_edge *edges)
{
	const uint32_t count = add_switched_tree(of, place, 0, edges);
	return count + add_switched_tree(of, place, 1, edges + count);
}

struct collective_source collective_nvls_source(const struct collective *of, uint32_t place, uint32_t edge)
{
	const uint32_t tree = edge / EDGES_OF_A_TREE, which = edge % EDGES_OF_A_TREE;
	const uint32_t head = place / of->gpus * of->gpus;
	const struct collective between = { .ranks = of->ranks / of->gpus, .bytes = of->bytes };
	struct collective_source source = source_of(true, head, bytes_of_tree(of, tree));
	if (which == FROM_SWITCH)
		return source;
	if (place != head)
		return (struct collective_source){ 0 };
	if (which == FROM_CHAIN)
		source.count *= of->gpus;
	else
		source = collective_double_tree_source(&between, place / of->gpus, edge);
	if (which != FROM_CHAIN)
		source.first *= of->gpus;
	return source;
}

/* In one host each GPU's port has S each way. */
struct collective_law collective_nvls_law(const struct collective *of)
{
	return law_of_trees(of, of->ranks / of->gpus, 1);
}
