/* The algorithms that collectives.c has in its table and others make. */
#ifndef NET_COLLECTIVE_KINDS_H
#define NET_COLLECTIVE_KINDS_H

#include "net/collectives.h"

/* collective_trees.c: the edges of a place, and how many there are. */
uint32_t collective_chain_down(const struct collective *of, uint32_t place, struct collective_edge *edges);
uint32_t collective_chain_up(const struct collective *of, uint32_t place, struct collective_edge *edges);
uint32_t collective_double_tree(const struct collective *of, uint32_t place, struct collective_edge *edges);
/* The ranks that send to it by an edge. */
struct collective_source collective_chain_down_source(const struct collective *of, uint32_t place, uint32_t edge);
struct collective_source collective_chain_up_source(const struct collective *of, uint32_t place, uint32_t edge);
struct collective_source collective_double_tree_source(const struct collective *of, uint32_t place, uint32_t edge);
struct collective_source collective_nvls_source(const struct collective *of, uint32_t place, uint32_t edge);
struct collective_law collective_chain_law(const struct collective *of);
struct collective_law collective_double_tree_law(const struct collective *of);
uint32_t collective_nvls(const struct collective *of, uint32_t place, struct collective_edge *edges);
struct collective_law collective_nvls_law(const struct collective *of);

/* Edges by which data comes to a place, of each of two trees: FROM_ABOVE sums of all, FROM_LOWER and FROM_HIGHER sums
 * of a part, FROM_CHAIN those of the host's GPUs by a chain or a switch, FROM_SWITCH copies of sums of all. */
enum { FROM_ABOVE, FROM_LOWER, FROM_HIGHER, FROM_CHAIN, FROM_SWITCH, EDGES_OF_A_TREE };

#endif
