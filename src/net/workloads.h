/* Who sends what to whom. Each function adds to the list; -EINVAL and why, -ENOMEM, and the list is as it was. Chance
 * comes from the seed alone, and is the same on every machine.
 *
 *   "incast"       `senders` endpoints to one: those from 0 on, but for the target
 *   "permutation"  everyone to another, everyone from another
 *   "all-to-all"   everyone to all: in round r to who is r further on
 *   "poisson"      flows of everyone to anyone, at random times, so that links have a load */
#ifndef NET_WORKLOADS_H
#define NET_WORKLOADS_H

#include "net/flows.h"

struct workload {
	char kind[16];
	uint32_t endpoints;       /* 0 .. endpoints - 1 take part; 0: all of the network */
	uint64_t bytes;           /* of each flow */
	vb_time start, spread;    /* of starts: start + less than spread, by chance */
	uint32_t senders;         /* incast; 0: all others */
	uint32_t target;          /* incast */
	uint32_t at_once;         /* all-to-all: flows of a sender at once, the next when one ends; 0: all */
	double load;              /* poisson: of each endpoint's link, 0 .. 1, by payload */
	uint64_t bits_per_second; /* poisson: of that link */
	vb_time duration;         /* poisson */
	char sizes[256]; /* poisson: the name of a built-in distribution (sizes_name) or a file of one (CSV: bytes,
			    percent); empty: all of `bytes` */
	uint8_t traffic_class;
};

int workload_add(struct flow_list *list, const struct workload *workload, uint32_t endpoints, uint64_t seed, char *why,
	unsigned why_size);

/* How many flows that would add, on average where chance decides; 0 where it would refuse. */
uint64_t workload_flows(const struct workload *workload, uint32_t endpoints);

/* HPCC's flow lists as CSV (src,dst,bytes,start_ns) and as its original text, and htsim's .cm (starts in ps, triggers).
 * Errors name the line. */
int flow_list_read(struct flow_list *list, const char *path, uint32_t endpoints, char *why, unsigned why_size);

#endif
