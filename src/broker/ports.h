/* Who is bound to which port of RDMA-CM's port spaces in this network namespace, and who listens there. Lives as long
 * as the worker: processes tell the next one what they hold. */
#ifndef VB_BROKER_PORTS_H
#define VB_BROKER_PORTS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/gid.h"
#include "wire/cm.h"

#define PORTS_NOBODY UINT32_MAX
#define PORTS_MAX    65536 /* bindings of all clients */

struct ports;

struct port_binding {
	uint32_t client, number; /* number is the client's own name for it */
	uint16_t port_space, port;
	struct vb_gid address; /* zero: any; mapped 0.0.0.0: any of IPv4 */
	bool is_shared, is_ipv6_only, is_listening;
	uint64_t family;   /* who knows the same secret may bind and listen beside it; 0: nobody */
	bool is_accepting; /* its program takes connections: before those of its family that only might */
};

struct ports *ports_create(void);
void ports_destroy(struct ports *ports);
/* Port 0 becomes a free one. -EADDRINUSE: another has the port at this address; -EADDRNOTAVAIL: and one of the two is
 * at all addresses, as Linux's rdma_cm calls it; -EPROTONOSUPPORT: no such port space; -EINVAL: the number is in use;
 * -ENOMEM; -ENOBUFS: the client holds as many as it may. */
int ports_bind(struct ports *ports, struct port_binding *binding);
/* Whether its family has this port at this very address already, or is remembered to have been allowed it. */
bool ports_has_family(struct ports *ports, const struct port_binding *binding);
/* Its family may have this again when who bound it is gone; the newest push out the oldest. */
void ports_remember_family(struct ports *ports, const struct port_binding *binding);
/* -EINVAL: no such binding; -EADDRINUSE, -EADDRNOTAVAIL: another listens there. */
int ports_listen(struct ports *ports, uint32_t client, uint32_t number, bool is_accepting);
void ports_unbind(struct ports *ports, uint32_t client, uint32_t number);
unsigned ports_count(const struct ports *ports, uint32_t client);
void ports_forget_client(struct ports *ports, uint32_t client);
/* The client that listens for service_id at address, or PORTS_NOBODY: of a family one after another, but again the one
 * that had the same request before. */
uint32_t ports_find_listener(struct ports *ports, uint64_t service_id, const struct vb_gid *address, uint32_t before);

/* Those who listen for service_id at address are of a family: when one is gone, another may come. */
bool ports_are_of_a_family(struct ports *ports, uint64_t service_id, const struct vb_gid *address);

#endif
