/* See astra_network.h. */
#include "sim/astra_network.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "net/clos.h"
#include "net/text.h"
#include "sim/scenario.h"

enum key { TOPOLOGY, NPUS_COUNT, BANDWIDTH, LATENCY, KEYS };
enum kind { SWITCH, RING, FULLY_CONNECTED, KINDS };
enum { DIMENSIONS = 2 };

static const char *const key_names[KEYS] = { "topology", "npus_count", "bandwidth", "latency" };
static const char *const kind_names[KINDS] = { "Switch", "Ring", "FullyConnected" };

#define GB_PER_S ((uint64_t)8000000000) /* in bits */

struct dimension {
	uint64_t kind, npus, bits_per_second, delay; /* the delay is of a link */
};

struct reading {
	const char *path;
	struct document document;
	struct dimension dimensions[DIMENSIONS];
	uint32_t count; /* of dimensions */
	char *why;
	size_t size;
};

__attribute__((format(printf, 3, 4))) static int refuse(
	const struct reading *reading, unsigned line, const char *format, ...)
{
	char what[300];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	if (line)
		snprintf(reading->why, reading->size, "%s:%u: %s", reading->path, line, what);
	else
		snprintf(reading->why, reading->size, "%s: %s", reading->path, what);
	return -EINVAL;
}

bool astra_network_is(const char *path)
{
	const char *dot = strrchr(path, '.');
	return dot && (strcmp(dot, ".yml") == 0 || strcmp(dot, ".yaml") == 0);
}

/* ---- Lists ------------------------------------------------------------------------------------------------------- */

static bool read_kind(struct span word, uint64_t *kind)
{
	for (*kind = 0; *kind < KINDS; ++*kind)
		if (span_is(word, kind_names[*kind]))
			return true;
	return false;
}

static int read_word(struct reading *reading, unsigned line, enum key key, struct span word, struct dimension *its)
{
	bool is_good = false;

	switch (key) {
	case TOPOLOGY:
		is_good = read_kind(word, &its->kind);
		break;
	case NPUS_COUNT:
		is_good = span_number(word, CLOS_MOST_NODES, &its->npus) && its->npus > 0;
		break;
	case BANDWIDTH:
		is_good = span_decimal(word, GB_PER_S, HOSTS_MOST_SCALE_UP, &its->bits_per_second) &&
			  its->bits_per_second > 0;
		break;
	case LATENCY:
		is_good = span_decimal(word, VB_NS, VB_HORIZON / 2, &its->delay);
		break;
	case KEYS:
		break;
	}
	static const char *const expected[KEYS] = { "Switch, Ring or FullyConnected", "a number of NPUs",
		"a bandwidth in GB/s", "a latency in ns" };
	return is_good ? 0 : refuse(reading, line, "%s: %.*s is not %s", key_names[key], SPAN(word), expected[key]);
}

static int read_list(struct reading *reading, enum key key)
{
	const struct document_entry *entry = document_find(&reading->document, key_names[key]);
	uint32_t count = 0;
	int rc = 0;

	if (!entry)
		return refuse(reading, 0, "%s is missing", key_names[key]);
	struct span rest = { .at = entry->value, .length = strlen(entry->value) }, word;
	while (!rc && span_take(&rest, ',', &word)) {
		if (count == DIMENSIONS)
			return refuse(reading, entry->value_at.line,
				"%s: more than %d dimensions are not supported: GPUs of a host, and a Switch between "
				"hosts",
				key_names[key], DIMENSIONS);
		rc = read_word(reading, entry->value_at.line, key, word, &reading->dimensions[count++]);
	}
	if (rc)
		return rc;
	if (key == TOPOLOGY)
		reading->count = count;
	if (count == 0 || count != reading->count)
		return refuse(reading, entry->value_at.line, "%s: %u values for %u dimensions", key_names[key], count,
			reading->count);
	return 0;
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

static int check_keys(const struct reading *reading)
{
	for (unsigned i = 0; i < reading->document.count; i++) {
		const struct document_entry *entry = &reading->document.entries[i];
		bool is_known = false;
		for (enum key key = 0; key < KEYS; key++)
			is_known |= strcmp(entry->path, key_names[key]) == 0;
		if (!is_known)
			return refuse(reading, entry->key_at.line,
				"%.40s: ASTRA-sim's networks have topology, npus_count, bandwidth and latency",
				entry->path);
	}
	return 0;
}

static int check(const struct reading *reading)
{
	const struct dimension *first = &reading->dimensions[0], *second = &reading->dimensions[1];

	if (first->npus > HOSTS_MOST_GPUS)
		return refuse(reading, document_find(&reading->document, "npus_count")->value_at.line,
			"hosts of %u GPUs, the first dimension: at most %d are supported", (unsigned)first->npus,
			HOSTS_MOST_GPUS);
	if (reading->count == 2 && second->kind != SWITCH)
		return refuse(reading, document_find(&reading->document, "topology")->value_at.line,
			"a %s as second dimension is not supported: hosts are joined by a Switch",
			kind_names[second->kind]);
	return 0;
}

static int read_all(struct reading *reading)
{
	struct document_error error = { 0 };
	int rc = scenario_read_file(&reading->document, reading->path, &error);

	if (rc == -EINVAL && *error.text)
		return refuse(reading, error.at.line, "%s", error.text);
	if (rc)
		return rc == -ENOMEM ? rc : refuse(reading, 0, "%s", strerror(-rc));
	rc = check_keys(reading);
	for (enum key key = 0; !rc && key < KEYS; key++)
		rc = read_list(reading, key);
	return rc ? rc : check(reading);
}

/* A way through a switch takes two links. */
static struct hosts hosts_of(const struct dimension *first)
{
	return (struct hosts){ .gpus = (uint32_t)first->npus,
		.nics = (uint32_t)first->npus,
		.scale_up = first->bits_per_second,
		.scale_up_time = (vb_time)(first->kind == SWITCH ? 2 * first->delay : first->delay) };
}

static struct topology topology_of(const struct reading *reading, const struct topology *like)
{
	const struct dimension *last = &reading->dimensions[reading->count - 1];
	const uint32_t gpus = (uint32_t)reading->dimensions[0].npus;
	struct topology topology = { .profile = like->profile,
		.nic = like->nic,
		.host_bits_per_second = last->bits_per_second,
		.host_delay = (vb_time)last->delay };

	if (reading->count == 1) {
		snprintf(topology.kind, sizeof(topology.kind), "switch");
		topology.endpoints = gpus;
	} else {
		snprintf(topology.kind, sizeof(topology.kind), "rail");
		topology.nics_a_machine = gpus;
		topology.machines = (uint32_t)last->npus;
	}
	return topology;
}

int astra_network_read(const char *path, const struct topology *like, struct network *network, struct hosts *hosts,
	const char **note, char *why, size_t size)
{
	struct reading reading = { .path = path, .why = why, .size = size };
	char what[200];
	int rc = read_all(&reading);

	*hosts = (struct hosts){ 0 };
	*note = NULL;
	if (!rc) {
		const struct topology topology = topology_of(&reading, like);
		rc = topology_build(&topology, network, what, sizeof(what));
		if (rc == -EINVAL)
			refuse(&reading, 0, "%s", what);
	}
	if (!rc) {
		*hosts = hosts_of(&reading.dimensions[0]);
		if (reading.dimensions[0].kind != SWITCH)
			*note = "in the first dimension each GPU has one port, of the bandwidth and latency of a link, "
				"by which it "
				"reaches all of its host: which links there are is not modelled";
	}
	document_free(&reading.document);
	return rc;
}
