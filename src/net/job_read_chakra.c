/* Chakra execution traces, as ASTRA-sim takes them: PREFIX.RANK.et, a file for each rank from 0, each perhaps packed by
 * gzip and then perhaps called PREFIX.RANK.et.gz. What becomes of a node is what ASTRA-sim's Workload.cc makes of it
 * (astra-sim/workload/Workload.cc, without the roofline):
 *
 *   INVALID, METADATA       no time. Of METADATA, PyTorch's groups are read (chakra_groups.h)
 *   MEM_LOAD, MEM_STORE     no time: memory is not modelled, a note counts them
 *   COMP                    takes duration_micros, of which 0 is 1 ns: one at a time of the GPU, one of the CPU
 *                           (is_cpu_op). A note counts those that have num_ops and no duration
 *   COMM_SEND, COMM_RECV    a message of comm_size bytes to comm_dst or from comm_src, with comm_tag, 0 if absent. They
 *                           pair up in order by source, destination and tag
 *   COMM_COLL               by comm_type: ALL_REDUCE, REDUCE_SCATTER, ALL_TO_ALL of comm_size bytes, which are all that
 *                           a rank has; ALL_GATHER, whose comm_size is the share of one rank; BARRIER. BROADCAST only
 *                           takes its duration, if it has one, and so do the others always: a note counts them
 *   COMM_*, is_cpu_op       the call on the CPU beside the node of the GPU: no time, a note counts them
 *
 *   id, ctrl_deps, data_deps     a node begins when those that it waits for have ended, and of those that could begin
 *                                the one with the lowest id does. A control dependency on a node that is not in the
 *                                file is no wait, a note counts them; a data dependency on one is an error
 *   pg_name                      "" and "0" are all ranks, others are groups by name
 *   involved_dim                 must be true for all dimensions: this network has none
 *   comm_priority                the highest of those that wait for a stream goes first, if priorities are heeded;
 *                                otherwise a note counts those that are not 0
 *   start_time_micros, tensor_size, outputs and all other attributes    are passed over
 *
 * Sends and collectives of a rank run one at a time, or those of each group; receives, as many as there are. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "net/chakra_files.h"
#include "net/chakra_groups.h"
#include "net/chakra_wire.h"
#include "net/flow_text.h"
#include "net/grow.h"
#include "net/job_formats.h"
#include "net/why.h"

enum { STREAM_GPU, STREAM_CPU, STREAM_NETWORK, STREAM_FIRST_GROUP, STREAM_LAST_GROUP = GRAPH_NO_STREAM - 1 };
enum { NAME = 100 };

/* CollectiveCommType of et_def.proto. */
static const struct collective_type {
	const char *name, *kind;
	bool has_share;    /* comm_size is that of one rank */
	bool has_no_size;  /* comm_size may be absent */
	bool by_duration;  /* if it has one */
	bool is_unmodeled; /* whatever collectives.h has: which of its sizes comm_size is is not known */
} types[] = {
	{ .name = "ALL_REDUCE", .kind = "allreduce" },
	{ .name = "REDUCE", .kind = "reduce", .is_unmodeled = true },
	{ .name = "ALL_GATHER", .kind = "all-gather", .has_share = true },
	{ .name = "GATHER", .kind = "gather", .is_unmodeled = true },
	{ .name = "SCATTER", .kind = "scatter", .is_unmodeled = true },
	{ .name = "BROADCAST", .kind = "broadcast", .by_duration = true },
	{ .name = "ALL_TO_ALL", .kind = "alltoall" },
	{ .name = "REDUCE_SCATTER", .kind = "reduce-scatter" },
	{ .name = "REDUCE_SCATTER_BLOCK", .kind = "reduce-scatter-block", .is_unmodeled = true },
	{ .name = "BARRIER", .kind = "barrier", .has_no_size = true },
};
enum { COLLECTIVE_TYPES = sizeof(types) / sizeof(types[0]) };

/* How many nodes each note is about. */
struct tally {
	uint64_t absent_parents, unread_groups, memory, cpu_calls, without_duration, priorities,
		by_duration[COLLECTIVE_TYPES];
};

/* A node of the file that is read, and where its message is. */
struct place {
	uint64_t id;
	size_t at;
	uint32_t order; /* in the file, from 1 */
};

struct reading {
	struct job_file *job;
	struct text *text; /* for `why` */
	const struct job_file_options *options;
	struct tally tally;
	struct chakra_groups groups;
	/* Of one rank. */
	uint32_t rank;
	struct chakra_file file;
	struct place *places; /* by id */
	uint32_t count, room;
	uint32_t first; /* operation: places[i] is operation first + i */
	uint32_t groups_of[STREAM_LAST_GROUP - STREAM_FIRST_GROUP + 1], group_count; /* that have streams, in order */
	bool has_large_ids;                                                          /* of more than 32 bits */
};

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

#define REFUSE(reading, ...) why_not((reading)->text->why, (reading)->text->why_size, __VA_ARGS__)

static const char *describe(const struct reading *reading, const struct chakra_node *node, char text[NAME])
{
	const char *const more = node->name.length > 40 ? "..." : "";
	if (node->name.length > 0)
		snprintf(text, NAME, "node %" PRIu64 " (%.*s%s) of rank %" PRIu32, node->id, SPAN(node->name), more,
			reading->rank);
	else
		snprintf(text, NAME, "node %" PRIu64 " of rank %" PRIu32, node->id, reading->rank);
	return text;
}

#define REFUSE_NODE(reading, node, format, ...)                                                                        \
	REFUSE(reading, "%s: %s: " format, (reading)->file.text.name, describe(reading, node, (char[NAME]){ 0 }),      \
		##__VA_ARGS__)

/* A file's words may go to a terminal. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7F)
			*text = '?';
}

/* ---- Attributes -------------------------------------------------------------------------------------------------- */

static int take_integer(const struct reading *reading, const struct chakra_node *node, enum chakra_attribute attribute,
	uint64_t most, uint64_t *number)
{
	const struct chakra_value *value = &node->values[attribute];
	const char *name = chakra_attribute_names[attribute];
	if (value->kind == CHAKRA_ABSENT)
		return REFUSE_NODE(reading, node, "it has no %s", name);
	if (value->kind != CHAKRA_INTEGER)
		return REFUSE_NODE(reading, node, "its %s is no whole number", name);
	if (value->is_negative || value->number > most)
		return REFUSE_NODE(reading, node, "its %s is %s%" PRIu64 ", and may be 0 to %" PRIu64, name,
			value->is_negative ? "-" : "", value->number, most);
	*number = value->number;
	return 0;
}

/* As take_integer, but of an attribute that may be absent. */
static int take_optional(const struct reading *reading, const struct chakra_node *node, enum chakra_attribute attribute,
	uint64_t most, uint64_t absent, uint64_t *number)
{
	*number = absent;
	if (node->values[attribute].kind == CHAKRA_ABSENT)
		return 0;
	return take_integer(reading, node, attribute, most, number);
}

static bool is_nonzero(const struct chakra_node *node, enum chakra_attribute attribute)
{
	return node->values[attribute].kind == CHAKRA_INTEGER && node->values[attribute].number != 0;
}

static int take_duration(
	const struct reading *reading, const struct chakra_node *node, struct graph_operation *operation)
{
	if (node->duration_us > VB_HORIZON / VB_US)
		return REFUSE_NODE(
			reading, node, "it takes more than a day: %" PRIu64 " microseconds", node->duration_us);
	operation->kind = GRAPH_COMPUTE;
	operation->time = node->duration_us ? (vb_time)node->duration_us * VB_US : VB_NS;
	return 0;
}

/* ---- Collectives ------------------------------------------------------------------------------------------------- */

/* Into the graph, when a node first needs it. */
static int place_group(const struct reading *reading, const struct chakra_node *node, struct chakra_group *group)
{
	const uint32_t ranks = reading->job->graph.ranks;
	if (group->number != GRAPH_NONE)
		return 0;
	if (group->ranks && group->ranks[group->count - 1] >= ranks)
		return REFUSE_NODE(reading, node,
			"its group %.40s has rank %" PRIu32 ", whose trace is not there: there are %" PRIu32,
			group->name, group->ranks[group->count - 1], ranks);
	group->number = reading->job->graph.group_count;
	return graph_add_group(&reading->job->graph, group->ranks, group->ranks ? group->count : ranks);
}

static int find_group(const struct reading *reading, const struct chakra_node *node, uint32_t *number)
{
	const struct chakra_value *value = &node->values[CHAKRA_PG_NAME];
	struct span name = value->text;
	char digits[24];
	*number = 0;
	if (value->kind == CHAKRA_INTEGER) {
		snprintf(digits, sizeof(digits), "%s%" PRIu64, value->is_negative ? "-" : "", value->number);
		name = (struct span){ digits, strlen(digits) };
	} else if (value->kind != CHAKRA_TEXT && value->kind != CHAKRA_ABSENT)
		return REFUSE_NODE(reading, node, "its pg_name is no text");
	if (name.length == 0 || (name.length == 1 && *name.at == '0'))
		return 0;
	struct chakra_group *group = chakra_groups_find(&reading->groups, name, reading->rank);
	if (!group)
		return REFUSE_NODE(reading, node, "its group %.*s is in no METADATA node, and %s", SPAN(name),
			reading->options->groups ? "not in the groups file" : "there is no groups file");
	int error = place_group(reading, node, group);
	*number = group->number;
	if (!error && graph_member(&reading->job->graph.groups[*number], reading->rank) == GRAPH_NONE)
		error = REFUSE_NODE(reading, node, "the rank is not in the node's group %.*s", SPAN(name));
	return error;
}

static int take_size(const struct reading *reading, const struct chakra_node *node, const struct collective_type *type,
	struct graph_operation *operation)
{
	const struct graph_group *group = &reading->job->graph.groups[operation->group];
	const uint64_t times = type->has_share ? group->count : 1, most = FLOW_MOST_BYTES / times;
	if (type->has_no_size) {
		operation->bytes = 1;
		return 0;
	}
	const int error = take_integer(reading, node, CHAKRA_COMM_SIZE, most, &operation->bytes);
	operation->bytes *= error ? 1 : times;
	return error;
}

/* The rank's groups have streams in the order in which they come; those beyond the last share it. */
static uint8_t stream_of_group(struct reading *reading, uint32_t group)
{
	enum { MOST = sizeof(reading->groups_of) / sizeof(reading->groups_of[0]) };
	uint32_t i = 0;
	while (i < reading->group_count && reading->groups_of[i] != group)
		i++;
	if (i == MOST)
		return STREAM_LAST_GROUP;
	if (i == reading->group_count)
		reading->groups_of[reading->group_count++] = group;
	return (uint8_t)(STREAM_FIRST_GROUP + i);
}

static int take_priority(struct reading *reading, const struct chakra_node *node, struct graph_operation *operation)
{
	const struct chakra_value *value = &node->values[CHAKRA_COMM_PRIORITY];
	const uint64_t most = value->is_negative ? -INT8_MIN : INT8_MAX;
	if (!reading->options->heeds_priorities) {
		reading->tally.priorities += is_nonzero(node, CHAKRA_COMM_PRIORITY);
		return 0;
	}
	if (value->kind == CHAKRA_ABSENT)
		return 0;
	if (value->kind != CHAKRA_INTEGER || value->number > most)
		return REFUSE_NODE(reading, node, "its comm_priority is no whole number from -128 to 127");
	operation->priority = (int8_t)(value->is_negative ? -(int)value->number : (int)value->number);
	return 0;
}

static int read_collective(struct reading *reading, const struct chakra_node *node, struct graph_operation *operation)
{
	const struct chakra_value *dimensions = &node->values[CHAKRA_INVOLVED_DIM];
	uint64_t number;
	int error = take_integer(reading, node, CHAKRA_COMM_TYPE, COLLECTIVE_TYPES - 1, &number);
	if (error)
		return error;
	const struct collective_type *type = &types[number];
	operation->stream = STREAM_NETWORK;
	if (!collective_is_kind(type->kind) || type->is_unmodeled || (type->by_duration && node->duration_us > 0)) {
		reading->tally.by_duration[number]++;
		return take_duration(reading, node, operation);
	}
	if (dimensions->kind == CHAKRA_BOOLS ? dimensions->number != 0 : dimensions->kind != CHAKRA_ABSENT)
		return REFUSE_NODE(reading, node,
			"its involved_dim leaves dimensions out: name its ranks by pg_name and a groups file");
	uint32_t group, kind;
	error = find_group(reading, node, &group);
	if (!error)
		error = graph_find_collective(&reading->job->graph, type->kind, NULL, &kind);
	if (error)
		return error;
	operation->kind = GRAPH_COLLECTIVE;
	operation->group = group;
	operation->collective = kind;
	if (reading->options->streams == JOB_STREAM_OF_GROUP)
		operation->stream = stream_of_group(reading, group);
	error = take_priority(reading, node, operation);
	return error ? error : take_size(reading, node, type, operation);
}

/* ---- Nodes ------------------------------------------------------------------------------------------------------- */

/* The rank itself may stand at its own end. */
static int check_own_end(const struct reading *reading, const struct chakra_node *node, enum chakra_attribute own)
{
	uint64_t rank;
	const int error = take_optional(reading, node, own, UINT32_MAX, reading->rank, &rank);
	if (error || rank == reading->rank)
		return error;
	return REFUSE_NODE(
		reading, node, "its %s is %" PRIu64 ", which is another rank", chakra_attribute_names[own], rank);
}

static int read_message(
	const struct reading *reading, const struct chakra_node *node, bool is_send, struct graph_operation *operation)
{
	uint64_t bytes, peer, tag;
	int error = check_own_end(reading, node, is_send ? CHAKRA_COMM_SRC : CHAKRA_COMM_DST);
	if (!error)
		error = take_integer(reading, node, is_send ? CHAKRA_COMM_DST : CHAKRA_COMM_SRC, GRAPH_ANY - 1, &peer);
	if (!error)
		error = take_optional(reading, node, CHAKRA_COMM_TAG, GRAPH_ANY - 1, 0, &tag);
	if (!error)
		error = take_integer(reading, node, CHAKRA_COMM_SIZE, FLOW_MOST_BYTES, &bytes);
	if (error)
		return error;
	operation->kind = is_send ? GRAPH_SEND : GRAPH_RECEIVE;
	operation->stream = is_send ? STREAM_NETWORK : GRAPH_NO_STREAM;
	operation->bytes = bytes;
	operation->peer = (uint32_t)peer;
	operation->tag = (uint32_t)tag;
	return 0;
}

static int read_compute(struct reading *reading, const struct chakra_node *node, struct graph_operation *operation)
{
	operation->stream = is_nonzero(node, CHAKRA_IS_CPU_OP) ? STREAM_CPU : STREAM_GPU;
	reading->tally.without_duration += node->duration_us == 0 && is_nonzero(node, CHAKRA_NUM_OPS);
	return take_duration(reading, node, operation);
}

/* An operation that takes no time and has no stream is what the node is at first. */
static int read_node(struct reading *reading, const struct chakra_node *node, struct graph_operation *operation)
{
	const bool is_on_network =
		node->type == CHAKRA_SEND || node->type == CHAKRA_RECEIVE || node->type == CHAKRA_COLLECTIVE;
	if (is_on_network && is_nonzero(node, CHAKRA_IS_CPU_OP)) {
		reading->tally.cpu_calls++;
		return 0;
	}
	if (node->type >= CHAKRA_TYPES)
		return REFUSE_NODE(
			reading, node, "its type is %" PRIu64 ", and may be 0 to %d", node->type, CHAKRA_TYPES - 1);
	switch ((enum chakra_type)node->type) {
	case CHAKRA_MEMORY_LOAD:
	case CHAKRA_MEMORY_STORE:
		reading->tally.memory++;
		return 0;
	case CHAKRA_COMPUTE:
		return read_compute(reading, node, operation);
	case CHAKRA_SEND:
	case CHAKRA_RECEIVE:
		return read_message(reading, node, node->type == CHAKRA_SEND, operation);
	case CHAKRA_COLLECTIVE:
		return read_collective(reading, node, operation);
	case CHAKRA_INVALID:
	case CHAKRA_METADATA:
	case CHAKRA_TYPES:
		break;
	}
	return 0;
}

/* The operation of this node; GRAPH_NONE: it is not in the file. */
static uint32_t find_operation(const struct reading *reading, uint64_t id)
{
	uint32_t low = 0, high = reading->count;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (reading->places[middle].id == id)
			return reading->first + middle;
		if (reading->places[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return GRAPH_NONE;
}

static int add_waits(struct reading *reading, const struct chakra_node *node, uint32_t operation)
{
	struct chakra_waits waits = chakra_waits_of(node);
	uint64_t id;
	while (chakra_next_wait(&waits, &id)) {
		const uint32_t before = find_operation(reading, id);
		if (before == GRAPH_NONE && waits.is_data)
			return REFUSE_NODE(
				reading, node, "it needs data of node %" PRIu64 ", which is not in the file", id);
		reading->tally.absent_parents += before == GRAPH_NONE;
		if (before != GRAPH_NONE && graph_add_wait(&reading->job->graph, operation, before, GRAPH_ENDED))
			return -ENOMEM;
	}
	return 0;
}

static int add_node(struct reading *reading, uint32_t index)
{
	const struct place *place = &reading->places[index];
	struct graph_operation operation = { .rank = reading->rank, .kind = GRAPH_COMPUTE, .stream = GRAPH_NO_STREAM };
	struct chakra_node node;
	chakra_read_again(&reading->file, place->at, &node);
	int error = read_node(reading, &node, &operation);
	if (!error)
		error = job_file_add(
			reading->job, &operation, reading->has_large_ids ? place->order : (uint32_t)place->id);
	return error ? error : add_waits(reading, &node, reading->first + index);
}

/* ---- One rank's file --------------------------------------------------------------------------------------------- */

/* PyTorch's groups, wherever in the file they are. */
static int read_metadata(struct reading *reading, const struct chakra_node *node)
{
	const struct text *text = reading->text;
	bool is_read;
	if (node->type != CHAKRA_METADATA)
		return 0;
	const int error = chakra_groups_read_values(
		&reading->groups, node->input_values, reading->rank, &is_read, text->why, text->why_size);
	static const char begin[] = "['[{";
	reading->tally.unread_groups += !error && !is_read && node->input_values.length >= sizeof(begin) &&
					memcmp(node->input_values.at, begin, sizeof(begin) - 1) == 0;
	return error;
}

static int by_id(const void *a, const void *b)
{
	const struct place *one = a, *other = b;
	if (one->id != other->id)
		return one->id < other->id ? -1 : 1;
	return one->order < other->order ? -1 : one->order > other->order;
}

/* Every message is read once, in the order of the file, so that the first error is the first of the file. */
static int find_places(struct reading *reading)
{
	struct chakra_file *file = &reading->file;
	struct chakra_node node;
	int is;
	for (size_t at = chakra_byte(file); (is = chakra_next(file, &node)) == 1; at = chakra_byte(file)) {
		if (!grow_by_one(&reading->places, &reading->room, reading->count, sizeof(*reading->places)))
			return -ENOMEM;
		reading->places[reading->count] = (struct place){ node.id, at, reading->count + 1 };
		reading->count++;
		reading->has_large_ids |= node.id > UINT32_MAX;
		const int error = read_metadata(reading, &node);
		if (error)
			return error;
	}
	return is;
}

static int sort_places(struct reading *reading)
{
	const struct place *places = reading->places;
	if (reading->count > 0)
		qsort(reading->places, reading->count, sizeof(*places), by_id);
	for (uint32_t i = 1; i < reading->count; i++)
		if (places[i].id == places[i - 1].id)
			return REFUSE(reading,
				"%s: node %" PRIu64 " is there twice: its messages are %" PRIu32 " and %" PRIu32,
				reading->file.text.name, places[i].id, places[i - 1].order + 1, places[i].order + 1);
	return 0;
}

static int read_nodes(struct reading *reading)
{
	int error = find_places(reading);
	if (!error)
		error = sort_places(reading);
	for (uint32_t i = 0; !error && i < reading->count; i++)
		error = add_node(reading, i);
	if (reading->has_large_ids)
		job_file_note(
			reading->job, "files with node ids above 2^32: their nodes are called by their place, from 1");
	return error;
}

static int read_rank(struct reading *reading, const char *path)
{
	reading->count = reading->group_count = 0;
	reading->has_large_ids = false;
	reading->first = reading->job->graph.count;
	int error = chakra_open(&reading->file, path, reading->text->why, reading->text->why_size);
	if (error)
		return error;
	error = read_nodes(reading);
	chakra_close(&reading->file);
	return error;
}

/* ---- All files --------------------------------------------------------------------------------------------------- */

/* ASTRA-sim takes a path with "empty" in it for no file (Workload.cc). */
static int read_groups(struct reading *reading)
{
	const char *const path = reading->options->groups;
	const struct text *text = reading->text;
	if (!path)
		return 0;
	for (const char *c = path; *c; c++)
		if (strncmp(c, "empty", 5) == 0) {
			job_file_note(reading->job, "the groups file has \"empty\" in its path: it is not read, as by "
						    "ASTRA-sim");
			return 0;
		}
	return chakra_groups_read_file(&reading->groups, path, text->why, text->why_size);
}

static void tell(struct job_file *job, uint64_t count, const char *what)
{
	if (count > 0)
		job_file_note(job, "%" PRIu64 " %s", count, what);
}

static void tell_all(struct job_file *job, const struct tally *tally)
{
	tell(job, tally->absent_parents,
		"control dependencies are on nodes that are in no file: nothing waits for them");
	tell(job, tally->unread_groups, "METADATA nodes have groups that cannot be read");
	tell(job, tally->memory, "nodes load or store memory: not modelled, they take no time");
	tell(job, tally->cpu_calls, "nodes of communication are calls on the CPU (is_cpu_op): they take no time");
	tell(job, tally->without_duration,
		"computations have num_ops and no duration: 1 ns each (there is no roofline model)");
	tell(job, tally->priorities, "collectives have a comm_priority: not heeded (job.priorities)");
	for (unsigned i = 0; i < COLLECTIVE_TYPES; i++)
		if (tally->by_duration[i] > 0)
			job_file_note(job, "%" PRIu64 " collectives %s only take their duration, nothing is sent",
				tally->by_duration[i], types[i].name);
}

static int read_ranks(struct reading *reading)
{
	struct graph *graph = &reading->job->graph;
	char path[CHAKRA_PATH];
	int prefix = 0, error = chakra_find_prefix(reading->text, &prefix);
	if (!error)
		error = chakra_count_ranks(reading->text, prefix, &graph->ranks);
	graph->beside_gpu = 1u << STREAM_CPU | 1u << STREAM_NETWORK;
	if (!error)
		error = graph_add_group(graph, NULL, graph->ranks); /* group 0 */
	if (!error)
		error = read_groups(reading);
	for (uint32_t rank = 0; !error && rank < graph->ranks; rank++) {
		reading->rank = rank;
		error = chakra_find_file(reading->text->name, prefix, rank, path)
				? read_rank(reading, path)
				: REFUSE(reading, "%s: the file is gone", path);
	}
	return error;
}

/* What is found is told before a refusal, too. */
static int read_chakra(struct job_file *job, struct text *text, const struct job_file_options *options)
{
	struct reading reading = { .job = job, .text = text, .options = options };
	const int error = read_ranks(&reading);
	tell_all(job, &reading.tally);
	chakra_groups_free(&reading.groups);
	free(reading.places);
	if (error == -EINVAL)
		make_printable(text->why);
	return error;
}

/* Files that are no job of another name: gzip's of any content, or what begins as a trace. */
static bool is_chakra(const char *bytes, size_t length)
{
	return (length >= 2 && memcmp(bytes, "\x1F\x8B", 2) == 0) || chakra_is(bytes, length);
}

const struct job_format job_format_chakra = { "Chakra", "node", is_chakra, read_chakra };
