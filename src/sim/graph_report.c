/* See graph_report.h. */
#include "sim/graph_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include "os/json.h"
#include "sim/critical_path.h"
#include "sim/report.h"
#include "sim/gpu_idle.h"
#include "sim/link_name.h"
#include "sim/transfer_causes.h"
#include "sim/value.h"

enum { STEPS_TOLD = 12 };

static const struct graph *graph_of(const struct simulation *simulation)
{
	return &simulation->job_file.graph;
}

/* All that is told. */
struct account {
	const struct simulation *simulation;
	struct critical_path path;
	struct transfer_cause *causes; /* by step; NULL: they are not asked for */
	double idle;
};

static void close_account(struct account *account)
{
	critical_path_free(&account->path);
	free(account->causes);
}

static int open_account(struct account *account, const struct simulation *simulation)
{
	*account = (struct account){ .simulation = simulation };
	int rc = gpu_idle_share(simulation, &account->idle);

	if (!rc)
		rc = critical_path_find(&account->path, &simulation->graph_job);
	if (!rc && simulation->explains_job)
		rc = transfer_causes_find(simulation, &account->path, &account->causes);
	if (rc)
		close_account(account);
	return rc;
}

/* ---- Text -------------------------------------------------------------------------------------------------------- */

static vb_time length_of(const struct critical_step *step)
{
	return step->until - step->from;
}

static void put_chain(FILE *out, const struct graph_chain *chain)
{
	const struct graph_transfer *longest = &chain->longest;
	char took[32];

	value_time_text(longest->took, took, sizeof(took));
	fprintf(out, "; %" PRIu32 " messages, one after the other, the longest %s from rank %" PRIu32 " to %" PRIu32,
		chain->transfers, took, longest->from, longest->to);
}

/* What the step waited for: a rank that began later, and what delayed its message. */
static void put_causes(FILE *out, const struct account *account, uint32_t number)
{
	const struct critical_step *step = &account->path.steps[number];
	const vb_time late = critical_late(&account->simulation->graph_job, step);
	char text[300];

	if (late)
		fprintf(out, ", which began %s later", value_time_text(late, text, sizeof(text)));
	if (step->chain && step->chain->transfers)
		put_chain(out, step->chain);
	if (account->causes && account->causes[number].kind != TRANSFER_NONE)
		fprintf(out, "; %s",
			transfer_cause_text(account->simulation, &account->causes[number], text, sizeof(text)));
}

static void put_step(FILE *out, const struct account *account, uint32_t number)
{
	static const char *const causes[] = { [CRITICAL_NOTHING] = "from the beginning",
		[CRITICAL_OPERATION] = "after the one above",
		[CRITICAL_MESSAGE] = "until the message of the one above was there" };
	const struct critical_step *step = &account->path.steps[number];
	char text[200], from[32], took[32];

	fprintf(out, "  %10s  %10s  %s, %s", value_time_text(step->from, from, sizeof(from)),
		value_time_text(length_of(step), took, sizeof(took)),
		operation_text(&account->simulation->job_file, step->operation, text, sizeof(text)),
		causes[step->cause]);
	put_causes(out, account, number);
	fputc('\n', out);
}

static int by_length(const void *a, const void *b)
{
	const vb_time *x = a, *y = b;
	return (*x < *y) - (*x > *y);
}

/* The steps to tell are longer than this, and so many of those that are as long. */
struct told {
	vb_time longer;
	uint32_t equal;
};

static struct told to_tell(const struct critical_path *path, uint32_t most)
{
	vb_time *lengths = malloc((path->count + 1) * sizeof(*lengths));
	struct told told = { -1, 0 };

	for (uint32_t i = 0; lengths && i < path->count; i++)
		lengths[i] = length_of(&path->steps[i]);
	if (lengths && path->count > most) {
		qsort(lengths, path->count, sizeof(*lengths), by_length);
		told.longer = lengths[most - 1];
		for (uint32_t i = 0; i < most; i++)
			told.equal += lengths[i] == told.longer;
	}
	free(lengths);
	return told;
}

/* How long the job was in what: computations, messages, and each collective. */
static void put_parts(FILE *out, const struct simulation *simulation, const struct critical_path *path)
{
	const struct graph *graph = graph_of(simulation);
	char text[32];
	vb_time messages = path->network;

	fprintf(out, "computing %s", value_time_text(path->computing, text, sizeof(text)));
	for (uint32_t kind = 0; kind < graph->collective_count; kind++) {
		vb_time sum = 0;
		for (uint32_t i = 0; i < path->count; i++) {
			const struct graph_operation *its = &graph->operations[path->steps[i].operation];
			if (its->kind == GRAPH_COLLECTIVE && its->collective == kind)
				sum += length_of(&path->steps[i]);
		}
		messages -= sum;
		if (sum)
			fprintf(out, ", %s %s", graph->collectives[kind].kind,
				value_time_text(sum, text, sizeof(text)));
	}
	if (messages)
		fprintf(out, ", messages %s", value_time_text(messages, text, sizeof(text)));
}

static void put_unfinished(FILE *out, const struct simulation *simulation)
{
	char text[200];
	uint32_t count;
	const uint32_t first = graph_job_unfinished(&simulation->graph_job, &count);

	if (first != GRAPH_NONE)
		fprintf(out, "%" PRIu32 " operation%s never ended, the first: %s\n", count, count == 1 ? "" : "s",
			operation_text(&simulation->job_file, first, text, sizeof(text)));
}

int graph_report_text(FILE *out, const struct simulation *simulation, bool all)
{
	struct account account;
	const struct critical_path *path = &account.path;
	char end[32];
	int rc = open_account(&account, simulation);

	if (rc)
		return rc;
	struct told told = to_tell(path, all ? UINT32_MAX : STEPS_TOLD);
	fprintf(out, "job (%s): %" PRIu32 " ranks, %" PRIu32 " operations, %s at %s; GPUs idle %.1f%%\n",
		simulation->job_file.format, graph_of(simulation)->ranks, graph_of(simulation)->count,
		report_end(simulation) == FABRIC_DONE   ? "done"
		: simulation->result.end == FABRIC_DONE ? "not done: the last that ended"
							: "cut",
		value_time_text(job_time(simulation), end, sizeof(end)), 100 * account.idle);
	put_unfinished(out, simulation);
	fprintf(out, "\ncritical path: %" PRIu32 " operation%s, ", path->count, path->count == 1 ? "" : "s");
	put_parts(out, simulation, path);
	fputs(told.longer < 0 ? "\n" : "; those that took longest (--explain job has all)\n", out);
	for (uint32_t i = 0; i < path->count; i++) {
		const vb_time length = length_of(&path->steps[i]);
		const bool is_equal = length == told.longer && told.equal > 0;
		told.equal -= is_equal;
		if (length > told.longer || is_equal)
			put_step(out, &account, i);
	}
	close_account(&account);
	return 0;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* Of a collective: how many messages it waited for, one after the other, and which of them took longest. */
static void put_chain_json(FILE *out, const struct graph_chain *chain)
{
	fprintf(out, ", \"messages\": %" PRIu32, chain->transfers);
	if (chain->transfers)
		fprintf(out,
			", \"longest\": {\"from\": %" PRIu32 ", \"to\": %" PRIu32 ", \"sent_ps\": %" PRId64
			", \"took_ps\": %" PRId64 "}",
			chain->longest.from, chain->longest.to, chain->longest.sent, chain->longest.took);
}

static void put_link_json(FILE *out, const struct simulation *simulation, const char *name, uint32_t link)
{
	char text[64];

	fprintf(out, ", \"%s\": ", name);
	if (link == NETWORK_NONE)
		fputs("null", out);
	else
		vb_json_string(out, link_text(&simulation->network, link, text, sizeof(text)));
}

static void put_transfer_json(FILE *out, const struct simulation *simulation, const struct transfer_cause *cause)
{
	fprintf(out,
		"{\"kind\": \"%s\", \"from\": %" PRIu32 ", \"to\": %" PRIu32 ", \"sent_ps\": %" PRId64
		", \"took_ps\": %" PRId64,
		transfer_kind_name(cause->kind), cause->of.from, cause->of.to, cause->of.sent, cause->of.took);
	put_link_json(out, simulation, "link", cause->link);
	fprintf(out,
		", \"is_only_way\": %s, \"queueing_ps\": %" PRId64 ", \"paused_ps\": %" PRId64 ", \"missing\": %" PRIu64
		", \"load\": %.4f",
		cause->is_sure ? "true" : "false", cause->queueing, cause->paused, cause->missing, cause->load);
	put_link_json(out, simulation, "stopped_by", cause->stopper);
	if (cause->beside_bytes)
		fprintf(out, ", \"beside\": {\"rank\": %" PRIu32 ", \"bytes\": %" PRIu64 "}", cause->beside,
			cause->beside_bytes);
	fputc('}', out);
}

/* A rank that began later is told always, what links did if it was asked for. */
static void put_cause_json(FILE *out, const struct account *account, uint32_t number)
{
	const struct graph_job *job = &account->simulation->graph_job;
	const struct critical_step *step = &account->path.steps[number];
	const vb_time late = critical_late(job, step);

	fputs(", \"cause\": ", out);
	if (late)
		fprintf(out, "{\"kind\": \"straggler\", \"rank\": %" PRIu32 ", \"late_ps\": %" PRId64 "}",
			job->graph->operations[job->records[step->operation].let_end].rank, late);
	else if (account->causes && account->causes[number].kind != TRANSFER_NONE)
		put_transfer_json(out, account->simulation, &account->causes[number]);
	else
		fputs("null", out);
}

static void put_step_json(FILE *out, const struct account *account, uint32_t number)
{
	static const char *const causes[] = {
		[CRITICAL_NOTHING] = "nothing", [CRITICAL_OPERATION] = "operation", [CRITICAL_MESSAGE] = "message"
	};
	const struct simulation *simulation = account->simulation;
	const struct critical_step *step = &account->path.steps[number];
	const struct graph_operation *its = &graph_of(simulation)->operations[step->operation];

	fprintf(out,
		"{\"rank\": %" PRIu32 ", \"kind\": \"%s\", \"%s\": %" PRIu32 ", \"from_ps\": %" PRId64
		", \"until_ps\": %" PRId64 ", \"waited_for\": \"%s\"",
		its->rank, operation_kind(its), simulation->job_file.where_is,
		simulation->job_file.where[step->operation], step->from, step->until, causes[step->cause]);
	if (step->chain)
		put_chain_json(out, step->chain);
	put_cause_json(out, account, number);
	fputc('}', out);
}

int graph_report_json(FILE *out, const struct simulation *simulation, const char *indent)
{
	const struct graph *graph = graph_of(simulation);
	struct account account;
	uint32_t unfinished;
	int rc = open_account(&account, simulation);

	if (rc)
		return rc;
	graph_job_unfinished(&simulation->graph_job, &unfinished);
	fprintf(out, ",\n%s  \"job\": {\"format\": ", indent);
	vb_json_string(out, simulation->job_file.format);
	fprintf(out,
		", \"ranks\": %" PRIu32 ", \"operations\": %" PRIu32 ", \"unfinished\": %" PRIu32
		", \"gpu_idle_share\": %.6f,\n%s    \"notes\": [",
		graph->ranks, graph->count, unfinished, account.idle, indent);
	for (unsigned i = 0; i < simulation->job_file.note_count; i++) {
		fputs(i ? ", " : "", out);
		vb_json_string(out, simulation->job_file.notes[i]);
	}
	fprintf(out, "],\n%s    \"critical_path\": [", indent);
	for (uint32_t i = 0; i < account.path.count; i++) {
		fprintf(out, "%s\n%s      ", i ? "," : "", indent);
		put_step_json(out, &account, i);
	}
	fprintf(out, "]}");
	close_account(&account);
	return 0;
}

/* ---- A line an operation ----------------------------------------------------------------------------------------- */

void graph_report_csv(FILE *out, const struct simulation *simulation)
{
	const struct graph *graph = graph_of(simulation);

	fprintf(out, "rank,%s,kind,stream,bytes,peer,begin_ps,end_ps\n", simulation->job_file.where_is);
	for (uint32_t i = 0; i < graph->count; i++) {
		const struct graph_operation *its = &graph->operations[i];
		const struct graph_record *record = &simulation->graph_job.records[i];
		const bool has_peer = its->kind == GRAPH_SEND || its->kind == GRAPH_RECEIVE;
		fprintf(out, "%" PRIu32 ",%" PRIu32 ",%s,", its->rank, simulation->job_file.where[i],
			operation_kind(its));
		if (its->stream != GRAPH_NO_STREAM)
			fprintf(out, "%u", its->stream);
		fprintf(out, ",%" PRIu64 ",", its->kind == GRAPH_COMPUTE ? 0 : its->bytes);
		if (has_peer && its->peer != GRAPH_ANY)
			fprintf(out, "%" PRIu32, its->peer);
		fprintf(out, ",%" PRId64 ",%" PRId64 "\n", record->begin, record->end);
	}
}
