/* Reads a scenario, runs it and reports the result. */
#include "sim/sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "net/nccl.h"
#include "sim/capture.h"
#include "sim/collective_table.h"
#include "sim/compare.h"
#include "sim/graph_report.h"
#include "sim/graph_trace.h"
#include "sim/loggops_run.h"
#include "sim/output.h"
#include "sim/report.h"
#include "sim/session.h"
#include "sim/step_run.h"

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

void sim_print_models(void)
{
	const struct model *model;

	printf("# workload.*.model: parameters, those that a token meets, tokens of a sequence; where the shape is "
	       "from\n");
	for (uint32_t i = 0; (model = model_of(i)); i++)
		printf("%-16s %13" PRIu64 " %13" PRIu64 " %6" PRIu32 "  %s\n", model->name, model_parameters(model),
			model_active_parameters(model), model->sequence, model->source);
}

void sim_print_keys(void)
{
	scenario_keys_print(stdout);
}

/* Files to write, which are opened before the run: it may take long. */
struct outputs {
	FILE *csv, *trace; /* NULL: not asked for */
};

static int open_outputs(struct outputs *outputs, const struct sim_options *options)
{
	int status = output_open(options->csv, &outputs->csv);
	return status ? status : output_open(options->trace, &outputs->trace);
}

static int close_outputs(const struct outputs *outputs, const struct sim_options *options)
{
	const int csv = output_close(options->csv, outputs->csv), trace = output_close(options->trace, outputs->trace);
	return csv ? csv : trace;
}

static void write_outputs(const struct outputs *outputs, const struct session *session)
{
	const struct simulation *simulation = &session->simulation;

	if (outputs->csv && simulation->has_graph)
		graph_report_csv(outputs->csv, simulation);
	else if (outputs->csv)
		report_csv(outputs->csv, simulation);
	if (outputs->trace)
		graph_trace_put(outputs->trace, simulation, &session->summary);
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
			return output_complain(options->pcap, error);
	}
	return session_run(session, options);
}

/* What would be run, and what it would take. */
static int tell_plan(const struct session *session)
{
	char text[300];

	report_head(stdout, &session->simulation);
	printf("%s\n", estimate_text(&session->simulation.estimate, text, sizeof(text)));
	return SIM_EXIT_OK;
}

static int tell(const struct session *session, const struct sim_options *options)
{
	if (options->is_json) {
		report_json(stdout, &session->simulation, &session->summary,
			options->explains_pfc ? &session->explanation : NULL, "", true);
		fputc('\n', stdout);
	} else {
		report_text(stdout, &session->simulation, &session->summary);
		if (session->simulation.has_graph &&
			graph_report_text(stdout, &session->simulation, options->explains_job))
			return output_complain("the job", -ENOMEM);
		if (session->simulation.step_count && step_tell_run(&session->simulation))
			return output_complain("the step", -ENOMEM);
		if (options->explains_pfc)
			explanation_print(stdout, &session->explanation, &session->simulation);
	}
	return session_status(session);
}

/* And writes all that is to be written. */
static int run_and_tell(struct session *session, const struct sim_options *options)
{
	struct outputs outputs = { 0 };
	int status = open_outputs(&outputs, options);

	if (!status)
		status = run_captured(session, options);
	const int error = session->capture ? capture_close(session->capture) : 0;
	if (!status) {
		status = tell(session, options);
		write_outputs(&outputs, session);
	}
	const int unwritten = close_outputs(&outputs, options);
	if (error)
		status = output_complain(options->pcap, error);
	return unwritten ? unwritten : status;
}

/* Of operations, which flows and collectives of a scenario are not. */
static int check_job_options(const struct session *session, const struct sim_options *options)
{
	const struct simulation *simulation = &session->simulation;

	if ((!options->trace && !options->explains_job) || simulation->has_graph || simulation->step_count)
		return SIM_EXIT_OK;
	fprintf(stderr, "verbena sim: --trace and --explain job are of --job, or of a step of training\n");
	return SIM_EXIT_USAGE;
}

static int run_one(const struct sim_options *options)
{
	struct session session;
	int status = session_open(&session, options->arguments[0], options, NULL, 0);

	if (!status)
		session_warn(&session);
	if (!status)
		status = check_job_options(&session, options);
	if (!status && session.simulation.step_count && !session.simulation.has_graph)
		status = step_run_all(&session, options);
	else if (!status)
		status = options->is_dry ? tell_plan(&session) : run_and_tell(&session, options);
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
