/* The cost of a run before it begins: memory, packet-hops and CPU time. All constants are at the top of estimate.c; a
 * test compares them with runs. */
#ifndef SIM_ESTIMATE_H
#define SIM_ESTIMATE_H

#include <stddef.h>
#include <stdint.h>

struct simulation;

struct estimate {
	uint64_t flows;
	uint64_t network_bytes, flow_bytes; /* of memory, needed for certain */
	uint64_t waiting_bytes;             /* in addition, at most, for packets that wait */
	double payload_bytes;
	double packet_hops;
	double cpu_s; /* with setting up */
};

/* Only network and flows, if so many flows are wanted; connections only of flows that are already listed. */
void estimate_memory(const struct simulation *simulation, uint64_t flows, struct estimate *estimate);
/* Everything, for a simulation with its flows. */
void estimate_run(const struct simulation *simulation, struct estimate *estimate);

/* -EINVAL and why, with the key that helps, if network and flows need more than limit bytes. */
int estimate_check(
	const struct simulation *simulation, const struct estimate *estimate, uint64_t limit, char *why, size_t size);
/* Adds a run that comes after those of the sum: their memory is that of the largest. */
void estimate_add(struct estimate *sum, const struct estimate *its);
/* "about 1.2 G packet-hops of 267 PB of payload: 9.1 years of CPU time, 28 MB of memory". */
const char *estimate_text(const struct estimate *estimate, char *text, size_t size);

#endif
