/* How far a run by flows is from one by packets: both run once more, with as many bytes of each message as are a few
 * minutes by packets. Steps of training have a check of their own (step_check.h). */
#ifndef SIM_FLOW_CHECK_H
#define SIM_FLOW_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct simulation;

#define CHECK_HOPS 5e8 /* as many packet-hops as a check is by itself, at most */

/* A check's extent, of runs by flows and of steps. */
struct check_limit {
	double bytes_part;  /* of each message; 0: as many as are at most packet_hops */
	double packet_hops; /* above 0 */
};

struct flow_check {
	bool is_made;
	char why_not[500]; /* it is not made */
	double bytes_part; /* of each message */
	double error;      /* of the time until all is there: signed, of the packets' */
	bool has_phases;   /* workloads that are collectives; of these the one that is furthest off */
	uint32_t worst;
	double worst_error;
	uint64_t packet_hops;
	/* Events that packets meet, and flows do not. */
	uint64_t drops, pauses, resent;
};

/* Of a simulation that has run. -EINVAL and why, -ENOMEM. */
int flow_check_run(const struct simulation *simulation, const struct check_limit *limit, struct flow_check *check,
	char *why, size_t size);

#endif
