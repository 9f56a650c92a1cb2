/* What contradicts itself is warned of, with what comes of it; what does not is not. */
#include "../unit.h"
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

/* Of a file of these lines. */
static const struct warnings *warnings_of_lines(const char *lines)
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
	if (rc)
		fail_msg("%s%s", error.text, why);
	return &simulation->warnings;
}

/* Sixteen endpoints at 100 Gb/s on a switch of 4 MB, and these settings. */
static const struct warnings *warnings_of(const char *switch_keys, const char *transport)
{
	static const char form[] =
		"network: {topology: switch, endpoints: 16, host-rate: 100G, switch: {buffer: 4MB%s%s}}\n"
		"transport: {mtu: 1000, data-overhead: 48%s%s}\nworkload: {kind: incast, bytes: 10kB}\n";
	char text[1000];
	snprintf(text, sizeof(text), form, *switch_keys ? ", " : "", switch_keys, *transport ? ", " : "", transport);
	return warnings_of_lines(text);
}

static void warnings__say_what_comes_of_it(void **state)
{
	static const struct {
		const char *of_switch, *transport, *says;
	} wrong[] = {
		{ "classes: {0: {mark-min: 20kB, mark-max: 8MB}}", "cc: window",
			"mark-max is 8 MB before endpoint 0 down, and that queue never "
			"holds more than " },
		{ "classes: {0: {mark-min: 5MB, mark-max: 8MB}}", "cc: window",
			"mark-min is 5 MB before endpoint 0 down, and that queue never "
			"holds more than " },
		{ "classes: {0: {mark-min: 5MB, mark-max: 8MB}}", "cc: window", "nothing will be marked there" },
		{ "classes: {0: {limit: 20kB, mark-min: 100kB, mark-max: 200kB}}", "cc: window",
			"are paused when it holds 48.19 kB: pauses will "
			"come before marks. Lower mark-min" },
		{ "keeps: classes, classes: {0: {alpha: 0.125, mark-min: 50kB, mark-max: 60kB}}", "cc: window",
			"when all ports of its switch are busy, "
			"senders to that queue are paused when" },
		{ "classes: {0: {mark-min: 30kB, mark-max: 20kB}}", "cc: window",
			"above mark-max, 20 kB: all packets are marked from mark-min on" },
		{ "headroom: 20kB", "", "headroom is 20 kB, and endpoint 0 up needs 27.18 kB" },
		{ "headroom: 20kB", "", "lossless classes will lose packets that arrive after a pause was due" },
		{ "flow-control: drops, classes: {0: {lossless: yes}}", "",
			"classes.0 is lossless, and flow-control is drops: no sender is paused" },
		{ "classes: {0: {mark-min: 10kB, mark-max: 20kB}}", "cc: none",
			"the congestion control (none) ignores marks: they will change nothing" },
		{ "classes: {all: {mark-max: 0}}", "endpoint: tcp, tcp: dctcp",
			"transport.tcp dctcp uses marks, and no switch makes any" },
		{ "classes: {0: {mark-min: 10kB, mark-max: 20kB}}", "endpoint: tcp, tcp: newreno",
			"the congestion control (newreno) ignores marks" },
		{ "", "endpoint: tcp, cc: window", "transport.cc window is for engines, and endpoints have TCP" },
		{ "classes: {0: {mark-min: 20kB, mark-max: 20kB}}", "cc: dctcp",
			"uses the share of marked packets, which CNPs do not carry" },
		{ "", "first-window: 2MB, largest-window: 1MB",
			"first-window is above largest-window: flows begin with largest-window" },
		{ "", "endpoint: tcp, timeout: 1ms, retries: 3",
			"transport.timeout, transport.retries: only for transport.endpoint engine|ideal, "
			"and that is tcp: no effect" },
		{ "", "rto-min: 5ms, cpu-byte: 1ns, tcp: cubic",
			"transport.tcp, transport.rto-min, transport.cpu-byte: only for transport.endpoint tcp, "
			"and that is engine" },
		{ "", "endpoint: tcp, marks: acks", "transport.marks: only for transport.endpoint engine" },
		{ "", "endpoint: ideal, cnp-interval: 4us",
			"transport.cnp-interval: only for transport.endpoint engine, and that is ideal" },
		{ "", "marks: acks, cnp-scope: port",
			"transport.cnp-scope: only for transport.marks cnps, and that is acks" },
		{ "", "receive-buffer: 1MiB",
			"transport.receive-buffer: only for transport.behind sockets, and that is nic" },
		{ "", "cc: 'hpcc, rtt=4us'",
			"transport.cc hpcc assumes a round trip of 4 us (rtt), and from endpoint 1 to endpoint 0 it "
			"takes "
			"4.181 us without queueing: 15 of 15 flows have longer paths than assumed, and stay below "
			"their links' rate. Set "
			"rtt=path" },
		{ "", "cc: 'swift, base-target=3us, hops=1'",
			"transport.cc swift assumes a round trip of 4 us (base-target)" },
		{ "classes: {0: {mark-min: 20kB, mark-max: 20kB}}", "marks: acks, cc: 'dctcp, rtt=1us'",
			"Set rtt=path" },
		{ "flow-control: drops, trim: 64", "",
			"network.switch.trim: what is left of packets goes ahead in class 7, and answers to it wait "
			"behind data in class 0: set transport.ack-class to 7" },
		{ "telemetry: ns3", "",
			"network.switch.telemetry: only for transport.cc hpcc, and that is none: no effect" },
		{ "flow-control: drops, pause-time: 10us", "",
			"network.switch.pause-time: only for network.switch.flow-control pfc, and that is drops" },
		{ "credits: 64KiB", "",
			"network.switch.credits: only for network.switch.flow-control credits, and that is pfc" },
		{ "class-count: 2, classes: {2: {weight: 1}}", "",
			"classes.2: switches have class-count 2, counted from 0" },
	};
	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		const struct warnings *warnings = warnings_of(wrong[i].of_switch, wrong[i].transport);
		if (warnings->count != 1 || !strstr(warnings->texts[0], wrong[i].says))
			fail_msg("%zu: %u warnings: %s", i, warnings->count, warnings->count ? warnings->texts[0] : "");
	}
}

/* These lines alone, and what is warned of. */
static void warns(const char *lines, const char *says)
{
	const struct warnings *warnings = warnings_of_lines(lines);
	if (warnings->count != (says != NULL) || (says && strcmp(warnings->texts[0], says) != 0))
		fail_msg("%u warnings: %s", warnings->count, warnings->count ? warnings->texts[0] : "");
}

#define STAR "network: {topology: switch, endpoints: 4}\n"

static void keys__of_another_workload_or_topology_change_nothing(void **state)
{
	warns(STAR "workload: {kind: incast, load: 10%}",
		"workload.*.load: only for workload.*.kind poisson, and that is another: no effect");
	warns(STAR "workload: [{kind: incast}, {kind: poisson, load: 10%, duration: 1us}]", NULL);
	warns("network: {topology: switch, endpoints: 4, radix: 4}\nworkload: {kind: incast}",
		"network.radix: only for network.topology fat-tree, and that is switch: no effect");
	warns("network: {topology: switch, endpoints: 4, fabric-rate: 1G}\nworkload: {kind: incast}",
		"network.fabric-rate: only for network.topology dumbbell|leaf-spine|fat-tree|rail|torus|ring, and that "
		"is switch: no effect");
}

/* A file says once what some of its variants want. */
static void keys__are_not_warned_of_where_a_variant_wants_them(void **state)
{
	static const char lines[] = STAR "workload: {kind: incast}\ntransport: {rto-min: 5ms%s}\n"
					 "variants: {a: {transport: {%s}}, b: {transport: {mtu: 1000}}}\n";
	char text[400];
	snprintf(text, sizeof(text), lines, "", "endpoint: tcp");
	warns(text, NULL);
	snprintf(text, sizeof(text), lines, ", endpoint: tcp", "endpoint: engine");
	warns(text, NULL);
	warns("network: {topology: switch, endpoints: 4, switch: {pause-time: 10us, flow-control: drops}}\nworkload: "
	      "{kind: incast}\n"
	      "variants: {a: {network: {switch: {profile: quantum}}}}\n",
		NULL);
	warns("network: {topology: switch, endpoints: 4, switch: {telemetry: ns3}}\nworkload: {kind: incast}\n"
	      "variants: {hpcc: {transport: {cc: hpcc}}}\n",
		NULL);
	snprintf(text, sizeof(text), lines, "", "tcp: cubic");
	warns(text, "transport.rto-min: only for transport.endpoint tcp, and that is engine: no effect");
}

/* What the table says that a key is of is there. */
static void keys__are_of_what_there_is(void **state)
{
	for (const struct scenario_key *key = scenario_keys; key->path; key++) {
		char path[80], words[400], *word, *rest = words;
		uint32_t index;
		bool is_all;
		if (!key->of)
			continue;
		assert_int_equal(sscanf(key->of, "%79[^=]=%399s", path, words), 2);
		const struct scenario_key *its = scenario_key_find(
			strncmp(path, "workload.*.", 11) == 0 ? "workload.0.kind" : path, &index, &is_all);
		assert_non_null(its);
		assert_string_equal(its->path, path);
		if (strcmp(path, "transport.cc") == 0) {
			for (unsigned i = 0; vb_cc_algorithms[i]; i++)
				assert_int_equal(strcmp(vb_cc_algorithms[i]->name, words) == 0,
					vb_cc_algorithms[i]->goes_by == VB_CC_BY_TELEMETRY);
			continue;
		}
		assert_true(its->kind == VALUE_NAME || (its->kind == VALUE_WORD && its->size == 4));
		while ((word = strsep(&rest, "|"))) {
			uint32_t number;
			assert_true(value_word(its->words, word, &number));
		}
	}
}

static void warns_of_fault(const char *keys, const char *says)
{
	char text[300];
	snprintf(text, sizeof(text),
		"network: {topology: switch, endpoints: 4, faults: [{link: endpoint 0, loss: 1%%}, {link: endpoint "
		"1%s}]}\n"
		"workload: {kind: incast}\n",
		keys);
	warns(text, says);
}

static void fault__that_changes_nothing_is_warned_of(void **state)
{
	static const char none[] = "network.faults.1 has no effect: it neither loses, duplicates, delays nor marks "
				   "packets, and the link stays up";
	static const char never[] = "network.faults.1.down is 0, and there is no up: that link never goes down. Write "
				    "1ps for a link that is down from the beginning";
	static const char *const some[] = { "loss: 1%", "loss-every: 9", "bit-error-rate: 1e-9", "duplicate: 1%",
		"jitter: 1us", "late: 1%, late-by: 1us", "mark: 1%", "down: 1us", "up: 1us", "down: 0, up: 1us",
		"down: 1us, up: 2us, flap: 9us" };
	char keys[80];
	warns_of_fault("", none);
	warns_of_fault(", detection: 1us", none);
	warns_of_fault(", late: 1%", none);
	warns_of_fault(", late-by: 1us", none);
	warns_of_fault(", down: 0", never);
	warns_of_fault(", down: 0, loss: 1%", never);
	for (size_t i = 0; i < COUNT_OF(some); i++) {
		snprintf(keys, sizeof(keys), ", %s", some[i]);
		warns_of_fault(keys, NULL);
	}
}

static void telemetry__is_not_there_without_switches(void **state)
{
	const struct nic_profile nic = { .name = "ideal" };
	char why[200];
	assert_int_equal(warnings_of("", "cc: hpcc")->count, 0);
	network_free(&simulation->network);
	network_add_nic(&simulation->network, &nic);
	for (uint32_t i = 0; i < 2; i++)
		network_add_endpoint(&simulation->network, i, 0);
	network_connect(&simulation->network, 0, 1, 100000000000, VB_US);
	assert_int_equal(network_finish(&simulation->network, why, sizeof(why)), 0);
	simulation->flows.count = 1;
	simulation->flows.flows[0] = (struct flow){ .src = 0, .dst = 1, .bytes = 1 };
	warnings_find(simulation);
	assert_int_equal(simulation->warnings.count, 1);
	assert_non_null(strstr(simulation->warnings.texts[0],
		"hpcc needs telemetry of switches, and between endpoints 0 and 1 there is none"));
}

static void warnings__are_not_of_what_holds(void **state)
{
	static const char *const right[][2] = {
		{ "", "" }, { "classes: {0: {mark-min: 20kB, mark-max: 200kB}}", "cc: window" },
		{ "headroom: 30kB", "" }, { "flow-control: drops", "" }, /* a profile's lossless classes */
		{ "classes: {0: {mark-max: 0}}", "cc: none" },
		{ "classes: {0: {limit: 40kB}}", "cc: none" }, /* a profile's marks, which no control uses */
		{ "classes: {all: {mark-min: 20kB, mark-max: 200kB}, 3: {mark-min: 5MB, mark-max: 8MB}}",
			"cc: window" }, /* nobody sends in it */
		{ "classes: {0: {mark-min: 10kB, mark-max: 20kB}}", "endpoint: tcp, tcp: dctcp" },
		{ "classes: {0: {mark-min: 20kB, mark-max: 20kB}}", "cc: dctcp, marks: acks" },
		{ "", "first-window: 1MB, largest-window: 2MB" }, { "", "cc: 'hpcc, rtt=path'" },
		{ "telemetry: ns3", "cc: 'hpcc, rtt=path'" },
		{ "", "cc: 'hpcc, rtt=4.15us'" }, /* but for the acknowledgement */
		{ "", "cc: 'swift, base-target=path'" },
		{ "", "cc: 'swift, base-target=3us, above-least=1/4'" }, /* it goes by what it measures */
		{ "", "cc: 'timely, min-rtt=1us'" },
		{ "", "endpoint: tcp, rto-min: 5ms, ack-delay: 1ms, first-window: 20kB" },
		{ "flow-control: drops, reserved: 4kB, classes: {0: {alpha: 1}}", "" },
		{ "class-count: 2, classes: {1: {weight: 1}, all: {alpha: 1}}", "" },
		{ "flow-control: drops, trim: 64", "ack-class: 7" },
		{ "flow-control: drops, trim: 64, classes: {1: {strict: yes}}", "ack-class: 1" },
		{ "flow-control: drops, trim: 64", "endpoint: ideal" }, /* it says nothing of such */
	};
	for (size_t i = 0; i < COUNT_OF(right); i++) {
		const struct warnings *warnings = warnings_of(right[i][0], right[i][1]);
		if (warnings->count)
			fail_msg("%zu: %s", i, warnings->texts[0]);
	}
}

/* Of collectives, each with the settings and what is said of them; "": nothing. */
static void nccl_keys_without_effect__are_named(void **state)
{
	static const struct {
		const char *hosts, *nccl, *says, *algorithm; /* algorithm NULL: ring */
	} cases[] = {
		{ "", "split-data: yes",
			"workload.*.nccl.split-data: nccl.qps is 1, and a message goes whole: no effect", NULL },
		{ "", "split-data: yes, qps: 2", "", NULL },
		{ "", "qps: 2", "", NULL },
		{ "hosts: {gpus: 16, nics: 16, scale-up: 3600G}", "qps: 2",
			"workload.*.nccl.qps: all ranks share a host, in which there are no QPs: no effect", NULL },
		{ "hosts: {gpus: 8, nics: 8, scale-up: 3600G}", "qps: 2", "", NULL },
		{ "", "channels: 2", "workload.*.nccl.channels: without it no more NICs are used at once: no effect",
			NULL },
		{ "hosts: {gpus: 8, nics: 8, scale-up: 3600G}", "channels: 8",
			"workload.*.nccl.channels: without it no more NICs are used at once: no effect", NULL },
		{ "hosts: {gpus: 8, nics: 8, scale-up: 3600G}", "channels: 7", "", NULL },
		{ "", "buffsize: 1MiB", "workload.*.nccl.buffsize: only chain, double-tree and nvls send pieces",
			NULL },
		{ "", "buffsize: 1MiB", "", "double-tree" },
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[600];
		snprintf(text, sizeof(text),
			"network: {topology: switch, endpoints: 16, host-rate: 100G, switch: {profile: ideal}}\n"
			"%s\ntransport: {cc: none}\n"
			"workload: [{kind: allreduce, bytes: 1MB, algorithm: %s, nccl: {%s}}]\n",
			cases[i].hosts, cases[i].algorithm ? cases[i].algorithm : "ring", cases[i].nccl);
		const struct warnings *is = warnings_of_lines(text);
		assert_int_equal(is->count, *cases[i].says != 0);
		if (is->count && !strstr(is->texts[0], cases[i].says))
			fail_msg("%s", is->texts[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(warnings__say_what_comes_of_it),
		cmocka_unit_test(warnings__are_not_of_what_holds),
		cmocka_unit_test(keys__of_another_workload_or_topology_change_nothing),
		cmocka_unit_test(keys__are_not_warned_of_where_a_variant_wants_them),
		cmocka_unit_test(keys__are_of_what_there_is),
		cmocka_unit_test(nccl_keys_without_effect__are_named),
		cmocka_unit_test(fault__that_changes_nothing_is_warned_of),
		cmocka_unit_test(telemetry__is_not_there_without_switches),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
