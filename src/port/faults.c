/* Fault injection: drops, doubles, holds back and damages received packets with given chances, from a seed.
 * Holds: each packet draws the same random numbers whatever is enabled, so that switching one fault on leaves the
 * others where they were. Delayed packets stay in order; a reordered one lets a few that follow it past.
 * Those that are held are as many as are counted, and delayed ones in the order of their times.
 * Not here: reading VERBENA_FAULTS (host/settings), counting (framing.c asks vb_faults_count). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/random.h"
#include "base/invariant.h"
#include "base/quantity.h"
#include "port/faults.h"
#include "port/port.h"

#define RATE_MIN       10000 /* bits a second */
#define RATE_MAX       1000000000000
#define NOT_GIVEN      UINT32_MAX /* pmax: 0% is a chance, too */
#define SIZE_NOT_GIVEN UINT64_MAX

struct vb_faults {
	uint32_t drop_ppm, duplicate_ppm, reorder_ppm, corrupt_ppm;
	vb_time delay;
	uint64_t seed;
	struct vb_random random;
	struct vb_bottleneck neck;
	uint64_t counts[VB_FAULTS];
	unsigned held_count;
	struct vb_list delayed;   /* vb_held, earliest first: all are delayed alike */
	struct vb_list reordered; /* vb_held */
	struct vb_list given;     /* released, until recycled */
	struct vb_list spare;
};

/* ---- Parsing ---------------------------------------------------------------------------------------------------- */

static const char allowed[] =
	"drop=P,dup=P,reorder=P,corrupt=P,delay=TIME,seed=N with P from 0% to 100% (as 1% or 0.01%), "
	"TIME up to 10s (as 100us, 2ms or 1s) and N a whole number; and of a bottleneck "
	"rate=RATE,queue=BYTES,kmin=BYTES,kmax=BYTES,pmax=P (as rate=1Gb/s,queue=500kB)";

/* A piece of the text. */
struct span {
	const char *at;
	size_t length;
};

static bool span_is(struct span span, const char *word)
{
	return span.length == strlen(word) && memcmp(span.at, word, span.length) == 0;
}

/* A quantity with its unit, which ends so. */
static bool parse_quantity(enum vb_quantity kind, struct span text, char last, uint64_t most, uint64_t *value)
{
	char whole[64];

	if (text.length == 0 || text.length >= sizeof(whole) || (last && text.at[text.length - 1] != last))
		return false;
	memcpy(whole, text.at, text.length);
	whole[text.length] = 0;
	return vb_quantity_read(kind, whole, value) && *value <= most;
}

static bool parse_chance(struct span text, uint32_t *ppm)
{
	uint64_t value;

	if (!parse_quantity(VB_QUANTITY_SHARE, text, '%', 1000000, &value))
		return false;
	*ppm = (uint32_t)value;
	return true;
}

static bool parse_time(struct span text, vb_time *time)
{
	uint64_t value;

	if (!parse_quantity(VB_QUANTITY_TIME, text, 's', VB_FAULTS_DELAY_MAX, &value))
		return false;
	*time = (vb_time)value;
	return true;
}

static bool parse_seed(struct span text, uint64_t *seed)
{
	uint64_t value = 0;
	if (text.length == 0)
		return false;
	for (size_t i = 0; i < text.length; i++) {
		if (text.at[i] < '0' || text.at[i] > '9')
			return false;
		if (__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, (uint64_t)(text.at[i] - '0'), &value))
			return false;
	}
	*seed = value;
	return true;
}

/* Why name=value cannot be, in the words for it; NULL when it can and is set. */
static const char *parse_item(struct vb_faults *faults, struct span name, struct span value)
{
	const struct {
		const char *name;
		uint32_t *ppm;
	} chances[] = { { "drop", &faults->drop_ppm }, { "dup", &faults->duplicate_ppm },
		{ "reorder", &faults->reorder_ppm }, { "corrupt", &faults->corrupt_ppm },
		{ "pmax", &faults->neck.pmax_ppm } };
	const struct {
		const char *name;
		uint64_t *bytes;
	} sizes[] = { { "queue", &faults->neck.queue }, { "kmin", &faults->neck.kmin },
		{ "kmax", &faults->neck.kmax } };
	for (size_t i = 0; i < sizeof(chances) / sizeof(chances[0]); i++) {
		if (span_is(name, chances[i].name))
			return parse_chance(value, chances[i].ppm)
				       ? NULL
				       : "needs a chance from 0% to 100%, no finer than 0.0001%";
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (span_is(name, sizes[i].name))
			return parse_quantity(VB_QUANTITY_BYTES, value, 0, VB_BOTTLENECK_QUEUE_MAX, sizes[i].bytes)
				       ? NULL
				       : "needs bytes up to 32MiB, as 500kB";
	}
	if (span_is(name, "rate"))
		return parse_quantity(VB_QUANTITY_RATE, value, 0, RATE_MAX, &faults->neck.rate) &&
				       faults->neck.rate >= RATE_MIN
			       ? NULL
			       : "needs a rate from 10kb/s to 1Tb/s, as 1Gb/s";
	if (span_is(name, "delay"))
		return parse_time(value, &faults->delay) ? NULL : "needs a time up to 10s with us, ms or s behind it";
	if (span_is(name, "seed"))
		return parse_seed(value, &faults->seed) ? NULL : "needs a whole number below 2^64";
	return "is not a fault";
}

/* Takes what lies before the next comma off *rest. */
static struct span take_item(const char **rest)
{
	struct span item = { *rest, strcspn(*rest, ",") };
	*rest += item.length + ((*rest)[item.length] == ',');
	return item;
}

static int parse_items(struct vb_faults *faults, const char *text, char *why, unsigned why_size)
{
	if (text[0] == '\0') {
		snprintf(why, why_size, "nothing is given; allowed: %s", allowed);
		return -EINVAL;
	}
	if (text[strlen(text) - 1] == ',') {
		snprintf(why, why_size, "nothing follows the last comma; allowed: %s", allowed);
		return -EINVAL;
	}
	for (const char *rest = text; *rest;) {
		struct span item = take_item(&rest);
		const char *equals = memchr(item.at, '=', item.length);
		struct span name = { item.at, equals ? (size_t)(equals - item.at) : item.length };
		struct span value = { name.at + name.length + (equals != NULL), 0 };
		value.length = (size_t)(item.at + item.length - value.at);
		const char *complaint = parse_item(faults, name, value);
		if (complaint) {
			snprintf(why, why_size, "\"%.*s\" %s; allowed: %s", (int)item.length, item.at, complaint,
				allowed);
			return -EINVAL;
		}
	}
	return 0;
}

static const char *complain_of_bottleneck(const struct vb_bottleneck *neck)
{
	if (!neck->rate)
		return neck->queue != SIZE_NOT_GIVEN || neck->kmin || neck->kmax || neck->pmax_ppm != NOT_GIVEN
			       ? "queue, kmin, kmax and pmax need a rate"
			       : NULL;
	if ((neck->kmin || neck->pmax_ppm != NOT_GIVEN) && !neck->kmax)
		return "kmin and pmax need a kmax";
	if (neck->queue == 0)
		return "a queue of nothing lets nothing through";
	if (neck->kmin > neck->kmax)
		return "kmin is above kmax";
	if (neck->kmax > neck->queue)
		return "kmax is above queue: nothing would be marked before it is dropped";
	return NULL;
}

/* What was not given, and whether it fits together. */
static int complete_bottleneck(struct vb_bottleneck *neck, char *why, unsigned why_size)
{
	if (neck->rate && neck->queue == SIZE_NOT_GIVEN)
		neck->queue = VB_BOTTLENECK_QUEUE;
	const char *complaint = complain_of_bottleneck(neck);
	if (neck->pmax_ppm == NOT_GIVEN)
		neck->pmax_ppm = 1000000;
	if (!complaint)
		return 0;
	snprintf(why, why_size, "%s; allowed: %s", complaint, allowed);
	return -EINVAL;
}

int vb_faults_parse(const char *text, struct vb_faults **faults, char *why, unsigned why_size)
{
	struct vb_faults *made = calloc(1, sizeof(*made));
	if (!made) {
		snprintf(why, why_size, "out of memory");
		return -ENOMEM;
	}
	made->seed = 1;
	made->neck.pmax_ppm = NOT_GIVEN;
	made->neck.queue = SIZE_NOT_GIVEN;
	int error = parse_items(made, text, why, why_size);
	if (!error)
		error = complete_bottleneck(&made->neck, why, why_size);
	if (error) {
		free(made);
		return error;
	}
	vb_random_seed(&made->random, made->seed);
	vb_list_init(&made->delayed);
	vb_list_init(&made->reordered);
	vb_list_init(&made->given);
	vb_list_init(&made->spare);
	*faults = made;
	return 0;
}

static void free_held(struct vb_list *list)
{
	for (struct vb_list *node = vb_list_pop(list); node; node = vb_list_pop(list))
		free(vb_container_of(node, struct vb_held, node));
}

void vb_faults_free(struct vb_faults *faults)
{
	if (!faults)
		return;
	free_held(&faults->delayed);
	free_held(&faults->reordered);
	free_held(&faults->given);
	free_held(&faults->spare);
	free(faults);
}

/* ---- Deciding --------------------------------------------------------------------------------------------------- */

struct verdict {
	bool drops, duplicates, reorders, corrupts;
	uint32_t corrupt_bit;
	unsigned to_pass; /* when it reorders */
};

static struct verdict decide(struct vb_faults *faults, size_t length)
{
	struct vb_random *random = &faults->random;
	return (struct verdict){
		.drops = vb_random_chance(random, faults->drop_ppm),
		.duplicates = vb_random_chance(random, faults->duplicate_ppm),
		.reorders = vb_random_chance(random, faults->reorder_ppm),
		.corrupts = vb_random_chance(random, faults->corrupt_ppm) && length != 0,
		.corrupt_bit = vb_random_below(random, length ? (uint32_t)length * 8 : 1),
		.to_pass = 1 + vb_random_below(random, VB_FAULTS_PASSED_MAX),
	};
}

/* ---- Holding back ----------------------------------------------------------------------------------------------- */

/* NULL: too many are held, and the packet is lost as in any full queue. */
static struct vb_held *hold(
	struct vb_faults *faults, const struct vb_path *path, const uint8_t *bytes, size_t length, vb_time due)
{
	bool has_room = faults->held_count < VB_FAULTS_HELD_MAX;
	struct vb_list *spare = has_room ? vb_list_pop(&faults->spare) : NULL;
	struct vb_held *held = spare      ? vb_container_of(spare, struct vb_held, node)
			       : has_room ? malloc(sizeof(*held))
					  : NULL;
	if (!held) {
		faults->counts[VB_FAULT_DROPPED]++;
		return NULL;
	}
	faults->held_count++;
	vb_list_init(&held->node);
	held->path = *path;
	held->due = due;
	held->to_pass = 0;
	held->is_reordered = false;
	held->length = (uint32_t)length;
	memcpy(held->bytes, bytes, length);
	return held;
}

static uint32_t ip_length(const struct vb_path *path, size_t length)
{
	enum { IPV4 = 20, IPV6 = 40, UDP = 8 };
	return (uint32_t)length + UDP + (vb_gid_is_ipv4(&path->dst) ? IPV4 : IPV6);
}

/* False: the bottleneck has no room. Else *leaves_at, and the path may say that it was marked. */
static bool go_through_bottleneck(
	struct vb_faults *faults, struct vb_path *path, size_t length, vb_time now, vb_time *leaves_at)
{
	enum { ECN = 3 };
	*leaves_at = now;
	if (!faults->neck.rate)
		return true;
	enum vb_bottleneck_fate fate = vb_bottleneck_admit(
		&faults->neck, ip_length(path, length), path->traffic_class & ECN, &faults->random, now, leaves_at);
	if (fate == VB_BOTTLENECK_MARKS)
		path->traffic_class |= ECN;
	return fate != VB_BOTTLENECK_DROPS;
}

static void hold_delayed(struct vb_faults *faults, const struct vb_path *from, const uint8_t *bytes, size_t length,
	vb_time now, const struct verdict *verdict)
{
	struct vb_path path = *from;
	vb_time leaves_at;
	if (!go_through_bottleneck(faults, &path, length, now, &leaves_at))
		return;
	struct vb_held *held = hold(faults, &path, bytes, length, vb_time_add(leaves_at, faults->delay));
	if (!held)
		return;
	faults->counts[VB_FAULT_DELAYED] += faults->delay != 0;
	faults->counts[VB_FAULT_REORDERED] += verdict->reorders;
	held->is_reordered = verdict->reorders;
	held->to_pass = verdict->to_pass;
	vb_list_add_tail(&faults->delayed, &held->node);
}

/* From here on others may pass it; at due it goes on in any case. */
static void start_reordering(struct vb_faults *faults, struct vb_held *held, vb_time now)
{
	held->due = vb_time_add(now, VB_FAULTS_REORDER_WAIT);
	vb_list_add_tail(&faults->reordered, &held->node);
}

static void hold_reordered(struct vb_faults *faults, const struct vb_path *path, const uint8_t *bytes, size_t length,
	vb_time now, const struct verdict *verdict)
{
	struct vb_held *held = hold(faults, path, bytes, length, now);
	if (!held)
		return;
	faults->counts[VB_FAULT_REORDERED]++;
	held->to_pass = verdict->to_pass;
	start_reordering(faults, held, now);
}

/* A packet has been delivered past all that are being reordered. */
static void pass(struct vb_faults *faults, vb_time now)
{
	vb_list_for_each (node, &faults->reordered) {
		struct vb_held *held = vb_container_of(node, struct vb_held, node);
		if (held->to_pass == 0)
			continue;
		if (--held->to_pass == 0)
			held->due = now;
	}
}

unsigned vb_faults_admit(
	struct vb_faults *faults, const struct vb_path *path, uint8_t *bytes, size_t length, vb_time now)
{
	if (length > VB_MAX_PACKET_BYTES)
		return 1;
	struct verdict verdict = decide(faults, length);
	bool is_delayed = faults->delay != 0 || faults->neck.rate != 0;
	if (verdict.drops) {
		faults->counts[VB_FAULT_DROPPED]++;
		return 0;
	}
	faults->counts[VB_FAULT_CORRUPTED] += verdict.corrupts;
	faults->counts[VB_FAULT_DOUBLED] += verdict.duplicates;
	if (verdict.corrupts)
		bytes[verdict.corrupt_bit / 8] ^= (uint8_t)(1u << verdict.corrupt_bit % 8);
	unsigned copies = verdict.duplicates ? 2 : 1;
	if (is_delayed) {
		/* Of a doubled packet the second copy is not reordered as well. */
		struct verdict plain = { 0 };
		hold_delayed(faults, path, bytes, length, now, &verdict);
		if (verdict.duplicates)
			hold_delayed(faults, path, bytes, length, now, &plain);
		return 0;
	}
	if (verdict.reorders) {
		hold_reordered(faults, path, bytes, length, now, &verdict);
		copies--;
	}
	for (unsigned i = 0; i < copies; i++)
		pass(faults, now);
	return copies;
}

const struct vb_bottleneck *vb_faults_bottleneck(const struct vb_faults *faults)
{
	return &faults->neck;
}

void vb_faults_drop_corrupt(struct vb_faults *faults)
{
	faults->drop_ppm += faults->corrupt_ppm;
	faults->corrupt_ppm = 0;
	faults->neck.rate = 0;
}

static struct vb_held *give(struct vb_faults *faults, struct vb_held *held)
{
	vb_list_remove(&held->node);
	vb_list_add_tail(&faults->given, &held->node);
	return held;
}

static struct vb_held *release_reordered(struct vb_faults *faults, vb_time now)
{
	vb_list_for_each (node, &faults->reordered) {
		struct vb_held *held = vb_container_of(node, struct vb_held, node);
		if (vb_time_is_due(held->due, now))
			return give(faults, held);
	}
	return NULL;
}

static struct vb_held *release_delayed(struct vb_faults *faults, vb_time now)
{
	while (!vb_list_empty(&faults->delayed)) {
		struct vb_held *held = vb_container_of(faults->delayed.next, struct vb_held, node);
		if (!vb_time_is_due(held->due, now))
			return NULL;
		if (!held->is_reordered) {
			pass(faults, now);
			return give(faults, held);
		}
		vb_list_remove(&held->node);
		start_reordering(faults, held, now);
	}
	return NULL;
}

struct vb_held *vb_faults_release(struct vb_faults *faults, vb_time now)
{
	struct vb_held *held = release_reordered(faults, now);
	return held ? held : release_delayed(faults, now);
}

void vb_faults_recycle(struct vb_faults *faults)
{
	for (struct vb_list *node = vb_list_pop(&faults->given); node; node = vb_list_pop(&faults->given)) {
		vb_list_add_head(&faults->spare, node);
		faults->held_count--;
	}
}

struct vb_deadline vb_faults_deadline(const struct vb_faults *faults)
{
	struct vb_deadline earliest = { 0 };
	vb_list_for_each (node, &faults->reordered) {
		struct vb_deadline due = { vb_container_of(node, struct vb_held, node)->due, true };
		earliest = vb_deadline_earlier(earliest, due);
	}
	if (!vb_list_empty(&faults->delayed)) {
		struct vb_deadline due = { vb_container_of(faults->delayed.next, struct vb_held, node)->due, true };
		earliest = vb_deadline_earlier(earliest, due);
	}
	return earliest;
}

void vb_faults_check(const struct vb_faults *faults)
{
	const struct vb_held *before = NULL;
	unsigned count = 0;
	vb_list_for_each (node, &faults->delayed) {
		const struct vb_held *held = vb_container_of(node, struct vb_held, node);
		assert(!before || !vb_time_before(held->due, before->due));
		before = held;
		count++;
	}
	vb_list_for_each (node, &faults->reordered)
		count++;
	vb_list_for_each (node, &faults->given)
		count++;
	assert(count == faults->held_count && count <= VB_FAULTS_HELD_MAX);
}

uint64_t vb_faults_count(const struct vb_faults *faults, enum vb_fault kind)
{
	return faults->counts[kind];
}
