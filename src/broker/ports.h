/* Bindings and listeners of RDMA-CM's port spaces in this network namespace. Lives as long as the worker: processes
 * tell the next worker about theirs. */
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
	uint32_t client, number; /* number: the client's own name for the binding */
	uint16_t port_space, port;
	struct vb_gid address; /* zero: any; mapped 0.0.0.0: any of IPv4 */
	bool is_shared, is_ipv6_only, is_listening;
	uint64_t family;   /* a client with the same secret may bind and listen beside it; 0: none may */
	bool is_accepting; /* its program accepts connections: preferred to others of its family */
};

struct ports *ports_create(void);
void ports_destroy(struct ports *ports);
/* Port 0 becomes a free one. -EADDRINUSE: another binding has the port at this address; -EADDRNOTAVAIL: the same where
 * one of the two is at all addresses, as in Linux's rdma_cm; -EPROTONOSUPPORT: no such port space; -EINVAL: the number
 * is in use;
 * -ENOMEM; -ENOBUFS: the client holds as many as it may. */
int ports_bind(struct ports *ports, struct port_binding *binding);
/* True if the binding's family has this port at this very address, or was allowed it before. */
bool ports_has_family(struct ports *ports, const struct port_binding *binding);
/* Remembers that the family may bind this again when its binder is gone; the newest entries push out the oldest. */
void ports_remember_family(struct ports *ports, const struct port_binding *binding);
/* -EINVAL: no such binding; -EADDRINUSE, -EADDRNOTAVAIL: another listens there. */
int ports_listen(struct ports *ports, uint32_t client, uint32_t number, bool is_accepting);
void ports_unbind(struct ports *ports, uint32_t client, uint32_t number);
unsigned ports_count(const struct ports *ports, uint32_t client);
void ports_forget_client(struct ports *ports, uint32_t client);
/* The client that listens for service_id at address, or PORTS_NOBODY. Members of a family take turns, but a repeated
 * request goes to the same one. */
uint32_t ports_find_listener(struct ports *ports, uint64_t service_id, const struct vb_gid *address, uint32_t before);

/* True if the listeners for service_id at address are a family: when one is gone, another may take its requests. */
bool ports_are_of_a_family(struct ports *ports, uint64_t service_id, const struct vb_gid *address);

#endif
