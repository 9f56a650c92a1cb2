/* A front end is a network apart: its endpoints reach each other, and none of the back end's. */
#include <errno.h>
#include "net/front_end.h"
#include "net/storage_sides.h"
#include "paths.h"

#define GBPS 1000000000ull

static struct network network;
static struct hosts hosts;
static char why[300];

static int setup(void **state)
{
	network = (struct network){ 0 };
	hosts = (struct hosts){ .gpus = 2, .nics = 2, .scale_up = 100 * GBPS };
	why[0] = 0;
	return 0;
}

static int teardown(void **state)
{
	network_free(&network);
	return 0;
}

static struct topology like(const char *kind, uint32_t endpoints, uint32_t leaves, uint32_t spines)
{
	struct topology topology = { .host_bits_per_second = 100 * GBPS,
		.host_delay = VB_US,
		.fabric_delay = VB_US,
		.endpoints = endpoints,
		.leaves = leaves,
		.spines = spines };
	snprintf(topology.kind, sizeof(topology.kind), "%s", kind);
	return topology;
}

/* Four hosts with two NICs each at a switch, and a front end with leaves. */
static int add(const struct front_end *front_end, uint32_t nic_ports)
{
	struct topology back = like("leaf-spine", 8, 2, 2);
	back.nic_ports = nic_ports;
	assert_int_equal(topology_build(&back, &network, why, sizeof(why)), 0);
	return front_end_add(front_end, &network, &hosts, why, sizeof(why));
}

static struct front_end front_of(uint32_t nics, uint32_t storage, uint32_t leaves)
{
	struct front_end front = { .topology = like("leaf-spine", 0, leaves, 1), .nics = nics, .storage = storage };
	front.topology.host_bits_per_second = 25 * GBPS;
	return front;
}

static void front_end__is_behind_the_back_end_and_apart(void **state)
{
	const struct front_end front = front_of(1, 2, 3);
	assert_int_equal(add(&front, 1), 0);
	assert_int_equal(network_back_endpoints(&network), 8);
	assert_int_equal(network.endpoint_count, 8 + 4 + 2);
	assert_int_equal(network_back_switches(&network), 4);
	assert_int_equal(network.front_switch_count, 4);
	struct routes *routes = routes_make(&network);
	assert_non_null(routes);
	for (uint32_t from = 0; from < network.endpoint_count; from++)
		for (uint32_t to = 0; to < network.endpoint_count; to++)
			if (from != to)
				assert_int_equal(routes_lead(routes, &network, from, to), (from < 8) == (to < 8));
	assert_int_equal(paths_between(&network, routes, 8, 13).links, 4);
	routes_free(routes);
	for (uint32_t i = 0; i < network.link_count; i++) {
		const bool is_of_front = network_is_of_front(&network, i);
		assert_int_equal(is_of_front, network_is_of_front(&network, network.links[i].reverse));
		if (!network_is_switch(network.links[i].from))
			assert_int_equal(is_of_front, network.links[i].from >= 8);
		if (is_of_front && network.links[i].bits_per_second != 100 * GBPS)
			assert_int_equal(network.links[i].bits_per_second, 25 * GBPS);
	}
}

/* Two GPUs of a host share a NIC of the front end, or have one each; storage nodes are hosts of their own. */
static void ranks__reach_storage_by_the_front_end_alone(void **state)
{
	for (uint32_t nics = 1; nics <= 2; nics++) {
		const struct front_end front = front_of(nics, 4, 2);
		setup(NULL);
		assert_int_equal(add(&front, 1), 0);
		assert_int_equal(hosts_check(&hosts, network.endpoint_count, why, sizeof(why)), 0);
		assert_int_equal(hosts_check(&hosts, network.endpoint_count + 2, why, sizeof(why)), -EINVAL);
		assert_int_equal(hosts_ranks(&hosts, network.endpoint_count), 8);
		assert_int_equal(hosts_all_ranks(&hosts, network.endpoint_count), 12);
		for (uint32_t rank = 0; rank < 8; rank++) {
			const uint32_t nic = 8 + rank / 2 * nics + rank % nics;
			assert_int_equal(hosts_sends_by(&hosts, rank, 9, 3), nic);
			assert_int_equal(hosts_receives_by(&hosts, 9, rank, 3), nic);
			assert_int_equal(network.endpoints[nic].machine, rank / 2);
			assert_int_equal(hosts_sends_by(&hosts, 9, rank, 0), 8 + 4 * nics + 1);
			assert_int_equal(hosts_receives_by(&hosts, rank, 9, 0), 8 + 4 * nics + 1);
			assert_in_range(hosts_sends_by(&hosts, rank, (rank + 2) % 8, 0), 0, 7);
		}
		assert_int_equal(hosts_host_of(&hosts, 7), 3);
		assert_int_equal(hosts_host_of(&hosts, 8), 4);
		assert_int_equal(hosts_host_of(&hosts, 11), 7);
		teardown(NULL);
	}
}

/* A placement numbers GPUs anew, and no storage node. */
static void placed_ranks__keep_their_hosts_nic(void **state)
{
	static const uint32_t gpu_of[] = { 7, 6, 5, 4, 3, 2, 1, 0 };
	const struct front_end front = front_of(1, 2, 3);
	assert_int_equal(add(&front, 1), 0);
	hosts.gpu_of = gpu_of;
	assert_int_equal(hosts_sends_by(&hosts, 0, 8, 0), 8 + 3);
	assert_int_equal(hosts_sends_by(&hosts, 9, 0, 0), 13);
	assert_int_equal(hosts_host_of(&hosts, 9), 5);
}

static void nics_with_two_ports__are_the_back_ends(void **state)
{
	const struct front_end front = front_of(1, 2, 3);
	uint32_t endpoint;
	assert_int_equal(add(&front, 2), 0);
	assert_int_equal(network_nic_ports(&network), 2);
	for (uint32_t i = 0; i < network.switch_count; i++) {
		const bool is_nic = network_is_nic(&network, i, &endpoint);
		assert_int_equal(is_nic, i >= 4 && i < 12);
		if (is_nic)
			assert_int_equal(network_index(network.links[network.endpoints[endpoint].link].to), i);
	}
}

/* They are numbered from 0, and no rank of a host is among them; all ranks take part. */
static void storage_sides__are_the_storage_nodes(void **state)
{
	const struct front_end front = front_of(1, 4, 2);
	struct storage_sides sides;
	assert_int_equal(add(&front, 1), 0);
	assert_int_equal(storage_sides_open(&sides, &hosts, network.endpoint_count, 1, 2, 0, 0, why, sizeof(why)), 0);
	assert_int_equal(sides.node_count, 2);
	assert_int_equal(sides.rank_count, 8);
	assert_int_equal(sides.all, 12);
	assert_int_equal(sides.nodes[0], 9);
	assert_int_equal(sides.nodes[1], 10);
	assert_int_equal(sides.node_of[10], 1);
	assert_int_equal(sides.node_of[8], STORAGE_NONE);
	assert_int_equal(sides.number_of[7], 7);
	assert_int_equal(sides.number_of[9], STORAGE_NONE);
	storage_sides_close(&sides);
	assert_int_equal(
		storage_sides_open(&sides, &hosts, network.endpoint_count, 2, 4, 0, 0, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "storage: storage nodes 2-4 of a front end that has 0-3; write FIRST-LAST of these");
}

static void front_end__that_cannot_be_is_refused_with_the_cure(void **state)
{
	static const struct {
		uint32_t nics, storage, leaves;
		const char *why;
	} wrong[] = { { 0, 2, 3, "nics: a host has no NIC of the front end: write 1 or more" },
		{ 1, 3, 3,
			"leaves: 4 NICs of hosts and 3 storage nodes cannot be shared out among 3 leaves: write a "
			"number "
			"that divides 7" },
		{ 1, 2, 0,
			"leaves: 4 NICs of hosts and 2 storage nodes cannot be shared out among 0 leaves: write a "
			"number "
			"that divides 6" },
		{ 1, UINT32_MAX, 1,
			"storage: 4 hosts with 1 NICs and 4294967295 storage nodes are more than 1048576 endpoints: "
			"write fewer" } };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const struct front_end front = front_of(wrong[i].nics, wrong[i].storage, wrong[i].leaves);
		setup(NULL);
		assert_int_equal(add(&front, 1), -EINVAL);
		assert_string_equal(why, wrong[i].why);
		assert_int_equal(network.endpoint_count, 8);
		assert_int_equal(hosts.front.storage, 0);
		teardown(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(front_end__is_behind_the_back_end_and_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(ranks__reach_storage_by_the_front_end_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(placed_ranks__keep_their_hosts_nic, setup, teardown),
		cmocka_unit_test_setup_teardown(nics_with_two_ports__are_the_back_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(storage_sides__are_the_storage_nodes, setup, teardown),
		cmocka_unit_test_setup_teardown(front_end__that_cannot_be_is_refused_with_the_cure, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
