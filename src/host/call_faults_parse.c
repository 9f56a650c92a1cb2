/* Reads the items of VERBENA_FAULTS that name a call, an event or a connection, and says what is wrong with one.
 * Not here: items about packets (port/faults_parse.c). Each parser passes over the other's items; both take the seed.
 */
#include "host/call_faults.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/quantity.h"
#include "base/words.h"
#include "port/port.h"

#define PARTS_MAX 4
#define ITEM_MAX  128
#define NEAR      4 /* letters that a name may differ by, to be suggested */

static const char *const call_names[VB_CALLS] = {
#define X(name) #name,
	VB_CALL_NAMES(X)
#undef X
		"cm:reject",
	"cm:timeout",
	"cm:disconnect",
};

struct named {
	const char *name;
	int value;
};

static const struct named errors[] = {
#define X(name) { #name, name },
	VB_ERROR_NAMES(X)
#undef X
		{ NULL, 0 },
};

static const struct named events[] = {
#define X(name, type) { #name, type },
	VB_EVENT_NAMES(X)
#undef X
		{ NULL, 0 },
};

const char *vb_call_name(enum vb_call call)
{
	return call_names[call];
}

const char *vb_error_name(int error)
{
	for (const struct named *named = errors; named->name; named++)
		if (named->value == error)
			return named->name;
	return "?";
}

/* ---- Complaints -------------------------------------------------------------------------------------------------- */

struct complaint {
	char *why;
	size_t size;
	const char *item;
};

static int refuse(const struct complaint *to, const char *reason)
{
	snprintf(to->why, to->size, "\"%s\" %s", to->item, reason);
	return -EINVAL;
}

/* Names the nearest of the table's. */
struct nearest {
	const char *name;
	unsigned apart;
};

static void compare(struct nearest *nearest, const char *word, const char *name)
{
	const unsigned apart = vb_word_distance(word, name);

	if (apart < nearest->apart)
		*nearest = (struct nearest){ name, apart };
}

static int refuse_name(const struct complaint *to, const char *noun, const struct nearest *nearest)
{
	if (nearest->apart <= NEAR)
		snprintf(to->why, to->size, "\"%s\" names no %s; did you mean %s?", to->item, noun, nearest->name);
	else
		snprintf(to->why, to->size, "\"%s\" names no %s; 'verbena run --faults list' prints the names",
			to->item, noun);
	return -EINVAL;
}

/* ---- Parts ------------------------------------------------------------------------------------------------------- */

static int find_call(const char *word, enum vb_call *call, const struct complaint *to)
{
	struct nearest nearest = { NULL, VB_WORDS_APART };

	for (unsigned i = 0; i < VB_CALL_CM_REJECT; i++) {
		if (strcmp(call_names[i], word) == 0) {
			*call = (enum vb_call)i;
			return 0;
		}
		compare(&nearest, word, call_names[i]);
	}
	return refuse_name(to, "call", &nearest);
}

static int find_named(const struct named *table, const char *noun, const char *word, const struct named **found,
	const struct complaint *to)
{
	struct nearest nearest = { NULL, VB_WORDS_APART };

	for (*found = table; (*found)->name; (*found)++) {
		if (strcmp((*found)->name, word) == 0)
			return 0;
		compare(&nearest, word, (*found)->name);
	}
	return refuse_name(to, noun, &nearest);
}

static bool read_number(const char *text, uint64_t *number)
{
	return text[0] >= '0' && text[0] <= '9' && vb_quantity_read(VB_QUANTITY_COUNT, text, number) && *number >= 1;
}

/* nth=N, every=N, from=N or p=P. */
static int parse_when(char *part, struct vb_call_fault *fault, const struct complaint *to)
{
	static const char *const names[] = { "nth", "every", "from" };
	char *equals = strchr(part, '=');

	if (!equals)
		return refuse(to, "does not say when: nth=N, every=N, from=N or p=P");
	*equals++ = '\0';
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(part, names[i]) != 0)
			continue;
		fault->when = (enum vb_call_fault_when)i;
		return read_number(equals, &fault->number) ? 0 : refuse(to, "needs a whole number from 1");
	}
	if (strcmp(part, "p") != 0)
		return refuse(to, "does not say when: nth=N, every=N, from=N or p=P");
	fault->when = VB_FAULT_CHANCE;
	if (!*equals || equals[strlen(equals) - 1] != '%' ||
		!vb_quantity_read(VB_QUANTITY_SHARE, equals, &fault->number) || fault->number > 1000000)
		return refuse(to, "needs a chance from 0% to 100%");
	return 0;
}

static int parse_call(char **parts, unsigned count, struct vb_call_fault *fault, const struct complaint *to)
{
	const struct named *error;
	int rc = count == 4 ? find_call(parts[1], &fault->call, to) : refuse(to, "is not verb:NAME:nth=N:ERRNO");

	if (!rc)
		rc = parse_when(parts[2], fault, to);
	if (!rc)
		rc = find_named(errors, "error", parts[3], &error, to);
	if (!rc)
		fault->value = error->value;
	return rc;
}

static int parse_event(char **parts, unsigned count, struct vb_call_fault *fault, const struct complaint *to)
{
	static const char after[] = "after=";
	const struct named *event;
	uint64_t picoseconds;

	if (count != 3)
		return refuse(to, "is not event:NAME:after=TIME");
	int rc = find_named(events, "event", parts[1], &event, to);
	if (rc)
		return rc;
	const char *time = parts[2] + strlen(after);
	if (strncmp(parts[2], after, strlen(after)) != 0 || !*time || time[strlen(time) - 1] != 's' ||
		!vb_quantity_read(VB_QUANTITY_TIME, time, &picoseconds))
		return refuse(to, "needs a time with us, ms or s behind it: after=2s");
	fault->is_event = true;
	fault->when = VB_FAULT_AFTER;
	fault->event = event->name;
	fault->value = event->value;
	fault->after = (vb_time)picoseconds;
	return 0;
}

static int parse_connection(char **parts, unsigned count, struct vb_call_fault *fault, const struct complaint *to)
{
	enum { CONSUMER = 28, REASON_MAX = 255 };
	static const char reason[] = "reason=";
	uint64_t number = CONSUMER;
	const bool rejects = count >= 3 && strcmp(parts[1], "reject") == 0;
	const bool disconnects = count == 3 && strcmp(parts[1], "disconnect") == 0;

	if (!rejects && !disconnects && (count != 3 || strcmp(parts[1], "timeout") != 0))
		return refuse(to, "is none of cm:reject:nth=N, cm:reject:nth=N:reason=R, cm:timeout:nth=N and "
				  "cm:disconnect:nth=N");
	if (count == 4 && (strncmp(parts[3], reason, strlen(reason)) != 0 ||
				  !read_number(parts[3] + strlen(reason), &number) || number > REASON_MAX))
		return refuse(to, "needs a reason from 1 to 255: reason=28");
	fault->call = rejects ? VB_CALL_CM_REJECT : disconnects ? VB_CALL_CM_DISCONNECT : VB_CALL_CM_TIMEOUT;
	fault->value = rejects ? (int)number : disconnects ? ECONNRESET : ETIMEDOUT;
	return parse_when(parts[2], fault, to);
}

/* ---- Items ------------------------------------------------------------------------------------------------------- */

static int parse_item(char *text, struct vb_call_faults *faults, const struct complaint *to)
{
	char *parts[PARTS_MAX + 1], *rest = text;
	unsigned count = 0;

	while (rest && count <= PARTS_MAX)
		parts[count++] = strsep(&rest, ":");
	if (faults->count == VB_CALL_FAULTS_MAX)
		return refuse(to, "is one too many: there may be 32");
	struct vb_call_fault *fault = &faults->faults[faults->count++];
	if (strcmp(parts[0], "verb") == 0)
		return parse_call(parts, count, fault, to);
	if (strcmp(parts[0], "event") == 0)
		return parse_event(parts, count, fault, to);
	return parse_connection(parts, count, fault, to);
}

int vb_call_faults_parse(const char *text, struct vb_call_faults *faults, char *why, size_t why_size)
{
	char item[ITEM_MAX], split[ITEM_MAX];

	*faults = (struct vb_call_faults){ .seed = 1 };
	for (const char *at = text; *at;) {
		const size_t length = strcspn(at, ",");
		const size_t kept = length < ITEM_MAX ? length : ITEM_MAX - 1;
		const bool is_ours = vb_faults_is_of_program(at);
		memcpy(item, at, kept);
		item[kept] = '\0';
		const struct complaint to = { why, why_size, item };
		if (strncmp(item, "seed=", 5) == 0)
			faults->seed = strtoull(item + 5, NULL, 10); /* checked with the packets' faults */
		if (is_ours && kept < length)
			return refuse(&to, "is too long");
		memcpy(split, item, kept + 1);
		int rc = is_ours ? parse_item(split, faults, &to) : 0;
		if (rc)
			return rc;
		at += length + (at[length] == ',');
	}
	return 0;
}
