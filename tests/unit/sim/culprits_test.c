/* A flow that failed says at which link: one that left no way, else the one that lost most. */
#include "../unit.h"
#include "sim/culprits.h"
#include "sim/simulation.h"

static struct scenario *scenario;
static struct simulation *simulation;

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
	return 0;
}

/* Two leaves of four endpoints, two spines (switches 2 and 3), with these faults; 7 sends to 0. Returns what is said
 * of that. */
static const char *run_with(const char *faults)
{
	static const char form[] =
		"network: {topology: leaf-spine, endpoints: 8, leaves: 2, spines: 2, host-rate: 100G, faults: [%s]}\n"
		"transport: {timeout: 1ms, retries: 2}\n"
		"workload: {kind: incast, senders: 1, target: 0, bytes: 4MB}\n";
	static char said[200];
	char text[1000], why[400] = "";
	struct document document = { 0 };
	struct document_error error = { 0 };
	snprintf(text, sizeof(text), form, faults);
	int rc = document_read(&document, text, strlen(text), &error);
	if (!rc)
		rc = scenario_fill(scenario, &document, "", &error);
	document_free(&document);
	simulation_free(simulation);
	if (!rc)
		rc = simulation_prepare(simulation, scenario, NULL, why, sizeof(why));
	if (!rc) {
		simulation->flows.flows[0].src = 7;
		rc = simulation_run(simulation, why, sizeof(why));
	}
	if (rc) {
		snprintf(said, sizeof(said), "%.190s", *why ? why : error.text);
		return said;
	}
	assert_int_equal(simulation->result.end, FABRIC_DONE);
	return simulation->result.flows_failed ? culprit_text(simulation, 0, said, sizeof(said)) : "";
}

static void flow__that_fails_says_where(void **state)
{
	assert_string_equal(run_with("{link: endpoint 0, down: 50us}"),
		"retry exceeded; endpoint 0 down is down for good since 50 us");
	assert_string_equal(run_with("{link: endpoint 7, down: 60us}"),
		"retry exceeded; endpoint 7 up is down for good since 60 us");
	assert_string_equal(run_with("{link: switch 2 port 0, down: 50us}"), "");
	/* What loses more is not what leaves no way. */
	assert_string_equal(run_with("{link: switch 2 port 0, down: 50us}, {link: switch 3 port 0, loss: 30%}, "
				     "{link: endpoint 0, down: 3ms}"),
		"retry exceeded; endpoint 0 down is down for good since 3 ms");
	const char *lossy = run_with("{link: endpoint 0, loss: 100%}");
	assert_non_null(strstr(lossy, "retry exceeded; endpoint 0 down lost "));
}

static void culprits__are_of_failed_flows_alone(void **state)
{
	assert_string_equal(run_with("{link: endpoint 3, down: 50us}"), "");
	assert_null(simulation->culprits);
}

static void link__that_is_up_before_it_is_down_is_refused(void **state)
{
	assert_string_equal(run_with("{link: endpoint 0, down: 50us, up: 50us}"),
		"network.faults.0.up is not after down: leave it out, and the link stays down");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flow__that_fails_says_where),
		cmocka_unit_test(culprits__are_of_failed_flows_alone),
		cmocka_unit_test(link__that_is_up_before_it_is_down_is_refused),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
