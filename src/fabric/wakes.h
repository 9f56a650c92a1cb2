/* Times at which an endpoint looks what is due though nothing may be: timers of connections that are closed had been set for
 * them. Without these an endpoint would do what is due while its wire is busy at another time, and a run's result would depend
 * on when connections are closed. A heap. */
#ifndef FABRIC_WAKES_H
#define FABRIC_WAKES_H

#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"

struct wakes {
	vb_time *heap; /* freed by the owner */
	uint32_t count, room;
};

bool wakes_add(struct wakes *wakes, vb_time at); /* false: no memory */
void wakes_drop(struct wakes *wakes, vb_time now); /* those that have come */
static inline struct vb_deadline wakes_next(const struct wakes *wakes)
{
	return wakes->count ? (struct vb_deadline){ wakes->heap[0], true } : (struct vb_deadline){ 0 };
}

#endif
