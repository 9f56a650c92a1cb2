/* Links by the names that people give them: "endpoint 3 up" leads from it, "endpoint 3 down" to it; "switch 2 port 5"
 * leads from port 5 of that switch, counted from 0; "link 17" is the network's own number. Of a front end (front_end.h)
 * "front endpoint 3" and "front switch 0" are counted from 0 again, and so is "storage 2", the endpoint of a storage
 * node. */
#ifndef SIM_LINK_NAME_H
#define SIM_LINK_NAME_H

#include <stddef.h>
#include "net/network.h"

/* -EINVAL and why. "endpoint 3" means up. */
int link_find(const struct network *network, const char *name, uint32_t *link, char *why, size_t size);
/* "switch 2", "storage 0". */
const char *node_text(const struct network *network, network_node node, char *text, size_t size);
/* The name of a link. */
const char *link_text(const struct network *network, uint32_t link, char *text, size_t size);

#endif
