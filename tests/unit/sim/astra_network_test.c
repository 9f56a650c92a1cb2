/* ASTRA-sim's networks, and hosts that a network's file describes. */
#include "../unit.h"
#include <errno.h>
#include <unistd.h>
#include "sim/astra_network.h"
#include "sim/simulation.h"

static const struct topology like = { .profile = { .name = "p" }, .nic = { .name = "n" } };
static struct network network;
static struct hosts hosts;
static const char *note;
static char why[400], path[] = "/tmp/verbena-network-XXXXXX.yml";

static int set_up(void **state)
{
	const int file = mkstemps(path, 4);
	return file >= 0 ? close(file) : -1;
}

static int tear_down(void **state)
{
	network_free(&network);
	return unlink(path);
}

static int read_text(const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	network_free(&network);
	*why = 0;
	return astra_network_read(path, &like, &network, &hosts, &note, why, sizeof(why));
}

static void accepted(const char *text)
{
	const int rc = read_text(text);
	assert_string_equal(why, "");
	assert_int_equal(rc, 0);
	assert_int_equal(hosts_check(&hosts, network.endpoint_count, why, sizeof(why)), 0);
}

/* `because` follows the file's name. */
static void refused(const char *text, const char *because)
{
	assert_int_equal(read_text(text), -EINVAL);
	assert_string_equal(why + strlen(path), because);
	assert_null(network.links);
	assert_int_equal(hosts.gpus, 0);
}

#define HGX "topology: [ Switch ]\nnpus_count: [ 8 ]\nbandwidth: [ 400.0 ]  # GB/s\nlatency: [ 936.25 ]  # ns\n"
#define TWO "topology: [Ring, Switch]\nnpus_count: [4, 3]\nbandwidth: [300, 50.0]\nlatency: [100, 500]\n"

static void first_dimension__is_the_scale_up_domain(void **state)
{
	accepted(HGX);
	assert_int_equal(hosts.gpus, 8);
	assert_int_equal(hosts.nics, 8);
	assert_int_equal(hosts.scale_up, 3200000000000);
	assert_int_equal(hosts.scale_up_time, 1872500); /* two links */
	assert_int_equal(network.endpoint_count, 8);    /* of one host */
	assert_int_equal(network.switch_count, 1);
	assert_null(note);
	accepted("topology: Ring\nnpus_count: 8\nbandwidth: 50\nlatency: 500\n");
	assert_int_equal(hosts.scale_up_time, 500 * VB_NS);
	assert_non_null(note);
}

static void second_dimension__is_a_switch_for_each_rail(void **state)
{
	accepted(TWO);
	assert_int_equal(hosts.gpus, 4);
	assert_int_equal(hosts.scale_up, 2400000000000);
	assert_int_equal(network.endpoint_count, 12);
	assert_int_equal(network.switch_count, 4);
	assert_int_equal(network.endpoints[4].machine, 1);
	const struct network_link *nic = &network.links[network.endpoints[5].link];
	assert_int_equal(nic->bits_per_second, 400000000000);
	assert_int_equal(nic->delay, 500 * VB_NS);
	assert_int_equal(nic->to, network.links[network.endpoints[9].link].to);
	assert_int_not_equal(nic->to, network.links[network.endpoints[4].link].to);
	assert_string_equal(network.profiles[0].name, "p");
	assert_string_equal(network.nics[0].name, "n");
}

#define WITH(topology, npus, bandwidth, latency)                                                                       \
	"topology: [" topology "]\nnpus_count: [" npus "]\nbandwidth: [" bandwidth "]\nlatency: [" latency "]\n"

static void values__that_are_wrong_are_named(void **state)
{
	refused(WITH("Mesh", "8", "400", "9"), ":1: topology: Mesh is not Switch, Ring or FullyConnected");
	refused(WITH("Switch", "0", "400", "9"), ":2: npus_count: 0 is not a number of NPUs");
	refused(WITH("Switch", "8.5", "400", "9"), ":2: npus_count: 8.5 is not a number of NPUs");
	refused(WITH("Switch", "8", "0", "9"), ":3: bandwidth: 0 is not a bandwidth in GB/s");
	refused(WITH("Switch", "8", "1e9", "9"), ":3: bandwidth: 1e9 is not a bandwidth in GB/s");
	refused(WITH("Switch", "8", "400", "-1"), ":4: latency: -1 is not a latency in ns");
	refused(WITH("Switch", "8, 2", "400", "9"), ":2: npus_count: 2 values for 1 dimensions");
	refused(WITH("", "8", "400", "9"), ":1: topology: 0 values for 0 dimensions");
	refused(WITH("Switch", "1025", "400", "9"),
		":2: hosts of 1025 GPUs, the first dimension: at most 1024 are supported");
	refused(WITH("Switch, Switch", "1024, 1048576", "4, 4", "9, 9"),
		": rails of more than 1048576 NICs or 8388608 links");
	refused("topology: [Switch]\n", ": npus_count is missing");
	refused("network: {topology: switch}\n",
		":1: network.topology: ASTRA-sim's networks have topology, npus_count, bandwidth and latency");
}

static void dimensions__that_are_not_supported_are_named(void **state)
{
	refused(WITH("Switch, Ring", "8, 2", "4, 4", "9, 9"),
		":1: a Ring as second dimension is not supported: hosts are joined by a Switch");
	refused(WITH("Ring, FullyConnected", "8, 2", "4, 4", "9, 9"),
		":1: a FullyConnected as second dimension is not supported: hosts are joined by a Switch");
	refused(WITH("Ring, Switch, Switch", "8, 2, 2", "4, 4, 4", "9, 9, 9"),
		":1: topology: more than 2 dimensions are not supported: GPUs of a host, and a Switch between hosts");
}

static void files__that_are_not_yaml_are_refused(void **state)
{
	assert_int_equal(read_text(""), -EINVAL);
	assert_int_equal(read_text("topology: [\n"), -EINVAL);
	assert_int_equal(read_text("- Switch\n"), -EINVAL);
	assert_int_equal(astra_network_read("/nowhere.yml", &like, &network, &hosts, &note, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "/nowhere.yml: No such file or directory");
	assert_true(astra_network_is("a/b.yaml") && astra_network_is(".yml"));
	assert_true(!astra_network_is("a.yml/b") && !astra_network_is("yml") && !astra_network_is(""));
}

/* ---- The scenario's own hosts ------------------------------------------------------------------------------------ */

static struct hosts merged(const char *keys)
{
	static struct scenario scenario;
	struct simulation simulation;
	struct document document = { 0 };
	struct document_error error = { 0 };
	char text[400];
	accepted(HGX);
	snprintf(text, sizeof(text), "network: {file: %s}\nworkload: {kind: allreduce, bytes: 8kB}\n%s", path, keys);
	assert_int_equal(document_read(&document, text, strlen(text), &error), 0);
	assert_int_equal(scenario_fill(&scenario, &document, "", &error), 0);
	document_free(&document);
	if (simulation_prepare(&simulation, &scenario, NULL, why, sizeof(why)))
		fail_msg("%s", why);
	const struct hosts its = simulation.hosts;
	simulation_free(&simulation);
	return its;
}

static void hosts__of_the_scenario_come_before_the_file(void **state)
{
	struct hosts its = merged("");
	assert_int_equal(its.gpus, 8);
	assert_int_equal(its.nics, 8);
	assert_int_equal(its.scale_up, 3200000000000);
	assert_int_equal(its.scale_up_time, 1872500);
	assert_true(its.keeps_rails);
	its = merged("hosts: {gpus: 4, scale-up-delay: 1us}\n");
	assert_int_equal(its.gpus, 4);
	assert_int_equal(its.nics, 4);
	assert_int_equal(its.scale_up, 3200000000000);
	assert_int_equal(its.scale_up_time, VB_US);
	its = merged("hosts: {nics: 4, scale-up: 800G}\n");
	assert_int_equal(its.gpus, 8);
	assert_int_equal(its.nics, 4);
	assert_int_equal(its.scale_up, 800000000000);
	its = merged("hosts: {gpu: GH200}\n");
	assert_int_equal(its.gpus, 4);
	assert_int_equal(its.scale_up, 1200000000000);
	assert_int_equal(merged("hosts: {gpus: 0}\n").gpus, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_dimension__is_the_scale_up_domain),
		cmocka_unit_test(second_dimension__is_a_switch_for_each_rail),
		cmocka_unit_test(values__that_are_wrong_are_named),
		cmocka_unit_test(dimensions__that_are_not_supported_are_named),
		cmocka_unit_test(files__that_are_not_yaml_are_refused),
		cmocka_unit_test(hosts__of_the_scenario_come_before_the_file),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
