/* What a run will take, before it begins: memory, packet-hops and CPU time. All constants are at the top of
 * estimate.c; a test holds them against runs. */
#ifndef SIM_ESTIMATE_H
#define SIM_ESTIMATE_H

#include <stddef.h>
#include <stdint.h>

struct simulation;

struct estimate {
	uint64_t flows;
	uint64_t network_bytes, flow_bytes; /* of memory, that are needed for certain */
	uint64_t waiting_bytes;             /* and for packets that may wait, at most */
	double payload_bytes;
	double packet_hops;
	double cpu_s; /* setting up included */
};

/* Network and flows alone, when so many flows are wanted: the connections only of those that are listed already. */
void estimate_memory(const struct simulation *simulation, uint64_t flows, struct estimate *estimate);
/* All of it, of a simulation whose flows are there. */
void estimate_run(const struct simulation *simulation, struct estimate *estimate);

/* -EINVAL and why, with the key that helps, where network and flows need more than limit bytes. */
int estimate_check(
	const struct simulation *simulation, const struct estimate *estimate, uint64_t limit, char *why, size_t size);
/* "about 1.2 G packet-hops of 267 PB of payload: 9.1 years of CPU time, 28 MB of memory". */
const char *estimate_text(const struct estimate *estimate, char *text, size_t size);

#endif
