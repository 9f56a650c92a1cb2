/* Links as people name them. */
#include <errno.h>
#include "net/front_end.h"
#include "sim/link_name.h"
#include "two_switches.h"

static void link__every_one_is_found_by_its_name(void **state)
{
	struct network network;
	char name[64], why[200];
	make_two_switches(&network);
	for (uint32_t link = 0; link < network.link_count; link++) {
		uint32_t found = NETWORK_NONE;
		link_text(&network, link, name, sizeof(name));
		assert_int_equal(link_find(&network, name, &found, why, sizeof(why)), 0);
		assert_int_equal(found, link);
	}
	network_free(&network);
}

static void link__names_say_where_it_leaves(void **state)
{
	struct network network;
	char name[64], why[200];
	uint32_t link;
	make_two_switches(&network);
	assert_string_equal(link_text(&network, network.endpoints[2].link, name, sizeof(name)), "endpoint 2 up");
	assert_int_equal(link_find(&network, "endpoint 2", &link, why, sizeof(why)), 0);
	assert_int_equal(link, network.endpoints[2].link);
	assert_int_equal(link_find(&network, " endpoint  2  down", &link, why, sizeof(why)), 0);
	assert_int_equal(link, network.links[network.endpoints[2].link].reverse);
	assert_int_equal(link_find(&network, "switch 0 port 2", &link, why, sizeof(why)), 0);
	assert_true(network.links[link].to == network_switch_node(1));
	assert_int_equal(link_find(&network, "link 7", &link, why, sizeof(why)), 0);
	assert_int_equal(link, 7);
	network_free(&network);
}

/* Each link of NICs with two ports has its name, and the ports are named by their NIC. */
static void link__of_a_nics_port_is_found(void **state)
{
	const struct topology topology = { .kind = "leaf-spine",
		.endpoints = 4,
		.leaves = 2,
		.spines = 1,
		.nic_ports = 2,
		.host_bits_per_second = 1000000000,
		.host_delay = VB_US,
		.profile = { .name = "ideal", .class_count = 1 } };
	struct network network = { 0 };
	char name[64], why[200] = "";
	uint32_t link;
	assert_int_equal(topology_build(&topology, &network, why, sizeof(why)), 0);
	for (uint32_t i = 0; i < network.link_count; i++) {
		link_text(&network, i, name, sizeof(name));
		assert_int_equal(link_find(&network, name, &link, why, sizeof(why)), 0);
		assert_int_equal(link, i);
	}
	assert_int_equal(link_find(&network, "endpoint 3 port 1", &link, why, sizeof(why)), 0);
	assert_int_equal(network.links[link].to, network_switch_node(1));
	assert_string_equal(link_text(&network, link, name, sizeof(name)), "endpoint 3 port 1");
	assert_int_equal(link_find(&network, "endpoint 3 port 2", &link, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "only 2 ports at this NIC"));
	network_free(&network);
}

static void make_front_end(struct network *network)
{
	struct hosts hosts = { 0 };
	const struct front_end front = { .topology = { .kind = "leaf-spine",
						 .leaves = 5,
						 .spines = 1,
						 .host_bits_per_second = 1000000000,
						 .profile = { .name = "ideal", .class_count = 1 } },
		.nics = 1,
		.storage = 2 };
	char why[200] = "";
	make_two_switches(network);
	assert_int_equal(front_end_add(&front, network, &hosts, why, sizeof(why)), 0);
}

static void link__of_a_front_end_is_found_by_its_name(void **state)
{
	struct network network;
	char name[64], why[200];
	make_front_end(&network);
	for (uint32_t link = 0; link < network.link_count; link++) {
		uint32_t found = NETWORK_NONE;
		link_text(&network, link, name, sizeof(name));
		assert_int_equal(strncmp(name, "front ", 6) == 0 || strncmp(name, "storage ", 8) == 0,
			network_is_of_front(&network, link));
		assert_int_equal(link_find(&network, name, &found, why, sizeof(why)), 0);
		assert_int_equal(found, link);
	}
	assert_string_equal(node_text(&network, 3, name, sizeof(name)), "front endpoint 0");
	assert_string_equal(node_text(&network, 7, name, sizeof(name)), "storage 1");
	assert_string_equal(node_text(&network, network_switch_node(2), name, sizeof(name)), "front switch 0");
	assert_string_equal(link_text(&network, network.endpoints[7].link, name, sizeof(name)), "storage 1 up");
	network_free(&network);
}

static void link__of_a_front_end_that_is_not_there_is_refused(void **state)
{
	static const struct {
		const char *name, *says;
	} wrong[] = {
		{ "endpoint 3", "only 3 endpoints" },
		{ "switch 2 port 0", "only 2 switches" },
		{ "front endpoint 3", "only 3 front endpoints" },
		{ "front switch 6 port 0", "only 6 front switches" },
		{ "front switch 5", "write \"front switch 5 port 0\"" },
		{ "front storage 0", "is no link" },
		{ "storage 2", "only 2 storage nodes" },
		{ "storage 1 sideways", "is no link" },
		{ "storage 1 port 0", "the NIC has one port: write \"storage 1\"" },
	};
	struct network network;
	char why[200] = "";
	uint32_t link;
	make_front_end(&network);
	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		assert_int_equal(link_find(&network, wrong[i].name, &link, why, sizeof(why)), -EINVAL);
		if (!strstr(why, wrong[i].says))
			fail_msg("%s: %s", wrong[i].name, why);
	}
	network_free(&network);
	make_two_switches(&network);
	assert_int_equal(link_find(&network, "storage 0", &link, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "the network has no front end"));
	network_free(&network);
}

static void link__that_is_not_there_is_refused_with_what_is(void **state)
{
	static const struct {
		const char *name, *says;
	} wrong[] = {
		{ "endpoint 3", "only 3 endpoints" },
		{ "endpoint 4294967295", "only 3 endpoints" },
		{ "endpoint 99999999999999999999", "only 3 endpoints" },
		{ "switch 2 port 0", "only 2 switches" },
		{ "switch 1 port 2", "only 2 ports" },
		{ "switch 1", "which port" },
		{ "switch 1 port", "which port" },
		{ "link 8", "only 8 links" },
		{ "endpoint 1 sideways", "is no link" },
		{ "endpoint 1 port 0", "the NIC has one port: write \"endpoint 1\"" },
		{ "endpoint", "is no link" },
		{ "endpoint -1", "is no link" },
		{ "", "is no link" },
		{ "the one to the left", "is no link" },
	};
	struct network network;
	make_two_switches(&network);
	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		uint32_t link;
		char why[200] = "";
		assert_int_equal(link_find(&network, wrong[i].name, &link, why, sizeof(why)), -EINVAL);
		if (!strstr(why, wrong[i].says))
			fail_msg("%s: %s", wrong[i].name, why);
	}
	network_free(&network);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link__every_one_is_found_by_its_name),
		cmocka_unit_test(link__names_say_where_it_leaves),
		cmocka_unit_test(link__of_a_nics_port_is_found),
		cmocka_unit_test(link__of_a_front_end_is_found_by_its_name),
		cmocka_unit_test(link__of_a_front_end_that_is_not_there_is_refused),
		cmocka_unit_test(link__that_is_not_there_is_refused_with_what_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
