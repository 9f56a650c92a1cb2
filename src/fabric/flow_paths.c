/* See flow_paths.h. Sizes repeat, and most ways are alike: times are kept in a table by size and classes of links,
 * where a later one takes the place of an earlier. */
#include "fabric/flow_paths.h"
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "base/number_map.h"
#include "fabric/fluids.h"
#include "fabric/spread.h"
#include "net/grow.h"

enum { KEPT_TIMES = 1 << 12, KEPT_LINKS = 24 };

/* All that the time of a packet on a link depends on. */
struct link_class {
	uint64_t rate;
	vb_time delay;
	bool is_cut_through;
};

struct kept_time {
	uint64_t bytes;               /* 0: it is not used */
	uint32_t classes[KEPT_LINKS]; /* of links there, then back */
	uint32_t there, back;
	struct flow_times times;
};

struct flow_paths {
	const struct fabric *fabric;
	struct framing framing;
	uint64_t *capacities;
	uint32_t *class_of; /* by link */
	struct link_class *classes;
	uint32_t class_count, class_room;
	struct kept_time *kept;
	struct spread spread;
	struct way there, back; /* of one message */
};

/* ---- Links ------------------------------------------------------------------------------------------------------- */

static bool is_same(const struct link_class *one, const struct link_class *other)
{
	return one->rate == other->rate && one->delay == other->delay && one->is_cut_through == other->is_cut_through;
}

static struct link_class class_of(const struct network *network, uint32_t link)
{
	const struct switch_profile *to = network_profile(network, network->links[link].to);
	return (struct link_class){ network_rate(network, link), link_delay(network, link), to && to->is_cut_through };
}

static bool classify(struct flow_paths *paths, struct number_map *known, uint32_t link)
{
	const struct link_class its = class_of(paths->fabric->network, link);
	uint64_t key = fabric_chance(its.rate, (uint64_t)its.delay, its.is_cut_through);
	uint32_t *number;
	while ((number = number_map_make(known, key)) && *number && !is_same(&paths->classes[*number - 1], &its))
		key++;
	if (!number || !grow_by_one(&paths->classes, &paths->class_room, paths->class_count, sizeof(its)))
		return false;
	if (*number == 0) {
		paths->classes[paths->class_count++] = its;
		*number = paths->class_count;
	}
	paths->class_of[link] = *number;
	return true;
}

/* Where times are rounded down, packets are faster than the rate. */
static uint64_t capacity_of(const struct flow_paths *paths, uint32_t link)
{
	const struct fabric *fabric = paths->fabric;
	const uint64_t rate = network_rate(fabric->network, link) / 8;
	const uint64_t bytes = paths->framing.mtu +
			       (paths->framing.data_overhead ? paths->framing.data_overhead : FRAMING_ROCE_OVERHEAD);
	const vb_time takes = fabric->network->is_whole_ns ? link_time(fabric, &fabric->links[link], bytes) : 0;
	return takes ? bytes * (uint64_t)VB_S / (uint64_t)takes : rate;
}

static bool open_links(struct flow_paths *paths)
{
	struct number_map known = { 0 };
	bool is_open = true;
	for (uint32_t i = 0; is_open && i < paths->fabric->network->link_count; i++) {
		paths->capacities[i] = capacity_of(paths, i);
		is_open = classify(paths, &known, i);
	}
	number_map_free(&known);
	return is_open;
}

struct flow_paths *flow_paths_open(const struct fabric *fabric)
{
	const struct fabric_config *config = fabric->config;
	const struct network *network = fabric->network;
	struct flow_paths *paths = calloc(1, sizeof(*paths));
	if (!paths)
		return NULL;
	*paths = (struct flow_paths){ .fabric = fabric,
		.framing = { config->mtu, config->data_overhead, config->ack_overhead },
		.capacities = calloc(network->link_count + 1, sizeof(*paths->capacities)),
		.class_of = calloc(network->link_count + 1, sizeof(*paths->class_of)),
		.kept = calloc(KEPT_TIMES, sizeof(*paths->kept)) };
	if (spread_open(&paths->spread, config, fabric->routes, &fabric->shards[0].detours) == 0 && paths->capacities &&
		paths->class_of && paths->kept && open_links(paths))
		return paths;
	flow_paths_close(paths);
	return NULL;
}

void flow_paths_close(struct flow_paths *paths)
{
	if (!paths)
		return;
	free(paths->capacities);
	free(paths->class_of);
	free(paths->classes);
	free(paths->kept);
	spread_close(&paths->spread);
	free(paths);
}

const uint64_t *flow_paths_capacities(const struct flow_paths *paths)
{
	return paths->capacities;
}

const struct framing *flow_paths_framing(const struct flow_paths *paths)
{
	return &paths->framing;
}

/* ---- The walk ---------------------------------------------------------------------------------------------------- */

/* One way of those that a walk has found, from `first` on: each link before those that follow it. */
static bool take_way(const struct flow_paths *paths, uint32_t first, struct way *way)
{
	const struct network *network = paths->fabric->network;
	way->count = 0;
	for (uint32_t i = first; i < paths->spread.hop_count; i++) {
		const uint32_t link = paths->spread.hops[i].link;
		if (way->count && network->links[link].from != network->links[way->links[way->count - 1]].to)
			continue;
		if (way->count == UNLOADED_LINKS)
			return false;
		way->links[way->count++] = link;
	}
	return true;
}

static bool walk(struct flow_paths *paths, uint32_t src, uint32_t dst, uint16_t port, struct way *way)
{
	const uint32_t first = paths->spread.hop_count;
	return spread_walk(&paths->spread, src, dst, port) == 0 && take_way(paths, first, way);
}

static uint64_t rate_alone(const struct flow_paths *paths, uint32_t hop_count)
{
	uint64_t rate = UINT64_MAX;
	for (uint32_t i = 0; i < hop_count; i++) {
		const uint64_t its =
			paths->capacities[paths->spread.hops[i].link] * MAX_MIN_WHOLE / paths->spread.hops[i].weight;
		rate = its < rate ? its : rate;
	}
	return rate;
}

static uint64_t hash_of(const struct flow_paths *paths, const struct flow_path *path)
{
	uint64_t hash = path->way_count;
	for (uint32_t i = 0; i < path->way_count + path->way_back_count; i++)
		hash = (hash ^ paths->class_of[path->way[i]]) * 0x9E3779B97F4A7C15u;
	return hash;
}

/* There and back, into spread.hops; false: no memory. */
static bool walk_both(struct flow_paths *paths, uint32_t src, uint32_t dst, uint16_t port, uint32_t *hops_there)
{
	paths->spread.hop_count = 0;
	paths->spread.now = paths->fabric->shards[0].now;
	if (!walk(paths, src, dst, port, &paths->there))
		return false;
	*hops_there = paths->spread.hop_count;
	return walk(paths, dst, src, port, &paths->back);
}

static struct flow_path *make_path(struct flow_paths *paths, uint32_t hops)
{
	const uint32_t there = paths->there.count;
	const size_t hop_bytes = paths->spread.hop_count * sizeof(struct max_min_hop);
	struct flow_path *path = malloc(sizeof(*path) + hop_bytes + (there + paths->back.count) * sizeof(*path->way));
	if (!path)
		return NULL;
	*path = (struct flow_path){ .uses = 1,
		.hop_count = hops,
		.back_count = paths->spread.hop_count - hops,
		.rate = rate_alone(paths, hops),
		.way_count = there,
		.way_back_count = paths->back.count,
		.way = (uint32_t *)(path->hops + paths->spread.hop_count) };
	memcpy(path->hops, paths->spread.hops, hop_bytes);
	memcpy(path->way, paths->there.links, there * sizeof(*path->way));
	memcpy(path->way + there, paths->back.links, paths->back.count * sizeof(*path->way));
	path->alike = hash_of(paths, path);
	return path;
}

struct flow_path *flow_path_of(struct flow_paths *paths, uint32_t src, uint32_t dst, uint16_t port)
{
	uint32_t hops;
	return walk_both(paths, src, dst, port, &hops) ? make_path(paths, hops) : NULL;
}

struct flow_path *flow_path_now(
	struct flow_paths *paths, struct flow_path *path, uint32_t src, uint32_t dst, uint16_t port)
{
	uint32_t hops;
	if (!walk_both(paths, src, dst, port, &hops))
		return NULL;
	if (hops != path->hop_count || paths->spread.hop_count != hops + path->back_count ||
		memcmp(path->hops, paths->spread.hops, paths->spread.hop_count * sizeof(*path->hops)) != 0)
		return make_path(paths, hops);
	path->uses++;
	return path;
}

static bool are_up(const struct flow_paths *paths, const struct max_min_hop *hops, uint32_t count)
{
	const struct fabric *fabric = paths->fabric;
	for (uint32_t i = 0; paths->spread.detours && i < count; i++)
		if (link_is_down(fabric->network, hops[i].link, fabric->shards[0].now))
			return false;
	return true;
}

bool flow_path_is_up(const struct flow_paths *paths, const struct flow_path *path)
{
	return are_up(paths, path->hops, path->hop_count);
}

bool flow_path_back_is_up(const struct flow_paths *paths, const struct flow_path *path)
{
	return are_up(paths, path->hops + path->hop_count, path->back_count);
}

void flow_path_give_back(struct flow_path *path)
{
	assert(path->uses > 0);
	if (--path->uses == 0)
		free(path);
}

/* ---- Times ------------------------------------------------------------------------------------------------------- */

static struct flow_times find_times(struct flow_paths *paths, const struct flow_path *path, uint64_t bytes)
{
	const struct network *network = paths->fabric->network;
	const struct framing *framing = &paths->framing;
	paths->there.count = path->way_count;
	paths->back.count = path->way_back_count;
	memcpy(paths->there.links, path->way, path->way_count * sizeof(*path->way));
	memcpy(paths->back.links, path->way + path->way_count, path->way_back_count * sizeof(*path->way));
	const vb_time alone = unloaded_message_time(network, &paths->there, framing, bytes),
		      flows = fluid_time(framing_wire_bytes(framing, bytes), path->rate);
	return (struct flow_times){ .tail = alone > flows ? alone - flows : 0,
		.ack = unloaded_ack_time(network, &paths->back, framing) };
}

static bool is_kept(const struct flow_paths *paths, const struct kept_time *kept, const struct flow_path *path)
{
	if (kept->there != path->way_count || kept->back != path->way_back_count)
		return false;
	for (uint32_t i = 0; i < kept->there + kept->back; i++)
		if (kept->classes[i] != paths->class_of[path->way[i]])
			return false;
	return true;
}

struct flow_times flow_path_times(struct flow_paths *paths, const struct flow_path *path, uint64_t bytes)
{
	const uint32_t links = path->way_count + path->way_back_count;
	struct kept_time *kept = &paths->kept[fabric_chance(path->alike, bytes, 0) % KEPT_TIMES];
	if (links > KEPT_LINKS)
		return find_times(paths, path, bytes);
	if (kept->bytes == bytes && is_kept(paths, kept, path))
		return kept->times;
	*kept = (struct kept_time){ .bytes = bytes,
		.there = path->way_count,
		.back = path->way_back_count,
		.times = find_times(paths, path, bytes) };
	for (uint32_t i = 0; i < links; i++)
		kept->classes[i] = paths->class_of[path->way[i]];
	return kept->times;
}
