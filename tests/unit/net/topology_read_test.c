#include <unistd.h>
#include "reading.h"

/* Two leaves of two endpoints, two spines. */
static const char csv[] = "node_a,node_b,gbps,delay_ns\n"
			  "0,4,100,1000\n1,4,100,1000\n2,5,100,1000\n3,5,100,1000\n"
			  "4,6,400,500.5\n4,7,400,500.5\n5,6,400,500.5\n5,7,400,500.5\n";
static const char hpcc[] = "8 4 8\n4 5 6 7\n"
			   "0 4 100Gbps 0.001ms 0\n1 4 100Gbps 0.001ms 0\n2 5 100Gbps 1us 0\n3 5 100Gbps 1us 0.000000\n"
			   "4 6 400Gbps 1us 0\n4 7 400Gbps 1us 0\n5 6 400Gbps 1us 0\n5 7 400Gbps 1us 0.01\n";

static void is_leaf_spine(void)
{
	assert_int_equal(network.endpoint_count, 4);
	assert_int_equal(network.switch_count, 4);
	assert_int_equal(network.link_count, 16);
	struct routes *routes = routes_make(&network);
	struct paths near = paths_between(&network, routes, 0, 1), far = paths_between(&network, routes, 0, 3);
	assert_int_equal(near.links, 2);
	assert_int_equal(far.links, 4);
	assert_int_equal(far.count, 2);
	routes_free(routes);
	assert_int_equal(network.switches[1].tier, 0);
	assert_int_equal(network.switches[1].pod, 1);
	assert_int_equal(network.switches[2].tier, 1);
	assert_string_equal(network.profiles[0].name, "p");
	assert_string_equal(network.nics[0].name, "n");
}

static void csv__is_read(void **state)
{
	accepted(csv);
	is_leaf_spine();
	assert_int_equal(network.links[0].bits_per_second, 100000000000);
	assert_int_equal(network.links[0].delay, 1000 * VB_NS);
	assert_int_equal(network.links[8].delay, 500500);
	assert_int_equal(network.links[8].from, network_switch_node(0));
	assert_int_equal(network.links[8].to, network_switch_node(2));
	accepted(strchr(csv, '\n') + 1); /* nor need the columns be named */
	is_leaf_spine();
}

static void csv__joins_two_endpoints(void **state)
{
	accepted("0,1,100,7\n");
	assert_int_equal(network.endpoint_count, 2);
	assert_int_equal(network.switch_count, 0);
}

static void hpcc__is_read(void **state)
{
	accepted(hpcc);
	is_leaf_spine();
	assert_int_equal(network.links[0].delay, VB_US);
	assert_int_equal(network.links[0].fault, NETWORK_NONE);
	assert_int_equal(network.fault_count, 1);
	assert_int_equal(network.faults[network.links[15].fault].loss_ppm, 10000);
	assert_int_equal(network.links[14].fault, network.links[15].fault);
	teardown(NULL);
	accepted("3 1 2\r\n2\r\n0 2 1Gbps 1us 0\r\n1 2 1Gbps 1us 0\r\n\r\nFirst line: total node #\r\n");
	assert_int_equal(network.link_count, 4);
}

static void csv__that_is_wrong_names_the_line(void **state)
{
	refused("a,b\n0,1\n", "f:1: the columns are a,b, expected node_a,node_b,gbps,delay_ns");
	refused("-1,0,100,1\n0,1,100,1\n", "f:1: expected node,node,Gb/s,ns with nodes below 1048576");
	refused("node_a,node_b,gbps,delay_ns\n0,1\n", "f:2: expected node,node,Gb/s,ns with nodes below 1048576");
	refused("0,2,100,1\n\n1,2,100,1,9\n", "f:3: expected node,node,Gb/s,ns with nodes below 1048576");
	refused("0,9999999,100,1\n", "f:1: expected node,node,Gb/s,ns with nodes below 1048576");
	refused("0,1,fast,1\n", "f:1: fast is no rate in Gb/s");
	refused("0,1,0,1\n", "f:1: a link without a rate");
	refused("0,1,100,-1\n", "f:1: -1 is no delay in ns");
	refused("0,1,100,99999999999999999999\n", "f:1: 99999999999999999999 is no delay in ns");
	refused("0,1,100,0.0001\n", "f:1: 0.0001 is no delay in ns");
}

static void csv__that_is_no_network_is_refused(void **state)
{
	refused("0,2,100,1\n1,3,100,1\n2,4,100,1\n", "f: endpoint 1 cannot be reached from endpoint 0");
	refused("0,1000000,100,1\n", "f: node 1 has no link");
	refused("0,0,100,1\n", "f:1: a link from node 0 to itself");
	refused("0,1,100,1\n0,1,100,1\n", "f: a network without endpoints");
	refused("node_a,node_b,gbps,delay_ns\n", "f: a network without endpoints");
	refused(",", "f:1: expected node,node,Gb/s,ns with nodes below 1048576");
}

static void hpcc__that_is_wrong_names_the_line(void **state)
{
	refused("3 1\n", "f:1: expected the numbers of nodes, switches and links");
	refused("3 4 1\n", "f:1: expected the numbers of nodes, switches and links");
	refused("99999999 1 1\n", "f:1: expected the numbers of nodes, switches and links");
	refused("3 2 1\n2\n", "f:2: 1 of 2 switches are wanting");
	refused("3 1 2\n0\n0 2 1Gbps 1us 0\n",
		"f:2: switches have the highest numbers, 2 to 2, as endpoints are counted from 0");
	refused("4 2 2\n2 2\n", "f:2: switch 2 twice");
	refused("3 1 2\n2 2\n", "f:2: more switches than the 1 of the first line");
	refused("3 1 2\n2\n0 3 1Gbps 1us 0\n", "f:3: expected \"node node rate delay loss\" with nodes below 3");
	refused("3 1 2\n2\n0 2 1G 1us 0\n", "f:3: 1G is no rate as 100Gbps");
	refused("3 1 2\n2\n0 2 1Gbps 1 0\n", "f:3: 1 is no delay as 0.001ms or 1us");
	refused("3 1 2\n2\n0 2 1Gbps 1us 2\n", "f:3: 2 is no share of lost packets from 0 to 1, of whole millionths");
	refused("3 1 2\n2\n0 2 1Gbps 1us 0\n", "f:3: 1 links, yet the first line says 2");
	refused("3 1 2\n2\n0 2 0Gbps 1us 0\n", "f:3: a link without a rate");
	refused("3 1 2\n2\n0 2 1Gbps 1us\n0 2 1Gbps 1us\n", "f:4: another link of endpoint 0, which may have one");
}

static void file__that_is_empty_is_refused(void **state)
{
	refused("", "f: an empty file");
	refused("\n# nothing\n", "f: an empty file");
}

/* Every beginning of a good file, and every byte of it changed: an answer, whatever it is. */
static void bytes__of_any_kind_are_survived(void **state)
{
	const char *const good[] = { csv, hpcc };
	for (int which = 0; which < 2; which++) {
		size_t length = strlen(good[which]);
		for (size_t i = 0; i < length; i++) {
			read_bytes(good[which], i);
			for (int byte = 0; byte < 256; byte += 5) {
				char changed[600];
				memcpy(changed, good[which], length);
				changed[i] = (char)byte;
				read_bytes(changed, length);
			}
		}
	}
}

static void file__is_read_from_disk(void **state)
{
	char path[] = "/tmp/topology_read_test.XXXXXX";
	int fd = mkstemp(path);
	assert_int_equal(write(fd, csv, strlen(csv)), strlen(csv));
	close(fd);
	assert_int_equal(topology_read(path, &like, &network, &hosts, why, sizeof(why)), 0);
	unlink(path);
	is_leaf_spine();
	teardown(NULL);
	assert_int_equal(topology_read("/nowhere", &like, &network, &hosts, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "/nowhere: No such file or directory");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, NULL, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(csv__is_read),
		TEST(csv__joins_two_endpoints),
		TEST(hpcc__is_read),
		TEST(csv__that_is_wrong_names_the_line),
		TEST(csv__that_is_no_network_is_refused),
		TEST(hpcc__that_is_wrong_names_the_line),
		TEST(file__that_is_empty_is_refused),
		TEST(bytes__of_any_kind_are_survived),
		TEST(file__is_read_from_disk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
