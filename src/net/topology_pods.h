/* What a file does not say of switches: how far above the endpoints they are, and which belong together. */
#ifndef NET_TOPOLOGY_PODS_H
#define NET_TOPOLOGY_PODS_H

#include "net/network.h"

/* Fills in the tiers and pods of a finished network. A tier is how many switches lie between it and the nearest
 * endpoint. Pods are the parts into which the network falls without its highest tier; where it does not fall apart, the
 * switches of tier 0. -ENOMEM. */
int topology_find_pods(struct network *network);

#endif
