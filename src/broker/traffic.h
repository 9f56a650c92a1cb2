/* MADs that ask for something new and wait to be served: first what known addresses ask for, then the rest. (What
 * belongs to an exchange under way never waits.) And those whose sender is to prove first that he is where he says.
 * All of fixed
 * size: what finds no room is lost, and sent again by its sender. */
#ifndef VB_BROKER_TRAFFIC_H
#define VB_BROKER_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>
#include "broker/qp1.h"

enum traffic_class { TRAFFIC_OF_KNOWN, TRAFFIC_OF_OTHERS, TRAFFIC_CLASSES };

enum {
	TRAFFIC_WAITING = 2048, /* of a class */
	TRAFFIC_HELD_SETS = 1024,
	TRAFFIC_HELD_WAYS = 4, /* at most so many of one address */
	TRAFFIC_HELD_MS = 500,
};

struct traffic;

struct traffic *traffic_create(void);
void traffic_destroy(struct traffic *traffic);
void traffic_put(struct traffic *traffic, enum traffic_class class, const struct qp1_mad *mad);
/* The next one, good until the next traffic_put; false: none waits. */
bool traffic_take(struct traffic *traffic, enum traffic_class class, struct qp1_mad *mad);
bool traffic_is_waiting(const struct traffic *traffic);
/* Until its sender is known, for a moment; pushes out an older one. */
void traffic_hold(struct traffic *traffic, const struct qp1_mad *mad, uint64_t now);
/* from is known now: what was held of it waits with the known's. */
void traffic_release(struct traffic *traffic, const struct vb_gid *from, uint64_t now);

#endif
