/* Workload text of AICB and SimAI (aliyun/aicb writes it, aliyun/SimAI reads it in Workload.cc):
 *
 *   HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 vpp: 8 ga: 1 all_gpus: 128 ...
 *   2
 *   embedding  -1  1       ALLREDUCE  20971520  1       ALLREDUCE  20971520  1       NONE  0  100
 *   attention  -1  752000  ALLREDUCE  20971520  752000  ALLREDUCE  20971520  752000  NONE  0  100
 *
 * The second line counts those below it. Each has a name, a number that nobody reads, then a time, a communication and
 * its bytes for each of three passes: forward, the gradient of the input, that of the weights. Last comes the time of
 * an update. All ranks do the same, one pass of all lines: down for the forward pass, then up for the gradients. A
 * communication blocks what comes after it, but for that of the weights' gradient, which only the next step's forward
 * pass would wait for. Micro-batches are unrolled in the lines. MICRO has communications of weights' gradients alone.
 *
 * ASTRA-sim 1.0's text looks the same and has microseconds (mlcommons/chakra, text_converter.py). Of it DATA and MODEL
 * are read; what needs the dimensions of a network, which the text does not have, is refused.
 *
 * Ranks are numbered as Megatron does: tensor parallel ones are neighbours, pipeline stages are outermost. Each stage
 * runs all lines, because AICB writes those of one stage. Bytes are those of the whole tensor, also for all-gather. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "net/aicb.h"
#include "net/flow_text.h"
#include "net/grow.h"
#include "net/job_formats.h"

enum { COLUMNS = 12 };

static const struct dialect {
	const char *name;
	enum aicb_order order;
	vb_time unit;           /* of times */
	uint64_t least_forward; /* of bytes: smaller communications of the forward pass have so many (Workload.cc) */
} dialects[] = {
	{ "HYBRID_TRANSFORMER_FWD_IN_BCKWD", TRANSFORMER, VB_NS, 4096 },
	{ "HYBRID_TRANSFORMER", TRANSFORMER, VB_NS, 0 },
	{ "MICRO", MICRO, VB_NS, 0 },
	{ "DATA", DATA, VB_US, 0 },
	{ "MODEL", MODEL, VB_US, 0 },
	{ "HYBRID_DATA_MODEL", NEEDS_DIMENSIONS, VB_US, 0 },
	{ "HYBRID_MODEL_DATA", NEEDS_DIMENSIONS, VB_US, 0 },
	{ "HYBRID_DLRM", NEEDS_DIMENSIONS, VB_US, 0 },
	{ "HYBRID_DLRM_ENHANCED", NEEDS_DIMENSIONS, VB_US, 0 },
	{ "HYBRID_CUSTOMIZED", NEEDS_DIMENSIONS, VB_US, 0 },
	{ "DISTRIBUTED_INFERENCE", NEEDS_DIMENSIONS, VB_US, 0 },
};

struct reading {
	struct aicb aicb;
	struct job_file *file;
	struct text *text;
	const struct job_file_options *options;
	const struct dialect *dialect;
};

/* ---- The head ---------------------------------------------------------------------------------------------------- */

static const struct dialect *find_dialect(struct span word)
{
	for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++)
		if (strlen(dialects[i].name) == word.length && memcmp(dialects[i].name, word.at, word.length) == 0)
			return &dialects[i];
	return NULL;
}

enum head { TP_SIZE, EP_SIZE, PP_SIZE, VPP, GA, ALL, CHECKPOINTS, INITIATES, PP_BYTES, MODE, HEADS };

static const struct {
	const char *name, *also;
	uint64_t max;
} heads[HEADS] = {
	[TP_SIZE] = { "model_parallel_NPU_group", NULL, AICB_MOST_RANKS },
	[EP_SIZE] = { "ep", "expert_parallel_npu_group", AICB_MOST_RANKS },
	[PP_SIZE] = { "pp", NULL, AICB_MOST_RANKS },
	[VPP] = { "vpp", NULL, UINT32_MAX },
	[GA] = { "ga", NULL, UINT32_MAX },
	[ALL] = { "all_gpus", NULL, AICB_MOST_RANKS },
	[CHECKPOINTS] = { "checkpoints", NULL, 0 },
	[INITIATES] = { "checkpoint_initiates", NULL, 0 },
	[PP_BYTES] = { "pp_comm", NULL, FLOW_MOST_BYTES },
	[MODE] = { "mode", NULL, 1 },
};

/* The name that stands in the head, with a colon or without. */
static enum head find_head(struct span word)
{
	if (word.length && word.at[word.length - 1] == ':')
		word.length--;
	for (int head = 0; head < HEADS; head++)
		if (span_is(word, heads[head].name) || (heads[head].also && span_is(word, heads[head].also)))
			return (enum head)head;
	return HEADS;
}

static int take_heads(const struct text *text, struct span *line, uint64_t value[HEADS], bool has[HEADS])
{
	struct span name, number = { .at = "" };
	while (span_take(line, 0, &name)) {
		const enum head head = find_head(name);
		if (head == HEADS)
			return text_wrong(text, "the head has %.*s, which is not known", SPAN(name));
		if (has[head])
			return text_wrong(text, "the head has %s twice", heads[head].name);
		if (!span_take(line, 0, &number) || !span_number(number, UINT64_MAX, &value[head]))
			return text_wrong(text, "%s needs a number, not '%.*s'", heads[head].name, SPAN(number));
		if (value[head] > heads[head].max && heads[head].max == 0)
			return text_wrong(text, "%s %llu: forward passes that are run again are not there yet",
				heads[head].name, (unsigned long long)value[head]);
		if (value[head] > heads[head].max)
			return text_wrong(text, "%s is %llu, above %llu", heads[head].name,
				(unsigned long long)value[head], (unsigned long long)heads[head].max);
		has[head] = true;
	}
	return 0;
}

/* Without a size, SimAI takes all (Sys.cc). ASTRA-sim's DATA and MICRO have no tensor parallel ranks, MODEL no others.
 */
static uint64_t tensor_parallel(const struct reading *reading, const uint64_t value[HEADS], uint64_t all)
{
	switch (reading->aicb.order) {
	case TRANSFORMER:
		return value[TP_SIZE] ? value[TP_SIZE] : all;
	case MODEL:
		return all;
	case MICRO:
	case DATA:
	case NEEDS_DIMENSIONS:
		break;
	}
	return 1;
}

/* All that the head says of the numbers of ranks holds together, and the network has so many. */
static int shape_ranks(struct reading *reading, const uint64_t value[HEADS], const bool has[HEADS])
{
	const struct text *text = reading->text;
	const uint32_t network = reading->options ? reading->options->gpus : 0;
	const unsigned long long all = has[ALL] ? value[ALL] : network, pp = value[PP_SIZE] ? value[PP_SIZE] : 1;
	if (all == 0)
		return text_wrong(text, "the head has no all_gpus, and how many there are is not known");
	if (network && all > network)
		return text_wrong(text, "all_gpus is %llu, yet the network has %u", all, network);
	if (all > AICB_MOST_RANKS)
		return text_wrong(text, "%llu GPUs, above %d", all, AICB_MOST_RANKS);
	const unsigned long long tp = tensor_parallel(reading, value, all);
	if (all % (tp * pp))
		return text_wrong(text,
			"%llu GPUs are no multiple of %llu (model_parallel_NPU_group %llu times pp %llu)", all, tp * pp,
			tp, pp);
	const unsigned long long dp = all / (tp * pp), ep = value[EP_SIZE] ? value[EP_SIZE] : 1;
	if (dp % ep)
		return text_wrong(
			text, "ep %llu does not divide %llu (%llu GPUs over %llu times %llu)", ep, dp, all, tp, pp);
	reading->aicb.shape = (struct aicb_shape){ .all = (uint32_t)all,
		.tp = (uint32_t)tp,
		.dp = (uint32_t)dp,
		.pp = (uint32_t)pp,
		.ep = (uint32_t)ep,
		.has_experts = has[EP_SIZE] };
	return 0;
}

static void note_head(struct reading *reading, const uint64_t value[HEADS])
{
	struct job_file *file = reading->file;
	if (reading->dialect->unit == VB_US)
		job_file_note(
			file, "%s is ASTRA-sim 1.0's: its times are taken as microseconds", reading->dialect->name);
	if (reading->aicb.order == TRANSFORMER && !value[TP_SIZE])
		job_file_note(file, "the head has no model_parallel_NPU_group: all ranks are one group, as in SimAI");
	if (reading->aicb.shape.pp > 1)
		job_file_note(file,
			"transfers between the %u pipeline stages (%llu bytes) are not modelled: each stage runs all "
			"lines",
			reading->aicb.shape.pp, (unsigned long long)value[PP_BYTES]);
	if (reading->aicb.order == MICRO)
		job_file_note(file, "MICRO: only the communication of weights' gradients is run, line by line");
}

static int read_head(struct reading *reading)
{
	struct text *text = reading->text;
	struct span line, word;
	uint64_t value[HEADS] = { 0 };
	bool has[HEADS] = { false };
	if (!text_next(text, 0, &line) || !span_take(&line, 0, &word) || !(reading->dialect = find_dialect(word)))
		return text_wrong(
			text, "the first word is none of HYBRID_TRANSFORMER_FWD_IN_BCKWD, MICRO, DATA, MODEL");
	reading->aicb.order = reading->dialect->order;
	if (reading->aicb.order == NEEDS_DIMENSIONS)
		return text_wrong(text,
			"%s is not supported: which ranks communicate depends on the dimensions of ASTRA-sim's network",
			reading->dialect->name);
	int error = take_heads(text, &line, value, has);
	if (!error)
		error = shape_ranks(reading, value, has);
	if (!error)
		note_head(reading, value);
	return error;
}

/* ---- Lines ------------------------------------------------------------------------------------------------------- */

static const char *const pass_names[PASSES] = { "forward", "input gradient", "weight gradient" };

/* "_EP" and "_DP_EP" say which ranks; else they are the tensor parallel ones, and for weights the data parallel ones.
 */
static bool take_members(struct span *word, enum aicb_pass pass, enum aicb_members *members)
{
	static const struct {
		const char *suffix;
		enum aicb_members members;
	} suffixes[] = { { "_DP_EP", DP_EP }, { "_EP", EP } };
	*members = pass == WEIGHT ? DP : TP;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		const size_t length = strlen(suffixes[i].suffix);
		if (word->length <= length)
			continue;
		const struct span end = { .at = word->at + word->length - length, .length = length };
		if (!span_is(end, suffixes[i].suffix))
			continue;
		word->length -= length;
		*members = suffixes[i].members;
		return true;
	}
	return false;
}

static const char *find_kind(struct span word)
{
	static const struct {
		const char *word, *kind;
	} kinds[] = { { "ALLREDUCE", "allreduce" }, { "ALLGATHER", "all-gather" },
		{ "REDUCESCATTER", "reduce-scatter" }, { "ALLTOALL", "alltoall" } };
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (span_is(word, kinds[i].word)) {
			assert(collective_is_kind(kinds[i].kind));
			return kinds[i].kind;
		}
	return NULL;
}

static int unknown(const struct reading *reading, unsigned column, struct span word)
{
	return text_wrong(reading->text,
		"column %u: '%.*s' is no communication: expected NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL, "
		"or one of these with _EP or _DP_EP",
		column, SPAN(word));
}

static int read_communication(const struct reading *reading, struct span word, unsigned column, enum aicb_pass pass,
	struct aicb_communication *communication)
{
	struct span stem = word;
	if (span_is(word, "NONE")) {
		communication->bytes = 0;
		return 0;
	}
	if (span_is(word, "BROADCAST")) { /* SimAI knows no such kind, and so does nothing */
		job_file_note(reading->file, "BROADCAST is ignored, as SimAI does");
		communication->bytes = 0;
		return 0;
	}
	const bool has_suffix = take_members(&stem, pass, &communication->members);
	communication->kind = find_kind(stem);
	if (!communication->kind)
		return unknown(reading, column, word);
	if (has_suffix && !reading->aicb.shape.has_experts)
		return text_wrong(reading->text, "column %u: %.*s, yet the head has no ep", column, SPAN(word));
	if (communication->bytes == 0)
		job_file_note(reading->file, "communications of 0 bytes are left out");
	else if (pass == FORWARD && communication->bytes < reading->dialect->least_forward)
		communication->bytes = reading->dialect->least_forward;
	return 0;
}

static int read_time(const struct reading *reading, struct span word, unsigned column, vb_time *time)
{
	const vb_time unit = reading->dialect->unit;
	uint64_t count;
	if (!span_number(word, VB_HORIZON / (uint64_t)unit, &count))
		return text_wrong(reading->text, "column %u: '%.*s' is no whole number of %s up to a day", column,
			SPAN(word), unit == VB_NS ? "ns" : "us");
	*time = (vb_time)count * unit;
	return 0;
}

static int read_pass(
	const struct reading *reading, const struct span words[COLUMNS], enum aicb_pass pass, struct aicb_line *line)
{
	const unsigned column = 2 + 3 * (unsigned)pass;
	struct aicb_communication *communication = &line->communication[pass];
	int error = read_time(reading, words[column], column + 1, &line->time[pass]);
	if (!error && !span_number(words[column + 2], FLOW_MOST_BYTES, &communication->bytes))
		error = text_wrong(reading->text, "column %u: '%.*s' is no number of bytes up to 2^44", column + 3,
			SPAN(words[column + 2]));
	return error ? error : read_communication(reading, words[column + 1], column + 2, pass, communication);
}

/* What a dialect does not run: MICRO has no times, and not in all passes do ranks communicate (ASTRA-sim 1.0:
 * decode_involved_dimensions). */
static void leave_out(const struct reading *reading, struct aicb_line *line)
{
	static const bool communicates[][PASSES] = {
		[TRANSFORMER] = { true, true, true },
		[MICRO] = { false, false, true },
		[DATA] = { false, false, true },
		[MODEL] = { true, true, false },
	};
	const enum aicb_order order = reading->aicb.order;
	for (int pass = 0; pass < PASSES; pass++) {
		if (order == MICRO)
			line->time[pass] = 0;
		if (communicates[order][pass] || !line->communication[pass].bytes)
			continue;
		line->communication[pass].bytes = 0;
		job_file_note(reading->file, "%s: communication of the %s is ignored, as ASTRA-sim does",
			reading->dialect->name, pass_names[pass]);
	}
}

static int take_columns(const struct reading *reading, struct span rest, struct span words[COLUMNS])
{
	unsigned count = 0;
	struct span word;
	while (span_take(&rest, 0, &word)) {
		if (count < COLUMNS)
			words[count] = word;
		count++;
	}
	if (count == COLUMNS)
		return 0;
	return text_wrong(reading->text,
		"%u columns, not %d: name, -1, then time, communication and bytes for each of "
		"forward, input gradient, weight gradient, and the update's time",
		count, COLUMNS);
}

static int read_line(struct reading *reading, struct span rest)
{
	struct span words[COLUMNS];
	struct aicb_line line = { .number = reading->text->line };
	vb_time update = 0;
	uint64_t depends;
	int error = take_columns(reading, rest, words);
	if (error)
		return error;
	struct span number = words[1];
	if (number.length > 1 && *number.at == '-')
		number = (struct span){ .at = number.at + 1, .length = number.length - 1 };
	if (!span_number(number, INT32_MAX, &depends))
		return text_wrong(reading->text, "column 2: '%.*s' is no number", SPAN(words[1]));
	for (int pass = 0; !error && pass < PASSES; pass++)
		error = read_pass(reading, words, (enum aicb_pass)pass, &line);
	if (!error)
		error = read_time(reading, words[COLUMNS - 1], COLUMNS, &update);
	if (error)
		return error;
	if (update)
		job_file_note(reading->file, "times of updates (column 12) are not modelled");
	leave_out(reading, &line);
	if (!grow_by_one(&reading->aicb.lines, &reading->aicb.room, reading->aicb.count, sizeof(*reading->aicb.lines)))
		return -ENOMEM;
	reading->aicb.lines[reading->aicb.count++] = line;
	return 0;
}

static int read_lines(struct reading *reading)
{
	struct text *text = reading->text;
	struct span line, word = { .at = "" };
	uint64_t claimed;
	if (!text_next(text, 0, &line) || !span_take(&line, 0, &word) || !span_number(word, UINT32_MAX, &claimed) ||
		line.length)
		return text_wrong(text, "expected the number of lines, and no more");
	const uint32_t where = text->line;
	int error = 0;
	while (!error && text_next(text, 0, &line))
		error = read_line(reading, line);
	if (error || reading->aicb.count == claimed)
		return error;
	text->line = where;
	return text_wrong(text, "%llu lines, yet there are %u", (unsigned long long)claimed, reading->aicb.count);
}

/* Before memory is taken for them. */
static int bound_operations(const struct reading *reading)
{
	const unsigned long long each = aicb_operations_each(&reading->aicb), all = each * reading->aicb.shape.all;
	if (all <= GROW_MOST)
		return 0;
	return text_wrong(reading->text, "%u ranks of %llu operations are %llu, and a job has at most %d",
		reading->aicb.shape.all, each, all, GROW_MOST);
}

/* ---- The format -------------------------------------------------------------------------------------------------- */

static bool is_aicb(const char *bytes, size_t length)
{
	size_t end = 0;
	while (end < length && bytes[end] != ' ' && bytes[end] != '\t' && bytes[end] != '\r' && bytes[end] != '\n')
		end++;
	return find_dialect((struct span){ .at = bytes, .length = end }) != NULL;
}

static int read_aicb(struct job_file *file, struct text *text, const struct job_file_options *options)
{
	struct reading reading = { .file = file, .text = text, .options = options };
	int error = read_head(&reading);
	if (!error)
		error = read_lines(&reading);
	if (!error)
		error = bound_operations(&reading);
	if (!error)
		error = aicb_add(&reading.aicb, file);
	free(reading.aicb.lines);
	return error;
}

const struct job_format job_format_aicb = { "AICB", "line", is_aicb, read_aicb };
