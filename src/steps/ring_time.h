/* How long a ring takes without contention. */
#ifndef STEPS_RING_TIME_H
#define STEPS_RING_TIME_H

#include "net/collectives.h"
#include "steps/timing.h"

/* Picoseconds. */
double ring_time(const struct step_way *way, const struct collective_law *law);
static inline double step_transfer(const struct step_link *link, double bytes)
{
	return bytes / link->bytes_a_second * (double)VB_S;
}

#endif
