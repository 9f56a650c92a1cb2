/* See storage_sides.h. */
#include "net/storage_sides.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include "net/why.h"

static void put_node(struct storage_sides *sides, uint32_t node, uint32_t rank)
{
	sides->nodes[node] = rank;
	sides->node_of[rank] = node;
}

/* The first rank of each endpoint stands for it. */
static void find_nodes(struct storage_sides *sides, const struct hosts *hosts, uint32_t first, uint32_t last)
{
	for (uint32_t i = 0; i < sides->node_count; i++)
		sides->nodes[i] = STORAGE_NONE;
	for (uint32_t i = 0; hosts->front.storage && i < sides->node_count; i++)
		put_node(sides, i, hosts->front.ranks + first + i);
	for (uint32_t rank = 0; !hosts->front.storage && rank < sides->all; rank++)
		for (uint32_t turn = 0; turn < hosts_nics_of_gpu(hosts); turn++) {
			const uint32_t endpoint = hosts_endpoint_of(hosts, rank, turn);
			if (endpoint >= first && endpoint <= last && sides->nodes[endpoint - first] == STORAGE_NONE &&
				sides->node_of[rank] == STORAGE_NONE)
				put_node(sides, endpoint - first, rank);
		}
}

static bool is_on_storage_host(const struct hosts *hosts, uint32_t rank, uint32_t first, uint32_t last)
{
	const uint32_t nics = hosts->gpus ? hosts->nics : 1, host = hosts_host_of(hosts, rank);
	if (hosts->front.storage)
		return hosts_is_storage(hosts, rank);
	return host >= first / nics && host <= last / nics;
}

static void find_ranks(struct storage_sides *sides, const struct hosts *hosts, uint32_t first_node, uint32_t last_node,
	uint32_t first, uint32_t count)
{
	for (uint32_t rank = first; rank < sides->all && (!count || sides->rank_count < count); rank++) {
		if (is_on_storage_host(hosts, rank, first_node, last_node))
			continue;
		sides->number_of[rank] = sides->rank_count;
		sides->ranks[sides->rank_count++] = rank;
	}
}

static int check(const struct storage_sides *sides, uint32_t count, char *why, unsigned why_size)
{
	for (uint32_t i = 0; i < sides->node_count; i++)
		if (sides->nodes[i] == STORAGE_NONE)
			return why_not(why, why_size,
				"storage: a GPU with several NICs is one storage node; write hosts.nics as hosts.gpus");
	if (!sides->rank_count || sides->rank_count < count)
		return why_not(why, why_size,
			"endpoints: %" PRIu32 " ranks, and %" PRIu32
			" are on no host with storage; write fewer, or 0 for all of these",
			count, sides->rank_count);
	return 0;
}

int storage_sides_open(struct storage_sides *sides, const struct hosts *hosts, uint32_t endpoints, uint32_t first_node,
	uint32_t last_node, uint32_t first, uint32_t count, char *why, unsigned why_size)
{
	const uint32_t all = hosts_all_ranks(hosts, endpoints);
	const uint32_t nodes = hosts->front.storage ? hosts->front.storage : endpoints;
	*sides = (struct storage_sides){ 0 };
	if (first_node > last_node || last_node >= nodes)
		return why_not(why, why_size,
			"storage: %s %" PRIu32 "-%" PRIu32 " of a %s that has 0-%" PRIu32 "; write FIRST-LAST of these",
			hosts->front.storage ? "storage nodes" : "endpoints", first_node, last_node,
			hosts->front.storage ? "front end" : "network", nodes - 1);
	*sides = (struct storage_sides){ .node_count = last_node - first_node + 1,
		.all = all,
		.ranks = calloc((size_t)all + 1, sizeof(*sides->ranks)),
		.nodes = calloc((size_t)last_node - first_node + 1, sizeof(*sides->nodes)),
		.number_of = malloc(((size_t)all + 1) * sizeof(*sides->number_of)),
		.node_of = malloc(((size_t)all + 1) * sizeof(*sides->node_of)) };
	if (!sides->ranks || !sides->nodes || !sides->number_of || !sides->node_of) {
		storage_sides_close(sides);
		return -ENOMEM;
	}
	for (uint32_t rank = 0; rank < all; rank++)
		sides->number_of[rank] = sides->node_of[rank] = STORAGE_NONE;
	find_nodes(sides, hosts, first_node, last_node);
	find_ranks(sides, hosts, first_node, last_node, first, count);
	const int rc = check(sides, count, why, why_size);
	if (rc)
		storage_sides_close(sides);
	return rc;
}

void storage_sides_close(struct storage_sides *sides)
{
	free(sides->ranks);
	free(sides->nodes);
	free(sides->number_of);
	free(sides->node_of);
	*sides = (struct storage_sides){ 0 };
}
