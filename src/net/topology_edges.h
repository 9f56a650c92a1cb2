/* The links of a file of a network, before they are one. */
#ifndef NET_TOPOLOGY_EDGES_H
#define NET_TOPOLOGY_EDGES_H

#include "net/text.h"
#include "net/topologies.h"

struct edge {
	uint32_t a, b; /* endpoints, then switches */
	uint64_t bits_per_second;
	vb_time delay;
	uint32_t loss_ppm;
	uint32_t line; /* of the file */
};

struct edges {
	struct edge *all; /* the reader's to free */
	uint32_t count, room;
	uint32_t nodes, endpoints;
	uint32_t a_machine; /* consecutive endpoints of a machine; 0: one */
};

#define EDGES_MOST_DELAY ((uint64_t)VB_HORIZON)

bool edges_take_node(struct span *line, char separator, uint32_t nodes, uint32_t *node);

/* 0; -EINVAL and the text's why; -ENOMEM. */
int edges_add(struct edges *edges, const struct text *text, const struct edge *edge);

/* A link as HPCC's text and SimAI's have it, "a b 100Gbps 0.001ms 0". The last number is the share of lost packets. */
int edges_read_link(struct edges *edges, const struct text *text, struct span line);

/* See topology_read_htsim. */
int edges_build(
	const struct edges *edges, const struct text *text, const struct topology *like, struct network *network);

#endif
