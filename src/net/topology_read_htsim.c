/* htsim's .topo: trees, by properties of the switches of each tier.
 *
 * It has "Nodes", "Tiers" and "Podsize", then for each tier "Tier N" followed by its properties, in any case and any
 * order. A speed, a latency and a bundle are those of the links down from the tier; a queue is that of each output, in
 * bytes. The numbers of switches follow from the radices, which must fit each other. */
#include <errno.h>
#include "net/clos.h"
#include "net/topology_text.h"
#include "net/why.h"

enum key {
	SPEED,
	RADIX_UP,
	RADIX_DOWN,
	QUEUE_UP,
	QUEUE_DOWN,
	OVERSUBSCRIBED,
	BUNDLE,
	SWITCH_LATENCY,
	LINK_LATENCY,
	KEYS
};

static const struct {
	const char *name;
	uint64_t unit, max;
} keys[KEYS] = {
	[SPEED] = { "Downlink_speed_Gbps", 1000000000, INT64_MAX },
	[RADIX_UP] = { "Radix_Up", 1, CLOS_MOST_NODES },
	[RADIX_DOWN] = { "Radix_Down", 1, CLOS_MOST_NODES },
	[QUEUE_UP] = { "Queue_Up", 1, INT64_MAX },
	[QUEUE_DOWN] = { "Queue_Down", 1, INT64_MAX },
	[OVERSUBSCRIBED] = { "Oversubscribed", 1, CLOS_MOST_NODES },
	[BUNDLE] = { "Bundle", 1, CLOS_MOST_NODES },
	[SWITCH_LATENCY] = { "Switch_Latency_ns", VB_NS, VB_HORIZON },
	[LINK_LATENCY] = { "Downlink_Latency_ns", VB_NS, VB_HORIZON },
};

struct tier {
	bool is_there;
	bool has[KEYS];
	uint64_t value[KEYS];
};

struct tree {
	uint64_t nodes, tiers, pod_size;
	struct tier tier[3];
};

/* ---- Lines ------------------------------------------------------------------------------------------------------- */

static int read_of_all(const struct text *text, struct span name, struct span value, struct tree *tree)
{
	uint64_t *place = span_is(name, "Nodes")     ? &tree->nodes
			  : span_is(name, "Tiers")   ? &tree->tiers
			  : span_is(name, "Podsize") ? &tree->pod_size
						     : NULL;
	if (!place)
		return text_wrong(text, "%.*s before the first Tier: expected Nodes, Tiers or Podsize", SPAN(name));
	if (*place)
		return text_wrong(text, "%.*s twice", SPAN(name));
	if (!span_number(value, CLOS_MOST_NODES, place) || *place == 0)
		return text_wrong(text, "%.*s is not from 1 to %d", SPAN(value), CLOS_MOST_NODES);
	return 0;
}

static int read_of_tier(const struct text *text, struct span name, struct span value, struct tier *tier)
{
	for (int key = 0; key < KEYS; key++) {
		if (!span_is(name, keys[key].name))
			continue;
		if (tier->has[key])
			return text_wrong(text, "%s of a tier twice", keys[key].name);
		tier->has[key] = true;
		return span_decimal(value, keys[key].unit, keys[key].max, &tier->value[key])
			       ? 0
			       : text_wrong(text, "%.*s is no %s", SPAN(value), keys[key].name);
	}
	return text_wrong(text, "%.*s is nothing that is known of a tier", SPAN(name));
}

static int read_lines(struct text *text, struct tree *tree)
{
	struct span line, name, value;
	struct tier *tier = NULL;
	while (text_next(text, '#', &line)) {
		uint64_t number;
		if (!span_take(&line, 0, &name) || !span_take(&line, 0, &value) || line.length)
			return text_wrong(text, "expected a name and a value");
		int error = 0;
		if (!span_is(name, "Tier"))
			error = tier ? read_of_tier(text, name, value, tier) : read_of_all(text, name, value, tree);
		else if (!span_number(value, 2, &number) || tree->tier[number].is_there)
			error = text_wrong(text, "expected each of the tiers 0, 1 and 2 at most once");
		else
			(tier = &tree->tier[number])->is_there = true;
		if (error)
			return error;
	}
	return 0;
}

/* ---- What they say together -------------------------------------------------------------------------------------- */

/* About the file as a whole. */
#define WRONG(text, format, ...)                                                                                       \
	why_not((text)->why, (text)->why_size, "%s: " format, (text)->name __VA_OPT__(, ) __VA_ARGS__)

static uint64_t bundle_of(const struct tier *tier)
{
	return tier->has[BUNDLE] ? tier->value[BUNDLE] : 1;
}

static int check_tier(const struct text *text, const struct tree *tree, uint32_t number)
{
	const struct tier *tier = &tree->tier[number];
	bool is_highest = number == tree->tiers - 1;
	static const enum key needed[] = { SPEED, LINK_LATENCY, RADIX_DOWN, RADIX_UP };
	for (int i = 0; i < (is_highest ? 3 : 4); i++)
		if (!tier->has[needed[i]] || (needed[i] != LINK_LATENCY && tier->value[needed[i]] == 0))
			return WRONG(text, "tier %u has no %s", number, keys[needed[i]].name);
	if (is_highest && (tier->has[RADIX_UP] || tier->has[QUEUE_UP]))
		return WRONG(text, "tier %u is the highest and has nothing upwards", number);
	if (bundle_of(tier) == 0 || (number == 0 && bundle_of(tier) != 1))
		return WRONG(text, "tier %u cannot have bundles of %u", number, (unsigned)bundle_of(tier));
	if (tier->has[QUEUE_UP] && tier->has[QUEUE_DOWN] && tier->value[QUEUE_UP] != tier->value[QUEUE_DOWN])
		return WRONG(text, "tier %u has Queue_Up unlike Queue_Down, which is not supported", number);
	return 0;
}

/* Checks that the links up from a tier fit those down from the next: `below` switches of this tier are under each of
 * that. */
static int check_between(const struct text *text, const struct tree *tree, uint32_t number, uint64_t below)
{
	const struct tier *tier = &tree->tier[number], *above = tier + 1;
	uint64_t up = tier->value[RADIX_UP], bundle = bundle_of(above);
	if (up % bundle)
		return WRONG(text, "tier %u has Radix_Up %u, yet the bundles of tier %u are of %u", number,
			(unsigned)up, number + 1, (unsigned)bundle);
	if (above->value[RADIX_DOWN] != below * bundle)
		return WRONG(text, "tier %u has Radix_Down %u, yet there are %u x %u links to it from below",
			number + 1, (unsigned)above->value[RADIX_DOWN], (unsigned)below, (unsigned)bundle);
	double down_rate = (double)tier->value[RADIX_DOWN] * (double)tier->value[SPEED];
	double up_rate = (double)up * (double)above->value[SPEED] * (double)tier->value[OVERSUBSCRIBED];
	if (tier->has[OVERSUBSCRIBED] && down_rate != up_rate)
		return WRONG(text, "tier %u is not oversubscribed %u times by its radices and speeds", number,
			(unsigned)tier->value[OVERSUBSCRIBED]);
	return 0;
}

static int check(const struct text *text, const struct tree *tree)
{
	if (tree->nodes == 0 || tree->pod_size == 0 || tree->tiers < 2 || tree->tiers > 3)
		return WRONG(text, "Nodes, Podsize and Tiers, which is 2 or 3, are needed");
	for (uint32_t i = 0; i < 3; i++) {
		if (tree->tier[i].is_there != (i < tree->tiers))
			return WRONG(text, "%u tiers, yet there is %s tier %u", (unsigned)tree->tiers,
				tree->tier[i].is_there ? "a" : "no", i);
		int error = i < tree->tiers ? check_tier(text, tree, i) : 0;
		if (error)
			return error;
	}
	if (tree->nodes % tree->pod_size || tree->pod_size % tree->tier[0].value[RADIX_DOWN])
		return WRONG(text, "%u nodes in pods of %u under switches of %u", (unsigned)tree->nodes,
			(unsigned)tree->pod_size, (unsigned)tree->tier[0].value[RADIX_DOWN]);
	uint64_t pods = tree->nodes / tree->pod_size;
	if (tree->tiers == 2 && pods != 1)
		return WRONG(text, "with 2 tiers there is one pod, not %u", (unsigned)pods);
	int error = check_between(text, tree, 0, tree->pod_size / tree->tier[0].value[RADIX_DOWN]);
	return error || tree->tiers == 2 ? error : check_between(text, tree, 1, pods);
}

static void describe(const struct tree *tree, const struct topology *like, struct clos *clos)
{
	*clos = (struct clos){ .tiers = (uint32_t)tree->tiers,
		.pods = (uint32_t)(tree->nodes / tree->pod_size),
		.leaves = (uint32_t)(tree->pod_size / tree->tier[0].value[RADIX_DOWN]),
		.spines = (uint32_t)(tree->tier[0].value[RADIX_UP] / bundle_of(&tree->tier[1])),
		.endpoints = (uint32_t)tree->tier[0].value[RADIX_DOWN],
		.nic = like->nic };
	if (tree->tiers == 3)
		clos->cores_of_a_spine = (uint32_t)(tree->tier[1].value[RADIX_UP] / bundle_of(&tree->tier[2]));
	for (uint32_t i = 0; i < tree->tiers; i++) {
		const struct tier *tier = &tree->tier[i];
		clos->tier[i] = (struct clos_tier){ .profile = like->profile,
			.bits_per_second = tier->value[SPEED],
			.delay = (vb_time)tier->value[LINK_LATENCY],
			.bundle = (uint32_t)bundle_of(tier) };
		struct switch_profile *profile = &clos->tier[i].profile;
		if (tier->has[SWITCH_LATENCY])
			profile->latency = (vb_time)tier->value[SWITCH_LATENCY];
		if (tier->has[QUEUE_UP] || tier->has[QUEUE_DOWN])
			profile->port_bytes = tier->value[tier->has[QUEUE_DOWN] ? QUEUE_DOWN : QUEUE_UP];
	}
}

int topology_read_htsim(struct text *text, const struct topology *like, struct network *network)
{
	struct tree tree = { 0 };
	int error = read_lines(text, &tree);
	if (!error)
		error = check(text, &tree);
	if (error)
		return error;
	struct clos clos;
	char what[160] = "";
	describe(&tree, like, &clos);
	error = clos_build(&clos, network, what, sizeof(what));
	return error == -EINVAL ? WRONG(text, "%s", what) : error;
}
