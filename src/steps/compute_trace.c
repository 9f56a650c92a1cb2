/* See compute_trace.h. */
#include "steps/compute_trace.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "net/chakra_files.h"
#include "net/chakra_wire.h"
#include "net/grow.h"
#include "net/job_formats.h"
#include "net/why.h"

enum { NAME = 100, MOST_NAMES = 1000, MOST_CALLS = 200, NO_WORK = STEP_WORKS };

/* A node of the file that is read. */
struct node {
	uint64_t id, parent, us;
	struct span name;
	bool has_parent, is_cpu_op, is_computation;
	uint16_t name_of[2]; /* by pass: of its operation's names, from 1; 0: nothing of it has come yet */
};

/* Nodes of one name, of one operation and pass. */
struct name {
	char text[NAME];
	unsigned work, pass;
	uint64_t count;
	double us;
};

struct reading {
	struct compute_trace *trace;
	struct chakra_file file;
	const char *path;
	struct node *nodes; /* by id */
	uint32_t count, room;
	struct name *names;
	uint32_t name_count, name_room;
	double longest_us; /* of those of no operation */
	char *why;
	unsigned why_size;
};

/* ---- Words ------------------------------------------------------------------------------------------------------- */

/* The first that is in a name counts: attention's scores and experts' matrices have names of the more general, too. */
static const struct {
	const char *text;
	unsigned work;
} words[] = {
	{ "scores", WORK_SCORES },
	{ "flash", WORK_SCORES },
	{ "fmha", WORK_SCORES },
	{ "sdpa", WORK_SCORES },
	{ "dot_product", WORK_SCORES },
	{ "dotproduct", WORK_SCORES },
	{ "core_attention", WORK_SCORES },
	{ "coreattention", WORK_SCORES },
	{ "expert", WORK_EXPERTS },
	{ "router", WORK_EXPERTS },
	{ "moe", WORK_EXPERTS },
	{ "ffn", WORK_FFN },
	{ "mlp", WORK_FFN },
	{ "feed_forward", WORK_FFN },
	{ "feedforward", WORK_FFN },
	{ "fc1", WORK_FFN },
	{ "fc2", WORK_FFN },
	{ "gate_proj", WORK_FFN },
	{ "up_proj", WORK_FFN },
	{ "down_proj", WORK_FFN },
	{ "projection", WORK_PROJECTIONS },
	{ "qkv", WORK_PROJECTIONS },
	{ "q_proj", WORK_PROJECTIONS },
	{ "k_proj", WORK_PROJECTIONS },
	{ "v_proj", WORK_PROJECTIONS },
	{ "o_proj", WORK_PROJECTIONS },
	{ "out_proj", WORK_PROJECTIONS },
	{ "linear_proj", WORK_PROJECTIONS },
	{ "attention", WORK_PROJECTIONS },
	{ "attn", WORK_PROJECTIONS },
	{ "lm_head", WORK_OUTPUT },
	{ "output_layer", WORK_OUTPUT },
	{ "logits", WORK_OUTPUT },
	{ "output-forward", WORK_OUTPUT },
	{ "output-backward", WORK_OUTPUT },
	{ "output_fwd", WORK_OUTPUT },
	{ "output_bwd", WORK_OUTPUT },
};

static bool has_word(struct span name, const char *word)
{
	const size_t length = strlen(word);
	for (size_t i = 0; i + length <= name.length; i++)
		if (strncasecmp(name.at + i, word, length) == 0)
			return true;
	return false;
}

static unsigned work_of(struct span name)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (has_word(name, words[i].text))
			return words[i].work;
	return NO_WORK;
}

/* 0 forward, 1 backward, 2: it does not say. */
static unsigned pass_of(struct span name)
{
	const bool is_back = has_word(name, "backward") || has_word(name, "bwd") || has_word(name, "dgrad") ||
			     has_word(name, "wgrad");
	/* "feed_forward" is no pass. */
	const bool is_forward = has_word(name, "fwd") || (has_word(name, "forward") && !has_word(name, "feed"));
	return is_back == is_forward ? 2 : is_back;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_of_a_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c);
}

static bool is_behind(const char *text, size_t length, const char *word)
{
	const size_t its = strlen(word);
	return length >= its && strncasecmp(text + length - its, word, its) == 0;
}

/* Whether a number that comes behind this is that of a layer, and no part of a name as in "fc1". */
static bool is_count(const char *text, size_t length)
{
	return length == 0 || !is_of_a_word(text[length - 1]) || is_behind(text, length, "layer") ||
	       is_behind(text, length, "layers") || is_behind(text, length, "block");
}

static char printable(char c)
{
	return c >= ' ' && c < 0x7F ? c : '?';
}

static void copy_printable(struct span name, char *text, size_t size)
{
	size_t length = 0;
	for (; length < name.length && length + 1 < size; length++)
		text[length] = printable(name.at[length]);
	text[length] = 0;
}

/* The name, printable, with "#" for each such number. */
static void normalize(struct span name, char text[NAME])
{
	size_t length = 0;
	for (size_t i = 0; i < name.length && length + 1 < NAME;) {
		size_t digits = 0;
		while (i + digits < name.length && is_digit(name.at[i + digits]))
			digits++;
		const bool is_number = digits > 0 && is_count(text, length);
		text[length++] = is_number ? '#' : printable(name.at[i]);
		i += is_number ? digits : 1;
	}
	text[length] = 0;
}

/* ---- One file's nodes -------------------------------------------------------------------------------------------- */

static bool is_true(const struct chakra_node *node, enum chakra_attribute attribute)
{
	return node->values[attribute].kind == CHAKRA_INTEGER && node->values[attribute].number != 0;
}

static int refuse_long(const struct reading *reading, const struct chakra_node *node)
{
	return why_not(reading->why, reading->why_size,
		"%s: node %" PRIu64 " takes %" PRIu64 " microseconds, and a computation takes at most a quarter of an "
		"hour: its duration_micros is wrong, or the trace is of something else",
		reading->path, node->id, node->duration_us);
}

static int add_node(struct reading *reading, const struct chakra_node *from)
{
	struct node node = { .id = from->id, .us = from->duration_us, .name = from->name };
	struct chakra_waits waits = chakra_waits_of(from);
	uint64_t id;
	node.is_cpu_op = is_true(from, CHAKRA_IS_CPU_OP);
	node.is_computation = from->type == CHAKRA_COMPUTE && !node.is_cpu_op;
	if (node.is_computation && node.us > COMPUTE_TIME_MOST / 1000000)
		return refuse_long(reading, from);
	while (!node.has_parent && chakra_next_wait(&waits, &id))
		if (!waits.is_data) {
			node.has_parent = true;
			node.parent = id;
		}
	if (!grow_by_one(&reading->nodes, &reading->room, reading->count, sizeof(*reading->nodes)))
		return -ENOMEM;
	reading->nodes[reading->count++] = node;
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct node *one = a, *other = b;
	return (one->id > other->id) - (one->id < other->id);
}

static struct node *find_node(const struct reading *reading, uint64_t id)
{
	const struct node wanted = { .id = id };
	return reading->count ? bsearch(&wanted, reading->nodes, reading->count, sizeof(wanted), by_id) : NULL;
}

static int read_nodes(struct reading *reading)
{
	struct chakra_node node;
	int is;
	reading->count = 0;
	while ((is = chakra_next(&reading->file, &node)) == 1) {
		const int error = add_node(reading, &node);
		if (error)
			return error;
	}
	if (is || !reading->count)
		return is;
	qsort(reading->nodes, reading->count, sizeof(*reading->nodes), by_id);
	for (uint32_t i = 1; i < reading->count; i++)
		if (reading->nodes[i].id == reading->nodes[i - 1].id)
			return why_not(reading->why, reading->why_size, "%s: two nodes have the id %" PRIu64,
				reading->path, reading->nodes[i].id);
	return 0;
}

/* ---- What a computation belongs to ------------------------------------------------------------------------------- */

/* Of a computation: the node whose name says the operation, itself or a CPU op above it; NULL: there is none. */
static struct node *find_named(const struct reading *reading, struct node *node, unsigned *work, unsigned *pass)
{
	struct node *named = NULL;
	*pass = 2;
	*work = NO_WORK;
	for (unsigned calls = 0; node && calls < MOST_CALLS && (!named || *pass == 2); calls++) {
		if (!named && (*work = work_of(node->name)) != NO_WORK)
			named = node;
		*pass = *pass == 2 ? pass_of(node->name) : *pass;
		node = node->has_parent ? find_node(reading, node->parent) : NULL;
		if (node && !node->is_cpu_op)
			break;
	}
	*pass = *pass == 1;
	return named;
}

/* The number of this name, from 1; 0 and why, or no memory. */
static uint16_t name_number(struct reading *reading, struct span name, unsigned work, unsigned pass, int *error)
{
	char text[NAME];
	normalize(name, text);
	for (uint32_t i = 0; i < reading->name_count; i++) {
		const struct name *its = &reading->names[i];
		if (its->work == work && its->pass == pass && strcmp(its->text, text) == 0)
			return (uint16_t)(i + 1);
	}
	*error = reading->name_count == MOST_NAMES
			 ? why_not(reading->why, reading->why_size,
				   "%s: its operations have more than %d different names, of which the means would add "
				   "up: leave out what differs from layer to layer, or write a number there",
				   reading->path, MOST_NAMES)
			 : 0;
	if (!*error && !grow_by_one(&reading->names, &reading->name_room, reading->name_count, sizeof(*reading->names)))
		*error = -ENOMEM;
	if (*error)
		return 0;
	struct name *its = &reading->names[reading->name_count++];
	*its = (struct name){ .work = work, .pass = pass };
	memcpy(its->text, text, sizeof(text));
	return (uint16_t)reading->name_count;
}

static void count_unmatched(struct reading *reading, const struct node *node)
{
	struct compute_trace *trace = reading->trace;
	if (!trace->unmatched || (double)node->us > reading->longest_us) {
		copy_printable(node->name, trace->such_as, sizeof(trace->such_as));
		reading->longest_us = (double)node->us;
	}
	trace->unmatched++;
	trace->unmatched_us += (double)node->us;
}

static int add_computation(struct reading *reading, struct node *node)
{
	unsigned work, pass;
	struct node *named = find_named(reading, node, &work, &pass);
	int error = 0;
	reading->trace->computations++;
	reading->trace->us += (double)node->us;
	if (!named) {
		count_unmatched(reading, node);
		return 0;
	}
	assert(work < STEP_WORKS && pass < 2);
	if (!named->name_of[pass]) {
		named->name_of[pass] = name_number(reading, named->name, work, pass, &error);
		if (error)
			return error;
		reading->names[named->name_of[pass] - 1].count++;
	}
	reading->names[named->name_of[pass] - 1].us += (double)node->us;
	return 0;
}

static int read_file(struct reading *reading, const char *path)
{
	reading->path = path;
	int error = chakra_open(&reading->file, path, reading->why, reading->why_size);
	if (error)
		return error;
	error = read_nodes(reading);
	for (uint32_t i = 0; !error && i < reading->count; i++)
		if (reading->nodes[i].is_computation)
			error = add_computation(reading, &reading->nodes[i]);
	chakra_close(&reading->file);
	return error;
}

/* ---- All --------------------------------------------------------------------------------------------------------- */

bool compute_trace_is(const char *path)
{
	return job_chakra_is_file_name(path) || job_chakra_is_prefix(path);
}

static int read_files(struct reading *reading, const char *path)
{
	const struct text name = text_of(path, "", 0, reading->why, reading->why_size);
	char file[CHAKRA_PATH];
	uint32_t ranks;
	if (job_chakra_is_file_name(path))
		return read_file(reading, path);
	int error = chakra_count_ranks(&name, (int)strlen(path), &ranks);
	for (uint32_t rank = 0; !error && rank < ranks; rank++)
		if (chakra_find_file(path, (int)strlen(path), rank, file))
			error = read_file(reading, file);
	return error;
}

/* A sum that is too short for a row is none. */
static int make_times(struct reading *reading)
{
	double ps[STEP_WORKS][2] = { 0 };
	for (uint32_t i = 0; i < reading->name_count; i++) {
		const struct name *its = &reading->names[i];
		assert(its->count > 0);
		ps[its->work][its->pass] += 1e6 * its->us / (double)its->count;
	}
	for (unsigned i = 0; i < 2 * STEP_WORKS; i++) {
		const double is = ps[i / 2][i % 2];
		if (is > (double)COMPUTE_TIME_MOST)
			return why_not(reading->why, reading->why_size,
				"%s: an operation of a layer takes longer than a quarter of an hour: are layers named "
				"apart, so that their times add up? Write their numbers behind a dot",
				reading->path);
		reading->trace->times.of[i / 2][i % 2] = is < COMPUTE_TIME_LEAST ? 0 : (uint64_t)(is + 0.5);
	}
	return 0;
}

int compute_trace_read(const char *path, struct compute_trace *trace, char *why, unsigned why_size)
{
	struct reading reading = { .trace = trace, .why = why, .why_size = why_size };
	*trace = (struct compute_trace){ 0 };
	int error = read_files(&reading, path);
	reading.path = path;
	if (!error && trace->computations == 0)
		error = why_not(why, why_size,
			"%s: it has no computation of a GPU, a node of type COMP that is no CPU op: link the host's "
			"trace "
			"with that of the GPU (chakra_trace_link), then convert it",
			path);
	if (!error)
		error = make_times(&reading);
	free(reading.nodes);
	free(reading.names);
	return error;
}
