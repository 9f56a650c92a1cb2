/* Reads a scenario, runs it and reports the result. */
#include "sim/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "sim/capture.h"
#include "sim/collective_table.h"
#include "sim/compare.h"
#include "sim/loggops_run.h"
#include "sim/report.h"
#include "sim/session.h"

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

static int tell(const struct session *session, const struct sim_options *options, FILE *csv)
{
	if (options->is_json) {
		report_json(stdout, &session->simulation, &session->summary,
			options->explains_pfc ? &session->explanation : NULL, "", true);
		fputc('\n', stdout);
	} else {
		report_text(stdout, &session->simulation, &session->summary);
		if (options->explains_pfc)
			explanation_print(stdout, &session->explanation, &session->simulation);
	}
	int status = csv ? write_csv(csv, options, &session->simulation) : 0;
	return status ? status : session_status(session);
}

static int run_one(const struct sim_options *options)
{
	struct session session;
	FILE *csv = NULL;
	int status = session_open(&session, options->arguments[0], options, NULL, 0);

	for (unsigned i = 0; !status && i < session.simulation.warnings.count; i++)
		fprintf(stderr, "verbena sim: warning: %s\n", session.simulation.warnings.texts[i]);

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
