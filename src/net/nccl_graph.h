/* The channels that NCCL's search of a host finds, and their rates. See nccl.h. */
#ifndef NET_NCCL_GRAPH_H
#define NET_NCCL_GRAPH_H

#include "net/nccl.h"

struct nccl_graph {
	uint32_t channels;       /* of the search; connecting them doubles them */
	double in_host, between; /* GB/s of each */
};

uint32_t nccl_generation(uint32_t capability); /* 0: Ampere, 1: Hopper, 2: Blackwell */
struct nccl_graph nccl_ring_graph(const struct nccl_machine *machine, uint32_t hosts); /* trees have the same */
struct nccl_graph nccl_nvls_graph(const struct nccl_machine *machine, uint32_t hosts);

#endif
