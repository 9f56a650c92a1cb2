/* See culprits.h. */
#include "sim/culprits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "net/route.h"
#include "sim/link_name.h"

struct search {
	const struct simulation *simulation;
	const struct routes *routes;
	uint32_t *reached; /* by switch: the last search that came there, as paths meet again */
	uint32_t *stack;   /* switches that are still to be expanded */
	uint32_t *dead;    /* links that could not be used */
	uint32_t number, stack_count, dead_count;
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

static bool is_reached(const struct search *search, network_node node)
{
	return network_is_switch(node) && search->reached[network_index(node)] == search->number;
}

static void look_at(struct search *search, uint32_t link)
{
	const struct simulation *simulation = search->simulation;
	const network_node to = simulation->network.links[link].to;
	const uint64_t most = search->culprit == NETWORK_NONE ? 0 : missing(simulation, search->culprit);
	if (!search->is_cut_off && missing(simulation, link) > most)
		search->culprit = link;
	if (is_dead(simulation, link)) {
		search->dead[search->dead_count++] = link;
		return;
	}
	if (!network_is_switch(to) || is_reached(search, to))
		return;
	search->reached[network_index(to)] = search->number;
	search->stack[search->stack_count++] = network_index(to);
}

/* Follows all paths from one endpoint to another, as far as they lead. */
static void look_along(struct search *search, uint32_t from, uint32_t to)
{
	const struct network *network = &search->simulation->network;
	search->number++;
	search->dead_count = 0;
	look_at(search, network->endpoints[from].link);
	while (search->stack_count > 0) {
		struct route_choice choice = routes_towards(search->routes, search->stack[--search->stack_count], to);
		for (uint32_t i = 0; i < choice.count; i++)
			look_at(search, choice.links[i]);
	}
	for (uint32_t i = 0; i < search->dead_count && !search->is_cut_off; i++) {
		search->is_cut_off = !is_reached(search, network->links[search->dead[i]].to);
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
	struct routes *routes = routes_make(network);
	struct search search = { .simulation = simulation,
		.routes = routes,
		.reached = calloc(network->switch_count + 1, sizeof(*search.reached)),
		.stack = calloc(network->switch_count + 1, sizeof(*search.stack)),
		.dead = calloc(network->link_count + 1, sizeof(*search.dead)) };
	simulation->culprits = calloc(simulation->flows.count + 1, sizeof(*simulation->culprits));
	const bool has_memory = routes && search.reached && search.stack && search.dead && simulation->culprits;
	if (has_memory)
		find_all(&search, simulation->culprits, simulation->failure_culprits);
	free(search.reached);
	free(search.stack);
	free(search.dead);
	routes_free(routes);
	return has_memory ? 0 : -ENOMEM;
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
