/* Reads VERBENA_FAULTS, and says what is wrong with it and what is allowed.
 * Holds: nothing is made of a text with an error in it. The same text gives the same faults.
 * Not here: what the faults do to packets (faults.c). */
#include "port/faults_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "base/quantity.h"
#include "port/port.h"

#define RATE_MIN       10000 /* bits a second */
#define RATE_MAX       1000000000000
#define NOT_GIVEN      UINT32_MAX /* pmax: 0% is a chance, too */
#define SIZE_NOT_GIVEN UINT64_MAX
#define LATE_SEED      0x1A7E /* apart from the other chances, so that late= leaves these where they were */

static const char allowed[] =
	"drop=P,dup=P,reorder=P,corrupt=P,delay=TIME,seed=N with P from 0% to 100% (as 1% or 0.01%), "
	"TIME up to 10s (as 100us, 2ms or 1s) and N a whole number; burst=N with drop; late=P,late-by=TIME; "
	"path=N from 0 to 63, if=NAME; and of a bottleneck "
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

/* A quantity whose unit ends with last; 0: with anything. */
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

static bool parse_whole(struct span text, uint64_t most, uint64_t *number)
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
	*number = value;
	return value <= most;
}

/* Sets name=value and returns NULL; or says in words why it cannot be. */
static const char *parse_chance_item(struct vb_faults *faults, struct span name, struct span value)
{
	const struct {
		const char *name;
		uint32_t *ppm;
	} chances[] = { { "drop", &faults->drop_ppm }, { "dup", &faults->duplicate_ppm },
		{ "reorder", &faults->reorder_ppm }, { "corrupt", &faults->corrupt_ppm }, { "late", &faults->late_ppm },
		{ "pmax", &faults->neck.pmax_ppm } };
	for (size_t i = 0; i < sizeof(chances) / sizeof(chances[0]); i++) {
		if (span_is(name, chances[i].name))
			return parse_chance(value, chances[i].ppm)
				       ? NULL
				       : "needs a chance from 0% to 100%, no finer than 0.0001%";
	}
	return "is not a fault";
}

static const char *parse_bottleneck_item(struct vb_faults *faults, struct span name, struct span value)
{
	const struct {
		const char *name;
		uint64_t *bytes;
	} sizes[] = { { "queue", &faults->neck.queue }, { "kmin", &faults->neck.kmin },
		{ "kmax", &faults->neck.kmax } };
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
	return parse_chance_item(faults, name, value);
}

static const char *parse_scope_item(struct vb_faults *faults, struct span name, struct span value)
{
	struct vb_faults_scope *scope = &faults->scope;

	if (span_is(name, "path")) {
		scope->has_path = true;
		return parse_whole(value, VB_FAULTS_PATHS - 1, &scope->path) ? NULL : "needs a number from 0 to 63";
	}
	if (!span_is(name, "if"))
		return parse_bottleneck_item(faults, name, value);
	if (value.length == 0 || value.length >= sizeof(scope->interface))
		return "needs the name of an interface";
	memset(scope->interface, 0, sizeof(scope->interface));
	memcpy(scope->interface, value.at, value.length);
	return NULL;
}

static const char *parse_item(struct vb_faults *faults, struct span name, struct span value)
{
	static const char of_time[] = "needs a time up to 10s with us, ms or s behind it";

	if (span_is(name, "delay"))
		return parse_time(value, &faults->delay) ? NULL : of_time;
	if (span_is(name, "late-by"))
		return parse_time(value, &faults->late_by) ? NULL : of_time;
	if (span_is(name, "seed"))
		return parse_whole(value, UINT64_MAX, &faults->seed) ? NULL : "needs a whole number below 2^64";
	if (span_is(name, "burst"))
		return parse_whole(value, VB_BURSTS_RUN_MAX, &faults->burst) && faults->burst
			       ? NULL
			       : "needs a number of packets from 1 to 1000000";
	return parse_scope_item(faults, name, value);
}

bool vb_faults_is_of_program(const char *text)
{
	return strncmp(text, "verb:", 5) == 0 || strncmp(text, "event:", 6) == 0 || strncmp(text, "cm:", 3) == 0;
}

/* A seed alone is about packets unless there are items that are not. */
bool vb_faults_are_of_packets(const char *text)
{
	bool has_others = false, has_seed = false;

	for (; *text; text += strcspn(text, ","), text += *text == ',') {
		if (vb_faults_is_of_program(text))
			has_others = true;
		else if (strncmp(text, "seed=", 5) == 0)
			has_seed = true;
		else
			return true;
	}
	return has_seed && !has_others;
}

/* Takes the item before the next comma off *rest. */
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
		if (vb_faults_is_of_program(item.at))
			continue;
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

/* Fills in values that were not given, and checks that all fit together. */
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

static const char *complain_of_chances(const struct vb_faults *faults)
{
	if (faults->burst && !vb_bursts_are_possible(faults->drop_ppm, faults->burst))
		return "drop is above what runs of burst packets make, which is burst / (burst + 1)";
	if ((faults->late_ppm != 0) != (faults->late_by != 0))
		return "late and late-by need each other";
	return NULL;
}

/* Makes ready what follows from the values, and checks that they fit together. */
static int complete_chances(struct vb_faults *faults, char *why, unsigned why_size)
{
	const char *complaint = complain_of_chances(faults);

	if (complaint) {
		snprintf(why, why_size, "%s; allowed: %s", complaint, allowed);
		return -EINVAL;
	}
	if (faults->burst)
		vb_bursts_init(&faults->bursts, faults->drop_ppm, faults->burst);
	vb_random_seed(&faults->random, faults->seed);
	vb_random_seed(&faults->late_random, faults->seed ^ LATE_SEED);
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
	made->neck.pmax_ppm = NOT_GIVEN;
	made->neck.queue = SIZE_NOT_GIVEN;
	int error = parse_items(made, text, why, why_size);
	if (!error)
		error = complete_bottleneck(&made->neck, why, why_size);
	if (!error)
		error = complete_chances(made, why, why_size);
	if (error) {
		free(made);
		return error;
	}
	assert(made->delay <= VB_FAULTS_DELAY_MAX && made->neck.pmax_ppm <= 1000000);
	assert(!made->neck.rate || (made->neck.kmin <= made->neck.kmax && made->neck.kmax <= made->neck.queue));
	vb_list_init(&made->delayed);
	vb_list_init(&made->late);
	vb_list_init(&made->reordered);
	vb_list_init(&made->given);
	vb_list_init(&made->spare);
	*faults = made;
	return 0;
}
