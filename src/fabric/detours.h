/* Ways round links that are known to be down. */
#ifndef FABRIC_DETOURS_H
#define FABRIC_DETOURS_H

#include "net/outages.h"
#include "net/route.h"

/* Of one thread. */
struct detours {
	const struct network *network; /* borrowed, as the routes; NULL: no link goes down */
	const struct routes *routes;
	uint64_t *dead_ends; /* by switch: the last search that found no way from there */
	uint64_t searches;
};

/* Has a network only if a link may go down at times. -ENOMEM; close it in every case. */
int detours_open(struct detours *detours, const struct network *network, const struct routes *routes, bool may_go_down);
void detours_close(struct detours *detours);
/* A search begins: what links do does not change until the next. */
static inline void detours_look(struct detours *detours)
{
	detours->searches++;
}
/* Whether any way by this link of the switch at hand is not known to be down. */
bool detours_lead(struct detours *detours, uint32_t link, uint32_t dst, vb_time now);
/* The first of the switch's links, from `first` on, that leads to the endpoint; if none does, one that is not known to
 * be down itself. */
uint32_t detours_first_up(
	struct detours *detours, struct route_choice choice, uint32_t first, uint32_t dst, vb_time now);

#endif
