/* See step_limits.h. */
#include "sim/step_limits.h"

#include <errno.h>
#include <stdlib.h>
#include "base/number_map.h"
#include "net/grow.h"
#include "net/unloaded.h"
#include "sim/ideal.h"

uint32_t step_links(const struct simulation *simulation)
{
	return simulation->network.link_count + 2 * simulation_ranks(simulation);
}

/* Of a link's bytes, those of acks for each byte of data: what is sent comes back as acks, and rings send both ways. */
static double ack_share(const struct fabric_config *config)
{
	const struct framing framing = { config->mtu, config->data_overhead, config->ack_overhead };
	const double packet = (double)framing_wire_bytes(&framing, (uint64_t)config->mtu * 1024) / 1024;
	const double every = config->ack_every ? config->ack_every : 1;

	return (double)framing_ack_bytes(&framing) / every / packet;
}

uint64_t step_link_capacity(const struct simulation *simulation, uint32_t link)
{
	if (link >= simulation->network.link_count)
		return simulation->hosts.scale_up / 8;
	return (uint64_t)(ideal_payload_rate(simulation, link) / (1 + ack_share(&simulation->config)));
}

static int by_link(const void *a, const void *b)
{
	const struct load_entry *one = a, *other = b;
	if (one->link != other->link)
		return one->link < other->link ? -1 : 1;
	return one->class < other->class ? -1 : one->class > other->class;
}

/* Entries of one link. */
struct limit {
	uint64_t capacity;
	uint32_t first, count;
};

struct making {
	const struct simulation *simulation;
	struct step_loads *loads;
	struct load_entry *entries;
	uint32_t entry_count;
	struct limit *limits;
	uint32_t limit_count;
	uint32_t *rooms;               /* for hops, by class */
	uint32_t *first_of, *of_class; /* a class's limits: of_class[first_of[class + 1] ..] */
};

static uint64_t hash_of(const struct load_entry *entries, const struct limit *limit)
{
	uint64_t hash = limit->capacity;
	for (uint32_t i = 0; i < limit->count; i++) {
		const struct load_entry *entry = &entries[limit->first + i];
		hash = (hash ^ entry->class) * 0x9E3779B97F4A7C15u;
		hash = (hash ^ hash >> 31 ^ entry->weight) * 0xD1B54A32D192ED03u;
	}
	return hash ^ hash >> 29;
}

static bool are_alike(const struct load_entry *entries, const struct limit *one, const struct limit *other)
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
static int add_limit(struct making *making, const struct limit *limit, uint32_t *room)
{
	struct step_loads *loads = making->loads;
	int error = 0;
	if (!grow_by_one(&loads->limits, room, loads->limit_count, sizeof(*loads->limits)))
		return -ENOMEM;
	loads->limits[loads->limit_count] = limit->capacity;
	for (uint32_t i = 0; !error && i < limit->count; i++) {
		const struct load_entry *entry = &making->entries[limit->first + i];
		error = add_hop(
			&loads->classes[entry->class], &making->rooms[entry->class], loads->limit_count, entry->weight);
	}
	loads->limit_count++;
	return error;
}

/* Each once: those of one hash that are not alike have the next numbers. */
static int find_limits(struct making *making)
{
	struct number_map seen = { 0 };
	int error = 0;
	for (uint32_t first = 0, end; !error && first < making->entry_count; first = end) {
		for (end = first;
			end < making->entry_count && making->entries[end].link == making->entries[first].link;)
			end++;
		struct limit *limit = &making->limits[making->limit_count];
		*limit = (struct limit){ step_link_capacity(making->simulation, making->entries[first].link), first,
			end - first };
		uint64_t hash = hash_of(making->entries, limit);
		const uint32_t *known;
		while ((known = number_map_find(&seen, hash)) &&
			!are_alike(making->entries, &making->limits[*known], limit))
			hash++;
		if (known)
			continue;
		uint32_t *made = number_map_make(&seen, hash);
		if (made)
			*made = making->limit_count++;
		error = made ? 0 : -ENOMEM;
	}
	number_map_free(&seen);
	return error;
}

/* ---- Those that hold nobody down --------------------------------------------------------------------------------- */

/* Whether each class loads the other limit as much or more, of its capacity. */
static bool is_within(const struct load_entry *entries, const struct limit *limit, const struct limit *other)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < limit->count; i++) {
		const struct load_entry *entry = &entries[limit->first + i];
		while (k < other->count && entries[other->first + k].class < entry->class)
			k++;
		if (k == other->count || entries[other->first + k].class != entry->class ||
			(unsigned __int128)entry->weight * other->capacity >
				(unsigned __int128)entries[other->first + k].weight * limit->capacity)
			return false;
	}
	return true;
}

/* Another is always full before. Of two that are within each other the first counts. */
static bool is_never_full(const struct making *making, uint32_t number)
{
	const struct limit *limit = &making->limits[number];
	const uint32_t class = making->entries[limit->first].class;
	for (uint32_t i = making->first_of[class + 1]; i < making->first_of[class + 2]; i++) {
		const uint32_t other = making->of_class[i];
		if (other != number && is_within(making->entries, limit, &making->limits[other]) &&
			(other < number || !is_within(making->entries, &making->limits[other], limit)))
			return true;
	}
	return false;
}

/* Limits by class. */
static void sort_by_class(struct making *making)
{
	uint32_t *first = making->first_of;
	for (uint32_t i = 0; i < making->limit_count; i++)
		for (uint32_t k = 0; k < making->limits[i].count; k++)
			first[making->entries[making->limits[i].first + k].class + 1]++;
	for (uint32_t i = 0; i < making->loads->class_count; i++)
		first[i + 1] += first[i];
	first[making->loads->class_count + 1] = first[making->loads->class_count];
	for (uint32_t i = making->limit_count; i-- > 0;) /* from behind: first[class + 1] becomes the class's first */
		for (uint32_t k = 0; k < making->limits[i].count; k++)
			making->of_class[--first[making->entries[making->limits[i].first + k].class + 1]] = i;
}

static int add_limits(struct making *making)
{
	uint32_t room = 0;
	int error = 0;
	sort_by_class(making);
	for (uint32_t i = 0; !error && i < making->limit_count; i++)
		if (!is_never_full(making, i))
			error = add_limit(making, &making->limits[i], &room);
	return error;
}

int step_limits_make(
	const struct simulation *simulation, struct load_entry *entries, uint32_t count, struct step_loads *loads)
{
	struct making making = { .simulation = simulation,
		.loads = loads,
		.entries = entries,
		.entry_count = count,
		.limits = malloc(((size_t)count + 1) * sizeof(*making.limits)),
		.rooms = calloc((size_t)loads->class_count + 1, sizeof(*making.rooms)),
		.first_of = calloc((size_t)loads->class_count + 2, sizeof(*making.first_of)),
		.of_class = malloc(((size_t)count + 1) * sizeof(*making.of_class)) };
	int error = making.limits && making.rooms && making.first_of && making.of_class ? 0 : -ENOMEM;
	if (count)
		qsort(entries, count, sizeof(*entries), by_link);
	if (!error)
		error = find_limits(&making);
	if (!error)
		error = add_limits(&making);
	free(making.limits);
	free(making.rooms);
	free(making.first_of);
	free(making.of_class);
	return error;
}
