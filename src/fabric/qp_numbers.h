/* The numbers of the QPs of connections, by arithmetic alone (engine_connections.h says who has which), and the source
 * port of their packets, which follows from the numbers at both ends. */
#ifndef FABRIC_QP_NUMBERS_H
#define FABRIC_QP_NUMBERS_H

#include <stdint.h>
#include "net/network.h"

/* Parts of an endpoint's numbers, where there are jobs beside the list. */
enum {
	CONNECTIONS_FIRST_LISTED = 2,
	CONNECTIONS_FIRST_REQUESTER = 1 << 14,
	CONNECTIONS_FIRST_RESPONDER = 1 << 15,
	CONNECTIONS_OF_LIST = CONNECTIONS_FIRST_REQUESTER - CONNECTIONS_FIRST_LISTED,
	CONNECTIONS_MOST_ENDPOINTS = 1 << 14,
	CONNECTIONS_FEWEST_SOURCES = 64,
	CONNECTIONS_MOST_PLACES = 32, /* of a pair: bits of a word */
	CONNECTIONS_NO_PLACE = 255,
	/* Requesters' indices with the bit that responders with a place have not. */
	CONNECTION_TURNS = (CONNECTIONS_FIRST_RESPONDER - CONNECTIONS_FIRST_REQUESTER) / 2,
};

/* Every lane has slot 1. */
static inline uint32_t qp_number(uint32_t index)
{
	return 1u << 16 | index;
}

/* A lane finds its QPs by the low bits of their numbers, in a table that doubles until no two share a place. So the low
 * bits of a responder are its source, and other numbers have one bit more, which these have not. This is how many
 * sources they tell apart. */
static inline uint32_t qp_sources(uint32_t endpoints)
{
	uint32_t count = CONNECTIONS_FEWEST_SOURCES;
	while (count < endpoints)
		count *= 2;
	return count;
}

/* The sources of an endpoint are those of its own network, the back end or the front end (net/front_end.h), each
 * numbered from 0. So numbers in one, and with them the paths that switches choose, do not depend on the other. */
struct qp_plane {
	uint32_t first;   /* endpoint */
	uint32_t sources; /* told apart; 0: there are no jobs */
};

static inline struct qp_plane qp_back_plane(const struct network *network)
{
	return (struct qp_plane){ 0, qp_sources(network_back_endpoints(network)) };
}

static inline struct qp_plane qp_front_plane(const struct network *network)
{
	return (struct qp_plane){ network_back_endpoints(network), qp_sources(network->front_endpoint_count) };
}

/* The turn'th index with that bit of those from `first` on. */
static inline uint32_t qp_index_of_turn(uint32_t sources, uint32_t first, uint32_t turn)
{
	return first + (turn / sources * 2 * sources + sources + turn % sources);
}

static inline uint32_t qp_responder_index(const struct qp_plane *plane, uint32_t src, uint32_t place)
{
	return CONNECTIONS_FIRST_RESPONDER + place * 2 * plane->sources + (src - plane->first);
}

/* Where a responder has no place, its number on the wire follows from the requester's. */
static inline uint32_t qp_responder_without_place(uint32_t requester)
{
	return requester - CONNECTIONS_FIRST_REQUESTER + CONNECTIONS_FIRST_RESPONDER;
}

/* The first place of a pair that is free, which is taken then; CONNECTIONS_NO_PLACE: none is. */
static inline uint32_t qp_take_place(uint32_t sources, uint32_t *used)
{
	const uint32_t room = CONNECTIONS_FIRST_RESPONDER / (2 * sources);
	const uint32_t most = room < CONNECTIONS_MOST_PLACES ? room : CONNECTIONS_MOST_PLACES;
	uint32_t place = 0;
	while (place < most && *used >> place & 1)
		place++;
	if (place == most)
		return CONNECTIONS_NO_PLACE;
	*used |= 1u << place;
	return place;
}

/* As engines have it: Linux's rule, symmetric in the two numbers. */
static inline uint16_t qp_port(uint32_t index, uint32_t other)
{
	uint64_t label = (uint64_t)qp_number(index) * qp_number(other);
	label ^= label >> 20;
	label ^= label >> 40;
	label &= 0xfffff;
	return (uint16_t)(0xC000 | ((label & 0x3fff) ^ (label >> 14)));
}

#endif
