#include <stdio.h>
#include "reading.h"

/* Two servers of two GPUs, an NVSwitch each, a switch for each rail, and one above. */
#define HEAD  "9 2 2 3 10 H100\n4 5 6 7 8 \n"
#define NV    "0 4 2880Gbps 0.000025ms 0\n1 4 2880Gbps 0.000025ms 0\n2 5 2880Gbps 0.000025ms 0\n"
#define NV_3  "5 3 2880Gbps 25ns 0\n" /* the other way round */
#define NIC   "0 6 400Gbps 0.0005ms 0\n1 7 400Gbps 0.0005ms 0\n2 6 400Gbps 0.0005ms 0\n"
#define NIC_3 "3 7 400Gbps 0.0005ms 0\n"
#define ABOVE "6 8 800Gbps 0.001ms 0.001\n7 8 800Gbps 0.001ms 0\n"

static const char rails[] = HEAD NV NV_3 NIC NIC_3 ABOVE;

static void simai__is_read(void **state)
{
	accepted(rails);
	assert_int_equal(network.endpoint_count, 4);
	assert_int_equal(network.switch_count, 3); /* without NVSwitches */
	assert_int_equal(network.link_count, 2 * 6);
	struct routes *routes = routes_make(&network);
	assert_int_equal(paths_between(&network, routes, 0, 2).links, 2);
	assert_int_equal(paths_between(&network, routes, 0, 3).links, 4);
	routes_free(routes);
	assert_int_equal(network.endpoints[1].machine, 0);
	assert_int_equal(network.endpoints[2].machine, 1);
	const struct network_link *nic = &network.links[network.endpoints[3].link];
	assert_int_equal(nic->to, network_switch_node(1));
	assert_int_equal(nic->bits_per_second, 400000000000);
	assert_int_equal(nic->delay, 500 * VB_NS);
	assert_string_equal(network.profiles[0].name, "p");
	assert_int_equal(network.switches[2].tier, 1);
}

static void nvswitches__make_the_scale_up_domain(void **state)
{
	accepted(rails);
	assert_int_equal(hosts.gpus, 2);
	assert_int_equal(hosts.nics, 2);
	assert_int_equal(hosts.scale_up, 2880000000000);
	assert_int_equal(hosts.scale_up_time, 50 * VB_NS); /* two links of 25 ns */
	assert_int_equal(hosts_check(&hosts, network.endpoint_count, why, sizeof(why)), 0);
}

static void nvswitches__of_a_server_may_be_several(void **state)
{
	accepted("5 2 2 1 6 A100\n2 3 4\n0 2 100Gbps 1us 0\n0 3 200Gbps 1us 0\n0 4 1Gbps 1us 0\n"
		 "1 2 200Gbps 1us 0\n1 3 100Gbps 1us 0\n1 4 1Gbps 1us 0\n");
	assert_int_equal(hosts.scale_up, 300000000000);
	assert_int_equal(network.switch_count, 1);
}

/* As SimAI's dual ToR networks have them: a NIC with two ports, at half of the delay on either side. */
static void gpus__with_two_links_have_nics_of_two_ports(void **state)
{
	uint32_t endpoint;
	accepted("4 1 0 2 4 X\n2 3\n0 2 200Gbps 1us 0.001\n0 3 200Gbps 1us 0\n1 2 200Gbps 1us 0\n1 3 200Gbps 1us 0\n");
	assert_int_equal(network.endpoint_count, 2);
	assert_int_equal(network.switch_count, 2 + 2);
	assert_int_equal(network_nic_ports(&network), 2);
	const struct network_link *up = &network.links[network.endpoints[1].link];
	assert_true(network_is_nic(&network, network_index(up->to), &endpoint));
	assert_int_equal(endpoint, 1);
	assert_int_equal(up->bits_per_second, 400000000000);
	assert_int_equal(up->delay, 500 * VB_NS);
	assert_int_equal(network_leaf_of(&network, 1), network_switch_node(0));
	struct routes *routes = routes_make(&network);
	assert_int_equal(paths_between(&network, routes, 0, 1).links, 4);
	assert_int_equal(paths_between(&network, routes, 0, 1).count, 2);
	routes_free(routes);
	assert_int_equal(network.faults[0].loss_ppm, 1000);
}

static void servers__of_one_gpu_need_no_nvswitch(void **state)
{
	accepted("3 1 0 1 2 X\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n");
	assert_int_equal(hosts.gpus, 0);
	assert_int_equal(network.endpoint_count, 2);
}

/* As in ns-3, where SimAI has the error model that loses packets. */
static void error_rate__is_the_share_of_lost_packets(void **state)
{
	accepted(rails);
	assert_int_equal(network.fault_count, 1);
	assert_int_equal(network.faults[0].loss_ppm, 1000);
	assert_int_equal(network.links[8].fault, 0);
	assert_int_equal(network.links[9].fault, 0);
}

static void other_formats__say_nothing_of_hosts(void **state)
{
	accepted(rails);
	accepted("3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n");
	assert_int_equal(hosts.gpus, 0);
}

static void first_line__that_is_wrong_is_named(void **state)
{
	static const char form[] = "f:1: expected the numbers of nodes, GPUs a server, NVSwitches, switches and links, "
				   "then the GPUs' type";
	refused("9 2 2 3 10\n", form);
	refused("9 2 2 3 10 H100 x\n", form);
	refused("9 2 2 3 -1 H100\n", form);
	refused("9999999999 2 2 3 1 H100\n", form);
	refused("5 2 2 3 1 H100\n", "f:1: 5 nodes, and 2 NVSwitches and 3 switches among them: no GPUs");
	refused("0 0 0 0 0 H\n", "f:1: 0 nodes, and 0 NVSwitches and 0 switches among them: no GPUs");
	refused("9 0 2 3 1 H\n", "f:1: servers of 0 GPUs: from 1 to 1024 are supported");
	refused("9 2000 2 3 1 H\n", "f:1: servers of 2000 GPUs: from 1 to 1024 are supported");
	refused("9 3 2 3 1 H\n", "f:1: 9 nodes less 2 NVSwitches and 3 switches are 4 GPUs: no servers of 3");
	refused("7 2 0 3 1 H\n", "f:1: servers of 2 GPUs without an NVSwitch");
	refused("10 2 3 3 1 H\n", "f:1: 2 servers cannot have equally many of 3 NVSwitches");
}

static void second_line__that_is_wrong_is_named(void **state)
{
	static const char highest[] = " is no switch: they have the highest numbers, 4 to 8, above the GPUs'";
	char because[120];
	refused("9 2 2 3 10 H100\n", "f:1: the line of switches is wanting");
	refused("9 2 2 3 10 H100\n4 5 6 7\n", "f:2: 4 switches, yet the first line says 2 NVSwitches and 3 switches");
	refused("9 2 2 3 10 H100\n4 5 6 7 8 9\n",
		"f:2: 6 switches, yet the first line says 2 NVSwitches and 3 switches");
	refused("9 2 2 3 10 H100\n4 5 6 7 7\n", "f:2: switch 7 twice");
	for (int wrong = 3; wrong < 10; wrong += 6) {
		char text[60];
		snprintf(text, sizeof(text), "9 2 2 3 10 H100\n4 5 6 7 %d\n", wrong);
		snprintf(because, sizeof(because), "f:2: %d%s", wrong, highest);
		refused(text, because);
	}
}

static void links__that_are_wrong_are_named(void **state)
{
	refused(HEAD NV NV_3 NIC NIC_3, "f:10: 8 links, yet the first line says 10");
	refused(HEAD NV NV_3 NIC NIC_3 ABOVE "6 7 1Gbps 1us 0\n",
		"f:13: more than the 10 links that the first line says");
	refused(HEAD "0 4 2880 1us 0\n", "f:3: 2880 is no rate as 100Gbps");
	refused(HEAD "0 4 1Gbps 0.001 0\n", "f:3: 0.001 is no delay as 0.001ms or 1us");
	refused(HEAD "0 9 1Gbps 1us 0\n", "f:3: expected \"node node rate delay loss\" with nodes below 9");
	refused(HEAD "0 6 1Gbps 1us 2\n", "f:3: 2 is no share of lost packets from 0 to 1, of whole millionths");
	refused(HEAD "0 1 1Gbps 1us 0\n", "f:3: a link from GPU 0 to GPU 1: both have links to switches alone");
	refused(HEAD "6 6 1Gbps 1us 0\n", "f:3: a link from node 6 to itself");
	refused(HEAD "4 6 1Gbps 1us 0\n", "f:3: a link from switch 6 to switch 4: NVSwitches join GPUs alone");
	refused(HEAD "4 5 1Gbps 1us 0\n", "f:3: a link from switch 5 to switch 4: NVSwitches join GPUs alone");
	refused(HEAD NV "3 4 2880Gbps 25ns 0\n", "f:6: NVSwitch 4 joins GPUs of servers 0 and 1");
	refused(HEAD "0 4 1Gbps 25ns 0.1\n", "f:3: GPU 0 loses packets to its NVSwitch, which is not supported");
	refused(HEAD "0 4 1Gbps 25ns 0\n0 4 1Gbps 26ns 0\n", "f:4: GPU 0 has links to NVSwitches with unlike delays");
	refused(HEAD "0 4 999Tbps 1us 0\n4 0 2Tbps 1us 0\n", "f:4: GPU 0 has more than 1000 Tb/s to NVSwitches");
}

static void gpus__that_lack_links_or_are_unlike_are_named(void **state)
{
	refused("9 2 2 3 9 H100\n4 5 6 7 8 \n" NV NV_3 NIC ABOVE, "f: GPU 3 has no link to a switch");
	refused("9 2 2 3 9 H100\n4 5 6 7 8 \n" NV NIC NIC_3 ABOVE, "f: GPU 3 has no link to an NVSwitch");
	refused("9 2 2 3 11 H100\n4 5 6 7 8 \n" NV NV_3 NIC NIC_3 ABOVE "0 7 400Gbps 0.0005ms 0\n",
		"f: GPU 1 has 1 links to switches, and GPU 0 has 2: equally many, at most 8, are supported");
	refused(HEAD NV "3 5 2000Gbps 25ns 0\n" NIC NIC_3 ABOVE,
		"f:6: GPU 3 has another rate or delay to its NVSwitches than GPU 0, line 3: unlike GPUs are not "
		"supported");
	refused(HEAD NV "3 5 2880Gbps 26ns 0\n" NIC NIC_3 ABOVE,
		"f:6: GPU 3 has another rate or delay to its NVSwitches than GPU 0, line 3: unlike GPUs are not "
		"supported");
	refused("5 2 2 1 4 A100\n2 3 4\n0 2 1Gbps 1us 0\n0 4 1Gbps 1us 0\n1 2 1Gbps 1us 0\n1 4 1Gbps 1us 0\n",
		"f: NVSwitch 3 has no link");
	refused("4 2 1 1 4 A100\n2 3\n0 2 1Gbps 86400s 0\n0 3 1Gbps 1us 0\n1 2 1Gbps 86400s 0\n1 3 1Gbps 1us 0\n",
		"f: the way through an NVSwitch takes too long");
	refused("9 2 2 3 8 H100\n4 5 6 7 8 \n" NV NV_3 NIC NIC_3, "f: endpoint 1 cannot be reached from endpoint 0");
}

/* Every beginning of a good file, and every byte of it changed: an answer, whatever it is. */
static void bytes__of_any_kind_are_survived(void **state)
{
	for (size_t i = 0; i < sizeof(rails) - 1; i++) {
		read_bytes(rails, i);
		for (int byte = 0; byte < 256; byte += 5) {
			char changed[sizeof(rails)];
			memcpy(changed, rails, sizeof(rails));
			changed[i] = (char)byte;
			if (read_bytes(changed, sizeof(rails) - 1) == 0 && hosts.gpus)
				assert_int_equal(hosts_check(&hosts, network.endpoint_count, why, sizeof(why)), 0);
		}
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, NULL, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(simai__is_read),
		TEST(nvswitches__make_the_scale_up_domain),
		TEST(nvswitches__of_a_server_may_be_several),
		TEST(servers__of_one_gpu_need_no_nvswitch),
		TEST(error_rate__is_the_share_of_lost_packets),
		TEST(gpus__with_two_links_have_nics_of_two_ports),
		TEST(other_formats__say_nothing_of_hosts),
		TEST(first_line__that_is_wrong_is_named),
		TEST(second_line__that_is_wrong_is_named),
		TEST(links__that_are_wrong_are_named),
		TEST(gpus__that_lack_links_or_are_unlike_are_named),
		TEST(bytes__of_any_kind_are_survived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
