/* MADs that begin an exchange and wait to be served: first those of known addresses, then the rest. (MADs of an
 * exchange under way never wait.) Also MADs whose sender must first prove its address. All queues are of fixed size:
 * MADs without room are lost, and their senders repeat them. */
#ifndef VB_BROKER_TRAFFIC_H
#define VB_BROKER_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>
#include "broker/qp1.h"

enum traffic_class { TRAFFIC_OF_KNOWN, TRAFFIC_OF_OTHERS, TRAFFIC_CLASSES };

enum {
	TRAFFIC_WAITING = 2048, /* of a class */
	TRAFFIC_HELD_SETS = 1024,
	TRAFFIC_HELD_WAYS = 4, /* at most this many of one address */
	TRAFFIC_HELD_MS = 500,
};

struct traffic;

struct traffic *traffic_create(void);
void traffic_destroy(struct traffic *traffic);
void traffic_put(struct traffic *traffic, enum traffic_class class, const struct qp1_mad *mad);
/* The next MAD, valid until the next traffic_put; false: none waits. */
bool traffic_take(struct traffic *traffic, enum traffic_class class, struct qp1_mad *mad);
bool traffic_is_waiting(const struct traffic *traffic);
/* Holds mad for a moment until its sender is known; pushes out an older one. */
void traffic_hold(struct traffic *traffic, const struct qp1_mad *mad, uint64_t now);
/* `from` is known now: its held MADs join the queue of known addresses. */
void traffic_release(struct traffic *traffic, const struct vb_gid *from, uint64_t now);

#endif
