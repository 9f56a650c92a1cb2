/* See compute_times.h. */
#include "steps/compute_times.h"
#include <string.h>
#include "base/invariant.h"
#include "net/job_formats.h"
#include "net/why.h"
#include "steps/layers.h"

#define COLUMNS    "operation,shape,microseconds"
#define MOST_BYTES (1u << 20)

static const char *const operations[STEP_WORKS] = { "projections", "scores", "ffn", "experts", "output" };
static const char *const passes[2] = { "forward", "backward" };

struct shape {
	uint64_t micro_batch, tokens, tp;
};

struct reading {
	struct compute_times *times;
	struct text *text;
	const char *begin;
	struct shape shape; /* the plan's */
};

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

static unsigned column_of(const struct reading *reading, struct span word)
{
	unsigned column = 1;
	for (const char *at = word.at; at > reading->begin && at[-1] != '\n'; at--)
		column++;
	return column;
}

static int wrong(const struct reading *reading, struct span word, const char *what)
{
	return why_not(reading->text->why, reading->text->why_size, "%s:%u:%u: %.*s: %s", reading->text->name,
		reading->text->line, column_of(reading, word), SPAN(word), what);
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

static bool find_name(struct span word, const char *const *names, unsigned count, unsigned *number)
{
	for (*number = 0; *number < count; (*number)++)
		if (span_is(word, names[*number]))
			return true;
	return false;
}

/* Such as "ffn-forward". */
static bool find_operation(struct span word, unsigned *work, unsigned *pass)
{
	const char *dash = memchr(word.at, '-', word.length);
	if (!dash)
		return false;
	const struct span name = { word.at, (size_t)(dash - word.at) };
	const struct span way = { dash + 1, word.length - name.length - 1 };
	return find_name(name, operations, STEP_WORKS, work) && find_name(way, passes, 2, pass);
}

/* The number in front of the separator, or of the end. */
static bool take_number(struct span *rest, char separator, uint64_t *number)
{
	const char *end = separator ? memchr(rest->at, separator, rest->length) : rest->at + rest->length;
	if (!end || end == rest->at)
		return false;
	const struct span digits = { rest->at, (size_t)(end - rest->at) };
	rest->length -= digits.length + (separator != 0);
	rest->at = end + (separator != 0);
	return span_number(digits, UINT32_MAX, number) && *number > 0;
}

static bool read_shape(struct span word, struct shape *shape)
{
	return take_number(&word, 'x', &shape->micro_batch) && take_number(&word, '/', &shape->tokens) &&
	       take_number(&word, 0, &shape->tp);
}

static bool are_alike(const struct shape *one, const struct shape *other)
{
	return one->micro_batch == other->micro_batch && one->tokens == other->tokens && one->tp == other->tp;
}

static int read_row(struct reading *reading, struct span line)
{
	struct span operation, shape_text, time, more;
	struct shape shape;
	unsigned work, pass;
	uint64_t value;
	const struct span whole = line;
	if (!span_take(&line, ',', &operation) || !span_take(&line, ',', &shape_text) || !span_take(&line, ',', &time))
		return wrong(reading, whole, "a row is " COLUMNS);
	if (!find_operation(operation, &work, &pass))
		return wrong(reading, operation,
			"an operation is projections, scores, ffn, experts or output, with -forward or -backward");
	if (!read_shape(shape_text, &shape))
		return wrong(reading, shape_text, "a shape is micro-batch x tokens / tp, as 1x8192/8");
	if (!span_decimal(time, 1000000, COMPUTE_TIME_MOST, &value) || value < COMPUTE_TIME_LEAST)
		return wrong(reading, time, "a time is 0.001 to 1000000000 microseconds, with at most six decimals");
	if (span_take(&line, ',', &more))
		return wrong(reading, more, "a row ends with its time");
	if (!are_alike(&shape, &reading->shape))
		return 0;
	if (reading->times->of[work][pass])
		return wrong(reading, operation, "the table has it before, of the same shape");
	reading->times->of[work][pass] = value;
	return 0;
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

int compute_times_read(const struct step_plan *plan, struct text *text, struct compute_times *times)
{
	struct reading reading = { .times = times,
		.text = text,
		.begin = text->at,
		.shape = { plan->micro_batch, plan->sequence / plan->cp, plan->tp } };
	struct span line;
	*times = (struct compute_times){ 0 };
	if (job_format_chakra_json.is(text->at, (size_t)(text->end - text->at)))
		return job_format_chakra_json.read(NULL, text, NULL); /* a trace, and what to do with it */
	if (text->end - text->at > MOST_BYTES)
		return why_not(text->why, text->why_size, "%s: a table has at most 1 MiB", text->name);
	if (!text_next(text, '#', &line))
		return why_not(text->why, text->why_size, "%s: it is empty: it begins with " COLUMNS, text->name);
	int is_columns = text_is_columns(text, line, COLUMNS);
	if (is_columns <= 0)
		return wrong(
			&reading, line, "the first line is " COLUMNS ", and a Chakra trace is called PREFIX.RANK.et");
	int error = 0;
	while (!error && text_next(text, '#', &line))
		error = read_row(&reading, line);
	return error;
}

int compute_times_read_file(
	const struct step_plan *plan, const char *path, struct compute_times *times, char *why, unsigned why_size)
{
	struct text text;
	int error = text_open(&text, path, why, why_size);
	if (error)
		return error;
	error = compute_times_read(plan, &text, times);
	text_close(&text);
	return error;
}

/* ---- The plan ---------------------------------------------------------------------------------------------------- */

bool compute_times_has(const struct step_plan *plan, unsigned work)
{
	switch (work) {
	case WORK_EXPERTS:
		return plan->model.experts > 0;
	case WORK_FFN:
		return plan->model.experts == 0 || plan->model.dense_layers > 0;
	default:
		return true;
	}
}

/* As much of it as there is room for. */
static void append(char *text, unsigned size, const char *more)
{
	const size_t used = strlen(text), room = size - used - 1, length = strlen(more);
	const size_t taken = length < room ? length : room;
	memcpy(text + used, more, taken);
	text[used + taken] = 0;
}

unsigned compute_times_missing(
	const struct step_plan *plan, const struct compute_times *times, char *text, unsigned size)
{
	unsigned missing = 0;
	assert(size > 0);
	*text = 0;
	for (unsigned i = 0; i < 2 * STEP_WORKS; i++) {
		const unsigned work = i / 2, pass = i % 2;
		if (!compute_times_has(plan, work) || times->of[work][pass])
			continue;
		append(text, size, missing++ ? ", " : "");
		append(text, size, operations[work]);
		append(text, size, "-");
		append(text, size, passes[pass]);
	}
	return missing;
}

/* A backward pass has the work of two forward passes. */
void compute_times_use(struct step_plan *plan, const struct compute_times *times)
{
	for (unsigned work = 0; work < STEP_WORKS; work++)
		for (unsigned pass = 0; pass < 2 && compute_times_has(plan, work); pass++) {
			const double by_peak =
				(pass + 1) * layer_work(plan, (enum step_work)work) / (plan->tflops * plan->mfu);
			assert(times->of[work][pass] <= COMPUTE_TIME_MOST);
			plan->factors[work][pass] = (double)times->of[work][pass] / by_peak;
		}
}
