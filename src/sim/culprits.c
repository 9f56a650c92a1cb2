/* See culprits.h. */
#include "sim/culprits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "sim/link_name.h"
#include "sim/ways.h"

struct search {
	const struct simulation *simulation;
	struct ways ways;
	uint32_t *dead; /* links that could not be used */
	uint32_t dead_count;
	uint32_t culprit; /* NETWORK_NONE: no link has lost anything */
	bool is_cut_off;  /* the culprit is dead, and leads where no other link does */
};

static const struct network_fault *fault_of(const struct network *network, uint32_t link)
{
	const uint32_t fault = network->links[link].fault;
	return fault == NETWORK_NONE ? NULL : &network->faults[fault];
}

static bool is_dead(const struct simulation *simulation, uint32_t link)
{
	const struct network_fault *fault = fault_of(&simulation->network, link);
	return fault && network_fault_is_for_good(fault) && fault->down_at <= simulation->result.ended_at;
}

static uint64_t missing(const struct simulation *simulation, uint32_t link)
{
	const struct fabric_link_counts *counts = &simulation->result.links[link];
	return counts->lost + counts->drops;
}

static bool look_at(void *user, uint32_t link)
{
	struct search *search = user;
	const struct simulation *simulation = search->simulation;
	const uint64_t most = search->culprit == NETWORK_NONE ? 0 : missing(simulation, search->culprit);

	if (!search->is_cut_off && missing(simulation, link) > most)
		search->culprit = link;
	if (!is_dead(simulation, link))
		return true;
	search->dead[search->dead_count++] = link;
	return false;
}

/* Follows all paths from one endpoint to another, as far as they lead. */
static void look_along(struct search *search, uint32_t from, uint32_t to)
{
	const struct network *network = &search->simulation->network;

	search->dead_count = 0;
	ways_walk(&search->ways, from, to, look_at, search);
	for (uint32_t i = 0; i < search->dead_count && !search->is_cut_off; i++) {
		search->is_cut_off = !ways_have_reached(&search->ways, network->links[search->dead[i]].to);
		if (search->is_cut_off)
			search->culprit = search->dead[i];
	}
}

static uint32_t find_one(struct search *search, uint32_t src, uint32_t dst)
{
	search->culprit = NETWORK_NONE;
	search->is_cut_off = false;
	look_along(search, src, dst);
	look_along(search, dst, src);
	return search->culprit;
}

static void find_all(struct search *search, uint32_t *culprits, uint32_t *failures)
{
	const struct simulation *simulation = search->simulation;
	for (uint32_t i = 0; i < simulation->flows.count; i++) {
		const struct flow *flow = &simulation->flows.flows[i];
		const bool has_failed = simulation->result.flows[i].error;
		culprits[i] = has_failed ? find_one(search, flow->src, flow->dst) : NETWORK_NONE;
	}
	for (uint32_t i = 0; i < simulation->result.failure_count; i++) {
		const struct fabric_failure *its = &simulation->result.failures[i];
		failures[i] = find_one(search, its->src, its->dst);
	}
}

int culprits_find(struct simulation *simulation)
{
	const struct network *network = &simulation->network;
	if (!simulation->result.flows_failed)
		return 0;
	struct search search = { .simulation = simulation,
		.dead = calloc(network->link_count + 1, sizeof(*search.dead)) };
	simulation->culprits = calloc(simulation->flows.count + 1, sizeof(*simulation->culprits));
	int rc = search.dead && simulation->culprits ? ways_open(&search.ways, network) : -ENOMEM;
	if (!rc)
		find_all(&search, simulation->culprits, simulation->failure_culprits);
	free(search.dead);
	ways_close(&search.ways);
	return rc;
}

static const char *say(const struct simulation *simulation, uint32_t link, uint32_t why, char *text, size_t size)
{
	const struct network *network = &simulation->network;
	const char *cause = vb_cause_text(why);
	char name[64], since[32];

	if (link == NETWORK_NONE) {
		snprintf(text, size, "%s", cause);
		return text;
	}
	link_text(network, link, name, sizeof(name));
	const struct fabric_link_counts *counts = &simulation->result.links[link];
	if (is_dead(simulation, link))
		snprintf(text, size, "%s; %s is down for good since %s", cause, name,
			value_time_text(fault_of(network, link)->down_at, since, sizeof(since)));
	else
		snprintf(text, size, "%s; %s lost %" PRIu64 " packets and dropped %" PRIu64, cause, name, counts->lost,
			counts->drops);
	return text;
}

const char *culprit_text(const struct simulation *simulation, uint32_t flow, char *text, size_t size)
{
	const uint32_t link = simulation->culprits ? simulation->culprits[flow] : NETWORK_NONE;
	return say(simulation, link, simulation->result.flows[flow].cause, text, size);
}

const char *failure_text(const struct simulation *simulation, uint32_t failure, char *text, size_t size)
{
	const uint32_t link = simulation->culprits ? simulation->failure_culprits[failure] : NETWORK_NONE;
	return say(simulation, link, simulation->result.failures[failure].cause, text, size);
}
