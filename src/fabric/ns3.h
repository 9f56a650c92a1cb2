/* Path choice and telemetry as in the simulator of HPCC's authors (ns-3.17, Li et al., SIGCOMM 2019; commit 9f4be2a of
 * alibaba-edu/High-Precision-Congestion-Control), for comparisons flow by flow.
 *
 * Nodes are numbered as in its files: endpoints from 0, then switches. A flow's source port is 10,000, plus one for
 * each earlier flow of the list between the same two endpoints; of other jobs, 10,000 plus the message's entropy. All
 * destination ports are 100. */
#ifndef FABRIC_NS3_H
#define FABRIC_NS3_H

#include "cc/telemetry.h"
#include "fabric/state.h"

uint32_t ns3_hash(uint32_t seed, const uint32_t words[3]);
/* The address of an endpoint. */
uint32_t ns3_address(uint32_t endpoint);

/* Numbers the listed flows' source ports if a switch uses this hash. -ENOMEM. */
int ns3_open(struct fabric *fabric);
void ns3_close(struct fabric *fabric);
static inline bool ns3_is_wanted(const struct fabric *fabric)
{
	return fabric->source_ports;
}
/* If it is wanted: the source port of a job's message. */
uint16_t ns3_port(const struct fabric *fabric, uint32_t job, const struct message *message);
/* Which of the links in `choice` a packet takes: their index. */
uint32_t ns3_choose(const struct shard *shard, uint32_t at_switch, uint32_t packet, struct route_choice choice);

/* The remains of a hop's record in the few bits of a packet's header. */
struct vb_cc_hop ns3_told(struct vb_cc_hop hop);

#endif
