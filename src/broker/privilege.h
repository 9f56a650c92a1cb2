/* Privileges: what a client has, read from /proc, and what the broker itself does without. */
#ifndef VB_BROKER_PRIVILEGE_H
#define VB_BROKER_PRIVILEGE_H

#include <stdbool.h>
#include <stdint.h>
#include "broker/registry.h"

/* Whether the client's process is root's or has CAP_NET_BIND_SERVICE, now. */
bool privilege_may_bind_any(const struct client *client);
/* By the host's rule ports below net.ipv4.ip_unprivileged_port_start take that privilege. 0 is no port in
 * particular. */
bool privilege_is_needed(uint16_t port);
/* Whether the client may bind the port. */
bool privilege_may_bind(const struct client *client, uint16_t port);

/* For the rest of this process's life, and its children's: no capability, no way to get one, and only the system calls
 * of confine.c, where the kernel knows how. */
void privilege_drop(void);

#endif
