/* Who sends what to whom. Each function adds to the list; -EINVAL and why, -ENOMEM. Chance comes from the seed alone. */
#ifndef FABRIC_WORKLOADS_H
#define FABRIC_WORKLOADS_H

#include "fabric/flows.h"

struct workload {
	char kind[16];	/* "incast", "permutation", "all-to-all", "poisson" */
	uint32_t endpoints; /* 0 .. endpoints - 1 take part; 0: all of the network */
	uint64_t bytes; /* of each flow */
	vb_time start, spread; /* of starts: start + less than spread, by chance */
	uint32_t senders;      /* incast: how many, to `target` */
	uint32_t target;
	uint32_t at_once;      /* all-to-all: flows of a sender at once, the next when one ends; 0: all */
	double load;	       /* poisson: of each endpoint's link, 0 .. 1 */
	uint64_t bits_per_second; /* poisson: of that link */
	vb_time duration;      /* poisson */
	char sizes[256];       /* poisson: a file of a distribution (CSV: bytes, percent), or a built-in's name: WebSearch,
				  FB_Hadoop, AliStorage2019; empty: all of `bytes` */
	uint8_t traffic_class;
};

int workload_add(struct flow_list *list, const struct workload *workload, uint32_t endpoints, uint64_t seed, char *why,
	unsigned why_size);

/* HPCC's flow lists as CSV (src,dst,bytes,start_ns) and as its original text, and htsim's .cm (starts in ps, triggers).
 * Errors name the line. */
int flow_list_read(struct flow_list *list, const char *path, uint32_t endpoints, char *why, unsigned why_size);

#endif
