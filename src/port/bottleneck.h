/* A bottleneck of fault injection: one queue before a link of some rate, through which all that this process receives
 * goes. A packet that finds no room is dropped. One that finds a long queue is marked by RED's rule (RFC 3168, RFC
 * 7567), as the switches of RoCE networks do: none below kmin, all above kmax, between them by a chance that rises to
 * pmax. A packet that may not be marked, since its sender did not allow it, is dropped instead.
 *
 * Bytes are those of IP packets. Pure: time comes in. */
#ifndef VB_PORT_BOTTLENECK_H
#define VB_PORT_BOTTLENECK_H

#include <stdbool.h>
#include <stdint.h>
#include "base/random.h"
#include "base/time.h"

#define VB_BOTTLENECK_QUEUE_MAX 33554432 /* bytes */
#define VB_BOTTLENECK_QUEUE     1000000  /* if none is given */

struct vb_bottleneck {
	uint64_t rate;              /* bits a second; 0: there is none */
	uint64_t queue, kmin, kmax; /* bytes; kmax 0: no marks */
	uint32_t pmax_ppm;
	/* State and results. */
	vb_time free_at; /* when all that was admitted has left */
	vb_time begun_at, seen_at;
	bool has_begun;
	uint64_t drops, marks, most; /* most: bytes in the queue */
	double area;                 /* of the queue, byte-seconds */
};

enum vb_bottleneck_fate { VB_BOTTLENECK_DROPS, VB_BOTTLENECK_PASSES, VB_BOTTLENECK_MARKS };

/* The fate of a packet that comes now. Unless it is dropped, *leaves_at is when its last bit has left. */
enum vb_bottleneck_fate vb_bottleneck_admit(struct vb_bottleneck *neck, uint32_t bytes, bool takes_marks,
	struct vb_random *random, vb_time now, vb_time *leaves_at);
uint64_t vb_bottleneck_mean(const struct vb_bottleneck *neck); /* bytes, from the first packet to the last */

#endif
