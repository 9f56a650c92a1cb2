/* The links from one endpoint to another, and what part of a message's packets takes each: all of them one way where
 * hashes decide, an even part each where a switch sprays or is adaptive. Where a link is known to be down they take
 * another, as packets do (detours.h). */
#ifndef FABRIC_SPREAD_H
#define FABRIC_SPREAD_H

#include "fabric/detours.h"
#include "fabric/fabric.h"
#include "net/max_min.h"
#include "net/route.h"

/* For one walk after another. */
struct spread {
	const struct fabric_config *config; /* borrowed, as the routes */
	const struct routes *routes;
	struct detours *detours; /* NULL: no link goes down */
	vb_time now;             /* of the walk, where links do */
	uint32_t *parts;         /* by switch: what comes there, in units of MAX_MIN_WHOLE */
	uint32_t *queue;         /* switches */
	uint32_t switch_count;
	struct max_min_hop *hops; /* of all walks since the caller emptied them */
	uint32_t hop_count, hop_room;
};

/* -ENOMEM; close it in every case. */
int spread_open(struct spread *spread, const struct fabric_config *config, const struct routes *routes,
	struct detours *detours);
void spread_close(struct spread *spread);
/* Adds the links to hops, each before those that follow it; port: the packets' source port. There is a way. -ENOMEM. */
int spread_walk(struct spread *spread, uint32_t src, uint32_t dst, uint16_t port);

#endif
