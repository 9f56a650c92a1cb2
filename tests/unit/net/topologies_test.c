#include <errno.h>
#include "base/random.h"
#include "net/topologies.h"
#include "paths.h"

#define GBPS 1000000000ull

static struct network network;
static struct routes *routes;
static char why[200];

static int setup(void **state)
{
	network = (struct network){ 0 };
	routes = NULL;
	return 0;
}

static int teardown(void **state)
{
	routes_free(routes);
	network_free(&network);
	return setup(state);
}

static struct topology like(const char *kind)
{
	struct topology topology = { .host_bits_per_second = 100 * GBPS,
		.fabric_bits_per_second = 400 * GBPS,
		.host_delay = VB_US,
		.fabric_delay = 2 * VB_US };
	snprintf(topology.kind, sizeof(topology.kind), "%s", kind);
	return topology;
}

static void build(const struct topology *topology, uint32_t endpoints, uint32_t switches, uint32_t links)
{
	teardown(NULL);
	why[0] = 0;
	int error = topology_build(topology, &network, why, sizeof(why));
	assert_string_equal(why, "");
	assert_int_equal(error, 0);
	assert_int_equal(network.endpoint_count, endpoints);
	assert_int_equal(network.switch_count, switches);
	assert_int_equal(network.link_count, 2 * links);
	routes = routes_make(&network);
	assert_non_null(routes);
}

static void refused(const struct topology *topology, const char *because)
{
	assert_int_equal(topology_build(topology, &network, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, because);
	assert_int_equal(network.endpoint_count, 0);
	assert_null(network.links);
}

static void between(uint32_t a, uint32_t b, uint32_t links, uint64_t count)
{
	struct paths there = paths_between(&network, routes, a, b), back = paths_between(&network, routes, b, a);
	assert_int_equal(there.links, links);
	assert_int_equal(there.count, count);
	assert_int_equal(back.links, links);
	assert_int_equal(back.count, count);
}

static uint32_t leaf_of(uint32_t endpoint)
{
	return network_index(network.links[network.endpoints[endpoint].link].to);
}

/* How many links lead from one tier to another, and that they all have this rate and delay. */
static uint32_t links_between(uint32_t tier, uint32_t above, uint64_t gbps, vb_time delay)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < network.link_count; i++) {
		const struct network_link *link = &network.links[i];
		if (!network_is_switch(link->from) || !network_is_switch(link->to) ||
			network.switches[network_index(link->from)].tier != tier ||
			network.switches[network_index(link->to)].tier != above)
			continue;
		assert_int_equal(link->bits_per_second, gbps * GBPS);
		assert_int_equal(link->delay, delay);
		count++;
	}
	return count;
}

static void switch__has_all_endpoints(void **state)
{
	struct topology topology = like("switch");
	topology.endpoints = 16;
	build(&topology, 16, 1, 16);
	between(0, 15, 2, 1);
	assert_int_equal(network.links[0].bits_per_second, 100 * GBPS);
	assert_int_equal(network.links[0].delay, VB_US);
	assert_int_equal(network.endpoints[7].machine, 7);
}

static void dumbbell__has_halves(void **state)
{
	struct topology topology = like("dumbbell");
	topology.endpoints = 8;
	build(&topology, 8, 2, 9);
	between(0, 3, 2, 1);
	between(0, 4, 3, 1);
	between(3, 7, 3, 1);
	assert_int_equal(network.switches[0].pod, 0);
	assert_int_equal(network.switches[1].pod, 1);
	assert_int_equal(network.links[network.link_count - 1].bits_per_second, 400 * GBPS);
	topology.uplinks = 3;
	build(&topology, 8, 2, 11);
	between(0, 4, 3, 3);
	topology.endpoints = 7;
	teardown(NULL);
	refused(&topology, "7 endpoints cannot be shared out among 2 switches");
}

static void leaf_spine__has_a_way_over_each_spine(void **state)
{
	struct topology topology = like("leaf-spine");
	topology.endpoints = 64;
	topology.leaves = 4;
	topology.spines = 3;
	topology.uplinks = 2;
	build(&topology, 64, 7, 64 + 4 * 3 * 2);
	between(0, 15, 2, 1);
	between(0, 16, 4, 3 * 2 * 2);
	assert_int_equal(links_between(0, 1, 400, 2 * VB_US), 24);
	assert_int_equal(network.switches[3].pod, 3);
	assert_int_equal(network.switches[4].pod, NETWORK_NONE);
	assert_int_equal(network.switches[4].tier, 1);
}

static void leaf_spine__has_as_many_spines_as_oversubscription_leaves(void **state)
{
	struct topology topology = like("leaf-spine");
	topology.endpoints = 64;
	topology.leaves = 4;
	build(&topology, 64, 4 + 4, 64 + 16); /* 16 x 100 down, 4 x 400 up */
	topology.oversubscription = 2;
	build(&topology, 64, 4 + 2, 64 + 8);
	topology.fabric_bits_per_second = 0;
	build(&topology, 64, 4 + 8, 64 + 32);
	teardown(NULL);
	topology.oversubscription = 3;
	refused(&topology, "no whole number of spines makes leaves of 16 endpoints oversubscribed 3 times");
	topology.spines = 4;
	refused(&topology, "4 spines make leaves of 16 endpoints oversubscribed 4 times, not 3");
	topology.leaves = 5;
	refused(&topology, "64 endpoints cannot be shared out among 5 leaves");
}

static void fat_tree__of_three_tiers(void **state)
{
	const struct {
		uint32_t radix, endpoints, switches;
	} known[] = { { 2, 2, 5 }, { 4, 16, 20 }, { 8, 128, 80 }, { 16, 1024, 320 }, { 32, 8192, 1280 } };
	for (unsigned i = 0; i < COUNT_OF(known); i++) {
		struct topology topology = like("fat-tree");
		uint32_t k = known[i].radix, half = k / 2;
		topology.radix = k;
		build(&topology, known[i].endpoints, known[i].switches, 3 * known[i].endpoints);
		for (uint32_t s = 0; s < network.switch_count; s++)
			assert_int_equal(network.switches[s].port_count, k);
		uint32_t pod = half * half, last = known[i].endpoints - 1;
		between(0, last, 6, half * half);
		if (half > 1) {
			between(0, half - 1, 2, 1);
			between(0, pod - 1, 4, half);
		}
		between(0, pod, 6, half * half);
		assert_int_equal(links_between(0, 1, 400, 2 * VB_US), known[i].endpoints);
		assert_int_equal(links_between(1, 2, 400, 2 * VB_US), known[i].endpoints);
		assert_int_equal(network.switches[leaf_of(last)].pod, k - 1);
		assert_int_equal(network.switches[network.switch_count - 1].pod, NETWORK_NONE);
		assert_int_equal(network.switches[network.switch_count - 1].tier, 2);
	}
}

static void fat_tree__of_two_tiers(void **state)
{
	struct topology topology = like("fat-tree");
	topology.radix = 8;
	topology.tiers = 2;
	build(&topology, 32, 12, 64);
	between(0, 3, 2, 1);
	between(0, 31, 4, 4);
}

static void fat_tree__finds_its_radix(void **state)
{
	struct topology topology = like("fat-tree");
	topology.endpoints = 1024;
	build(&topology, 1024, 320, 3072);
	topology.endpoints = 1000;
	teardown(NULL);
	refused(&topology, "a fat-tree of radix 16 with 3 tiers has 1024 endpoints, not 1000");
}

static void fat_tree__oversubscribed_has_fewer_spines(void **state)
{
	struct topology topology = like("fat-tree");
	topology.radix = 16;
	topology.oversubscription = 4;
	build(&topology, 1024, 128 + 32 + 16, 1024 + 128 * 2 + 32 * 8);
	between(0, 1023, 6, 16);
	teardown(NULL);
	topology.oversubscription = 3;
	refused(&topology, "the 8 uplinks of a leaf cannot be oversubscribed 3 times");
	topology.oversubscription = 0.5;
	refused(&topology, "the 8 uplinks of a leaf cannot be oversubscribed 0.5 times");
	topology.radix = 7;
	refused(&topology, "a fat-tree's radix is even and not 0, not 7");
	topology.tiers = 4;
	refused(&topology, "a fat-tree has 2 or 3 tiers, not 4");
}

/* What routes cost at the largest size, and that it is far below a table of each switch and leaf. */
static void fat_tree__of_8192_has_small_routes(void **state)
{
	struct topology topology = like("fat-tree");
	topology.radix = 32;
	build(&topology, 8192, 1280, 3 * 8192);
	assert_true(routes->bytes < 600 * 1024);
	struct vb_random random;
	vb_random_seed(&random, 1);
	for (int i = 0; i < 50; i++) {
		uint32_t a = vb_random_below(&random, 8192), b = vb_random_below(&random, 8192);
		struct paths paths = paths_between(&network, routes, a, b);
		bool is_near = leaf_of(a) == leaf_of(b),
		     is_pod = network.switches[leaf_of(a)].pod == network.switches[leaf_of(b)].pod;
		assert_int_equal(paths.links, is_near ? 2 : is_pod ? 4 : 6);
		assert_int_equal(paths.count, is_near ? 1 : is_pod ? 16 : 256);
	}
}

static void rail__without_a_spine_reaches_its_own_alone(void **state)
{
	struct topology topology = like("rail");
	topology.machines = 4;
	topology.nics_a_machine = 8;
	build(&topology, 32, 8, 32);
	assert_int_equal(network.endpoints[19].machine, 2);
	assert_int_equal(leaf_of(19), 3);
	assert_int_equal(network.switches[3].pod, 3);
	between(3, 19, 2, 1);
	assert_true(routes_lead(routes, &network, 3, 19));
	assert_false(routes_lead(routes, &network, 3, 20));
}

static void rail__with_spines_reaches_all(void **state)
{
	struct topology topology = like("rail");
	topology.machines = 8;
	topology.nics_a_machine = 4;
	topology.leaves = 2;
	topology.spines = 3;
	build(&topology, 32, 8 + 3, 32 + 8 * 3);
	between(0, 4, 2, 1);  /* machines 0 and 1, rail 0 */
	between(0, 16, 4, 3); /* machines 0 and 4: the rail's other leaf */
	between(0, 1, 4, 3);  /* another rail */
	assert_int_equal(network.switches[leaf_of(0)].pod, 0);
	assert_int_equal(network.switches[leaf_of(3)].pod, 3);
	topology.spines = 0;
	teardown(NULL);
	refused(&topology, "2 leaves a rail need spines");
	topology.oversubscription = 2;
	refused(&topology, "oversubscription is not used of rails: leaves, spines and uplinks say what joins them");
	topology.oversubscription = 0;
	topology.leaves = 3;
	refused(&topology, "8 machines with 4 NICs cannot be shared out among 3 leaves a rail");
}

/* NICs with two ports: pairs of leaves, each with all the endpoints of both; NICs' switches are no leaf's neighbours.
 */
static void leaves__are_as_many_together_as_a_nic_has_ports(void **state)
{
	struct topology topology = like("leaf-spine");
	topology.endpoints = 16;
	topology.leaves = 4;
	topology.spines = 2;
	topology.nic_ports = 2;
	build(&topology, 16, 4 + 2 + 16, 16 + 32 + 4 * 2);
	assert_int_equal(network.nic_switch_count, 16);
	assert_int_equal(network_leaf_of(&network, 7), network_switch_node(0));
	assert_int_equal(network_leaf_of(&network, 8), network_switch_node(2));
	between(0, 7, 4, 2); /* by either leaf */
	between(0, 8, 6, 8); /* by either port, either spine and either port of the other */
	teardown(NULL);
	topology.leaves = 5;
	topology.endpoints = 20;
	refused(&topology, "5 leaves are no whole number of 2, one for each port of a NIC");
	topology.leaves = 4;
	topology.nic_ports = 9;
	topology.leaves = 9;
	topology.endpoints = 18;
	refused(&topology, "18 NICs with 9 ports each: at most 16384 with 8");
	topology = like("rail");
	topology.machines = 4;
	topology.nics_a_machine = 2;
	topology.nic_ports = 2;
	topology.leaves = 3;
	refused(&topology, "3 leaves a rail are no whole number of 2, one for each port of a NIC");
	topology.leaves = 4;
	refused(&topology, "4 leaves a rail need spines");
}

static uint64_t choose(uint64_t n, uint64_t k)
{
	return k == 0 ? 1 : choose(n - 1, k - 1) * n / k;
}

static void torus__goes_round_the_shorter_way_in_each_dimension(void **state)
{
	struct topology topology = like("torus");
	topology.dimensions[0] = 5;
	topology.dimensions[1] = 4;
	topology.dimensions[2] = 3;
	build(&topology, 60, 60, 60 + 3 * 60);
	for (uint32_t s = 0; s < 60; s++)
		assert_int_equal(network.switches[s].port_count, 7);
	between(0, 1, 3, 1);
	between(0, 4, 3, 1); /* round */
	between(0, 2, 4, 1);
	between(0, 5 + 1, 4, 2);
	between(0, 2 * 5, 4, 2);      /* half way round four: either way */
	between(0, 20 + 5 + 1, 5, 6); /* three steps in any order */
	between(0, 2 + 20, 5, choose(3, 1));
	assert_int_equal(network.switches[19].pod, 0);
	assert_int_equal(network.switches[20].pod, 1);
}

static void torus__of_fewer_dimensions(void **state)
{
	struct topology topology = like("torus");
	topology.dimensions[0] = 8;
	build(&topology, 8, 8, 16);
	between(0, 4, 6, 2);
	topology.dimensions[0] = 2; /* the way round is the way there */
	topology.dimensions[1] = 2;
	build(&topology, 4, 4, 4 + 4);
	between(0, 3, 4, 2);
	topology.endpoints = 5;
	teardown(NULL);
	refused(&topology, "a torus of 2 x 2 x 1 has 4 endpoints, not 5");
	topology.dimensions[0] = 0;
	refused(&topology, "a torus has dimensions, one to three");
	topology.dimensions[0] = topology.dimensions[1] = topology.dimensions[2] = UINT32_MAX;
	refused(&topology, "a torus of more than 1048576 switches");
}

static void ring__has_endpoints_on_each_switch(void **state)
{
	struct topology topology = like("ring");
	topology.leaves = 5;
	topology.endpoints = 10;
	build(&topology, 10, 5, 15);
	between(0, 1, 2, 1);
	between(0, 4, 4, 1); /* always the same way round: a cycle of waits is possible */
	between(0, 9, 3, 1);
	topology.endpoints = 0;
	build(&topology, 5, 5, 10);
	topology.leaves = 2;
	teardown(NULL);
	refused(&topology, "a ring has 3 switches or more, not 2");
}

static void sizes__beyond_all_bounds_are_refused(void **state)
{
	struct topology topology = like("fat-tree");
	topology.radix = 65536;
	assert_int_equal(topology_build(&topology, &network, why, sizeof(why)), -EINVAL);
	topology.radix = UINT32_MAX - 1;
	assert_int_equal(topology_build(&topology, &network, why, sizeof(why)), -EINVAL);
	topology.radix = 0;
	topology.endpoints = UINT32_MAX;
	assert_int_equal(topology_build(&topology, &network, why, sizeof(why)), -EINVAL);
	topology = like("leaf-spine");
	topology.endpoints = topology.leaves = 1 << 20;
	topology.spines = 1 << 20;
	assert_int_equal(topology_build(&topology, &network, why, sizeof(why)), -EINVAL);
	topology = like("rail");
	topology.machines = topology.nics_a_machine = 1 << 16;
	assert_int_equal(topology_build(&topology, &network, why, sizeof(why)), -EINVAL);
	topology.machines = topology.nics_a_machine = 4;
	topology.spines = topology.uplinks = 1 << 20;
	assert_int_equal(topology_build(&topology, &network, why, sizeof(why)), -EINVAL);
	assert_null(network.links);
}

static void kind__that_does_not_exist_is_refused(void **state)
{
	struct topology topology = like("dragonfly");
	refused(&topology,
		"no topology is called dragonfly: switch, dumbbell, leaf-spine, fat-tree, rail, torus or ring");
}

static void rate__of_none_is_refused(void **state)
{
	struct topology topology = like("switch");
	topology.endpoints = 2;
	topology.host_bits_per_second = 0;
	refused(&topology, "the link between endpoint 0 and switch 0 has no rate");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(switch__has_all_endpoints),
		TEST(dumbbell__has_halves),
		TEST(leaf_spine__has_a_way_over_each_spine),
		TEST(leaf_spine__has_as_many_spines_as_oversubscription_leaves),
		TEST(fat_tree__of_three_tiers),
		TEST(fat_tree__of_two_tiers),
		TEST(fat_tree__finds_its_radix),
		TEST(fat_tree__oversubscribed_has_fewer_spines),
		TEST(fat_tree__of_8192_has_small_routes),
		TEST(rail__without_a_spine_reaches_its_own_alone),
		TEST(rail__with_spines_reaches_all),
		TEST(leaves__are_as_many_together_as_a_nic_has_ports),
		TEST(torus__goes_round_the_shorter_way_in_each_dimension),
		TEST(torus__of_fewer_dimensions),
		TEST(ring__has_endpoints_on_each_switch),
		TEST(sizes__beyond_all_bounds_are_refused),
		TEST(kind__that_does_not_exist_is_refused),
		TEST(rate__of_none_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
