#include "reading.h"

static const char three_tiers[] =
	"# eight nodes in two pods\nNodes 8\nTiers 3\nPodsize 4\n\n"
	"Tier 0\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 2\nDownlink_Latency_ns 1000\n"
	"Queue_Down 50000\n\n"
	"Tier 1\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 4\nDownlink_Latency_ns 2000\n"
	"Bundle 1\nSwitch_Latency_ns 300\n\n"
	"Tier 2\nDownlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns 3000\nBundle 2";

static const char two_tiers[] = "nodes 32\ntiers 2\npodsize 32\n"
				"TIER 1\ndownlink_speed_gbps 100\nradix_down 4\ndownlink_latency_ns 1000\n"
				"tier 0\nDownlink_speed_Gbps 100\nRadix_Down 8\nRadix_Up 2\nDownlink_Latency_ns 1000\n"
				"Switch_Latency_ns 0\nOversubscribed 4\n";

static struct paths between(uint32_t a, uint32_t b)
{
	struct routes *routes = routes_make(&network);
	assert_non_null(routes);
	struct paths paths = paths_between(&network, routes, a, b);
	routes_free(routes);
	return paths;
}

static void three_tiers__are_read(void **state)
{
	accepted(three_tiers);
	assert_int_equal(network.endpoint_count, 8);
	assert_int_equal(network.switch_count, 4 + 4 + 4);
	assert_int_equal(network.link_count, 2 * (8 + 8 + 16));
	assert_int_equal(between(0, 1).count, 1);
	assert_int_equal(between(0, 3).count, 2);
	struct paths far = between(0, 7);
	assert_int_equal(far.links, 6);
	assert_int_equal(far.count, 2 * 2 * 2 * 2); /* two spines, two cores of each, two links up and two down */
	assert_int_equal(network.switches[0].pod, 0);
	assert_int_equal(network.switches[3].pod, 1);
	assert_int_equal(network.switches[7].pod, 1);
	assert_int_equal(network.switches[8].pod, NETWORK_NONE);
	const struct network_link *core = &network.links[network.link_count - 1];
	assert_int_equal(core->bits_per_second, 100000000000);
	assert_int_equal(core->delay, 3 * VB_US);
}

static void tiers__have_profiles_of_their_own(void **state)
{
	accepted(three_tiers);
	const struct switch_profile *leaf = &network.profiles[network.switches[0].profile],
				    *spine = &network.profiles[network.switches[4].profile];
	assert_int_equal(leaf->port_bytes, 50000);
	assert_int_equal(leaf->latency, like.profile.latency); /* not said: the template's */
	assert_int_equal(spine->port_bytes, like.profile.port_bytes);
	assert_int_equal(spine->latency, 300 * VB_NS);
	accepted(two_tiers);
	assert_int_equal(network.profiles[network.switches[0].profile].latency, 0);
}

static void two_tiers__are_read_in_any_order_and_case(void **state)
{
	accepted(two_tiers);
	assert_int_equal(network.endpoint_count, 32);
	assert_int_equal(network.switch_count, 4 + 2);
	assert_int_equal(network.link_count, 2 * (32 + 8));
	assert_int_equal(between(0, 31).count, 2);
	assert_int_equal(network.switches[3].pod, 3);
	assert_int_equal(network.switches[4].tier, 1);
}

static void lines__that_are_wrong_are_named(void **state)
{
	refused("Knots 3\n", "f:1: Knots before the first Tier: expected Nodes, Tiers or Podsize");
	refused("Nodes 3\nNodes 4\n", "f:2: Nodes twice");
	refused("Nodes 0\n", "f:1: 0 is not from 1 to 1048576");
	refused("Nodes\n", "f:1: expected a name and a value");
	refused("Nodes 3 4\n", "f:1: expected a name and a value");
	refused("Tier 3\n", "f:1: expected each of the tiers 0, 1 and 2 at most once");
	refused("Tier 1\nTier 1\n", "f:2: expected each of the tiers 0, 1 and 2 at most once");
	refused("Tier 1\nColour 1\n", "f:2: Colour is nothing that is known of a tier");
	refused("Tier 1\nBundle 1\nbundle 2\n", "f:3: Bundle of a tier twice");
	refused("Tier 1\nRadix_Up 99999999\n", "f:2: 99999999 is no Radix_Up");
	refused("Tier 1\nDownlink_speed_Gbps x\n", "f:2: x is no Downlink_speed_Gbps");
}

#define HEAD  "Nodes 4\nTiers 2\nPodsize 4\n"
#define LEAF  "Tier 0\nDownlink_speed_Gbps 1\nDownlink_Latency_ns 1\nRadix_Down 2\nRadix_Up 2\n"
#define SPINE "Tier 1\nDownlink_speed_Gbps 1\nDownlink_Latency_ns 1\nRadix_Down 2\n"

static void trees__that_do_not_fit_together_are_refused(void **state)
{
	accepted(HEAD LEAF SPINE);
	refused("Nodes 4\n", "f: Nodes, Podsize and Tiers, which is 2 or 3, are needed");
	refused("Nodes 4\nTiers 4\nPodsize 4\n", "f: Nodes, Podsize and Tiers, which is 2 or 3, are needed");
	refused(HEAD LEAF, "f: 2 tiers, yet there is no tier 1");
	refused(HEAD LEAF SPINE "Tier 2\n", "f: 2 tiers, yet there is a tier 2");
	refused(HEAD "Tier 0\nDownlink_speed_Gbps 1\nDownlink_Latency_ns 1\nRadix_Down 2\n" SPINE,
		"f: tier 0 has no Radix_Up");
	refused(HEAD LEAF SPINE "Radix_Up 2\n", "f: tier 1 is the highest and has nothing upwards");
	refused(HEAD LEAF "Bundle 2\n" SPINE, "f: tier 0 cannot have bundles of 2");
	refused(HEAD LEAF SPINE "Bundle 3\n", "f: tier 0 has Radix_Up 2, yet the bundles of tier 1 are of 3");
	refused(HEAD LEAF SPINE "Bundle 2\n", "f: tier 1 has Radix_Down 2, yet there are 2 x 2 links to it from below");
	refused(HEAD LEAF "Oversubscribed 2\n" SPINE,
		"f: tier 0 is not oversubscribed 2 times by its radices and speeds");
	refused(HEAD LEAF "Queue_Up 2\nQueue_Down 3\n" SPINE,
		"f: tier 0 has Queue_Up unlike Queue_Down, which is not supported");
	refused("Nodes 5\nTiers 2\nPodsize 4\n" LEAF SPINE, "f: 5 nodes in pods of 4 under switches of 2");
	refused("Nodes 8\nTiers 2\nPodsize 4\n" LEAF SPINE, "f: with 2 tiers there is one pod, not 2");
}

static void bytes__of_any_kind_are_survived(void **state)
{
	const char *const good[] = { three_tiers, two_tiers };
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, NULL, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(three_tiers__are_read),
		TEST(tiers__have_profiles_of_their_own),
		TEST(two_tiers__are_read_in_any_order_and_case),
		TEST(lines__that_are_wrong_are_named),
		TEST(trees__that_do_not_fit_together_are_refused),
		TEST(bytes__of_any_kind_are_survived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
