/* See compute_times.h. */
#include "steps/compute_times.h"
#include <stdio.h>
#include <string.h>
#include "net/why.h"
#include "steps/layers.h"

#define COLUMNS    "operation,shape,microseconds"
#define MOST_BYTES (1u << 20)
#define MOST_TIME  1000000000000000u /* picoseconds of an operation: a quarter of an hour */
#define LEAST_TIME 1000u

static const char *const operations[STEP_WORKS] = { "projections", "scores", "ffn", "experts", "output" };
static const char *const passes[2] = { "forward", "backward" };

struct reading {
	struct step_plan *plan;
	struct text *text;
	const char *begin;
	char shape[48];
	bool is_found[STEP_WORKS][2];
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

static bool find_operation(struct span word, unsigned *work, unsigned *pass)
{
	char name[32];
	for (*work = 0; *work < STEP_WORKS; (*work)++)
		for (*pass = 0; *pass < 2; (*pass)++) {
			snprintf(name, sizeof(name), "%s-%s", operations[*work], passes[*pass]);
			if (span_is(word, name))
				return true;
		}
	return false;
}

/* The number in front of the separator, or of the end. */
static bool take_number(struct span *rest, char separator)
{
	struct span number = { rest->at, 0 };
	uint64_t value;
	while (number.length < rest->length && number.at[number.length] >= '0' && number.at[number.length] <= '9')
		number.length++;
	if (!span_number(number, UINT32_MAX, &value) || value == 0)
		return false;
	rest->at += number.length;
	rest->length -= number.length;
	if (!separator)
		return rest->length == 0;
	if (rest->length == 0 || *rest->at != separator)
		return false;
	rest->at++;
	rest->length--;
	return true;
}

static bool is_shape(struct span word)
{
	return take_number(&word, 'x') && take_number(&word, '/') && take_number(&word, 0);
}

/* A backward pass has the work of two forward passes. */
static void set_factor(struct reading *reading, unsigned work, unsigned pass, uint64_t time)
{
	struct step_plan *plan = reading->plan;
	const double by_peak = (pass + 1) * layer_work(plan, (enum step_work)work) / (plan->tflops * plan->mfu);
	plan->factors[work][pass] = (double)time / by_peak;
	reading->is_found[work][pass] = true;
}

static int read_row(struct reading *reading, struct span line)
{
	struct span operation, shape, time, more;
	unsigned work, pass;
	uint64_t value;
	const struct span whole = line;
	if (!span_take(&line, ',', &operation) || !span_take(&line, ',', &shape) || !span_take(&line, ',', &time))
		return wrong(reading, whole, "a row is " COLUMNS);
	if (!find_operation(operation, &work, &pass))
		return wrong(reading, operation,
			"an operation is projections, scores, ffn, experts or output, with -forward or -backward");
	if (!is_shape(shape))
		return wrong(reading, shape, "a shape is micro-batch x tokens / tp, as 1x8192/8");
	if (!span_decimal(time, 1000000, MOST_TIME, &value) || value < LEAST_TIME)
		return wrong(reading, time, "a time is 0.001 to 1000000000 microseconds, with at most six decimals");
	if (span_take(&line, ',', &more))
		return wrong(reading, more, "a row ends with its time");
	if (!span_is(shape, reading->shape))
		return 0;
	if (reading->is_found[work][pass])
		return wrong(reading, operation, "the table has it before, of the same shape");
	set_factor(reading, work, pass, value);
	return 0;
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

static bool is_needed(const struct step_plan *plan, unsigned work)
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

static int check_all_found(const struct reading *reading)
{
	for (unsigned work = 0; work < STEP_WORKS; work++)
		for (unsigned pass = 0; pass < 2; pass++)
			if (is_needed(reading->plan, work) && !reading->is_found[work][pass])
				return why_not(reading->text->why, reading->text->why_size,
					"%s: it has no time of %s-%s of shape %s: add a row, or leave compute-times "
					"out",
					reading->text->name, operations[work], passes[pass], reading->shape);
	return 0;
}

int compute_times_read(struct step_plan *plan, struct text *text)
{
	struct reading reading = { .plan = plan, .text = text, .begin = text->at };
	struct span line;
	if (text->end - text->at > MOST_BYTES)
		return why_not(text->why, text->why_size, "%s: a table has at most 1 MiB", text->name);
	snprintf(reading.shape, sizeof(reading.shape), "%ux%u/%u", plan->micro_batch, plan->sequence / plan->cp,
		plan->tp);
	if (!text_next(text, '#', &line))
		return why_not(text->why, text->why_size, "%s: it is empty: it begins with " COLUMNS, text->name);
	int is_columns = text_is_columns(text, line, COLUMNS);
	if (is_columns <= 0)
		return wrong(&reading, line, "the first line is " COLUMNS);
	int error = 0;
	while (!error && text_next(text, '#', &line))
		error = read_row(&reading, line);
	return error ? error : check_all_found(&reading);
}

int compute_times_read_file(struct step_plan *plan, const char *path, char *why, unsigned why_size)
{
	struct text text;
	int error = text_open(&text, path, why, why_size);
	if (error)
		return error;
	error = compute_times_read(plan, &text);
	text_close(&text);
	return error;
}
