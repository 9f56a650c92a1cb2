/* Reads a scenario, runs it and reports the result. */
#include "sim/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "net/nccl.h"
#include "sim/capture.h"
#include "sim/collective_table.h"
#include "sim/compare.h"
#include "sim/graph_report.h"
#include "sim/loggops_run.h"
#include "sim/report.h"
#include "sim/session.h"

void sim_print_gpus(void)
{
	const struct gpu *gpu;

	printf("# hosts.gpu: GPUs of a usual machine; GB/s of a GPU's scale-up port each way; NIC of a GPU; dense bf16 "
	       "TFLOP/s;\n"
	       "# memory; where the numbers are from\n");
	for (uint32_t i = 0; (gpu = gpu_of(i)); i++)
		printf("%-6s %3u GPUs  %4u GB/s  %3uG  %5u TFLOP/s  %4u GB  %s\n", gpu->name, gpu->domain,
			gpu->scale_up_gb_s, gpu->nic_gb_s, gpu->tflops, gpu->memory_gb, gpu->source);
}

void sim_print_collectives(void)
{
	static const char *const kinds[] = { "allreduce", "all-gather", "reduce-scatter", "alltoall", "broadcast",
		"reduce", "barrier" };
	const struct collective_algorithm *is;

	printf("# workload.*.kind and --collective: algorithms, the default first\n");
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		printf("%-15s", kinds[k]);
		for (uint32_t i = 0; (is = collective_algorithm(kinds[k], i)); i++)
			printf("%s%s%s", i ? ", " : " ", is->name,
				is->is_by_powers_of_2 ? " (2, 4, 8, ... ranks)" : "");
		puts(nccl_has(kinds[k]) ? ", nccl" : "");
	}
}

void sim_print_keys(void)
{
	scenario_keys_print(stdout);
}

static int complain(const char *path, int error)
{
	fprintf(stderr, "verbena sim: %s: %s\n", path, strerror(-error));
	return SIM_EXIT_BAD_NEWS;
}

static int write_csv(FILE *file, const struct sim_options *options, const struct simulation *simulation)
{
	if (simulation->has_graph)
		graph_report_csv(file, simulation);
	else
		report_csv(file, simulation);
	if (fflush(file) || ferror(file))
		return complain(options->csv, errno ? -errno : -EIO);
	return 0;
}

/* Runs it, with a capture if one is asked for. */
static int run_captured(struct session *session, const struct sim_options *options)
{
	struct simulation *simulation = &session->simulation;

	if (options->pcap && simulation->captured_count == 0) {
		fprintf(stderr, "verbena sim: --pcap needs links: --capture \"endpoint 0 up\", or capture.links in "
				"the scenario\n");
		return SIM_EXIT_USAGE;
	}
	if (options->pcap) {
		int error = capture_open(options->pcap, &simulation->network, simulation->captured,
			simulation->captured_count, &session->capture);
		if (error)
			return complain(options->pcap, error);
	}
	return session_run(session, options);
}

static int write_trace(const struct sim_options *options, const struct simulation *simulation)
{
	FILE *file = fopen(options->trace, "we");

	if (!file)
		return complain(options->trace, -errno);
	graph_report_trace(file, simulation);
	const bool is_wrong = ferror(file);
	return fclose(file) || is_wrong ? complain(options->trace, errno ? -errno : -EIO) : 0;
}

/* What would be run, and what it would take. */
static int tell_plan(const struct session *session)
{
	char text[300];

	report_head(stdout, &session->simulation);
	printf("%s\n", estimate_text(&session->simulation.estimate, text, sizeof(text)));
	return SIM_EXIT_OK;
}

static int tell(const struct session *session, const struct sim_options *options, FILE *csv)
{
	if (options->is_json) {
		report_json(stdout, &session->simulation, &session->summary,
			options->explains_pfc ? &session->explanation : NULL, "", true);
		fputc('\n', stdout);
	} else {
		report_text(stdout, &session->simulation, &session->summary);
		if (session->simulation.has_graph &&
			graph_report_text(stdout, &session->simulation, options->explains_job))
			return complain(options->job, -ENOMEM);
		if (options->explains_pfc)
			explanation_print(stdout, &session->explanation, &session->simulation);
	}
	int status = csv ? write_csv(csv, options, &session->simulation) : 0;
	if (!status && options->trace)
		status = write_trace(options, &session->simulation);
	return status ? status : session_status(session);
}

static int run_one(const struct sim_options *options)
{
	struct session session;
	FILE *csv = NULL;
	int status = session_open(&session, options->arguments[0], options, NULL, 0);

	for (unsigned i = 0; !status && i < session.simulation.warnings.count; i++)
		fprintf(stderr, "verbena sim: warning: %s\n", session.simulation.warnings.texts[i]);

	if (!status && options->is_dry) {
		tell_plan(&session);
		session_close(&session);
		return SIM_EXIT_OK;
	}
	if (!status && options->csv &&
		!(csv = fopen(options->csv, "we"))) /* opened before the run, which may take long */
		status = complain(options->csv, -errno);
	if (!status)
		status = run_captured(&session, options);
	int error = session.capture ? capture_close(session.capture) : 0;
	if (!status)
		status = tell(&session, options, csv);
	if (error)
		status = complain(options->pcap, error);
	if (csv)
		fclose(csv);
	session_close(&session);
	return status;
}

int sim_run(const struct sim_options *options)
{
	if (options->loggops)
		return loggops_run(options);
	if (options->collective.kind)
		return collective_table_run(options);
	return options->is_comparison ? compare_run(options) : run_one(options);
}
