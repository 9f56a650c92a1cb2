/* GOAL text, as LogGOPSim and ATLAHS write it (spcl/LogGOPSim, src/LogGOPSim/txt2bin.re):
 *
 *   num_ranks 2
 *   rank 0 {
 *   l1: calc 100 cpu 0
 *   l2: send 4096b to 1 tag 7 cpu 0 nic 0
 *   l2 requires l1
 *   }
 *
 * An operation or a dependency ends with its line. A label is of its rank, and is defined above its use. Times are ns.
 * Files have millions of labels, so those of a rank are sorted when it closes: hostile ones take no longer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "net/flow_text.h"
#include "net/grow.h"
#include "net/job_formats.h"

/* The last: 255 is GRAPH_NO_STREAM. txt2bin keeps both in a byte. */
enum { MOST_CPU = 254, MOST_NIC = 255, MOST_RANKS = 1 << 24 };

struct label {
	struct span name;
	uint32_t operation;
};

/* A line "one requires other". */
struct dependency {
	struct span one, other;
	uint32_t line;
	enum graph_event event;
};

struct goal {
	struct job_file *file;
	struct text *text;
	const char *begin;
	uint32_t rank;
	bool heeds_processors;
	struct label *labels; /* of this rank */
	uint32_t label_count, label_room;
	struct dependency *dependencies; /* of this rank */
	uint32_t dependency_count, dependency_room;
	uint32_t open_comment; /* the line of a comment that does not end; 0: there is none */
};

/* ---- Words ------------------------------------------------------------------------------------------------------- */

static bool begins_with(const struct text *text, const char *begin)
{
	const size_t length = strlen(begin);
	return (size_t)(text->end - text->at) >= length && memcmp(text->at, begin, length) == 0;
}

static void skip_line_comment(struct text *text)
{
	const char *end = memchr(text->at, '\n', (size_t)(text->end - text->at));
	text->at = end ? end : text->end;
}

/* The line where a comment begins that does not end; 0: it ends. */
static uint32_t skip_comment(struct text *text)
{
	const uint32_t begin = text->line;
	for (text->at += 2; text->at < text->end; text->at++) {
		if (begins_with(text, "*/")) {
			text->at += 2;
			return 0;
		}
		text->line += *text->at == '\n';
	}
	return begin;
}

/* Blanks and comments; also ends of lines, if it crosses them. */
static uint32_t skip(struct text *text, bool crosses)
{
	uint32_t open_comment = 0;
	while (text->at < text->end) {
		const char c = *text->at;
		if (c == ' ' || c == '\t' || c == '\r') {
			text->at++;
		} else if (c == '\n' && crosses) {
			text->at++;
			text->line++;
		} else if (begins_with(text, "//")) {
			skip_line_comment(text);
		} else if (begins_with(text, "/*")) {
			open_comment = skip_comment(text);
		} else {
			break;
		}
	}
	return open_comment;
}

static void skip_blanks(struct goal *goal, bool crosses)
{
	const uint32_t open_comment = skip(goal->text, crosses);
	if (open_comment)
		goal->open_comment = open_comment;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* [a-zA-Z][a-zA-Z0-9_]*; otherwise an empty word. */
static struct span take_word(struct text *text)
{
	struct span word = { .at = text->at };
	if (text->at == text->end || !is_letter(*text->at))
		return word;
	while (text->at < text->end && (is_letter(*text->at) || is_digit(*text->at) || *text->at == '_'))
		text->at++;
	word.length = (size_t)(text->at - word.at);
	return word;
}

static bool is(struct span word, const char *keyword)
{
	return word.length == strlen(keyword) && memcmp(word.at, keyword, word.length) == 0;
}

/* ---- Expectations ------------------------------------------------------------------------------------------------ */

static int tell_early_end(const struct goal *goal, const char *what)
{
	const size_t byte = (size_t)(goal->text->end - goal->begin);
	if (goal->open_comment)
		return text_wrong(goal->text, "the file ends at byte %zu in a comment: close the /* of line %u with */",
			byte, goal->open_comment);
	return text_wrong(
		goal->text, "the file ends early, at byte %zu, where %s is expected: was it cut?", byte, what);
}

/* Something else stands at `at`. */
static int tell_expected(struct goal *goal, const char *at, const char *what)
{
	struct span found = { .at = at };
	while (at + found.length < goal->text->end && !strchr(" \t\r\n", at[found.length]))
		found.length++;
	if (at == goal->text->end)
		return tell_early_end(goal, what);
	if (*at == '\n')
		return text_wrong(goal->text, "%s is expected before the end of the line", what);
	return text_wrong(goal->text, "%s is expected, not '%.*s'", what, SPAN(found));
}

static int expect_character(struct goal *goal, char c, const char *what)
{
	skip_blanks(goal, false);
	if (goal->text->at == goal->text->end || *goal->text->at != c)
		return tell_expected(goal, goal->text->at, what);
	goal->text->at++;
	return 0;
}

static int expect_word(struct goal *goal, const char *keyword, const char *what)
{
	skip_blanks(goal, false);
	const char *at = goal->text->at;
	return is(take_word(goal->text), keyword) ? 0 : tell_expected(goal, at, what);
}

static int expect_number(struct goal *goal, const char *what, uint64_t max, uint64_t *number)
{
	skip_blanks(goal, false);
	struct text *text = goal->text;
	struct span digits = { .at = text->at };
	while (text->at < text->end && is_digit(*text->at))
		text->at++;
	digits.length = (size_t)(text->at - digits.at);
	if (digits.length == 0)
		return tell_expected(goal, digits.at, what);
	if (!span_number(digits, max, number))
		return text_wrong(
			text, "%s is a whole number up to %llu, not %.*s", what, (unsigned long long)max, SPAN(digits));
	return 0;
}

/* A number of 32 bits, or -1 for any. */
static int expect_number_or_any(struct goal *goal, bool may_be_any, const char *what, uint32_t max, uint32_t *number)
{
	uint64_t value = 0;
	skip_blanks(goal, false);
	if (may_be_any && begins_with(goal->text, "-1")) {
		goal->text->at += 2;
		*number = GRAPH_ANY;
		return 0;
	}
	const int error = expect_number(goal, what, max, &value);
	*number = (uint32_t)value;
	return error;
}

static int expect_line_end(struct goal *goal)
{
	skip_blanks(goal, false);
	if (goal->text->at < goal->text->end && *goal->text->at != '\n')
		return tell_expected(goal, goal->text->at, "the end of the line");
	return 0;
}

/* ---- Operations -------------------------------------------------------------------------------------------------- */

/* What follows "send" or "recv", as far as it must. */
static int read_ends(struct goal *goal, struct graph_operation *operation)
{
	const bool is_send = operation->kind == GRAPH_SEND;
	const uint32_t ranks = goal->file->graph.ranks;
	int error = expect_number(goal, "the number of bytes", FLOW_MOST_BYTES, &operation->bytes);
	if (!error)
		error = expect_word(goal, "b", "the b behind the number of bytes");
	if (!error)
		error = expect_word(goal, is_send ? "to" : "from", is_send ? "'to' of a send" : "'from' of a recv");
	if (!error)
		error = expect_number_or_any(goal, !is_send, "the other rank", ranks - 1, &operation->peer);
	if (!error && operation->peer == goal->rank)
		return text_wrong(
			goal->text, "rank %u sends to itself, or receives from itself: make it a calc", goal->rank);
	return error;
}

/* "tag T", "cpu C" and "nic N" may be left out, and come in this order. */
static int read_options(struct goal *goal, struct graph_operation *operation)
{
	const bool is_message = operation->kind != GRAPH_COMPUTE;
	uint64_t cpu = 0, nic = 0;
	int error = 0;
	skip_blanks(goal, false);
	const char *at = goal->text->at;
	struct span word = take_word(goal->text);
	if (is_message && is(word, "tag")) {
		error = expect_number_or_any(
			goal, operation->kind == GRAPH_RECEIVE, "the tag", GRAPH_ANY - 1, &operation->tag);
		skip_blanks(goal, false);
		at = goal->text->at;
		word = take_word(goal->text);
	}
	if (!error && is(word, "cpu")) {
		error = expect_number(goal, "the cpu", MOST_CPU, &cpu);
		skip_blanks(goal, false);
		at = goal->text->at;
		word = take_word(goal->text);
	}
	if (!error && is_message && is(word, "nic")) {
		error = expect_number(goal, "the nic", MOST_NIC, &nic);
		word.length = 0;
	}
	if (!error && word.length)
		return tell_expected(goal, at,
			is_message ? "the end of the line, or tag, cpu and nic, in this order,"
				   : "the end of the line, or cpu,");
	operation->stream = is_message ? GRAPH_NO_STREAM : (uint8_t)cpu;
	if (is_message) {
		operation->cpu = (uint8_t)cpu;
		operation->nic = (uint8_t)nic;
	}
	return error ? error : expect_line_end(goal);
}

static void note_what_is_not_modelled(const struct goal *goal, const struct graph_operation *operation)
{
	if (operation->kind == GRAPH_COMPUTE)
		return;
	if (operation->bytes == 0)
		job_file_note(goal->file, "messages of 0 bytes have 1");
	if (!goal->heeds_processors && (operation->cpu || operation->nic))
		job_file_note(goal->file, "cpu and nic of sends and receives count with --loggops only");
}

static int read_operation(struct goal *goal, struct span keyword, struct span label)
{
	struct graph_operation operation = { .rank = goal->rank };
	const uint32_t line = goal->text->line;
	uint64_t ns = 0;
	int error;
	if (is(keyword, "calc")) {
		operation.kind = GRAPH_COMPUTE;
		error = expect_number(goal, "the time in ns", VB_HORIZON / VB_NS, &ns);
		operation.time = (vb_time)ns * VB_NS;
	} else {
		operation.kind = is(keyword, "send") ? GRAPH_SEND : GRAPH_RECEIVE;
		error = read_ends(goal, &operation);
	}
	if (!error)
		error = read_options(goal, &operation);
	if (error)
		return error;
	note_what_is_not_modelled(goal, &operation);
	if (label.length) {
		if (!grow_by_one(&goal->labels, &goal->label_room, goal->label_count, sizeof(*goal->labels)))
			return -ENOMEM;
		goal->labels[goal->label_count++] = (struct label){ label, goal->file->graph.count };
	}
	return job_file_add(goal->file, &operation, line);
}

/* ---- Dependencies ------------------------------------------------------------------------------------------------ */

static int compare_spans(struct span one, struct span other)
{
	const int sign = memcmp(one.at, other.at, one.length < other.length ? one.length : other.length);
	return sign ? sign : (one.length > other.length) - (one.length < other.length);
}

/* By name, then in the order of the file. */
static int compare_labels(const void *a, const void *b)
{
	const struct label *x = a, *y = b;
	const int sign = compare_spans(x->name, y->name);
	return sign ? sign : (x->operation > y->operation) - (x->operation < y->operation);
}

static int compare_names(const void *a, const void *b)
{
	const struct label *x = a, *y = b;
	return compare_spans(x->name, y->name);
}

static int wrong_in(const struct goal *goal, uint32_t line, const char *what, struct span name, uint32_t other_line)
{
	goal->text->line = line;
	return text_wrong(goal->text, "label %.*s %s line %u", SPAN(name), what, other_line);
}

static int sort_labels(struct goal *goal)
{
	const uint32_t *where = goal->file->where;
	if (goal->label_count > 0)
		qsort(goal->labels, goal->label_count, sizeof(*goal->labels), compare_labels);
	for (uint32_t i = 1; i < goal->label_count; i++)
		if (compare_names(&goal->labels[i - 1], &goal->labels[i]) == 0)
			return wrong_in(goal, where[goal->labels[i].operation],
				"is there twice in this rank: rename it, here or in", goal->labels[i].name,
				where[goal->labels[i - 1].operation]);
	return 0;
}

static int find_label(const struct goal *goal, const struct dependency *of, struct span name, uint32_t *operation)
{
	const struct label key = { .name = name };
	const struct label *label = NULL;
	if (goal->label_count > 0)
		label = bsearch(&key, goal->labels, goal->label_count, sizeof(key), compare_names);
	if (!label) {
		goal->text->line = of->line;
		return text_wrong(goal->text, "rank %u has no label %.*s: labels are of their rank alone", goal->rank,
			SPAN(name));
	}
	if (label->name.at > name.at)
		return wrong_in(goal, of->line, "is used above its definition: move this line below", name,
			goal->file->where[label->operation]);
	*operation = label->operation;
	return 0;
}

/* At the end of a rank. */
static int join_dependencies(struct goal *goal)
{
	const uint32_t end = goal->text->line;
	int error = sort_labels(goal);
	for (uint32_t i = 0; !error && i < goal->dependency_count; i++) {
		const struct dependency *its = &goal->dependencies[i];
		uint32_t one, other;
		error = find_label(goal, its, its->one, &one);
		if (!error)
			error = find_label(goal, its, its->other, &other);
		if (!error)
			error = graph_add_wait(&goal->file->graph, one, other, its->event);
	}
	goal->label_count = goal->dependency_count = 0;
	if (!error)
		goal->text->line = end;
	return error;
}

static int read_dependency(struct goal *goal, struct span one, enum graph_event event)
{
	const uint32_t line = goal->text->line;
	skip_blanks(goal, false);
	const char *at = goal->text->at;
	const struct span other = take_word(goal->text);
	if (other.length == 0)
		return tell_expected(goal, at, "a label");
	if (compare_spans(one, other) == 0)
		return text_wrong(goal->text, "label %.*s requires itself, and would never begin", SPAN(one));
	if (!grow_by_one(
		    &goal->dependencies, &goal->dependency_room, goal->dependency_count, sizeof(*goal->dependencies)))
		return -ENOMEM;
	goal->dependencies[goal->dependency_count++] = (struct dependency){ one, other, line, event };
	return expect_line_end(goal);
}

/* ---- Ranks ------------------------------------------------------------------------------------------------------- */

static bool is_operation(struct span word)
{
	return is(word, "send") || is(word, "recv") || is(word, "calc");
}

static int read_labelled(struct goal *goal, struct span label)
{
	skip_blanks(goal, false);
	struct text *text = goal->text;
	const char *at = text->at;
	if (at < text->end && *at == ':') {
		text->at++;
		skip_blanks(goal, false);
		at = text->at;
		const struct span keyword = take_word(text);
		return is_operation(keyword) ? read_operation(goal, keyword, label)
					     : tell_expected(goal, at, "send, recv or calc");
	}
	const struct span keyword = take_word(text);
	if (is(keyword, "requires") || is(keyword, "irequires"))
		return read_dependency(goal, label, is(keyword, "requires") ? GRAPH_ENDED : GRAPH_BEGUN);
	return tell_expected(goal, at, "':', requires or irequires behind a label");
}

/* A line of a rank, or its end. */
static int read_statement(struct goal *goal, bool *is_end)
{
	skip_blanks(goal, true);
	struct text *text = goal->text;
	const char *at = text->at;
	*is_end = at < text->end && *at == '}';
	if (*is_end) {
		text->at++;
		return join_dependencies(goal);
	}
	const struct span word = take_word(text);
	if (is(word, "rank") || is(word, "num_ranks"))
		return text_wrong(text, "rank %u is still open: it ends with a }", goal->rank);
	if (word.length == 0)
		return tell_expected(goal, at, "send, recv, calc, a label or }");
	return is_operation(word) ? read_operation(goal, word, (struct span){ 0 }) : read_labelled(goal, word);
}

static int read_rank(struct goal *goal)
{
	uint64_t rank = 0;
	bool is_end = false;
	skip_blanks(goal, true);
	const uint32_t ranks = goal->file->graph.ranks;
	int error = expect_word(goal, "rank", "'rank N {' of each rank of num_ranks");
	if (!error)
		error = expect_number(goal, "the rank", ranks - 1, &rank);
	if (!error && rank != goal->rank)
		return text_wrong(goal->text,
			"rank %u comes where rank %u is expected: ranks ascend from 0, and one without operations is "
			"'rank %u { }'",
			(uint32_t)rank, goal->rank, goal->rank);
	if (!error)
		error = expect_character(goal, '{', "{");
	while (!error && !is_end)
		error = read_statement(goal, &is_end);
	return error;
}

static int read_file(struct goal *goal)
{
	uint64_t ranks = 0;
	skip_blanks(goal, true);
	int error = expect_word(goal, "num_ranks", "'num_ranks N', which comes first,");
	if (!error)
		error = expect_number(goal, "num_ranks", MOST_RANKS, &ranks);
	if (!error && ranks == 0)
		return text_wrong(goal->text, "num_ranks is 0: there is nothing to run");
	goal->file->graph.ranks = (uint32_t)ranks;
	for (goal->rank = 0; !error && goal->rank < ranks; goal->rank++)
		error = read_rank(goal);
	skip_blanks(goal, true);
	if (!error && goal->open_comment)
		return tell_early_end(goal, "*/");
	if (!error && goal->text->at < goal->text->end)
		return text_wrong(goal->text,
			"nothing may follow rank %u, the last of num_ranks %u: delete it, or correct num_ranks",
			(uint32_t)ranks - 1, (uint32_t)ranks);
	return error;
}

/* ---- The format -------------------------------------------------------------------------------------------------- */

/* "num_ranks N", or "rank N" without it, behind comments. */
static bool is_goal(const char *bytes, size_t length)
{
	struct text text = { .at = bytes, .end = bytes + length };
	skip(&text, true);
	const struct span word = take_word(&text);
	if (is(word, "num_ranks"))
		return true;
	skip(&text, false);
	return is(word, "rank") && text.at < text.end && is_digit(*text.at);
}

static int read_goal(struct job_file *file, struct text *text, const struct job_file_options *options)
{
	struct goal goal = {
		.file = file, .text = text, .begin = text->at, .heeds_processors = options->heeds_processors
	};
	assert(file->graph.count == 0);
	text->line = 1;
	const int error = read_file(&goal);
	free(goal.labels);
	free(goal.dependencies);
	return error;
}

const struct job_format job_format_goal = { "GOAL", "line", is_goal, read_goal };
