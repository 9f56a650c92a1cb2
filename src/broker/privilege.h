/* Privileges: a client's, read from /proc, and dropping the broker's own. */
#ifndef VB_BROKER_PRIVILEGE_H
#define VB_BROKER_PRIVILEGE_H

#include <stdbool.h>
#include <stdint.h>
#include "broker/registry.h"

/* True if the client's process is root's or has CAP_NET_BIND_SERVICE now. */
bool privilege_may_bind_any(const struct client *client);
/* True for ports below net.ipv4.ip_unprivileged_port_start. Port 0 means any port, which needs no privilege. */
bool privilege_is_needed(uint16_t port);
/* True if the client may bind the port. */
bool privilege_may_bind(const struct client *client, uint16_t port);

/* Drops all capabilities for good, for this process and its children, and confines them to the system calls of
 * confine.c if the kernel can. */
void privilege_drop(void);

#endif
