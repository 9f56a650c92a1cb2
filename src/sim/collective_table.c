/* See collective_table.h. */
#include "sim/collective_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net/collectives.h"
#include "sim/job.h"
#include "sim/nccl_choice.h"
#include "sim/session.h"

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

static int run(struct session *session, const struct sim_options *options, uint64_t bytes)
{
	struct sim_options of = *options;

	of.collective.bytes = bytes;
	int status = session_open(session, options->arguments[0], &of, NULL, 0);
	if (!status)
		status = session_run(session, &of);
	return status ? status : session_status(session);
}

/* The payload's rate that a rank has for this collective: on the first endpoint's link, on those of all NICs that have
 * a ring, or in the scale-up domain if that is all there is. */
static double payload_rate(const struct simulation *simulation, const struct collective *of)
{
	const struct network *network = &simulation->network;
	const struct fabric_config *config = &simulation->config;
	const double overhead = config->data_overhead ? config->data_overhead : FABRIC_ROCE_OVERHEAD;
	const double bits = (double)network->links[network->endpoints[0].link].bits_per_second;
	if (simulation->hosts.gpus && simulation_ranks(simulation) <= simulation->hosts.gpus)
		return (double)simulation->hosts.scale_up / 8e6;
	return bits / 8e6 * config->mtu / (config->mtu + overhead) * collective_rings(of, simulation->hosts.nics);
}

/* The time of a step whose messages have one byte, and the payload's rate. */
static int measure(const struct sim_options *options, double *alpha_us, double *bytes_per_us)
{
	struct session session;
	int status = run(&session, options, 1);

	if (!status) {
		const struct simulation *simulation = &session.simulation;
		struct collective empty = simulation->given, large = simulation->given;
		empty.bytes = 0;
		large.bytes = MOST_BYTES; /* one byte is no more than one ring's */
		large.channels = 0;
		*alpha_us = (double)simulation->result.last_flow / VB_US / collective_law(&empty).alphas;
		*bytes_per_us = payload_rate(simulation, &large);
	}
	session_close(&session);
	return status;
}

static void put_head(const struct session *session, double alpha_us, double bytes_per_us)
{
	printf("# %s, %s: %" PRIu32 " ranks; without contention alpha %.3f us, B %.2f GB/s\n", session->scenario->name,
		session->scenario->workloads[0].workload.kind, simulation_ranks(&session->simulation), alpha_us,
		bytes_per_us / 1e3);
	printf("#\n# %10s %12s %8s %6s %6s  %-33s  %-33s  %10s\n", "", "", "", "", "", "         out-of-place",
		"           in-place", "closed");
	for (unsigned i = 0; i < 2; i++) {
		static const char *const names[2][5] = { { "size", "count", "type", "redop", "root" },
			{ "(B)", "(elements)", "", "", "" } };
		static const char *const columns[2] = { "   time   algbw   busbw #wrong ",
			"   (us)  (GB/s)  (GB/s)        " };
		printf("# %10s %12s %8s %6s %6s  %-33s  %-33s  %10s\n", names[i][0], names[i][1], names[i][2],
			names[i][3], names[i][4], columns[i], columns[i], i ? "(us)" : "form");
	}
}

static void put_line(const struct row *row)
{
	const bool reduces = strcmp(row->kind, "all-gather") != 0;
	char chosen[64];

	printf("%12" PRIu64 " %12" PRIu64 " %8s %6s %6s", row->is.bytes, row->is.bytes / TYPE_BYTES, "float",
		reduces ? "sum" : "none", "-1");
	for (unsigned i = 0; i < 2; i++)
		printf("  %7.4g %7.2f %7.2f %6s   ", (double)row->is.time / VB_US, row->is.algbw, row->is.busbw, "N/A");
	printf("  %10.4g", row->law_us);
	if (row->is_chosen)
		printf("  %s", nccl_choice_text(&row->chosen, chosen, sizeof(chosen)));
	putchar('\n');
	fflush(stdout);
}

static void put_json(const struct row *row, bool is_first)
{
	printf("%s\n  {\"kind\": \"%s\", \"algorithm\": \"%s\", \"ranks\": %" PRIu32 ", \"bytes\": %" PRIu64
	       ", \"time_ps\": %" PRIu64 ", \"algbw_gb_s\": %.6g, \"busbw_gb_s\": %.6g, \"law_ps\": %.0f",
		is_first ? "" : ",", row->kind, row->is.algorithm, row->is.ranks, row->is.bytes, (uint64_t)row->is.time,
		row->is.algbw, row->is.busbw, row->law_us * VB_US);
	if (row->is_chosen)
		printf(", \"protocol\": \"%s\", \"channels\": %" PRIu32, nccl_protocol_name(row->chosen.protocol),
			row->chosen.channels);
	putchar('}');
	fflush(stdout);
}

static int put_row(
	const struct sim_options *options, uint64_t bytes, bool is_first, double alpha_us, double bytes_per_us)
{
	struct session session;
	struct row row = { .kind = options->collective.kind };
	int status = run(&session, options, bytes);

	if (!status && job_bandwidth(&session.simulation, &row.is)) {
		const struct collective_law law = collective_law(&session.simulation.given);
		row.law_us = law.alphas * alpha_us +
			     law.bytes / payload_rate(&session.simulation, &session.simulation.given);
		row.is_chosen = nccl_choice_of(&session.simulation, 0, &row.chosen);
		if (is_first && !options->is_json)
			put_head(&session, alpha_us, bytes_per_us);
		if (options->is_json)
			put_json(&row, is_first);
		else
			put_line(&row);
	} else if (status >= SIM_EXIT_LOSSLESS_DROPS || status == SIM_EXIT_BAD_NEWS) {
		fprintf(stderr, "verbena sim: %" PRIu64 " bytes: %s\n", bytes,
			fabric_end_text(session.simulation.result.end));
	}
	session_close(&session);
	return status;
}

int collective_table_run(const struct sim_options *options)
{
	const char *kind = options->collective.kind;
	struct sizes sizes;
	double alpha_us = 0, bytes_per_us = 0;

	if (!collective_is_kind(kind) || strcmp(kind, "barrier") == 0)
		return refuse(
			"--collective takes allreduce, all-gather, reduce-scatter, alltoall, broadcast or reduce");
	if (!read_sizes(options->collective.sizes ? options->collective.sizes : "1K..64M", &sizes))
		return refuse(
			"--sizes takes SIZE or SIZE..SIZE, as 8..1G, at most 1024G; K, M, G are 2^10, 2^20, 2^30");
	int status = measure(options, &alpha_us, &bytes_per_us);
	if (options->is_json && !status)
		fputc('[', stdout);
	for (uint64_t bytes = sizes.first; !status && bytes <= sizes.last; bytes *= 2)
		status = put_row(options, bytes, bytes == sizes.first, alpha_us, bytes_per_us);
	if (options->is_json && bytes_per_us > 0)
		fputs("\n]\n", stdout);
	return status;
}
