/* Facts about switches that files leave out: how far above the endpoints they are, and which belong together. */
#ifndef NET_TOPOLOGY_PODS_H
#define NET_TOPOLOGY_PODS_H

#include "net/network.h"

/* Fills in the tiers and pods of a finished network. A switch's tier is the number of switches between it and the
 * nearest endpoint. Pods are the parts into which the network falls without its highest tier; if it does not fall
 * apart, each switch of tier 0 is one. -ENOMEM. */
int topology_find_pods(struct network *network);

#endif
