/* Why PAUSE did or did not fire. */
#include "sim/explain.h"
#include "sim/traffic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "net/route.h"

/* ---- Which endpoints a pause stops, and where it began ----------------------------------------------------------- */

static const struct fabric_pauses *find_told(const struct fabric_result *result, uint32_t link, uint8_t class)
{
	uint32_t first = 0, last = result->pauses_told_count;

	while (first < last) {
		uint32_t middle = first + (last - first) / 2;
		const struct fabric_pauses *told = &result->pauses_told[middle];
		if (told->link == link && told->of_class == class)
			return told;
		if (told->link < link || (told->link == link && told->of_class < class))
			first = middle + 1;
		else
			last = middle;
	}
	return NULL;
}

static const struct fabric_pause_cause *main_cause(const struct fabric_pauses *told)
{
	const struct fabric_pause_cause *main = NULL;

	for (uint32_t i = 0; i < told->cause_count; i++)
		if (!main || told->causes[i].count > main->count)
			main = &told->causes[i];
	return main;
}

/* Follows a queue that is stopped to the link that stops it. */
static uint32_t find_root(const struct fabric_result *result, const struct fabric_pauses *told)
{
	for (uint32_t steps = 0; told && steps <= result->pauses_told_count; steps++) {
		const struct fabric_pause_cause *cause = main_cause(told);
		if (!cause)
			return NETWORK_NONE;
		if (!cause->is_stopped)
			return cause->link;
		told = find_told(result, cause->link, told->of_class);
	}
	return NETWORK_NONE;
}

static bool is_stopped_by(const struct fabric_pauses *told, const bool *reached)
{
	for (uint32_t i = 0; i < told->cause_count; i++)
		if (told->causes[i].is_stopped && reached[told->causes[i].link])
			return true;
	return false;
}

/* Marks all links that a pause of this one stopped: itself and those before it. */
static void reach(const struct simulation *simulation, const struct fabric_pauses *from, bool *reached)
{
	const struct fabric_result *result = &simulation->result;
	bool is_more = true;

	reached[from->link] = true;
	while (is_more) {
		is_more = false;
		for (uint32_t i = 0; i < result->pauses_told_count; i++) {
			const struct fabric_pauses *told = &result->pauses_told[i];
			if (reached[told->link] || told->of_class != from->of_class || !is_stopped_by(told, reached))
				continue;
			reached[told->link] = is_more = true;
		}
	}
}

static int find_stopped(struct explained *explained, const struct simulation *simulation)
{
	const struct network *network = &simulation->network;
	bool *reached = calloc(network->link_count, sizeof(*reached));

	explained->are_stopped = calloc(network->endpoint_count, sizeof(*explained->are_stopped));
	if (!reached || !explained->are_stopped) {
		free(reached);
		return -ENOMEM;
	}
	reach(simulation, explained->told, reached);
	for (uint32_t i = 0; i < network->endpoint_count; i++) {
		explained->are_stopped[i] = reached[network->endpoints[i].link];
		explained->stopped_count += explained->are_stopped[i];
	}
	free(reached);
	return 0;
}

uint32_t explain_stopper(const struct fabric_result *result, uint32_t link, uint8_t traffic_class)
{
	return find_root(result, find_told(result, link, traffic_class));
}

/* ---- Flows that were stopped because of others ------------------------------------------------------------------- */

static bool may_pass(const struct network *network, const struct routes *routes, uint32_t link, uint32_t dst)
{
	struct route_choice choice = routes_towards(routes, network_index(network->links[link].from), dst);

	for (uint32_t i = 0; i < choice.count; i++)
		if (choice.links[i] == link)
			return true;
	return false;
}

static bool is_of_class(const struct flow *flow, const struct fabric_pauses *told)
{
	return flow->traffic_class == told->of_class;
}

static void keep_victim(struct explained *explained, uint32_t flow)
{
	if (explained->victim_count < EXPLAIN_VICTIMS)
		explained->victims[explained->victim_count] = flow;
	explained->victim_count++;
}

static void find_victims(struct explained *explained, const struct simulation *simulation, const struct routes *routes)
{
	const struct fabric_pauses *told = explained->told;

	for (uint32_t i = 0; explained->root != NETWORK_NONE && i < simulation->flows.count; i++) {
		const struct flow *flow = &simulation->flows.flows[i];
		const struct flow_result *its = &simulation->result.flows[i];
		bool was_then = its->start <= told->until && (its->fct < 0 || its->start + its->fct >= told->first.at);
		if (explained->are_stopped[flow->src] && was_then && is_of_class(flow, told) &&
			!may_pass(&simulation->network, routes, explained->root, flow->dst))
			keep_victim(explained, i);
	}
}

/* ---- The explanation --------------------------------------------------------------------------------------------- */

/* Longest first; of equals the lower link. */
static void keep_worst(struct explanation *explanation, const struct fabric_pauses *told)
{
	unsigned at = explanation->worst_count;

	while (at > 0 && explanation->worst[at - 1].told->lasted < told->lasted)
		at--;
	if (at == EXPLAIN_MOST)
		return;
	explanation->worst_count += explanation->worst_count < EXPLAIN_MOST;
	for (unsigned i = explanation->worst_count - 1; i > at; i--)
		explanation->worst[i] = explanation->worst[i - 1];
	explanation->worst[at] = (struct explained){ .told = told };
}

static double nearness(const struct fabric_pauses *told)
{
	return (double)told->nearest.bytes / ((double)told->nearest.threshold + 1);
}

static void sum_up(struct explanation *explanation, const struct simulation *simulation)
{
	const struct fabric_result *result = &simulation->result;

	for (uint32_t i = 0; i < result->pauses_told_count; i++) {
		const struct fabric_pauses *told = &result->pauses_told[i];
		if (!explanation->nearest || nearness(told) > nearness(explanation->nearest))
			explanation->nearest = told;
		explanation->paused_links += told->count > 0;
		explanation->pauses += told->count;
		explanation->lasted += told->lasted;
		if (told->count)
			keep_worst(explanation, told);
	}
	explanation->longest_queue = NETWORK_NONE;
	for (uint32_t i = 0; i < simulation->network.link_count; i++)
		if (network_is_switch(simulation->network.links[i].from) &&
			(explanation->longest_queue == NETWORK_NONE ||
				result->links[i].most_queued > result->links[explanation->longest_queue].most_queued))
			explanation->longest_queue = i;
}

/* For the switches' profile, if no class of the flows can be paused. */
static const char *why_off(const struct simulation *simulation)
{
	const struct switch_profile *profile = &simulation->scenario->topology.profile;
	bool is_any = false;

	if (profile->flow_control == FLOW_DROPS)
		return "flow-control is drops: packets without room are dropped, and no sender is paused";
	if (profile->flow_control == FLOW_CREDITS)
		return "flow-control is credits: nothing is sent without room, and no sender is paused";
	const uint8_t classes = traffic_of(simulation).classes;
	for (uint32_t class = 0; class < FABRIC_CLASSES; class ++)
		is_any |= classes >> class & 1 && profile->classes[class].is_lossless;
	if (!is_any)
		return "the flows' class is not lossless: packets without room are dropped";
	for (uint32_t class = 0; class < profile->class_count; class ++)
		if (profile->classes[class].limit_bytes)
			return NULL;
	return profile->buffer_bytes ? NULL : "the switches' buffer has no bound, and no class a limit";
}

int explanation_make(struct explanation *explanation, const struct simulation *simulation)
{
	struct routes *routes = routes_make(&simulation->network);
	int error = routes ? 0 : -ENOMEM;

	*explanation = (struct explanation){ .off = why_off(simulation) };
	sum_up(explanation, simulation);
	for (unsigned i = 0; !error && i < explanation->worst_count; i++) {
		struct explained *explained = &explanation->worst[i];
		explained->root = find_root(&simulation->result, explained->told);
		error = find_stopped(explained, simulation);
		if (!error)
			find_victims(explained, simulation, routes);
	}
	routes_free(routes);
	return error;
}

void explanation_free(struct explanation *explanation)
{
	for (unsigned i = 0; i < explanation->worst_count; i++)
		free(explanation->worst[i].are_stopped);
	*explanation = (struct explanation){ 0 };
}
