/* Links as people name them: "endpoint 3 up" leaves it, "endpoint 3 down" leads to it; "switch 2 port 5" leaves that
 * switch by its port 5, counted from 0; "link 17" is the network's own number. */
#ifndef SIM_LINK_NAME_H
#define SIM_LINK_NAME_H

#include <stddef.h>
#include "net/network.h"

/* -EINVAL and why. "endpoint 3" is up. */
int link_find(const struct network *network, const char *name, uint32_t *link, char *why, size_t size);
/* The name of one. */
const char *link_text(const struct network *network, uint32_t link, char *text, size_t size);

#endif
