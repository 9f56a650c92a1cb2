/* Which algorithm and protocol NCCL takes, by its tuning tables: the one that its model says is fastest. All numbers
 * are of NCCL 2.30.7 (commit 5067397); nccl.c names the file of each.
 *
 * The model knows a host's graph: how many channels a search has found, and which rate each has in a host and between
 * hosts. The search itself is not here: graph_of counts what it finds on hosts whose GPUs all reach each other through
 * one switch, whose CPUs are Intel's, and whose NICs are shared out evenly.
 *
 * Not modelled: CollNet (reduction in the network), NVLS of all-gather and reduce-scatter, PCIe and NUMA, other GPUs of
 * one communicator, what NCCL_ALGO, NCCL_PROTO and tuner plugins ask for. */
#ifndef NET_NCCL_H
#define NET_NCCL_H

#include <stdbool.h>
#include <stdint.h>

struct nccl_machine {
	uint32_t ranks, gpus, nics;     /* gpus, nics: of a host, at least 1. Ranks fill hosts, but for the last */
	double scale_up_gb_s, nic_gb_s; /* of a GPU and of a NIC each way, as data sheets have them */
	uint32_t capability;            /* of the GPU: 80 (Ampere), 90 (Hopper), 100 (Blackwell) */
	bool reduces;                   /* the scale-up domain's switch reduces: NVLS */
};

enum nccl_algorithm { NCCL_TREE, NCCL_RING, NCCL_NVLS, NCCL_NVLS_TREE, NCCL_PAT, NCCL_ALGORITHMS };
enum nccl_protocol { NCCL_LL, NCCL_LL128, NCCL_SIMPLE, NCCL_PROTOCOLS };

struct nccl_choice {
	enum nccl_algorithm algorithm;
	enum nccl_protocol protocol;
	uint32_t channels;
	double us; /* what the model says */
};

/* Kinds as collectives.h names them: whether NCCL has something to choose. */
bool nccl_has(const char *kind);
/* The kind is one that it has. Of equals the first in the order of the enumerations. */
struct nccl_choice nccl_choose(const struct nccl_machine *machine, const char *kind, uint64_t bytes);
/* The model's time in microseconds; below 0: the algorithm has no such protocol, or not for this kind and machine. */
double nccl_time(const struct nccl_machine *machine, const char *kind, enum nccl_algorithm algorithm,
	enum nccl_protocol protocol, uint64_t bytes);

/* The bytes that carry so many: LL has 4 bytes of flags beside 4 of data, LL128 8 beside 120. */
uint64_t nccl_wire_bytes(enum nccl_protocol protocol, uint64_t bytes);
/* The algorithm of collectives.h that is meant. */
const char *nccl_algorithm_of(const char *kind, enum nccl_algorithm algorithm);
const char *nccl_algorithm_name(enum nccl_algorithm algorithm); /* NCCL's own */
const char *nccl_protocol_name(enum nccl_protocol protocol);

#endif
