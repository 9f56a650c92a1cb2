#include "net/topologies.h"
#include "net/topology_pods.h"
#include "../unit.h"

/* Found again, they are those that the network was built with. */
static void found_as_built(struct topology topology)
{
	struct network network = { 0 };
	char why[200] = "";
	topology.host_bits_per_second = 1000000000;
	topology_build(&topology, &network, why, sizeof(why));
	assert_string_equal(why, "");
	struct network_switch *built = calloc(network.switch_count, sizeof(*built));
	for (uint32_t i = 0; i < network.switch_count; i++) {
		built[i] = network.switches[i];
		network.switches[i].tier = network.switches[i].pod = 77;
	}
	assert_int_equal(topology_find_pods(&network), 0);
	for (uint32_t i = 0; i < network.switch_count; i++) {
		assert_int_equal(network.switches[i].tier, built[i].tier);
		assert_int_equal(network.switches[i].pod, built[i].pod);
	}
	free(built);
	network_free(&network);
}

static void pods__are_what_the_highest_tier_joins(void **state)
{
	found_as_built((struct topology){ .kind = "fat-tree", .radix = 8 });
}

static void pods__of_two_tiers_are_leaves(void **state)
{
	found_as_built((struct topology){ .kind = "leaf-spine", .endpoints = 16, .leaves = 4, .spines = 2 });
}

static void pods__of_one_tier_are_switches(void **state)
{
	found_as_built((struct topology){ .kind = "ring", .leaves = 5 });
	found_as_built((struct topology){ .kind = "switch", .endpoints = 5 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pods__are_what_the_highest_tier_joins),
		cmocka_unit_test(pods__of_two_tiers_are_leaves),
		cmocka_unit_test(pods__of_one_tier_are_switches),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
