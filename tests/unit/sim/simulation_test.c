/* What is refused when a scenario's parts are put together. */
#include "../unit.h"
#include <errno.h>
#include <unistd.h>
#include "sim/simulation.h"

static struct scenario *scenario;
static struct simulation *simulation;
static char why[400];

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

static int prepare(const char *lines, const char *flow_file)
{
	struct document document = { 0 };
	struct document_error error = { 0 };
	int rc = document_read(&document, lines, strlen(lines), &error);
	if (!rc)
		rc = scenario_fill(scenario, &document, "", &error);
	document_free(&document);
	if (rc)
		fail_msg("%s", error.text);
	simulation_free(simulation);
	*why = 0;
	return simulation_prepare(
		simulation, scenario, &(struct simulation_files){ .flows = flow_file }, why, sizeof(why));
}

static void refused(const char *lines, const char *flow_file, const char *because)
{
	assert_int_equal(prepare(lines, flow_file), -EINVAL);
	assert_string_equal(why, because);
}

#define FOUR_CLASSES "network: {topology: switch, endpoints: 4, switch: {class-count: 4}}\n"

/* With a file of these flows. */
static int prepare_with(const char *lines, const char *flows)
{
	char name[] = "/tmp/verbena-flows-XXXXXX";
	int file = mkstemp(name);
	assert_true(file >= 0);
	assert_int_equal(write(file, flows, strlen(flows)), strlen(flows));
	close(file);
	int rc = prepare(lines, name);
	unlink(name);
	return rc;
}

static void flows__that_are_taken_otherwise_are_warned_of(void **state)
{
	static const char ring[] = "0->1 start 0 size 9 send_done_trigger 1\n1->2 trigger 1 size 9 prio 4\n"
				   "trigger id 1 oneshot\n";
	assert_int_equal(prepare_with(FOUR_CLASSES, ring), 0);
	assert_int_equal(simulation->warnings.count, 2);
	assert_string_equal(simulation->warnings.texts[0],
		"the file of flows: prio is ignored: NDP's order of pulls is not modelled");
	assert_string_equal(simulation->warnings.texts[1],
		"the file of flows: a flow of the receiver that waits for send_done_trigger begins when the message is "
		"there, before its sender knows");
}

static void class__that_no_switch_has_is_refused(void **state)
{
	static const char hpcc_flows[] = "1\n0 1 5 100 1000 0\n";
	assert_int_equal(
		prepare(FOUR_CLASSES "workload: {kind: incast, class: 3}\ntransport: {ack-class: 3}\n", NULL), 0);
	refused(FOUR_CLASSES "workload: [{kind: incast}, {kind: incast, class: 4}]\n", NULL,
		"workload.1.class: there is no class 4: network.switch.class-count is 4, counted from 0");
	refused(FOUR_CLASSES "workload: {kind: incast}\ntransport: {ack-class: 7}\n", NULL,
		"transport.ack-class: there is no class 7: network.switch.class-count is 4, counted from 0");

	assert_int_equal(prepare_with(FOUR_CLASSES, hpcc_flows), -EINVAL);
	assert_string_equal(
		why, "flow 0 of the list: there is no class 5: network.switch.class-count is 4, counted from 0");
}

#define STAR   "network: {topology: switch, endpoints: 4}\n"
#define INCAST "workload: {kind: incast}\n"

#define FAULT(keys)                                                                                                    \
	"network: {topology: switch, endpoints: 4, faults: [{link: endpoint 0, " keys "}]}\nworkload: {kind: "         \
	"incast}\n"

static void flap__without_an_end_of_being_down_is_refused(void **state)
{
	static const char because[] =
		"network.faults.0.flap needs up: a link that never comes back goes down only once";
	refused(FAULT("flap: 50us"), NULL, because);
	refused(FAULT("down: 10us, flap: 50us"), NULL, because);
	refused(FAULT("loss: 1%, flap: 50us"), NULL, because);
	assert_int_equal(prepare(FAULT("down: 10us, up: 20us, flap: 50us"), NULL), 0);
	assert_int_equal(prepare(FAULT("up: 20us, flap: 50us"), NULL), 0);
}

#define BY_FLOWS "\nrun: {mode: flows}\n"

static void flows__refuse_what_packets_alone_can_have(void **state)
{
	static const struct {
		const char *scenario, *because;
	} all[] = {
		{ FAULT("loss: 1%"), "network.faults: run.mode flows sees when a link is down, and no faults of "
				     "packets; leave those "
				     "out, or run.mode: packets" },
		{ STAR INCAST "transport: {endpoint: tcp}\n",
			"transport.endpoint: TCP is not modelled in run.mode flows; engine or ideal, or run.mode: "
			"packets" },
		{ STAR INCAST "transport: {behind: sockets}\n",
			"transport.behind: sockets are not modelled in run.mode flows; nic, or run.mode: packets" },
		{ "network: {topology: switch, endpoints: 4, switch: {hash: ns3}}\n" INCAST,
			"network.switch.hash: ns3 is for packets; own, or run.mode: packets" },
	};
	char text[400];
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		snprintf(text, sizeof(text), "%s" BY_FLOWS, all[i].scenario);
		refused(text, NULL, all[i].because);
	}
}

static void expect_labels(const char *text, const char *const *labels, unsigned count)
{
	assert_int_equal(prepare(text, NULL), 0);
	assert_int_equal(simulation->label_count, count);
	for (unsigned i = 0; i < count; i++)
		assert_non_null(strstr(simulation->labels[i], labels[i]));
}

static void flows__are_labelled_with_what_is_not_there(void **state)
{
	static const char *const most[] = { "max-min", "40%", "classes", "windows", "spread evenly" };
	expect_labels(STAR INCAST BY_FLOWS, most, 1);
	expect_labels("network: {topology: switch, endpoints: 4, switch: {class-count: 2, routing: spray}}\n"
		      "workload: [{kind: incast}, {kind: incast, class: 1}]\n"
		      "transport: {cc: dcqcn, largest-window: 1MB}" BY_FLOWS,
		most, 5);
	assert_int_equal(simulation->warnings.count, 0);
}

/* The time of each message, and what the network says of links. */
static void flows__run_as_messages_alone_would(void **state)
{
	assert_int_equal(prepare(STAR "workload: {kind: permutation, bytes: 1MB}" BY_FLOWS, NULL), 0);
	assert_int_equal(simulation_run(simulation, why, sizeof(why)), 0);
	assert_int_equal(simulation->result.end, FABRIC_DONE);
	for (uint32_t i = 0; i < simulation->flows.count; i++)
		assert_in_range(simulation->result.flows[i].fct, simulation->ideals[i],
			simulation->ideals[i] + simulation->ideals[i] / 40); /* acks of another */
	assert_int_equal(simulation->result.packet_hops, 0);
}

/* Before the first event, of which cpu_s tells nothing. */
static void setup__has_a_cpu_time_of_its_own(void **state)
{
	static const char many[] = "network: {topology: switch, endpoints: 300, switch: {profile: ideal}}\nworkload: "
				   "{kind: all-to-all, bytes: 1B}\nrun: {limit: 1ns}\n";
	assert_int_equal(prepare(many, NULL), 0);
	double prepared = simulation->prepare_cpu_s;
	assert_true(prepared > 0);
	assert_int_equal(simulation_run(simulation, why, sizeof(why)), 0);
	assert_true(simulation->result.setup_cpu_s > prepared); /* network, routes and flows are opened, too */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(class__that_no_switch_has_is_refused),
		cmocka_unit_test(flows__that_are_taken_otherwise_are_warned_of),
		cmocka_unit_test(flows__refuse_what_packets_alone_can_have),
		cmocka_unit_test(flows__are_labelled_with_what_is_not_there),
		cmocka_unit_test(flows__run_as_messages_alone_would),
		cmocka_unit_test(flap__without_an_end_of_being_down_is_refused),
		cmocka_unit_test(setup__has_a_cpu_time_of_its_own),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
