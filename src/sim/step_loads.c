/* See step_loads.h. */
#include "sim/step_loads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "base/number_map.h"
#include "fabric/qp_numbers.h"
#include "fabric/resending.h"
#include "fabric/spread.h"
#include "net/collective_qps.h"
#include "net/grow.h"
#include "net/outages.h"
#include "net/rank_groups.h"
#include "net/route.h"
#include "sim/step_lanes.h"
#include "sim/step_limits.h"

struct building {
	const struct simulation *simulation;
	const struct step_plan *plan;
	const struct step_lanes *lanes; /* the plan's */
	double *messages; /* by link: of all stages at once, where lanes are still to be found; else NULL */
	struct routes *routes;
	struct spread spread;
	struct detours detours;
	struct step_loads *loads;
	/* Connections between hosts. */
	struct number_map open;   /* ports of those that stay open, by ranks and channel */
	struct number_map places; /* by endpoints: places that are taken (fabric/qp_numbers.h) */
	uint16_t *turns;          /* by endpoint: how many it has opened */
	uint32_t *again; /* endpoints that open one for each message of the stage's all-to-all, once a message */
	uint32_t again_count, again_room;
	/* Of the class at hand. */
	bool is_down;  /* one of its links is */
	double *bytes; /* by link */
	uint32_t *used;
	uint32_t used_count, used_room;
	/* Of all. */
	struct load_entry *entries;
	uint32_t entry_count, entry_room;
	bool is_out_of_memory;
};

static uint32_t port_of(const struct building *building, uint32_t rank, bool is_in)
{
	const struct hosts *hosts = &building->simulation->hosts;
	return building->simulation->network.link_count + 2 * hosts_gpu_of(hosts, rank) + is_in;
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

static void load_link(struct building *building, uint32_t link, double bytes)
{
	if (building->bytes[link] == 0) {
		if (!grow_by_one(
			    &building->used, &building->used_room, building->used_count, sizeof(*building->used))) {
			building->is_out_of_memory = true;
			return;
		}
		building->used[building->used_count++] = link;
	}
	building->bytes[link] += bytes;
}

/* A connection that stays open has the port of its first message, another a new one for each: as with packets, where
 * ranks open them one after another in the order of their programs. */
static int take_port(struct building *building, uint32_t from, uint32_t to, uint32_t src, uint32_t dst,
	uint32_t channel, uint16_t *port)
{
	const struct simulation *simulation = building->simulation;
	const struct qp_plane plane = qp_back_plane(&simulation->network);
	const uint64_t pair = (uint64_t)src << 32 | dst;
	uint32_t *open = channel ? number_map_make(&building->open, ((uint64_t)from << 31 | to) << 11 | channel) : NULL;
	if (simulation->config.endpoint != FABRIC_ENGINE || (open && *open)) {
		*port = open && *open ? (uint16_t)*open : 0;
		return 0;
	}
	uint32_t *used = number_map_make(&building->places, pair), taken = used ? *used : 0;
	if (!used || (channel && !open))
		return -ENOMEM;
	const uint32_t requester =
		qp_index_of_turn(plane.sources, CONNECTIONS_FIRST_REQUESTER, building->turns[src]++ % CONNECTION_TURNS);
	const uint32_t place = qp_take_place(plane.sources, &taken);
	*port = qp_port(requester, place == CONNECTIONS_NO_PLACE ? qp_responder_without_place(requester)
								 : qp_responder_index(&plane, src, place));
	if (!channel) {
		if (!grow_by_one(
			    &building->again, &building->again_room, building->again_count, sizeof(*building->again)))
			return -ENOMEM;
		building->again[building->again_count++] = src;
		return 0;
	}
	*used = taken;
	*open = *port;
	return 0;
}

/* Into the hops of building->spread. */
static int walk_between_hosts(struct building *building, uint32_t from, uint32_t to, uint32_t part, uint32_t channel)
{
	const struct hosts *hosts = &building->simulation->hosts;
	const uint32_t src = hosts_sends_by(hosts, from, to, part), dst = hosts_receives_by(hosts, from, to, part);
	uint16_t port;
	building->spread.hop_count = 0;
	return take_port(building, from, to, src, dst, channel, &port) || spread_walk(&building->spread, src, dst, port)
		       ? -ENOMEM
		       : 0;
}

static int load_between_hosts(
	struct building *building, uint32_t from, uint32_t to, uint32_t part, uint32_t channel, double bytes)
{
	const struct spread *spread = &building->spread;
	if (walk_between_hosts(building, from, to, part, channel))
		return -ENOMEM;
	for (uint32_t i = 0; i < spread->hop_count; i++) {
		load_link(building, spread->hops[i].link, bytes * spread->hops[i].weight / MAX_MIN_WHOLE);
		building->is_down |= link_is_down(spread->config->network, spread->hops[i].link, spread->now);
	}
	return 0;
}

/* channel: as of struct message. */
static void load_way(
	struct building *building, uint32_t from, uint32_t to, uint32_t part, uint32_t channel, double bytes)
{
	const struct hosts *hosts = &building->simulation->hosts;
	if (hosts_host_of(hosts, from) == hosts_host_of(hosts, to)) {
		load_link(building, port_of(building, from, false), bytes);
		load_link(building, port_of(building, to, true), bytes);
	} else if (load_between_hosts(building, from, to, part, channel, bytes)) {
		building->is_out_of_memory = true;
	}
}

/* Of a ring all messages of a rank go to one other. */
static void load_place(struct building *building, const struct collective *of,
	const struct collective_algorithm *algorithm, const struct rank_groups *groups, uint32_t index, uint32_t parts)
{
	const uint32_t first = index - index % of->ranks;
	const uint32_t place = collective_place_of(of, index % of->ranks);
	const uint32_t sends = collective_sends(of, algorithm, place);
	const bool is_to_one = algorithm->waiting == FOR_THE_LAST && !algorithm->edges;
	const uint32_t seen = is_to_one ? 1 : sends;
	for (uint32_t i = 0; i < seen; i++) {
		const struct collective_step message = collective_message(of, algorithm, place, i);
		const uint32_t to = groups->rank_at[first + collective_rank_at(of, message.to)];
		/* Whole in turn or cut, each QP of a connection that stays open has as much in the end. */
		const bool opens = collective_opens_each(algorithm);
		const uint32_t qps =
			opens ? collective_cuts(of, place, message.to) : collective_qps(of, place, message.to);
		for (uint32_t qp = 0; qp < qps; qp++)
			load_way(building, groups->rank_at[index], to, of->part, opens ? 0 : 1 + of->part + qp * parts,
				(double)message.bytes * sends / seen / qps);
	}
}

static void load_collective(struct building *building, const struct collective *whole, const struct rank_groups *groups)
{
	const struct hosts *hosts = &building->simulation->hosts;
	const uint32_t parts = collective_parts(whole, hosts);
	for (uint32_t i = 0; i < parts; i++) {
		const struct collective part = collective_part_of(whole, hosts, i);
		const struct collective_algorithm *algorithm = collective_find(&part);
		for (uint32_t index = 0; index < groups->count * groups->size; index++)
			load_place(building, &part, algorithm, groups, index, parts);
	}
}

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

static uint32_t places(const struct step_plan *plan)
{
	return plan->tp * plan->cp * plan->dp;
}

/* All groups of the dimension in the stage's lane, one behind the other. Groups of all lanes are the first's. */
static int open_groups(const struct building *building, const struct step_operation *operation, uint32_t stage,
	uint32_t lane, struct rank_groups *groups)
{
	const struct step_plan *plan = building->plan;
	const enum step_dimension dimension = (enum step_dimension)operation->dimension;
	uint32_t *lists = malloc(((size_t)places(plan) + 1) * sizeof(*lists)), count = 0;
	if (!lists)
		return -ENOMEM;
	const uint32_t size = step_members(plan, dimension);
	for (uint32_t place = 0; place < places(plan); place++) {
		const bool is_of_lane = step_joins_lanes(operation) || step_lane_of(building->lanes, place) == lane;
		if (!is_of_lane || step_group_first(plan, dimension, place, stage) != plan_rank(plan, place, stage))
			continue;
		step_group_ranks(plan, dimension, place, stage, &lists[count]);
		count += size;
	}
	int error = rank_groups_open_lists(groups, &building->simulation->hosts, lists, count / size, size);
	free(lists);
	return error;
}

/* The rate of a class is that at which one of its ranks sends. */
static void end_class(struct building *building, uint32_t class, double sent)
{
	for (uint32_t i = 0; i < building->used_count; i++) {
		const uint32_t link = building->used[i];
		const double weight = building->bytes[link] / sent * MAX_MIN_WHOLE;
		const struct load_entry entry = { link, class,
			weight < 1            ? 1
			: weight < UINT32_MAX ? (uint32_t)weight
					      : UINT32_MAX };
		building->bytes[link] = 0;
		if (!grow_by_one(&building->entries, &building->entry_room, building->entry_count, sizeof(entry)))
			building->is_out_of_memory = true;
		else
			building->entries[building->entry_count++] = entry;
	}
	building->used_count = 0;
	building->loads->classes[class].is_down = building->is_down;
	building->is_down = false;
}

static uint32_t class_of(
	const struct building *building, const struct step_operation *operation, uint32_t stage, uint32_t lane)
{
	return building->lanes->first_class + (stage * building->lanes->count + lane) * STEP_CLASSES +
	       step_class_of(building->plan, stage, operation);
}

static void load_groups(
	struct building *building, const struct step_operation *operation, uint32_t class, struct rank_groups *groups)
{
	struct collective whole = { .kind = operation->collective,
		.algorithm = operation->algorithm,
		.ranks = groups->size,
		.gpus = groups->gpus,
		.nccl = building->simulation->scenario->job_nccl,
		.bytes = operation->bytes };
	whole.algorithm = collective_find(&whole)->name;
	load_collective(building, &whole, groups);
	end_class(building, class, collective_law(&whole).bytes);
}

static void load_messages(
	struct building *building, const struct step_operation *operation, uint32_t stage, uint32_t lane)
{
	const struct step_plan *plan = building->plan;
	for (uint32_t place = 0; place < places(plan); place++)
		if (step_lane_of(building->lanes, place) == lane)
			load_way(building, plan_rank(plan, place, stage), plan_rank(plan, place, operation->peer), 0, 1,
				1);
	for (uint32_t i = 0; building->messages && i < building->used_count; i++)
		building->messages[building->used[i]] += building->bytes[building->used[i]];
	end_class(building, class_of(building, operation, stage, lane), 1);
}

static int load_lane(struct building *building, const struct step_operation *operation, uint32_t stage, uint32_t lane)
{
	struct rank_groups groups;
	if (operation->kind == STEP_SEND) {
		load_messages(building, operation, stage, lane);
		return 0;
	}
	int error = open_groups(building, operation, stage, lane, &groups);
	if (error)
		return error;
	load_groups(building, operation, class_of(building, operation, stage, lane), &groups);
	rank_groups_close(&groups);
	return 0;
}

/* What is of several stages is a few bytes, or once in a step: it shares nothing. */
static int load_operation(struct building *building, const struct step_operation *operation, uint32_t stage)
{
	const uint32_t lanes = step_joins_lanes(operation) ? 1 : building->lanes->count;
	int error = 0;
	if (operation->dimension == STEP_ALL || operation->dimension == STEP_ENDS)
		return 0;
	for (uint32_t lane = 0; !error && lane < lanes; lane++)
		error = load_lane(building, operation, stage, lane);
	return error || building->is_out_of_memory ? -ENOMEM : 0;
}

static bool is_sent(const struct step_operation *operation)
{
	return operation->kind == STEP_SEND || operation->kind == STEP_COLLECTIVE;
}

/* Of each class its largest operation, which has the way of the others; and how many classes there are. */
static uint32_t find_largest(const struct building *building, const struct step_program *program, uint32_t stage,
	uint32_t largest[STEP_CLASSES])
{
	uint32_t count = 0;
	for (unsigned i = 0; i < STEP_CLASSES; i++)
		largest[i] = STEP_NONE;
	for (uint32_t i = 0; i < program->count; i++) {
		const struct step_operation *operation = &program->operations[i];
		uint32_t *of = &largest[step_class_of(building->plan, stage, operation)];
		if (!is_sent(operation))
			continue;
		count += *of == STEP_NONE;
		if (*of == STEP_NONE || operation->bytes > program->operations[*of].bytes)
			*of = i;
	}
	return count;
}

/* Classes in the order of their first operations, because ports follow from it. An all-to-all opens its connections
 * anew each time. */
static int load_classes(struct building *building, const struct step_program *program, uint32_t stage)
{
	uint32_t largest[STEP_CLASSES], left = find_largest(building, program, stage, largest);
	int error = 0;
	building->again_count = 0;
	for (uint32_t i = 0; !error && left > 0; i++) {
		const struct step_operation *operation = &program->operations[i];
		uint32_t *of = &largest[step_class_of(building->plan, stage, operation)];
		if (!is_sent(operation))
			continue;
		if (*of == STEP_NONE) {
			for (uint32_t k = 0; operation->dimension == STEP_EP && k < building->again_count; k++)
				building->turns[building->again[k]]++;
			continue;
		}
		error = load_operation(building, &program->operations[*of], stage);
		*of = STEP_NONE;
		left--;
	}
	return error;
}

static int load_stage(struct building *building, uint32_t stage)
{
	struct step_program program;
	int error = program_make(building->plan, stage, &program);
	if (!error)
		error = load_classes(building, &program, stage);
	program_free(&program);
	return error;
}

/* ---- A plan ------------------------------------------------------------------------------------------------------ */

static int load_plan(struct building *building, const struct step_plan *plan, const struct step_lanes *lanes)
{
	int error = 0;
	building->plan = plan;
	building->lanes = lanes;
	for (uint32_t i = 0; !error && i < plan->pp; i++)
		error = load_stage(building, i);
	return error;
}

/* Of the links that the message takes, the most for which it would wait if all stages sent at once. */
static double contention(struct building *building, uint32_t from, uint32_t to)
{
	const struct hosts *hosts = &building->simulation->hosts;
	const struct spread *spread = &building->spread;
	double most = 0;
	if (hosts_host_of(hosts, from) == hosts_host_of(hosts, to))
		return 0;
	building->is_out_of_memory |= walk_between_hosts(building, from, to, 0, 1) != 0;
	for (uint32_t i = 0; i < spread->hop_count; i++) {
		const uint32_t link = spread->hops[i].link;
		const double its = building->messages[link] / (double)step_link_capacity(building->simulation, link);
		most = its > most ? its : most;
	}
	return most * (double)step_link_capacity(building->simulation, building->simulation->network.endpoints[0].link);
}

/* To the next stage, and back. The last sends to the first where stages have several parts. */
static void note_messages(struct building *building, struct lane_signs *signs)
{
	const struct step_plan *plan = building->plan;
	for (uint32_t stage = 0; stage < plan->pp - (plan->chunks == 1); stage++)
		for (uint32_t place = 0; place < places(plan); place++) {
			const uint32_t one = plan_rank(plan, place, stage),
				       other = plan_rank(plan, place, (stage + 1) % plan->pp);
			lane_signs_note(signs, place, contention(building, one, other));
			lane_signs_note(signs, place, contention(building, other, one));
		}
}

static void close_building(struct building *building)
{
	spread_close(&building->spread);
	detours_close(&building->detours);
	routes_free(building->routes);
	number_map_free(&building->open);
	number_map_free(&building->places);
	free(building->turns);
	free(building->messages);
	free(building->again);
	free(building->bytes);
	free(building->used);
	free(building->entries);
}

static int open_building(struct building *building, vb_time now)
{
	const struct network *network = &building->simulation->network;
	building->routes = routes_make(network);
	building->turns = calloc((size_t)network->endpoint_count + 1, sizeof(*building->turns));
	building->bytes = calloc((size_t)step_links(building->simulation) + 1, sizeof(*building->bytes));
	if (!building->routes || !building->turns || !building->bytes ||
		detours_open(&building->detours, network, building->routes, network_has_outages(network)) ||
		spread_open(&building->spread, &building->simulation->config, building->routes, &building->detours))
		return -ENOMEM;
	building->spread.now = now;
	return 0;
}

/* Loads that have their lanes. signs: by plan, those that are to be noted; NULL: none. */
static int make_at(const struct simulation *simulation, const struct step_plan *const *plans,
	const struct step_lanes *lanes, uint32_t count, vb_time now, struct lane_signs *signs, struct step_loads *loads)
{
	struct building building = { .simulation = simulation, .loads = loads };
	loads->until = -1;
	loads->resending = fabric_resending(&simulation->config);
	loads->class_count =
		lanes[count - 1].first_class + plans[count - 1]->pp * lanes[count - 1].count * STEP_CLASSES;
	loads->classes = calloc(loads->class_count, sizeof(*loads->classes));
	int error = loads->classes ? open_building(&building, now) : -ENOMEM;
	if (signs)
		building.messages = calloc((size_t)step_links(simulation) + 1, sizeof(*building.messages));
	if (signs && !building.messages)
		error = -ENOMEM;
	for (uint32_t i = 0; !error && i < count; i++) {
		error = load_plan(&building, plans[i], &lanes[i]);
		if (!error && signs && plans[i]->pp > 1)
			note_messages(&building, &signs[i]);
	}
	if (!error)
		error = step_limits_make(simulation, building.entries, building.entry_count, loads);
	if (!error)
		error = step_loads_finish(loads);
	close_building(&building);
	return error;
}

static void number_classes(const struct step_plan *const *plans, uint32_t count, struct step_lanes *lanes)
{
	uint32_t first = 0;
	for (uint32_t i = 0; i < count; i++) {
		lanes[i].first_class = first;
		first += plans[i]->pp * lanes[i].count * STEP_CLASSES;
	}
}

/* From loads of one lane each, which stay where there are no more. */
static int find_lanes(const struct simulation *simulation, const struct step_plan *const *plans, uint32_t count,
	struct step_loads *loads)
{
	struct lane_signs *signs = calloc(count, sizeof(*signs));
	int error = signs ? 0 : -ENOMEM;
	for (uint32_t i = 0; !error && i < count; i++) {
		loads->lanes[i] = (struct step_lanes){ .count = 1 };
		error = lane_signs_open(&signs[i], plans[i]);
	}
	number_classes(plans, count, loads->lanes);
	if (!error)
		error = make_at(simulation, plans, loads->lanes, count, 0, signs, loads);
	for (uint32_t i = 0; !error && i < count; i++)
		error = lane_signs_divide(&signs[i], &loads->lanes[i]);
	for (uint32_t i = 0; signs && i < count; i++)
		lane_signs_close(&signs[i]);
	free(signs);
	return error;
}

static bool have_lanes(const struct step_lanes *lanes, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (lanes[i].count > 1)
			return true;
	return false;
}

static vb_time next_change(const struct network *network, vb_time now)
{
	vb_time first = -1;
	for (uint32_t i = 0; i < network->fault_count; i++) {
		const vb_time next = fault_next_change(&network->faults[i], now);
		if (next >= 0 && (first < 0 || next < first))
			first = next;
	}
	return first;
}

int step_loads_make(const struct simulation *simulation, const struct step_plan *const *plans, uint32_t count,
	struct step_loads *loads)
{
	vb_time next = 0;
	*loads = (struct step_loads){ .step_count = count, .lanes = calloc(count, sizeof(*loads->lanes)) };
	int error = loads->lanes ? find_lanes(simulation, plans, count, loads) : -ENOMEM;
	if (!error && have_lanes(loads->lanes, count)) {
		step_loads_empty(loads);
		error = make_at(simulation, plans, loads->lanes, count, 0, NULL, loads);
	}
	for (struct step_loads *last = loads; !error && (next = next_change(&simulation->network, next)) >= 0;
		last = last->next) {
		last->until = next;
		last->next = calloc(1, sizeof(*last->next));
		error = last->next ? make_at(simulation, plans, loads->lanes, count, next, NULL, last->next) : -ENOMEM;
	}
	return error;
}
