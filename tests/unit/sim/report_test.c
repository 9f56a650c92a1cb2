/* What is printed of a run. */
#include "../unit.h"
#include "sim/report.h"

static struct scenario *scenario;
static struct simulation *simulation;
static struct summary summary;
static char *said;

static int set_up(void **state)
{
	scenario = malloc(sizeof(*scenario));
	simulation = calloc(1, sizeof(*simulation));
	return scenario && simulation ? 0 : -1;
}

static int tear_down(void **state)
{
	simulation_free(simulation);
	free(simulation);
	free(scenario);
	free(said);
	return 0;
}

static const char *told(bool is_json)
{
	size_t length;
	free(said);
	FILE *out = open_memstream(&said, &length);
	assert_non_null(out);
	if (is_json)
		report_json(out, simulation, &summary, NULL, "", false);
	else
		report_text(out, simulation, &summary);
	fclose(out);
	return said;
}

/* A run of these lines, as text or as JSON. */
static const char *report_of(const char *lines, bool is_json)
{
	struct document document = { 0 };
	struct document_error error = { 0 };
	char why[400] = "";
	int rc = document_read(&document, lines, strlen(lines), &error);
	if (!rc)
		rc = scenario_fill(scenario, &document, "", &error);
	document_free(&document);
	simulation_free(simulation);
	if (!rc)
		rc = simulation_prepare(simulation, scenario, NULL, why, sizeof(why));
	if (!rc)
		rc = simulation_run(simulation, why, sizeof(why));
	if (!rc)
		rc = summary_make(&summary, simulation);
	if (rc)
		fail_msg("%s%s", error.text, why);
	return told(is_json);
}

#define INCAST "network: {topology: switch, endpoints: 4}\nworkload: {kind: incast, bytes: 20kB}\n"

static void run_in_which_no_flow_ended__has_no_last_flow(void **state)
{
	const char *text = report_of(INCAST "run: {limit: 1us}\n", false);
	assert_non_null(strstr(
		text, "ended: the limit of virtual time was reached, at 1 us; no flow has ended\n3 flows are open\n"));
	assert_null(strstr(text, "the last flow"));
	assert_non_null(strstr(report_of(INCAST "run: {limit: 1us}\n", true), "\"jct_ps\": null"));
	assert_non_null(strstr(report_of(INCAST, false), "ended: every flow ended; the last flow at "));
	assert_null(strstr(report_of(INCAST, true), "\"jct_ps\": null"));
}

/* Of flows, of a collective's messages, and of operations. */
static void every_end__has_a_name_and_a_sentence(void **state)
{
	static const char *const units[] = { "flow", "message", "operation" };
	for (uint32_t unit = 0; unit < 3; unit++) {
		struct simulation run = { .job_count = unit > 0, .has_graph = unit == 2 };
		assert_string_equal(report_unit(&run), units[unit]);
		for (enum fabric_end end = FABRIC_DONE; end <= FABRIC_NUMBERS; end++) {
			assert_true(strlen(report_end_text(&run, end)) > 8);
			assert_true(strlen(report_end_name(end)) > 3);
			assert_true(unit == 0 || !strstr(report_end_text(&run, end), "flow"));
		}
	}
}

static void run_of_a_collective__tells_of_messages(void **state)
{
	static const char text[] =
		"network: {topology: switch, endpoints: 4}\nworkload: {kind: allreduce, bytes: 20kB}\n"
		"run: {limit: 1us}\n";
	assert_non_null(strstr(report_of(text, false), "no message has ended\n24 messages are open\n"));
}

/* Eight GPUs of one host. */
static void run_that_sends_nothing_by_links__lists_none(void **state)
{
	static const char text[] = "network: {topology: switch, endpoints: 8}\nhosts: {gpu: H100}\n"
				   "workload: {kind: allreduce, bytes: 20kB}\n";
	assert_null(strstr(report_of(text, false), "busiest"));
	assert_non_null(strstr(report_of(INCAST, false), "busiest links\n  endpoint"));
}

/* As if somebody had interrupted the runs of the jobs alone. */
static void times_alone__that_are_missing_are_told(void **state)
{
	static const char text[] = "network: {topology: switch, endpoints: 8}\nworkload:\n"
				   "  - {kind: allreduce, endpoints: 4, bytes: 20kB}\n"
				   "  - {kind: alltoall, first: 4, endpoints: 4, bytes: 20kB}\n";
	assert_null(strstr(report_of(text, false), "alone"));
	simulation->alone = calloc(2, sizeof(*simulation->alone));
	simulation->alone[0] = simulation->alone[1] = -1;
	simulation->alone_end = FABRIC_STOPPED;
	const char *it = told(false);
	assert_non_null(strstr(it, "ended: every message ended; "));
	assert_null(strstr(it, ", alone "));
	assert_non_null(strstr(it, "times alone are missing: interrupted\n"));
}

static void cost__has_the_time_of_setting_up_beside_that_of_the_run(void **state)
{
	assert_non_null(strstr(report_of(INCAST, false), " s of CPU time, after "));
	assert_non_null(strstr(report_of(INCAST, true), "\"setup_cpu_s\": "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run_in_which_no_flow_ended__has_no_last_flow),
		cmocka_unit_test(every_end__has_a_name_and_a_sentence),
		cmocka_unit_test(run_of_a_collective__tells_of_messages),
		cmocka_unit_test(run_that_sends_nothing_by_links__lists_none),
		cmocka_unit_test(times_alone__that_are_missing_are_told),
		cmocka_unit_test(cost__has_the_time_of_setting_up_beside_that_of_the_run),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
