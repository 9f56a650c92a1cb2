/* Max-min fair rates: each flow gets as much as any other that shares its tightest link (Bertsekas and Gallager, Data
 * Networks, section 6.5.2).
 *
 * A flow loads each of its links with its rate times a weight, in units of MAX_MIN_WHOLE: less than one where the flow
 * is spread over several links, more where it stands for many that are alike. Rates are whole numbers, rounded down, so
 * that they are the same on every machine.
 *
 * Holds: a flow's rate is that of its tightest link's other flows or more, and no link is loaded beyond its capacity by
 * more than 1 for each of its flows. */
#ifndef NET_MAX_MIN_H
#define NET_MAX_MIN_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_MIN_WHOLE (1u << 16)

struct max_min_hop {
	uint32_t link;
	uint32_t weight; /* not 0 */
};

struct max_min_flow {
	const struct max_min_hop *hops;
	uint32_t hop_count; /* not 0; no link twice */
	/* Of max_min_find. */
	uint64_t rate;     /* in the unit of capacities, and never 0, or the flow would have no end */
	uint32_t tightest; /* link, where no other flow has more */
};

struct max_min;

/* For links of these capacities, which are borrowed and not 0, at most 2^47. NULL: no memory. */
struct max_min *max_min_open(const uint64_t *capacities, uint32_t links);
void max_min_close(struct max_min *solver);
/* The rates of these flows, if there are no others: O(h log h) for h hops in all. -ENOMEM. */
int max_min_find(struct max_min *solver, struct max_min_flow *const *flows, uint32_t count);

#endif
