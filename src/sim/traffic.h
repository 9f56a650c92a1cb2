/* The traffic of a run, by the list of flows and by jobs: for what is said before a run. */
#ifndef SIM_TRAFFIC_H
#define SIM_TRAFFIC_H

#include "sim/simulation.h"

struct traffic {
	double messages, bytes; /* may be more than fit integers, like the next */
	double packets, acks;   /* of the network: what stays in a host is none */
	double at_once;         /* of these packets, under way at a time at most */
	double meeting;  /* of those, sent where several senders may have one receiver: they are likely to wait */
	uint8_t classes; /* a bit for each traffic class */
};

struct traffic traffic_of(const struct simulation *simulation);

/* Flows between all endpoints that send to each other: those of the list, and of a job one for each rank and step, of
 * its first few steps. Its waits are not filled in. The source is the destination where nothing leaves a host. */
uint64_t traffic_flows(const struct simulation *simulation);
struct flow traffic_flow(const struct simulation *simulation, uint64_t number); /* from 0 */

#endif
