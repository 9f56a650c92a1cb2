/* Where a packet may go next: for each switch and each place with endpoints, the ports on shortest paths.
 * Holds: each port that is listed leads one step nearer.
 *
 * A place is a switch with endpoints. Most switches treat most places alike: a leaf has one way for all places but its
 * own, a core switch one for each pod. So a switch has a row: the usual group, and a range of places that have others,
 * in blocks of a power of two that share a cell. A cell is the number of one of the switch's groups; a group is a range
 * of `links`. */
#ifndef NET_ROUTE_H
#define NET_ROUTE_H

#include <stdbool.h>
#include <stdint.h>
#include "net/hosts.h"
#include "net/network.h"

struct route_choice {
	const uint32_t *links; /* in the order of the switch's ports */
	uint32_t count;
};

struct route_group {
	uint32_t first, count; /* links[first ..] */
};

struct route_row {
	uint32_t place;       /* the switch itself, or NETWORK_NONE */
	uint32_t first, span; /* the places whose group is not the usual one */
	uint32_t cells;       /* its cells begin at this byte of routes.cells */
	uint32_t groups;      /* the switch's first group */
	uint8_t shift;        /* each cell is for 2^shift places */
	bool is_wide;         /* cells have two bytes, the lower first */
	struct route_group usual;
};

struct route_end {
	uint32_t place;     /* NETWORK_NONE: the endpoint is connected to another endpoint */
	uint32_t last_link; /* from the place to the endpoint */
};

struct routes {
	struct route_end *ends; /* by endpoint */
	struct route_row *rows; /* by switch */
	uint8_t *cells;
	struct route_group *groups;
	uint32_t *links;
	uint32_t place_count;
	uint64_t bytes; /* memory of all of these */
};

/* Shortest paths by the number of links. NULL: no memory. Parallel ports to one place are alternatives. */
struct routes *routes_make(const struct network *network);
void routes_free(struct routes *routes);

/* From a switch towards an endpoint, in O(1). The count is 1 at the last switch, and 0 if there is no path. */
static inline struct route_choice routes_towards(const struct routes *routes, uint32_t at_switch, uint32_t endpoint)
{
	const struct route_end *end = &routes->ends[endpoint];
	const struct route_row *row = &routes->rows[at_switch];
	if (end->place == row->place)
		return (struct route_choice){ .links = &end->last_link, .count = 1 };
	uint32_t beyond = end->place - row->first;
	struct route_group group = row->usual;
	if (beyond < row->span) {
		uint32_t cell = beyond >> row->shift;
		const uint8_t *cells = routes->cells + row->cells;
		cell = row->is_wide ? cells[2 * cell] | (uint32_t)cells[2 * cell + 1] << 8 : cells[cell];
		group = routes->groups[row->groups + cell];
	}
	return (struct route_choice){ .links = routes->links + group.first, .count = group.count };
}

/* Whether packets of one endpoint can reach another. */
bool routes_lead(const struct routes *routes, const struct network *network, uint32_t from, uint32_t to);
/* Whether rank 0 and each of the others reach each other; if not, two endpoints between which no path leads. */
bool routes_join(const struct routes *routes, const struct network *network, const struct hosts *hosts, uint32_t ranks,
	uint32_t *from, uint32_t *to);

#endif
