/* See collective_table.h. */
#include "sim/collective_table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net/collectives.h"
#include "sim/ideal.h"
#include "sim/job.h"
#include "sim/nccl_choice.h"
#include "sim/output.h"
#include "sim/report.h"
#include "sim/session.h"
#include "sim/table_checks.h"

#define MOST_BYTES ((uint64_t)1 << 40)
#define TYPE_BYTES 4 /* nccl-tests' float */

struct sizes {
	uint64_t first, last;
};

struct row {
	const char *kind;
	struct job_bandwidth is;
	double law_us;
	struct nccl_choice chosen;
	bool is_chosen;
};

struct table {
	const struct sim_options *options;
	FILE *csv;                     /* NULL: not asked for */
	double alpha_us, bytes_per_us; /* of the closed form */
	unsigned rows;                 /* that were printed */
	unsigned row_count;            /* that there are */
	struct table_checks checks;
};

/* A number, and K, M or G, which are 2^10, 2^20 and 2^30 as in nccl-tests. */
static const char *read_size(const char *text, uint64_t *bytes)
{
	static const char letters[] = "KMG";
	char *end;

	if (*text < '0' || *text > '9')
		return NULL;
	unsigned long long number = strtoull(text, &end, 10);
	const char *letter = *end ? strchr(letters, *end) : NULL;
	unsigned shift = letter ? 10 * (unsigned)(letter - letters + 1) : 0;
	if (number == 0 || number > MOST_BYTES >> shift)
		return NULL;
	*bytes = (uint64_t)number << shift;
	return letter ? end + 1 : end;
}

static bool read_sizes(const char *text, struct sizes *sizes)
{
	const char *end = read_size(text, &sizes->first);

	sizes->last = sizes->first;
	if (end && strncmp(end, "..", 2) == 0)
		end = read_size(end + 2, &sizes->last);
	return end && !*end && sizes->first <= sizes->last;
}

static int refuse(const char *text)
{
	fprintf(stderr, "verbena sim: %s\n", text);
	return SIM_EXIT_USAGE;
}

static int open_row(struct session *session, const struct sim_options *options, uint64_t bytes)
{
	struct sim_options of = *options;

	of.collective.bytes = bytes;
	return session_open(session, options->arguments[0], &of, NULL, 0);
}

__attribute__((format(printf, 2, 3))) static void say_of_row(uint64_t bytes, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "verbena sim: %" PRIu64 " byte%s: ", bytes, bytes == 1 ? "" : "s");
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
}

/* Says of a run that did not go well what became of it: nobody else does. */
static int tell_trouble(const struct session *session, uint64_t bytes)
{
	const struct simulation *simulation = &session->simulation;
	const struct fabric_result *result = &simulation->result;
	const enum fabric_end end = report_end(simulation);
	char at[32];

	if (end != FABRIC_DONE)
		say_of_row(bytes, "%s, at %s%s: no larger one is run", report_end_text(simulation, end),
			value_time_text(result->ended_at, at, sizeof(at)), end == FABRIC_LIMIT ? " (run.limit)" : "");
	if (result->lossless_drops)
		say_of_row(bytes, "%" PRIu64 " drops in a lossless class", result->lossless_drops);
	if (result->flows_failed)
		say_of_row(
			bytes, "%" PRIu64 " of %" PRIu64 " messages failed", result->flows_failed, result->flows_done);
	return session_status(session);
}

/* has_time: the run has ended, and its time may be told; with drops that should not be, or a check that was
 * interrupted, the status is another. */
static int run_open_row(struct session *session, const struct sim_options *options, uint64_t bytes, bool *has_time)
{
	int status = session_run(session, options);

	*has_time = false;
	if (status)
		return status;
	status = tell_trouble(session, bytes);
	*has_time = report_end(&session->simulation) == FABRIC_DONE && !session->simulation.result.flows_failed;
	return status;
}

/* The payload's rate that a rank has for this collective: on the first endpoint's link, on those of all NICs that have
 * a part, or in the scale-up domain if that is all there is. */
static double payload_rate(const struct simulation *simulation, const struct collective *of)
{
	const struct hosts *hosts = &simulation->hosts;
	struct collective large = *of;

	large.bytes = MOST_BYTES; /* one byte is no more than one part's */
	if (hosts->gpus && simulation_ranks(simulation) <= hosts->gpus)
		return (double)hosts->scale_up / 8e6;
	return ideal_payload_rate(simulation, simulation->network.endpoints[0].link) / 1e6 *
	       collective_parts(&large, hosts) / hosts->ports;
}

/* By edges: the most bytes that a GPU's port in its host has one way, of all parts together. A copy leaves with another
 * message, and a part of a sum arrives with others. */
static uint64_t busiest_port(const struct simulation *simulation, const struct collective *whole, uint64_t *bytes)
{
	const struct hosts *hosts = &simulation->hosts;
	struct collective_edge edges[COLLECTIVE_EDGES];
	uint64_t most = 0;

	for (uint32_t i = 0; i < collective_parts(whole, hosts); i++) {
		const struct collective of = collective_part_of(whole, hosts, i);
		for (uint32_t place = 0; place < of.ranks; place++)
			for (uint32_t k = collective_find(&of)->edges(&of, place, edges); k-- > 0;) {
				const uint32_t from = collective_rank_at(&of, place), to = edges[k].to;
				if (place / of.gpus != to / of.gpus)
					continue;
				bytes[2 * from] += edges[k].is_copy ? 0 : edges[k].bytes;
				for (uint32_t copy = 0; copy < collective_copies(&of, &edges[k]); copy++)
					bytes[2 * collective_rank_at(&of, to + copy) + 1] +=
						edges[k].is_of_sum ? 0 : edges[k].bytes;
			}
	}
	for (uint32_t i = 0; i < 2 * whole->ranks; i++)
		most = bytes[i] > most ? bytes[i] : most;
	return most;
}

/* The time of what the busiest port has; 0: the collective is none by edges over hosts with GPUs. */
static double ports_us(const struct simulation *simulation, const struct collective *of)
{
	if (!collective_find(of)->edges || of->gpus < 2)
		return 0;
	uint64_t *bytes = calloc(2 * (size_t)of->ranks, sizeof(*bytes));
	const uint64_t most = bytes ? busiest_port(simulation, of, bytes) : 0;
	free(bytes);
	return (double)most / ((double)simulation->hosts.scale_up / 8e6);
}

/* How long a pipeline takes to fill with a part's first piece, without contention. */
static double fill_us(const struct simulation *simulation, const struct collective *of)
{
	const struct hosts *hosts = &simulation->hosts;
	const struct collective part = collective_part_of(of, hosts, 0);
	const struct collective_law law = collective_law(&part);
	const double nic = ideal_payload_rate(simulation, simulation->network.endpoints[0].link) / 1e6;

	return collective_law_fill(&law, (double)hosts->scale_up / 8e6, nic / hosts->ports);
}

static double law_us(const struct table *table, const struct simulation *simulation, const struct collective *of)
{
	const struct collective_law law = collective_law(of);
	const double by_nics = law.bytes / payload_rate(simulation, of), by_ports = ports_us(simulation, of);

	return collective_law_time(&law, table->alpha_us, by_nics > by_ports ? by_nics : by_ports) +
	       fill_us(simulation, of);
}

/* The time of a step whose messages have one byte, and the payload's rate. */
static int measure(struct table *table)
{
	struct session session;
	struct sim_options unchecked = *table->options;
	bool has_time = false;
	int status = open_row(&session, table->options, 1);

	unchecked.skips_check = true; /* it is no row */
	if (!status)
		status = run_open_row(&session, &unchecked, 1, &has_time);
	if (has_time) {
		const struct simulation *simulation = &session.simulation;
		struct collective empty = simulation->given, large = simulation->given;
		empty.bytes = 0;
		large.nccl = session.scenario->workloads[0].workload.nccl; /* not what NCCL takes for a byte */
		session_warn(&session);
		table->alpha_us = (double)simulation->result.last_flow / VB_US / collective_law(&empty).alphas;
		table->bytes_per_us = payload_rate(simulation, &large);
	}
	session_close(&session);
	return has_time ? SIM_EXIT_OK : status;
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

/* As nccl-tests has it: of a row's elements a rank's share where each rank has one. */
static const struct columns {
	const char *kind, *redop;
	int root;
	bool counts_share;
} columns[] = {
	{ "allreduce", "sum", -1, false },
	{ "all-gather", "none", -1, true },
	{ "reduce-scatter", "sum", -1, true },
	{ "alltoall", "none", -1, true },
	{ "broadcast", "none", 0, false },
	{ "reduce", "sum", 0, false },
};

static const struct columns *columns_of(const char *kind)
{
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		if (strcmp(columns[i].kind, kind) == 0)
			return &columns[i];
	return NULL;
}

static bool has_error(const struct session *session)
{
	return session->simulation.is_checked;
}

static void put_head(const struct session *session, const struct table *table)
{
	printf("# %s%s%s: %" PRIu32 " ranks; without contention alpha %.3f us, B %.2f GB/s\n", session->scenario->name,
		*session->scenario->name ? ", " : "", session->scenario->workloads[0].workload.kind,
		simulation_ranks(&session->simulation), table->alpha_us, table->bytes_per_us / 1e3);
	printf("#\n# %10s %12s %8s %6s %6s  %-33s  %-33s  %10s\n", "", "", "", "", "", "         out-of-place",
		"           in-place", "closed");
	for (unsigned i = 0; i < 2; i++) {
		static const char *const names[2][5] = { { "size", "count", "type", "redop", "root" },
			{ "(B)", "(elements)", "", "", "" } };
		static const char *const twice[2] = { "   time   algbw   busbw #wrong ",
			"   (us)  (GB/s)  (GB/s)        " };
		printf("# %10s %12s %8s %6s %6s  %-33s  %-33s  %10s%s\n", names[i][0], names[i][1], names[i][2],
			names[i][3], names[i][4], twice[i], twice[i], i ? "(us)" : "form",
			i || !has_error(session) ? "" : "     error");
	}
}

/* Why there was no check, or what it met. */
static void put_check(const struct flow_check *check, const char *why_not)
{
	if (!check->is_made)
		printf("#   error not known: %s\n", why_not);
	else if (check->drops || check->resent || check->pauses) {
		putchar('#');
		report_unseen(stdout, check->drops, check->resent, check->pauses);
	}
}

static void put_line(const struct row *row, const struct session *session)
{
	const struct columns *its = columns_of(row->kind);
	const struct flow_check *check = &session->simulation.check;
	char chosen[64], error[32];

	printf("%12" PRIu64 " %12" PRIu64 " %8s %6s %6d", row->is.bytes,
		row->is.bytes / TYPE_BYTES / (its->counts_share ? row->is.ranks : 1), "float", its->redop, its->root);
	for (unsigned i = 0; i < 2; i++)
		printf("  %7.4g %7.2f %7.2f %6s   ", (double)row->is.time / VB_US, row->is.algbw, row->is.busbw, "N/A");
	printf("  %10.4g", row->law_us);
	if (has_error(session))
		printf(" %9s", table_error_text(check->is_made, check->error, error, sizeof(error)));
	if (row->is_chosen)
		printf("  %s", nccl_choice_text(&row->chosen, chosen, sizeof(chosen)));
	putchar('\n');
	if (has_error(session))
		put_check(check, report_why_unchecked(&session->simulation));
	fflush(stdout);
}

static void put_json(const struct row *row, const struct session *session, bool is_first)
{
	printf("%s\n  {\"kind\": \"%s\", \"algorithm\": \"%s\", \"ranks\": %" PRIu32 ", \"bytes\": %" PRIu64
	       ", \"time_ps\": %" PRIu64 ", \"algbw_gb_s\": %.6g, \"busbw_gb_s\": %.6g, \"law_ps\": %.0f",
		is_first ? "" : ",", row->kind, row->is.algorithm, row->is.ranks, row->is.bytes, (uint64_t)row->is.time,
		row->is.algbw, row->is.busbw, row->law_us * VB_US);
	if (row->is_chosen)
		printf(", \"protocol\": \"%s\", \"channels\": %" PRIu32, nccl_protocol_name(row->chosen.protocol),
			row->chosen.channels);
	printf(", \"mode\": \"%s\"", session->simulation.config.by_flows ? "flows" : "packets");
	report_error_json(stdout, &session->simulation);
	putchar('}');
	fflush(stdout);
}

/* An error that is not known is an empty column. */
static void put_csv(FILE *out, const struct row *row, const struct session *session, bool is_first)
{
	const struct simulation *simulation = &session->simulation;

	if (is_first)
		fputs("kind,algorithm,ranks,bytes,time_ps,algbw_gb_s,busbw_gb_s,law_ps,error\n", out);
	fprintf(out, "%s,%s,%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%.6g,%.6g,%.0f,", row->kind, row->is.algorithm,
		row->is.ranks, row->is.bytes, (uint64_t)row->is.time, row->is.algbw, row->is.busbw,
		row->law_us * VB_US);
	if (!simulation->config.by_flows || simulation->check.is_made)
		fprintf(out, "%.6g", simulation->check.error);
	fputc('\n', out);
}

/* A row of the table, within what its check may take. */
static int run_row(struct table *table, struct session *session, uint64_t bytes, bool *has_time)
{
	int status = open_row(session, table->options, bytes);

	*has_time = false;
	session->row = table->row_count - (unsigned)table->checks.rows + 1;
	session->rows = table->row_count;
	session->simulation.check_limit.packet_hops = table_checks_next(&table->checks);
	if (!status)
		status = run_open_row(session, table->options, bytes, has_time);
	if (session->simulation.check.is_made)
		table_checks_add(
			&table->checks, session->simulation.check.bytes_part, session->simulation.check.packet_hops);
	return status;
}

static int put_row(struct table *table, uint64_t bytes)
{
	struct session session;
	struct row row = { .kind = table->options->collective.kind };
	bool has_time;
	const int status = run_row(table, &session, bytes, &has_time);

	if (has_time && job_bandwidth(&session.simulation, &row.is)) {
		const bool is_first = table->rows++ == 0;
		row.law_us = law_us(table, &session.simulation, &session.simulation.given);
		row.is_chosen = nccl_choice_of(&session.simulation, 0, &row.chosen);
		if (is_first && !table->options->is_json)
			put_head(&session, table);
		if (table->options->is_json)
			put_json(&row, &session, is_first);
		else
			put_line(&row, &session);
		if (table->csv)
			put_csv(table->csv, &row, &session, is_first);
	}
	session_close(&session);
	return status;
}

/* A row of less than a second is over before it hears of an interrupt. */
static int tell_interrupt(uint64_t bytes)
{
	say_of_row(bytes, "interrupted: neither it nor a larger one is run");
	return SIM_EXIT_NO_END;
}

/* The larger a row is, the longer it takes: behind one that does not end none begins. */
static int put_rows(struct table *table, const struct sizes *sizes)
{
	int worst = measure(table);

	for (uint64_t bytes = sizes->first; bytes <= sizes->last; bytes *= 2)
		table->row_count++;
	table_checks_begin(&table->checks, table->row_count);
	if (table->options->is_json && !worst)
		fputc('[', stdout);
	for (uint64_t bytes = sizes->first;
		(worst == SIM_EXIT_OK || worst == SIM_EXIT_LOSSLESS_DROPS) && bytes <= sizes->last; bytes *= 2) {
		const int status = progress_is_interrupted() ? tell_interrupt(bytes) : put_row(table, bytes);
		worst = status ? status : worst;
	}
	if (table->options->is_json && table->bytes_per_us > 0)
		fputs("\n]\n", stdout);
	if (!table->options->is_json)
		table_checks_tell(&table->checks, stdout, "# ");
	return worst;
}

/* ---- A plan ------------------------------------------------------------------------------------------------------ */

static int put_plan_row(const struct sim_options *options, uint64_t bytes, bool is_first, struct estimate *whole)
{
	struct session session;
	char text[300];
	const int status = open_row(&session, options, bytes);
	const struct estimate *its = &session.simulation.estimate;

	if (!status && is_first) {
		session_warn(&session);
		printf("# %s%s%s (%s): %" PRIu32 " ranks; one run for each size, and the first for the closed form\n",
			session.scenario->name, *session.scenario->name ? ", " : "", session.simulation.given.kind,
			session.simulation.given.algorithm, simulation_ranks(&session.simulation));
	}
	if (!status) {
		printf("%14" PRIu64 " byte%s: %s\n", bytes, bytes == 1 ? "" : "s",
			estimate_text(its, text, sizeof(text)));
		estimate_add(whole, its);
	}
	session_close(&session);
	return status;
}

static int put_plan(const struct sim_options *options, const struct sizes *sizes)
{
	struct estimate whole = { 0 };
	char text[300];
	int status = put_plan_row(options, 1, true, &whole);

	for (uint64_t bytes = sizes->first; !status && bytes <= sizes->last; bytes *= 2)
		status = put_plan_row(options, bytes, false, &whole);
	if (!status)
		printf("%20s: %s\n", "in all", estimate_text(&whole, text, sizeof(text)));
	return status;
}

int collective_table_run(const struct sim_options *options)
{
	const char *kind = options->collective.kind;
	struct sizes sizes;
	struct table table = { .options = options };

	if (!columns_of(kind))
		return refuse(
			"--collective takes allreduce, all-gather, reduce-scatter, alltoall, broadcast or reduce");
	if (!read_sizes(options->collective.sizes ? options->collective.sizes : "1K..64M", &sizes))
		return refuse(
			"--sizes takes SIZE or SIZE..SIZE, as 8..1G, at most 1024G; K, M, G are 2^10, 2^20, 2^30");
	if (options->is_dry)
		return put_plan(options, &sizes);
	int status = output_open(options->csv, &table.csv);
	if (!status)
		status = put_rows(&table, &sizes);
	const int unwritten = output_close(options->csv, table.csv);
	return unwritten ? unwritten : status;
}
