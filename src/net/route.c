/* Finds shortest paths by a breadth-first search from each place, and packs them into rows, cells and groups (route.h).
 * While it works, a table holds the group of each switch and place in two bytes. */
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "net/grow.h"
#include "net/route.h"

enum { ITSELF = UINT16_MAX, WIDE_FROM = 256 };
#define FAR          UINT32_MAX
#define MOST_ENTRIES (1u << 30) /* of the table */

/* A group while groups are collected: number `number` of its switch. */
struct found {
	uint32_t at_switch;
	uint32_t number;
	struct route_group group;
};

struct work {
	const struct network *network;
	struct routes *routes;
	uint32_t *places;     /* switches that are places */
	uint32_t *neighbours; /* beside network->ports: the switch that a port leads to, or NETWORK_NONE */
	uint32_t *distance;   /* from the current place, by switch */
	uint32_t *queue;
	uint16_t *table;       /* group of [switch][place], or ITSELF */
	uint32_t *group_count; /* by switch */
	uint32_t *last;        /* by switch: the last group that was found, which is likely to match again */
	struct found *found;
	uint32_t found_count, found_room;
	uint32_t *hashed; /* groups by their hash, each as its number + 1; hashed_room is a power of two */
	uint32_t hashed_room;
	uint32_t link_count, link_room; /* of routes->links */
};

/* ---- Searching --------------------------------------------------------------------------------------------------- */

static void measure(struct work *work, uint32_t place)
{
	const struct network *network = work->network;
	memset(work->distance, 0xFF, network->switch_count * sizeof(*work->distance));
	uint32_t first = 0, last = 0;
	work->distance[work->places[place]] = 0;
	work->queue[last++] = work->places[place];
	while (first < last) {
		uint32_t at = work->queue[first++];
		const uint32_t *neighbours = &work->neighbours[network->switches[at].first_port];
		for (uint32_t port = 0; port < network->switches[at].port_count; port++) {
			uint32_t to = neighbours[port];
			if (to == NETWORK_NONE || work->distance[to] != FAR)
				continue;
			work->distance[to] = work->distance[at] + 1;
			work->queue[last++] = to;
		}
	}
}

/* Appends to routes->links those links of a switch that lead nearer; false: no memory. */
static bool collect(struct work *work, uint32_t at, struct route_group *group)
{
	const struct network_switch *from = &work->network->switches[at];
	*group = (struct route_group){ .first = work->link_count };
	if (work->distance[at] == FAR)
		return true;
	for (uint32_t port = 0; port < from->port_count; port++) {
		uint32_t to = work->neighbours[from->first_port + port];
		if (to == NETWORK_NONE || work->distance[to] + 1 != work->distance[at])
			continue;
		uint32_t *end = &work->link_count;
		if (!grow_by_one(&work->routes->links, &work->link_room, *end, sizeof(*work->routes->links)))
			return false;
		work->routes->links[(*end)++] = work->network->ports[from->first_port + port];
		group->count++;
	}
	return true;
}

/* ---- Groups, each once ------------------------------------------------------------------------------------------- */

static bool is_same(const struct work *work, uint32_t number, uint32_t at, struct route_group group)
{
	const struct found *found = &work->found[number];
	const uint32_t *links = work->routes->links;
	return found->at_switch == at && found->group.count == group.count &&
	       memcmp(&links[found->group.first], &links[group.first], group.count * sizeof(*links)) == 0;
}

static uint32_t hash_of(const struct work *work, uint32_t at, struct route_group group)
{
	uint64_t hash = at * 0x9E3779B97F4A7C15u;
	for (uint32_t i = 0; i < group.count; i++)
		hash = (hash ^ work->routes->links[group.first + i]) * 0xBF58476D1CE4E5B9u;
	return (uint32_t)(hash >> 32);
}

/* The position in `hashed` of the group, or where it belongs. */
static uint32_t *look_up(struct work *work, uint32_t at, struct route_group group)
{
	uint32_t i = hash_of(work, at, group);
	for (;; i++) {
		uint32_t *slot = &work->hashed[i & (work->hashed_room - 1)];
		if (!*slot || is_same(work, *slot - 1, at, group))
			return slot;
	}
}

static bool make_room(struct work *work)
{
	if (work->found_count * 2 < work->hashed_room)
		return true;
	uint32_t room = work->hashed_room ? work->hashed_room * 2 : 1024;
	uint32_t *hashed = calloc(room, sizeof(*hashed));
	if (!hashed)
		return false;
	free(work->hashed);
	work->hashed = hashed;
	work->hashed_room = room;
	for (uint32_t i = 0; i < work->found_count; i++)
		*look_up(work, work->found[i].at_switch, work->found[i].group) = i + 1;
	return true;
}

/* The number of the group that was collected last; it is dropped again if it is known already. NETWORK_NONE: no memory.
 */
static uint32_t intern(struct work *work, uint32_t at, struct route_group group)
{
	uint32_t known = work->last[at];
	if (known == NETWORK_NONE || !is_same(work, known, at, group)) {
		if (!make_room(work))
			return NETWORK_NONE;
		uint32_t *slot = look_up(work, at, group);
		if (!*slot) {
			if (work->group_count[at] >= ITSELF ||
				!grow_by_one(&work->found, &work->found_room, work->found_count, sizeof(*work->found)))
				return NETWORK_NONE;
			work->found[work->found_count++] =
				(struct found){ .at_switch = at, .number = work->group_count[at]++, .group = group };
			*slot = work->found_count;
			return work->last[at] = *slot - 1;
		}
		known = *slot - 1;
	}
	work->link_count = group.first;
	return work->last[at] = known;
}

static bool search(struct work *work)
{
	uint32_t switches = work->network->switch_count, places = work->routes->place_count;
	for (uint32_t place = 0; place < places; place++) {
		measure(work, place);
		for (uint32_t at = 0; at < switches; at++) {
			uint16_t *entry = &work->table[(size_t)at * places + place];
			*entry = ITSELF;
			if (work->distance[at] == 0)
				continue;
			struct route_group group;
			if (!collect(work, at, &group))
				return false;
			uint32_t number = intern(work, at, group);
			if (number == NETWORK_NONE)
				return false;
			*entry = (uint16_t)work->found[number].number;
		}
	}
	return true;
}

/* ---- Packing ----------------------------------------------------------------------------------------------------- */

/* The group of most places; of several with equally many places the lowest. */
static uint16_t find_usual(const uint16_t *table, uint32_t places, uint32_t *counts, uint32_t groups)
{
	memset(counts, 0, groups * sizeof(*counts));
	for (uint32_t i = 0; i < places; i++)
		if (table[i] != ITSELF)
			counts[table[i]]++;
	uint16_t usual = 0;
	for (uint32_t i = 1; i < groups; i++)
		if (counts[i] > counts[usual])
			usual = (uint16_t)i;
	return usual;
}

/* Whether blocks of `span` places have the same group; a switch's own place matches any. *cell is then the group of
 * `block`. */
static bool agrees(const uint16_t *table, uint32_t span, uint32_t block, uint32_t shift, uint16_t *cell)
{
	*cell = 0;
	bool is_known = false;
	for (uint32_t i = block << shift; i < span && i < (block + 1) << shift; i++) {
		if (table[i] == ITSELF)
			continue;
		if (is_known && table[i] != *cell)
			return false;
		*cell = table[i];
		is_known = true;
	}
	return true;
}

static uint32_t blocks_of(uint32_t span, uint32_t shift)
{
	return span ? ((span - 1) >> shift) + 1 : 0;
}

static bool all_agree(const uint16_t *table, uint32_t span, uint32_t shift)
{
	uint16_t cell;
	for (uint32_t block = 0; block < blocks_of(span, shift); block++)
		if (!agrees(table, span, block, shift, &cell))
			return false;
	return true;
}

static uint8_t find_shift(const uint16_t *table, uint32_t span)
{
	uint8_t shift = 0;
	while (blocks_of(span, shift) > 1 && all_agree(table, span, shift + 1))
		shift++;
	return shift;
}

/* Fills in the row except its groups, writes its cells, and returns how many bytes these take. */
static uint32_t pack(
	struct route_row *row, const uint16_t *table, uint32_t places, uint32_t groups, uint16_t usual, uint8_t *cells)
{
	uint32_t first = 0, end = places;
	while (first < end && (table[first] == usual || table[first] == ITSELF))
		first++;
	while (end > first && (table[end - 1] == usual || table[end - 1] == ITSELF))
		end--;
	row->first = first;
	row->span = end - first;
	row->shift = find_shift(table + first, row->span);
	row->is_wide = groups > WIDE_FROM;
	uint32_t length = 0;
	for (uint32_t block = 0; block < blocks_of(row->span, row->shift); block++) {
		uint16_t cell;
		agrees(table + first, row->span, block, row->shift, &cell);
		cells[length++] = (uint8_t)cell;
		if (row->is_wide)
			cells[length++] = (uint8_t)(cell >> 8);
	}
	return length;
}

static bool pack_all(struct work *work)
{
	struct routes *routes = work->routes;
	uint32_t switches = work->network->switch_count, places = routes->place_count, next = 0;
	uint32_t *counts = calloc((size_t)work->found_count + 1, sizeof(*counts));
	routes->groups = calloc((size_t)work->found_count + 1, sizeof(*routes->groups));
	routes->cells = malloc((size_t)switches * places * sizeof(*work->table) + 1);
	if (!counts || !routes->groups || !routes->cells) {
		free(counts);
		return false;
	}
	for (uint32_t at = 0; at < switches; at++) {
		routes->rows[at].groups = next;
		next += work->group_count[at];
	}
	for (uint32_t i = 0; i < work->found_count; i++)
		routes->groups[routes->rows[work->found[i].at_switch].groups + work->found[i].number] =
			work->found[i].group;
	uint32_t length = 0;
	for (uint32_t at = 0; at < switches; at++) {
		struct route_row *row = &routes->rows[at];
		const uint16_t *table = &work->table[(size_t)at * places];
		uint16_t usual = find_usual(table, places, counts, work->group_count[at]);
		row->cells = length;
		row->usual = work->group_count[at] ? routes->groups[row->groups + usual] : (struct route_group){ 0 };
		length += pack(row, table, places, work->group_count[at], usual, routes->cells + length);
	}
	free(counts);
	uint8_t *cells = realloc(routes->cells, length + 1); /* shrinks: on failure it stays as it is */
	routes->cells = cells ? cells : routes->cells;
	routes->bytes = switches * sizeof(*routes->rows) + work->network->endpoint_count * sizeof(*routes->ends) +
			length + work->found_count * sizeof(*routes->groups) + work->link_room * sizeof(*routes->links);
	return true;
}

/* ---- All of it --------------------------------------------------------------------------------------------------- */

static void find_places(struct work *work)
{
	const struct network *network = work->network;
	struct routes *routes = work->routes;
	for (uint32_t i = 0; i < network->switch_count; i++)
		routes->rows[i].place = NETWORK_NONE;
	for (uint32_t i = 0; i < network->endpoint_count; i++) {
		const struct network_link *link = &network->links[network->endpoints[i].link];
		if (network_is_switch(link->to))
			routes->rows[network_index(link->to)].place = 0;
	}
	for (uint32_t i = 0; i < network->switch_count; i++)
		if (routes->rows[i].place != NETWORK_NONE) {
			routes->rows[i].place = routes->place_count;
			work->places[routes->place_count++] = i;
		}
	for (uint32_t i = 0; i < network->endpoint_count; i++) {
		const struct network_link *link = &network->links[network->endpoints[i].link];
		routes->ends[i] = (struct route_end){ .place = NETWORK_NONE, .last_link = link->reverse };
		if (network_is_switch(link->to))
			routes->ends[i].place = routes->rows[network_index(link->to)].place;
	}
}

static bool prepare(struct work *work)
{
	const struct network *network = work->network;
	struct routes *routes = work->routes;
	size_t switches = network->switch_count ? network->switch_count : 1;
	routes->ends = calloc(network->endpoint_count, sizeof(*routes->ends));
	routes->rows = calloc(switches, sizeof(*routes->rows));
	work->places = calloc(switches, sizeof(*work->places));
	work->neighbours = calloc(network->link_count, sizeof(*work->neighbours));
	work->distance = calloc(switches, sizeof(*work->distance));
	work->queue = calloc(switches, sizeof(*work->queue));
	work->group_count = calloc(switches, sizeof(*work->group_count));
	work->last = calloc(switches, sizeof(*work->last));
	if (!routes->ends || !routes->rows || !work->places || !work->neighbours || !work->distance || !work->queue ||
		!work->group_count || !work->last)
		return false;
	find_places(work);
	memset(work->last, 0xFF, switches * sizeof(*work->last));
	for (uint32_t i = 0; i < network->switch_count; i++)
		for (uint32_t port = 0; port < network->switches[i].port_count; port++) {
			uint32_t at = network->switches[i].first_port + port;
			network_node to = network->links[network->ports[at]].to;
			work->neighbours[at] = network_is_switch(to) ? network_index(to) : NETWORK_NONE;
		}
	if (switches * routes->place_count > MOST_ENTRIES)
		return false;
	work->table = malloc(switches * (routes->place_count + 1) * sizeof(*work->table));
	return work->table && grow_by_one(&routes->links, &work->link_room, 0, sizeof(*routes->links));
}

struct routes *routes_make(const struct network *network)
{
	struct work work = { .network = network, .routes = calloc(1, sizeof(*work.routes)) };
	bool done = work.routes && prepare(&work) && search(&work) && pack_all(&work);
	free(work.places);
	free(work.neighbours);
	free(work.distance);
	free(work.queue);
	free(work.table);
	free(work.group_count);
	free(work.last);
	free(work.found);
	free(work.hashed);
	if (done)
		return work.routes;
	routes_free(work.routes);
	return NULL;
}

void routes_free(struct routes *routes)
{
	if (!routes)
		return;
	free(routes->ends);
	free(routes->rows);
	free(routes->cells);
	free(routes->groups);
	free(routes->links);
	free(routes);
}

bool routes_lead(const struct routes *routes, const struct network *network, uint32_t from, uint32_t to)
{
	network_node next = network->links[network->endpoints[from].link].to;
	if (!network_is_switch(next))
		return next == to;
	return routes->ends[to].place != NETWORK_NONE && routes_towards(routes, network_index(next), to).count > 0;
}

bool routes_join(const struct routes *routes, const struct network *network, const struct hosts *hosts, uint32_t ranks,
	uint32_t *from, uint32_t *to)
{
	for (uint32_t rank = 1; rank < ranks; rank++) {
		*from = hosts_sends_by(hosts, 0, rank, 0);
		*to = hosts_receives_by(hosts, 0, rank, 0);
		if (*from != *to &&
			!(routes_lead(routes, network, *from, *to) && routes_lead(routes, network, *to, *from)))
			return false;
	}
	return true;
}
