/* Workloads: which endpoint sends what to which. workload_add adds to the list; -EINVAL and why, -ENOMEM, and the list
 * is as it was. Chance comes from the seed alone, and every machine gets the same.
 *
 *   "incast"       `senders` endpoints send to one: those from 0 on, without the target
 *   "permutation"  every endpoint sends to one other, and receives from one other
 *   "all-to-all"   every endpoint sends to all others: in round r to the one r further on
 *   "poisson"      flows between random endpoints, at random times, so that links have a load
 *
 * A workload may also be a collective, which is a job and no list: workload_collective. */
#ifndef NET_WORKLOADS_H
#define NET_WORKLOADS_H

#include "net/collectives.h"
#include "net/flows.h"

struct workload {
	char kind[16];
	uint32_t endpoints;    /* 0 .. endpoints - 1 take part; 0: all of the network */
	uint32_t first;        /* of a collective: the first rank that takes part */
	uint64_t bytes;        /* of each flow; of a collective, as it counts them */
	vb_time start, spread; /* starts are random in start .. start + spread */
	uint32_t senders;      /* incast; 0: all others */
	uint32_t target;       /* incast */
	uint32_t
		at_once; /* all-to-all: how many flows of a sender run at once; the next begins when one ends; 0: all */
	double load;     /* poisson: of each endpoint's link, 0 .. 1, counting payload */
	uint64_t bits_per_second; /* poisson: the rate of that link */
	vb_time duration;         /* poisson */
	char sizes[256]; /* poisson: the name of a built-in distribution (sizes_name), or a file with one (CSV: bytes,
			    percent); empty: all flows have `bytes` */
	char algorithm[24];        /* of a collective; empty: its first */
	struct nccl_settings nccl; /* of a collective */
	char group[64]; /* of a collective: the dimensions whose groups run it (dimensions.h); empty: one group */
	uint8_t traffic_class;
};

/* Whether it is a collective, and which: of so many ranks of the run, from workload->first on. */
bool workload_collective(const struct workload *workload, uint32_t ranks, struct collective *collective);

int workload_add(struct flow_list *list, const struct workload *workload, uint32_t endpoints, uint64_t seed, char *why,
	unsigned why_size);

/* How many flows workload_add would add, on average if chance decides; 0 if it would refuse. */
uint64_t workload_flows(const struct workload *workload, uint32_t endpoints);

/* Reads HPCC's flow lists, as CSV (src,dst,bytes,start_ns) and as original text, and htsim's .cm (starts in ps,
 * triggers). Errors name the line. */
int flow_list_read(struct flow_list *list, const char *path, uint32_t endpoints, char *why, unsigned why_size);

#endif
