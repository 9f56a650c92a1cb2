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
#include "net/collectives.h"
#include "net/grow.h"
#include "net/outages.h"
#include "net/rank_groups.h"
#include "net/route.h"
#include "net/unloaded.h"
#include "sim/ideal.h"

/* A class loads a link, or a port of a scale-up domain: these are numbered behind the links, one out and one in for
 * each GPU. */
struct entry {
	uint32_t link, class, weight;
};

struct building {
	const struct simulation *simulation;
	const struct step_plan *plan;
	uint32_t first_class; /* the plan's */
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
	struct entry *entries;
	uint32_t entry_count, entry_room;
	bool is_out_of_memory;
};

static uint32_t port_of(const struct building *building, uint32_t rank, bool is_in)
{
	const struct hosts *hosts = &building->simulation->hosts;
	return building->simulation->network.link_count + 2 * hosts_gpu_of(hosts, rank) + is_in;
}

static uint32_t link_count(const struct building *building)
{
	return building->simulation->network.link_count + 2 * simulation_ranks(building->simulation);
}

/* Of a link's bytes, those of acks for each byte of data: what is sent comes back as acks, and rings send both ways. */
static double ack_share(const struct fabric_config *config)
{
	const struct framing framing = { config->mtu, config->data_overhead, config->ack_overhead };
	const double packet = (double)framing_wire_bytes(&framing, (uint64_t)config->mtu * 1024) / 1024;
	const double every = config->ack_every ? config->ack_every : 1;

	return (double)framing_ack_bytes(&framing) / every / packet;
}

/* Payload bytes a second. */
static uint64_t capacity_of(const struct building *building, uint32_t link)
{
	const struct simulation *simulation = building->simulation;

	if (link >= simulation->network.link_count)
		return simulation->hosts.scale_up / 8;
	return (uint64_t)(ideal_payload_rate(simulation, link) / (1 + ack_share(&simulation->config)));
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
	const uint32_t sources = qp_sources(simulation->network.endpoint_count);
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
		qp_index_of_turn(sources, CONNECTIONS_FIRST_REQUESTER, building->turns[src]++ % CONNECTION_TURNS);
	const uint32_t place = qp_take_place(sources, &taken);
	*port = qp_port(requester, place == CONNECTIONS_NO_PLACE ? qp_responder_without_place(requester)
								 : qp_responder_index(sources, src, place));
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

static int load_between_hosts(
	struct building *building, uint32_t from, uint32_t to, uint32_t part, uint32_t channel, double bytes)
{
	const struct hosts *hosts = &building->simulation->hosts;
	const uint32_t src = hosts_sends_by(hosts, from, to, part), dst = hosts_receives_by(hosts, from, to, part);
	struct spread *spread = &building->spread;
	uint16_t port;
	spread->hop_count = 0;
	if (take_port(building, from, to, src, dst, channel, &port) || spread_walk(spread, src, dst, port))
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
	const struct collective_algorithm *algorithm, const struct rank_groups *groups, uint32_t index)
{
	const uint32_t first = index - index % of->ranks;
	const uint32_t place = collective_place_of(of, index % of->ranks);
	const uint32_t sends = collective_sends(of, algorithm, place);
	const bool is_to_one = algorithm->waiting == FOR_THE_LAST && !algorithm->edges;
	const uint32_t seen = is_to_one ? 1 : sends, channel = collective_opens_each(algorithm) ? 0 : 1 + of->part;
	for (uint32_t i = 0; i < seen; i++) {
		const struct collective_step message = collective_message(of, algorithm, place, i);
		const uint32_t to = groups->rank_at[first + collective_rank_at(of, message.to)];
		load_way(building, groups->rank_at[index], to, of->part, channel, (double)message.bytes * sends / seen);
	}
}

static void load_collective(struct building *building, const struct collective *whole, const struct rank_groups *groups)
{
	const struct hosts *hosts = &building->simulation->hosts;
	for (uint32_t i = 0; i < collective_parts(whole, hosts); i++) {
		const struct collective part = collective_part_of(whole, hosts, i);
		const struct collective_algorithm *algorithm = collective_find(&part);
		for (uint32_t index = 0; index < groups->count * groups->size; index++)
			load_place(building, &part, algorithm, groups, index);
	}
}

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

static uint32_t places(const struct step_plan *plan)
{
	return plan->tp * plan->cp * plan->dp;
}

/* All groups of the dimension in the stage, one behind the other. */
static int open_groups(
	const struct building *building, enum step_dimension dimension, uint32_t stage, struct rank_groups *groups)
{
	const struct step_plan *plan = building->plan;
	uint32_t *lists = malloc(((size_t)places(plan) + 1) * sizeof(*lists)), count = 0;
	if (!lists)
		return -ENOMEM;
	const uint32_t size = step_members(plan, dimension);
	for (uint32_t place = 0; place < places(plan); place++) {
		if (step_group_first(plan, dimension, place, stage) != plan_rank(plan, place, stage))
			continue;
		step_group_ranks(plan, dimension, place, stage, &lists[count]);
		count += size;
	}
	assert(count == places(plan));
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
		const struct entry entry = { link, class,
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

static int load_groups(
	struct building *building, const struct step_operation *operation, uint32_t stage, struct rank_groups *groups)
{
	struct collective whole = { .kind = operation->collective,
		.algorithm = operation->algorithm,
		.ranks = groups->size,
		.gpus = groups->gpus,
		.bytes = operation->bytes };
	whole.algorithm = collective_find(&whole)->name;
	load_collective(building, &whole, groups);
	end_class(building, building->first_class + step_class_of(building->plan, stage, operation),
		collective_law(&whole).bytes);
	return building->is_out_of_memory ? -ENOMEM : 0;
}

static int load_messages(struct building *building, const struct step_operation *operation, uint32_t stage)
{
	for (uint32_t place = 0; place < places(building->plan); place++)
		load_way(building, plan_rank(building->plan, place, stage),
			plan_rank(building->plan, place, operation->peer), 0, 1, 1);
	end_class(building, building->first_class + step_class_of(building->plan, stage, operation), 1);
	return building->is_out_of_memory ? -ENOMEM : 0;
}

/* What is of several stages is a few bytes, or once in a step: it shares nothing. */
static int load_operation(struct building *building, const struct step_operation *operation, uint32_t stage)
{
	struct rank_groups groups;
	if (operation->kind == STEP_SEND)
		return load_messages(building, operation, stage);
	if (operation->kind != STEP_COLLECTIVE || operation->dimension == STEP_ALL || operation->dimension == STEP_ENDS)
		return 0;
	int error = open_groups(building, (enum step_dimension)operation->dimension, stage, &groups);
	if (error)
		return error;
	error = load_groups(building, operation, stage, &groups);
	rank_groups_close(&groups);
	return error;
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
		uint32_t *of = &largest[step_class_of(building->plan, stage, operation) % STEP_CLASSES];
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
		uint32_t *of = &largest[step_class_of(building->plan, stage, operation) % STEP_CLASSES];
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

/* ---- Limits ------------------------------------------------------------------------------------------------------ */

static int by_link(const void *a, const void *b)
{
	const struct entry *one = a, *other = b;
	if (one->link != other->link)
		return one->link < other->link ? -1 : 1;
	return one->class < other->class ? -1 : one->class > other->class;
}

/* Entries of one link. */
struct limit {
	uint64_t capacity;
	uint32_t first, count;
};

static uint64_t hash_of(const struct entry *entries, const struct limit *limit)
{
	uint64_t hash = limit->capacity;
	for (uint32_t i = 0; i < limit->count; i++) {
		const struct entry *entry = &entries[limit->first + i];
		hash = (hash ^ entry->class) * 0x9E3779B97F4A7C15u;
		hash = (hash ^ hash >> 31 ^ entry->weight) * 0xD1B54A32D192ED03u;
	}
	return hash ^ hash >> 29;
}

static bool are_alike(const struct entry *entries, const struct limit *one, const struct limit *other)
{
	bool is_same = one->capacity == other->capacity && one->count == other->count;
	for (uint32_t i = 0; is_same && i < one->count; i++)
		is_same = entries[one->first + i].class == entries[other->first + i].class &&
			  entries[one->first + i].weight == entries[other->first + i].weight;
	return is_same;
}

static int add_hop(struct step_load *load, uint32_t *room, uint32_t limit, uint32_t weight)
{
	if (!grow_by_one(&load->hops, room, load->hop_count, sizeof(*load->hops)))
		return -ENOMEM;
	load->hops[load->hop_count++] = (struct max_min_hop){ limit, weight };
	return 0;
}

/* Each limit once. */
static int add_limit(struct building *building, const struct limit *limit, uint32_t *room, uint32_t *rooms)
{
	struct step_loads *loads = building->loads;
	int error = 0;
	if (!grow_by_one(&loads->limits, room, loads->limit_count, sizeof(*loads->limits)))
		return -ENOMEM;
	loads->limits[loads->limit_count] = limit->capacity;
	for (uint32_t i = 0; !error && i < limit->count; i++) {
		const struct entry *entry = &building->entries[limit->first + i];
		error = add_hop(&loads->classes[entry->class], &rooms[entry->class], loads->limit_count, entry->weight);
	}
	loads->limit_count++;
	return error;
}

/* Those of one hash that are not alike have the next numbers. */
static int find_limits(struct building *building, struct limit *limits, uint32_t *rooms)
{
	struct number_map seen = { 0 };
	uint32_t count = 0, room = 0;
	int error = 0;
	for (uint32_t first = 0, end; !error && first < building->entry_count; first = end) {
		for (end = first;
			end < building->entry_count && building->entries[end].link == building->entries[first].link;)
			end++;
		struct limit *limit = &limits[count];
		*limit = (struct limit){ capacity_of(building, building->entries[first].link), first, end - first };
		uint64_t hash = hash_of(building->entries, limit);
		const uint32_t *known;
		while ((known = number_map_find(&seen, hash)) && !are_alike(building->entries, &limits[*known], limit))
			hash++;
		if (known)
			continue;
		uint32_t *made = number_map_make(&seen, hash);
		if (made)
			*made = count++;
		error = made ? add_limit(building, limit, &room, rooms) : -ENOMEM;
	}
	number_map_free(&seen);
	return error;
}

static int make_limits(struct building *building)
{
	struct limit *limits = malloc(((size_t)building->entry_count + 1) * sizeof(*limits));
	uint32_t *rooms = calloc((size_t)building->loads->class_count + 1, sizeof(*rooms));
	int error = limits && rooms ? 0 : -ENOMEM;
	if (building->entry_count)
		qsort(building->entries, building->entry_count, sizeof(*building->entries), by_link);
	if (!error)
		error = find_limits(building, limits, rooms);
	free(limits);
	free(rooms);
	return error;
}

static int load_plan(struct building *building, const struct step_plan *plan)
{
	int error = 0;
	building->plan = plan;
	for (uint32_t i = 0; !error && i < plan->pp; i++)
		error = load_stage(building, i);
	building->first_class += plan->pp * STEP_CLASSES;
	return error;
}

static void close_building(struct building *building)
{
	spread_close(&building->spread);
	detours_close(&building->detours);
	routes_free(building->routes);
	number_map_free(&building->open);
	number_map_free(&building->places);
	free(building->turns);
	free(building->again);
	free(building->bytes);
	free(building->used);
	free(building->entries);
}

static int make_at(const struct simulation *simulation, const struct step_plan *const *plans, uint32_t count,
	vb_time now, struct step_loads *loads)
{
	struct building building = { .simulation = simulation, .loads = loads };
	const struct network *network = &simulation->network;
	*loads = (struct step_loads){ .until = -1, .resending = fabric_resending(&simulation->config) };
	for (uint32_t i = 0; i < count; i++)
		loads->class_count += plans[i]->pp * STEP_CLASSES;
	loads->classes = calloc(loads->class_count, sizeof(*loads->classes));
	building.routes = routes_make(network);
	building.turns = calloc((size_t)network->endpoint_count + 1, sizeof(*building.turns));
	building.bytes = calloc((size_t)link_count(&building) + 1, sizeof(*building.bytes));
	int error = loads->classes && building.routes && building.turns && building.bytes
			    ? detours_open(&building.detours, network, building.routes, network_has_outages(network))
			    : -ENOMEM;
	if (!error)
		error = spread_open(&building.spread, &simulation->config, building.routes, &building.detours);
	building.spread.now = now;
	for (uint32_t i = 0; !error && i < count; i++)
		error = load_plan(&building, plans[i]);
	if (!error)
		error = make_limits(&building);
	if (!error)
		error = step_loads_finish(loads);
	close_building(&building);
	return error;
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
	int error = make_at(simulation, plans, count, 0, loads);
	for (struct step_loads *last = loads; !error && (next = next_change(&simulation->network, next)) >= 0;
		last = last->next) {
		last->until = next;
		last->next = calloc(1, sizeof(*last->next));
		error = last->next ? make_at(simulation, plans, count, next, last->next) : -ENOMEM;
	}
	return error;
}
