/* What a scenario says, and what is said of one that is wrong. */
#include "../unit.h"
#include <errno.h>
#include "sim/scenario.h"

static struct scenario *scenario;
static struct document_error error;

static int fill(const char *text, const char *key, const char *value)
{
	struct document document = { 0 };
	error = (struct document_error){ 0 };
	int rc = document_read(&document, text, strlen(text), &error);
	if (!rc && key)
		rc = scenario_set(&document, key, value, &error);
	if (!rc)
		rc = scenario_fill(scenario, &document, "some/where", &error);
	document_free(&document);
	return rc;
}

static int set_up(void **state)
{
	scenario = malloc(sizeof(*scenario));
	return scenario ? 0 : -1;
}

static int tear_down(void **state)
{
	free(scenario);
	return 0;
}

static void scenario__values_arrive_where_they_belong(void **state)
{
	assert_int_equal(fill("name: A test\n"
			      "network:\n"
			      "  topology: fat-tree\n"
			      "  endpoints: 128\n"
			      "  host-rate: 100 Gb/s\n"
			      "  switch:\n"
			      "    buffer: 32MB\n"
			      "    routing: adaptive\n"
			      "    class-count: 3\n"
			      "    classes:\n"
			      "      all: {weight: 2}\n"
			      "      1: {lossless: yes, weight: 7, mark-chance: 20%}\n"
			      "  faults:\n"
			      "    - {link: switch 2 port 5, loss: 0.1%, down: 1us, up: 2us}\n"
			      "transport: {mtu: 1000, timeout: 4ms, retries: 3}\n"
			      "workload:\n"
			      "  - {kind: incast, bytes: 500kB, senders: 16}\n"
			      "  - {file: flows.csv}\n"
			      "run: {seed: 7, limit: 2ms}\n"
			      "capture: {links: [endpoint 3 up, endpoint 3 down]}\n",
				 NULL, NULL),
		0);
	assert_string_equal(scenario->name, "A test");
	assert_string_equal(scenario->topology.kind, "fat-tree");
	assert_int_equal(scenario->topology.endpoints, 128);
	assert_true(scenario->topology.host_bits_per_second == 100000000000u);
	assert_int_equal(scenario->topology.host_delay, VB_US); /* the default */
	const struct switch_profile *profile = &scenario->topology.profile;
	assert_true(profile->buffer_bytes == 32000000);
	assert_int_equal(profile->routing, ROUTING_ADAPTIVE);
	assert_int_equal(profile->class_count, 3);
	assert_int_equal(profile->classes[0].weight, 2);
	assert_int_equal(profile->classes[1].weight, 7);
	assert_int_equal(profile->classes[1].mark_ppm, 200000);
	assert_true(profile->classes[1].is_lossless);
	assert_int_equal(scenario->fault_count, 1);
	assert_string_equal(scenario->faults[0].link, "switch 2 port 5");
	assert_int_equal(scenario->faults[0].fault.loss_ppm, 1000);
	assert_int_equal(scenario->mtu, 1000);
	assert_true(scenario->timeout == 4 * VB_MS);
	assert_int_equal(scenario->workload_count, 2);
	assert_int_equal(scenario->workloads[0].workload.senders, 16);
	assert_true(scenario->workloads[0].workload.bytes == 500000);
	assert_string_equal(scenario->workloads[1].file, "some/where/flows.csv"); /* beside the scenario */
	assert_true(scenario->seed == 7 && scenario->limit == 2 * VB_MS);
	assert_string_equal(scenario->captured, "endpoint 3 up,endpoint 3 down");
}

static void scenario__a_profile_is_set_before_what_changes_it(void **state)
{
	char text[200];
	snprintf(text, sizeof(text), "network: {topology: switch, switch: {buffer: 12345, profile: %s}}\n",
		switch_profile_name(1));
	assert_int_equal(fill(text, NULL, NULL), 0);
	assert_string_equal(scenario->topology.profile.name, switch_profile_name(1));
	assert_true(scenario->topology.profile.buffer_bytes == 12345);
}

static void sections__may_be_empty(void **state)
{
	assert_int_equal(fill("network: {topology: switch, switch: {classes: {0: {}, all: }}, faults: []}\nworkload: "
			      "[{}]\ncapture: {}\n"
			      "variants: {}\n",
				 NULL, NULL),
		0);
	assert_int_equal(scenario->workload_count, 0);
}

static void scenario__a_command_line_is_checked_as_a_file_is(void **state)
{
	static const char text[] = "network: {topology: switch}\nworkload: {kind: incast}\n";
	assert_int_equal(fill(text, "transport.mtu", "1024"), 0);
	assert_int_equal(scenario->mtu, 1024);
	assert_int_equal(scenario->workload_count, 1); /* a map is a list of one */
	assert_int_equal(fill(text, "workload.1.file", "x.csv"), 0);
	assert_string_equal(scenario->workloads[1].file, "x.csv"); /* where the user stands */
	assert_int_equal(fill(text, "workload.2.file", "x.csv"), -EINVAL);
	assert_int_equal(fill(text, "transport.mtu", "1"), -EINVAL);
	assert_int_equal(error.at.line, 0);
}

static const char with_variants[] =
	"network: {topology: switch, switch: {buffer: 1MB, classes: {all: {weight: 2}, 0: {weight: 3}}}}\n"
	"transport: {mtu: 1024, ack-every: 4}\n"
	"workload: [{kind: incast}]\n"
	"variants:\n"
	"  small: {transport: {mtu: 512}, network: {switch: {profile: tomahawk}}}\n"
	"  large: {transport: {mtu: 2048}, workload: [{kind: permutation}, {file: more.csv}]}\n"
	"  fair: {network: {switch: {classes: {all: {weight: 1}}}}}\n"
	"  same:\n"
	"  empty: {}\n";

static void variant__is_laid_over_the_rest(void **state)
{
	assert_int_equal(fill(with_variants, NULL, NULL), 0);
	assert_int_equal(scenario->mtu, 1024);
	assert_string_equal(scenario->variant, "");
	assert_int_equal(fill(with_variants, "variant", "same"), 0);
	assert_int_equal(scenario->mtu, 1024);
	assert_int_equal(fill(with_variants, "variant", "empty"), 0);
	assert_int_equal(scenario->mtu, 1024);
	assert_int_equal(fill(with_variants, "variant", "small"), 0);
	assert_int_equal(scenario->mtu, 512);
	assert_int_equal(scenario->ack_every, 4);
	assert_string_equal(scenario->variant, "small");
	assert_string_equal(scenario->topology.profile.name, "tomahawk");
	assert_true(scenario->topology.profile.buffer_bytes ==
		    1000000); /* a profile is less than what is said of one thing */
	assert_int_equal(fill(with_variants, "variant", "large"), 0);
	assert_int_equal(scenario->mtu, 2048);
	assert_int_equal(scenario->workload_count, 2);
	assert_string_equal(scenario->workloads[0].workload.kind, "permutation");
	assert_string_equal(scenario->workloads[1].file, "some/where/more.csv");
	assert_int_equal(fill(with_variants, "variant", "fair"), 0);
	assert_int_equal(scenario->topology.profile.classes[0].weight, 1);
}

/* And may change a variant. */
static void command_line__is_more_than_a_variant(void **state)
{
	char text[1000];
	snprintf(text, sizeof(text), "%svariant: small\n", with_variants);
	assert_int_equal(fill(text, "transport.mtu", "4096"), 0);
	assert_int_equal(scenario->mtu, 4096);
	assert_string_equal(scenario->variant, "small");
	assert_int_equal(fill(text, "variants.small.transport.mtu", "256"), 0);
	assert_int_equal(scenario->mtu, 256);
	assert_int_equal(fill(text, "network.switch.classes.all.weight", "7"), 0);
	assert_int_equal(scenario->topology.profile.classes[0].weight, 7);
	assert_int_equal(fill("network: {topology: switch}\nworkload: [{kind: incast}, {kind: incast}]\n",
				 "workload.0.kind", "permutation"),
		0);
	assert_int_equal(scenario->workload_count, 2); /* and elements of lists are counted as before */
	assert_int_equal(fill(text, "transport.cc", "smal"), -EINVAL);
	assert_non_null(
		strstr(error.text, "of variants there are small, large, fair, same, empty; did you mean small?"));
}

#define TWO_WORKLOADS "network: {topology: switch}\nworkload: [{kind: incast}, {kind: permutation}]\n"

static void list_of_several__wants_a_number(void **state)
{
	static const char one[] = "network: {topology: switch}\nworkload: [{kind: incast, bytes: 1kB}]\n";
	assert_int_equal(fill(one, "workload.bytes", "5kB"), 0);
	assert_true(scenario->workloads[0].workload.bytes == 5000);
	assert_int_equal(fill(TWO_WORKLOADS, "workload.1.bytes", "5kB"), 0);
	assert_true(scenario->workloads[1].workload.bytes == 5000);
	assert_int_equal(fill(TWO_WORKLOADS, "workload.bytes", "5kB"), -EINVAL);
	assert_string_equal(
		error.text, "workload.bytes: there are 2 of these: write workload.0.bytes, or the number of another");
	assert_int_equal(fill(TWO_WORKLOADS, "workload.kind", "poisson"), -EINVAL);
	assert_int_equal(error.at.line, 0); /* though the file has workload.0.kind */
	assert_int_equal(
		fill(TWO_WORKLOADS "variants: {a: {workload: {bytes: 5kB}}, b: {}}\n", "variant", "a"), -EINVAL);
	assert_string_equal(error.text,
		"variants.a.workload.bytes: there are 2 of these: write workload.0.bytes, or the number of another");
	assert_int_equal(
		fill("network: {topology: switch, faults: [{link: a}, {link: b}]}\n", "network.faults.loss", "1%"),
		-EINVAL);
	assert_string_equal(error.text,
		"network.faults.loss: there are 2 of these: write network.faults.0.loss, or the number of another");
}

/* The command line may make several of one, before or after. */
static void list__that_a_command_line_makes_longer_wants_a_number(void **state)
{
	static const char *const files[] = { "workload: {kind: incast, bytes: 1kB}\n", "workload: [{kind: incast}]\n" };
	static const char *const orders[][2] = { { "workload.1.kind", "workload.bytes" },
		{ "workload.bytes", "workload.1.kind" } };
	for (size_t i = 0; i < 4; i++) {
		struct document document = { 0 };
		char text[120];
		snprintf(text, sizeof(text), "network: {topology: switch}\n%s", files[i / 2]);
		error = (struct document_error){ 0 };
		assert_int_equal(document_read(&document, text, strlen(text), &error), 0);
		for (size_t key = 0; key < 2; key++)
			assert_int_equal(scenario_set(&document, orders[i % 2][key],
						 strchr(orders[i % 2][key], '1') ? "incast" : "5kB", &error),
				0);
		assert_int_equal(scenario_fill(scenario, &document, "", &error), -EINVAL);
		assert_string_equal(error.text,
			"workload.bytes: there are 2 of these: write workload.0.bytes, or the number of another");
		document_free(&document);
	}
	assert_int_equal(fill("network: {topology: switch}\nworkload: {kind: incast}\nvariants: {a: {workload: [{kind: "
			      "incast}, {kind: incast}]}}\n",
				 "workload.bytes", "5kB"),
		0); /* of a variant that is not chosen */
	assert_true(scenario->workloads[0].workload.bytes == 5000);
}

static void scenario__what_is_wrong_has_a_place_and_a_cure(void **state)
{
	static const struct {
		const char *text;
		unsigned line, column;
		const char *says;
	} wrong[] = {
		{ "network:\n  topolgy: torus\n", 2, 3,
			"network.topolgy: there is no such key; did you mean network.topology?" },
		{ "network: {topology: switch, mtu: 4096}\n", 1, 29, "did you mean transport.mtu?" },
		{ "elephants: 3\n", 1, 1, "verbena sim --keys lists all" },
		{ "network: 3\n", 1, 10, "keys belong here" },
		{ "network:\n  topology: star\n", 2, 13, "write one of switch|dumbbell|" },
		{ "network: {host-rate: 400}\n", 1, 22, "write a rate: 100G" },
		{ "network: {host-delay: fast}\n", 1, 23, "write a time" },
		{ "network: {endpoints: -1}\n", 1, 22, "write a whole number" },
		{ "network: {endpoints: 2000000}\n", 1, 22, "from 0 to 1000000" },
		{ "transport: {mtu: 16}\n", 1, 18, "write one from 64 B to 9 kB" },
		{ "network: {switch: {cut-through: maybe}}\n", 1, 33, "write yes or no" },
		{ "transport: {mtu: }\n", 1, 18, "a value is missing" },
		{ "transport: {cc: windows}\n", 1, 17, "no congestion control \"windows\"; there are none, window" },
		{ "transport: {cc: \"window, size=3\"}\n", 1, 17, "window has no parameter \"size\"" },
		{ "network: {faults: {loss: 200%}}\n", 1, 26, "from 0% to 100%" },
		{ "network: {faults: {bit-error-rate: nan}}\n", 1, 36, "write a number" },
		{ "network: {switch: {classes: {8: {weight: 1}}}}\n", 1, 34, "there are only 8" },
		{ "network: {switch: {profile: abacus}}\n", 1, 29, "no such profile of a switch; there are" },
		{ "network: {dimensions: [4, 0]}\n", 1, 23, "write [4, 4, 4]" },
		{ "variants: {a: {transport: {mtu: 16}}}\n", 1, 33,
			"variants.a.transport.mtu: '16': write one from 64 B" },
		{ "variants: {a: {transport: {mtus: 1}}}\n", 1, 28,
			"variants.a.transport.mtus: there is no such key; did you mean transport.mtu?" },
		{ "variants: {a: {variant: b}}\n", 1, 16, "a variant cannot choose another" },
		{ "variants: {a: {variants: {b: {name: x}}}}\n", 1, 31, "there is no such key" },
		{ "variants: {a: 3}\n", 1, 15, "keys belong here" },
		{ "network: {switches: {}}\n", 1, 11, "network.switches: there is no such key" },
		{ "network: {switch: {classes: {0: 3}}}\n", 1, 33, "network.switch.classes.0: '3': keys belong here" },
		{ "variants: a\n", 1, 11, "keys belong here" },
		{ "variant: fist\nvariants: {first: {name: x}}\n", 1, 10,
			"no such variant; there are first; did you mean first?" },
		{ "run: {seed: 1}\n", 0, 0, "network.topology or network.file is missing" },
	};
	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		assert_int_equal(fill(wrong[i].text, NULL, NULL), -EINVAL);
		if (error.at.line != wrong[i].line || error.at.column != wrong[i].column ||
			!strstr(error.text, wrong[i].says))
			fail_msg("%s: %u:%u %s", wrong[i].text, error.at.line, error.at.column, error.text);
	}
}

static void keys__fit_their_fields(void **state)
{
	for (const struct scenario_key *key = scenario_keys; key->path; key++) {
		uint32_t index;
		bool is_all;
		assert_ptr_equal(
			scenario_key_find(key->path, &index, &is_all) == NULL && !strchr(key->path, '*'), false);
		assert_non_null(key->help);
		if (key->set)
			continue;
		bool is_number = key->kind >= VALUE_COUNT;
		assert_true(key->offset + key->size + (key->most ? key->most - 1 : 0) * key->stride <=
			    sizeof(struct scenario));
		assert_true(is_number ? key->size == 1 || key->size == 4 || key->size == 8 : key->size > 0);
		assert_true(!is_number || key->largest > key->least);
		assert_true((key->kind == VALUE_WORD || key->kind == VALUE_NAME) == (key->words != NULL));
		assert_true(key->kind != VALUE_REAL || key->size == sizeof(double));
		assert_true(key->kind != VALUE_TIME || key->size == sizeof(vb_time));
	}
}

/* In the file, in a variant, on the command line; a file of a network may say the rate. */
static void gpus_without_a_rate__are_refused_with_line_and_cure(void **state)
{
	static const char hosts[] = "network: {topology: switch, endpoints: 8}\nhosts:\n  gpus: 4\n";
	assert_int_equal(fill(hosts, NULL, NULL), -EINVAL);
	assert_int_equal(error.at.line, 3);
	assert_int_equal(error.at.column, 9);
	assert_string_equal(error.text,
		"hosts.gpus: 4 GPUs of a host need the rate of their ports to each other: set hosts.scale-up, as "
		"3600G, or name the GPU, as hosts.gpu H100 (verbena sim --gpus lists them)");
	assert_int_equal(fill(hosts, "hosts.gpus", "2"), -EINVAL);
	assert_int_equal(error.at.line, 0);
	assert_non_null(strstr(error.text, "hosts.gpus: 2 GPUs of a host need"));
	assert_int_equal(
		fill("network: {topology: switch}\nvariants: {two: {hosts: {gpus: 2}}}\nvariant: two\n", NULL, NULL),
		-EINVAL);
	assert_int_equal(error.at.line, 2);
	assert_non_null(strstr(error.text, "variants.two.hosts.gpus: 2 GPUs of a host need"));
	assert_int_equal(fill(hosts, "hosts.scale-up", "3600G"), 0);
	assert_int_equal(fill(hosts, "hosts.gpu", "H100"), 0);
	assert_int_equal(fill(hosts, "hosts.gpus", "0"), 0);
	assert_int_equal(fill("network: {file: x.yml}\nhosts: {gpus: 4}\n", NULL, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scenario__values_arrive_where_they_belong),
		cmocka_unit_test(scenario__a_profile_is_set_before_what_changes_it),
		cmocka_unit_test(sections__may_be_empty),
		cmocka_unit_test(scenario__a_command_line_is_checked_as_a_file_is),
		cmocka_unit_test(variant__is_laid_over_the_rest),
		cmocka_unit_test(command_line__is_more_than_a_variant),
		cmocka_unit_test(list_of_several__wants_a_number),
		cmocka_unit_test(list__that_a_command_line_makes_longer_wants_a_number),
		cmocka_unit_test(scenario__what_is_wrong_has_a_place_and_a_cure),
		cmocka_unit_test(keys__fit_their_fields),
		cmocka_unit_test(gpus_without_a_rate__are_refused_with_line_and_cure),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
