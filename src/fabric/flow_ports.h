/* The source ports that the packets of messages would have, for the paths of messages that are no packets.
 *
 * They are those of engines, whose connections have numbers by which they are opened (engine_connections.h): so a
 * message takes the path that its packets would take. Where connections are for one message each, a number depends on
 * how many are open, and may be another here. Ideal endpoints have no connections, and go by a message's entropy. */
#ifndef FABRIC_FLOW_PORTS_H
#define FABRIC_FLOW_PORTS_H

#include "base/number_map.h"
#include "fabric/state.h"

/* Of an endpoint that sends. */
struct flow_port {
	uint16_t port;
	uint8_t place; /* to give back */
};

struct flow_ports;

/* NULL: no memory. */
struct flow_ports *flow_ports_open(const struct fabric *fabric);
void flow_ports_close(struct flow_ports *ports);
/* Of a connection that is opened for this message. -ENOMEM. */
int flow_ports_take(struct flow_ports *ports, const struct flow_state *flow, struct flow_port *port);
void flow_ports_give_back(struct flow_ports *ports, const struct flow_state *flow, struct flow_port port);

#endif
