/* Fault injection: drops, doubles, holds back and damages received packets with given chances, from a seed.
 * Holds: each packet draws the same random numbers whatever is enabled, so that switching one fault on leaves the
 * others where they were. Delayed packets stay in order; a reordered one lets a few that follow it past.
 * Those that are held are as many as are counted, and delayed ones in the order of their times.
 * Not here: reading VERBENA_FAULTS (host/settings), counting (udp.c asks vb_faults_count). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/random.h"
#include "base/invariant.h"
#include "port/faults.h"
#include "port/port.h"

struct vb_faults {
	uint32_t drop_ppm, duplicate_ppm, reorder_ppm, corrupt_ppm;
	vb_time delay;
	uint64_t seed;
	struct vb_random random;
	uint64_t count;
	unsigned held_count;
	struct vb_list delayed;   /* vb_held, earliest first: all are delayed alike */
	struct vb_list reordered; /* vb_held */
	struct vb_list given;     /* released, until recycled */
	struct vb_list spare;
};

/* ---- Parsing ---------------------------------------------------------------------------------------------------- */

static const char allowed[] =
	"drop=P,dup=P,reorder=P,corrupt=P,delay=TIME,seed=N with P from 0% to 100% (as 1% or 0.01%), "
	"TIME up to 10s (as 100us, 2ms or 1s) and N a whole number";

/* A piece of the text. */
struct span {
	const char *at;
	size_t length;
};

static bool span_is(struct span span, const char *word)
{
	return span.length == strlen(word) && memcmp(span.at, word, span.length) == 0;
}

/* Digits with at most six behind a point, as millionths; takes them off span. False when there is no such number. */
static bool take_millionths(struct span *span, uint64_t *millionths)
{
	uint64_t value = 0;
	int digits = 0, behind = -1; /* digits behind the point; -1: no point yet */
	for (; span->length; span->at++, span->length--) {
		char c = *span->at;
		if (c == '.' && behind < 0) {
			behind = 0;
			continue;
		}
		if (c < '0' || c > '9')
			break;
		if (++digits > 12 || (behind >= 0 && ++behind > 6))
			return false;
		value = value * 10 + (uint64_t)(c - '0');
	}
	for (int i = behind < 0 ? 0 : behind; i < 6; i++)
		value *= 10;
	*millionths = value;
	return digits > 0 && behind != 0;
}

/* Per cent; finer than a millionth is refused rather than rounded away. */
static bool parse_chance(struct span text, uint32_t *ppm)
{
	uint64_t millionths;
	if (!take_millionths(&text, &millionths) || !span_is(text, "%"))
		return false;
	if (millionths > 100 * 1000000u || millionths % 100 != 0)
		return false;
	*ppm = (uint32_t)(millionths / 100);
	return true;
}

static bool parse_time(struct span text, vb_time *time)
{
	static const struct {
		const char *name;
		vb_time of_a_millionth;
	} units[] = { { "us", VB_US / 1000000 }, { "ms", VB_MS / 1000000 }, { "s", VB_S / 1000000 } };
	uint64_t millionths;
	if (!take_millionths(&text, &millionths))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!span_is(text, units[i].name))
			continue;
		if (millionths > (uint64_t)(VB_FAULTS_DELAY_MAX / units[i].of_a_millionth))
			return false;
		*time = (vb_time)millionths * units[i].of_a_millionth;
		return true;
	}
	return false;
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
		{ "reorder", &faults->reorder_ppm }, { "corrupt", &faults->corrupt_ppm } };
	for (size_t i = 0; i < sizeof(chances) / sizeof(chances[0]); i++) {
		if (span_is(name, chances[i].name))
			return parse_chance(value, chances[i].ppm)
				       ? NULL
				       : "needs a chance from 0% to 100%, no finer than 0.0001%";
	}
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

int vb_faults_parse(const char *text, struct vb_faults **faults, char *why, unsigned why_size)
{
	struct vb_faults *made = calloc(1, sizeof(*made));
	if (!made) {
		snprintf(why, why_size, "out of memory");
		return -ENOMEM;
	}
	made->seed = 1;
	int error = parse_items(made, text, why, why_size);
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
	if (faults->held_count >= VB_FAULTS_HELD_MAX)
		return NULL;
	struct vb_list *spare = vb_list_pop(&faults->spare);
	struct vb_held *held = spare ? vb_container_of(spare, struct vb_held, node) : malloc(sizeof(*held));
	if (!held)
		return NULL;
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

static void hold_delayed(struct vb_faults *faults, const struct vb_path *path, const uint8_t *bytes, size_t length,
	vb_time now, const struct verdict *verdict)
{
	struct vb_held *held = hold(faults, path, bytes, length, vb_time_add(now, faults->delay));
	if (!held)
		return;
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
	held->to_pass = verdict->to_pass;
	start_reordering(faults, held, now);
}

/* A packet has been delivered past all that are being reordered. */
static void pass(struct vb_faults *faults, vb_time now)
{
	vb_list_for_each(node, &faults->reordered)
	{
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
	bool is_delayed = faults->delay != 0;
	if (verdict.drops || verdict.duplicates || verdict.reorders || verdict.corrupts || is_delayed)
		faults->count++;
	if (verdict.drops)
		return 0;
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

void vb_faults_drop_corrupt(struct vb_faults *faults)
{
	faults->drop_ppm += faults->corrupt_ppm;
	faults->corrupt_ppm = 0;
}

static struct vb_held *give(struct vb_faults *faults, struct vb_held *held)
{
	vb_list_remove(&held->node);
	vb_list_add_tail(&faults->given, &held->node);
	return held;
}

static struct vb_held *release_reordered(struct vb_faults *faults, vb_time now)
{
	vb_list_for_each(node, &faults->reordered)
	{
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
	vb_list_for_each(node, &faults->reordered)
	{
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
	vb_list_for_each(node, &faults->delayed)
	{
		const struct vb_held *held = vb_container_of(node, struct vb_held, node);
		assert(!before || !vb_time_before(held->due, before->due));
		before = held;
		count++;
	}
	vb_list_for_each(node, &faults->reordered)
		count++;
	vb_list_for_each(node, &faults->given)
		count++;
	assert(count == faults->held_count && count <= VB_FAULTS_HELD_MAX);
}

uint64_t vb_faults_count(const struct vb_faults *faults)
{
	return faults->count;
}
