#include <errno.h>
#include "net/network.h"
#include "../unit.h"

#define RATE (100 * 1000000000ull)

static struct network network;
static char why[200];

static int setup(void **state)
{
	network = (struct network){ 0 };
	why[0] = 0;
	network_add_profile(&network, &(struct switch_profile){ .name = "p" });
	network_add_nic(&network, &(struct nic_profile){ .name = "n" });
	return 0;
}

static int teardown(void **state)
{
	network_free(&network);
	return 0;
}

static uint32_t endpoint(void)
{
	return network_add_endpoint(&network, network.endpoint_count, 0);
}

static network_node new_switch(void)
{
	return network_switch_node(network_add_switch(&network, 0, 0, NETWORK_NONE));
}

static void refused(const char *because)
{
	assert_int_equal(network_finish(&network, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, because);
}

static void connect__makes_a_link_each_way(void **state)
{
	network_node a = endpoint(), b = endpoint(), s = new_switch();
	assert_int_equal(network_connect(&network, a, s, RATE, VB_US), 0);
	assert_int_equal(network_connect(&network, s, b, RATE, 2 * VB_US), 2);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
	assert_int_equal(network.link_count, 4);
	for (uint32_t i = 0; i < 4; i++) {
		const struct network_link *link = &network.links[i], *back = &network.links[link->reverse];
		assert_int_equal(back->reverse, i);
		assert_int_equal(back->from, link->to);
		assert_int_equal(back->to, link->from);
		assert_int_equal(back->delay, link->delay);
		assert_int_equal(link->fault, NETWORK_NONE);
	}
	assert_int_equal(network.links[2].delay, 2 * VB_US);
	assert_int_equal(network.endpoints[a].link, 0);
	assert_int_equal(network.endpoints[b].link, 3);
}

static void finish__sorts_ports_by_link(void **state)
{
	network_node s = new_switch(), t = new_switch();
	for (int i = 0; i < 20; i++)
		network_connect(&network, i % 3 ? t : s, endpoint(), RATE, 0);
	network_connect(&network, s, t, RATE, 0);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
	assert_int_equal(network.switches[0].port_count, 8);
	assert_int_equal(network.switches[1].port_count, 14);
	for (uint32_t i = 0; i < network.switch_count; i++)
		for (uint32_t port = 0; port < network.switches[i].port_count; port++) {
			const uint32_t *links = &network.ports[network.switches[i].first_port];
			assert_int_equal(network.links[links[port]].from, network_switch_node(i));
			assert_true(port == 0 || links[port] > links[port - 1]);
		}
}

static void finish__may_be_called_again_after_more_was_added(void **state)
{
	network_node s = new_switch();
	network_connect(&network, endpoint(), s, RATE, 0);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
	network_connect(&network, endpoint(), s, RATE, 0);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
	assert_int_equal(network.switches[0].port_count, 2);
}

static void pair__needs_no_switch(void **state)
{
	network_connect(&network, endpoint(), endpoint(), RATE, 0);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
}

static void faults__are_of_both_directions(void **state)
{
	uint32_t link = network_connect(&network, endpoint(), endpoint(), RATE, 0);
	assert_int_equal(network_set_fault(&network, link, &(struct network_fault){ .loss_ppm = 7 }), 0);
	assert_int_equal(network.faults[network.links[link].fault].loss_ppm, 7);
	assert_int_equal(network.links[link].fault, network.links[link + 1].fault);
}

static void endpoint__without_a_link_is_refused(void **state)
{
	network_connect(&network, endpoint(), new_switch(), RATE, 0);
	endpoint();
	refused("endpoint 1 has no link");
}

static void endpoint__with_two_links_is_refused(void **state)
{
	network_node a = endpoint(), s = new_switch();
	network_connect(&network, a, s, RATE, 0);
	network_connect(&network, a, s, RATE, 0);
	refused("endpoint 0 has more than one link");
}

static void endpoints__that_cannot_reach_each_other_are_refused(void **state)
{
	network_connect(&network, endpoint(), new_switch(), RATE, 0);
	network_connect(&network, endpoint(), new_switch(), RATE, 0);
	refused("endpoint 1 cannot be reached from endpoint 0");
	network.is_split = true;
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
}

static void link__to_nowhere_is_refused(void **state)
{
	network_connect(&network, endpoint(), network_switch_node(4), RATE, 0);
	refused("a link to switch 4, which does not exist");
}

static void link__to_itself_is_refused(void **state)
{
	network_node s = new_switch();
	network_connect(&network, s, s, RATE, 0);
	refused("a link from switch 0 to itself");
}

static void link__without_a_rate_is_refused(void **state)
{
	network_node a = endpoint(), b = endpoint();
	network_connect(&network, a, b, 0, 0);
	refused("the link between endpoint 0 and endpoint 1 has no rate");
}

static void link__that_is_early_is_refused(void **state)
{
	network_connect(&network, endpoint(), new_switch(), RATE, -1);
	refused("the link between endpoint 0 and switch 0 has a delay below 0");
}

static void network__without_endpoints_is_refused(void **state)
{
	new_switch();
	refused("a network without endpoints");
}

static void profile__that_does_not_exist_is_refused(void **state)
{
	network_node s = network_switch_node(network_add_switch(&network, 3, 0, NETWORK_NONE));
	network_connect(&network, endpoint(), s, RATE, 0);
	refused("switch 0 has no profile");
}

static void memory__that_was_wanting_is_told_at_the_end(void **state)
{
	network_connect(&network, endpoint(), endpoint(), RATE, 0);
	network.has_no_memory = true;
	assert_int_equal(network_connect(&network, 0, 1, RATE, 0), NETWORK_NONE);
	assert_int_equal(network_finish(&network, why, sizeof(why)), -ENOMEM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(connect__makes_a_link_each_way),
		TEST(finish__sorts_ports_by_link),
		TEST(finish__may_be_called_again_after_more_was_added),
		TEST(pair__needs_no_switch),
		TEST(faults__are_of_both_directions),
		TEST(endpoint__without_a_link_is_refused),
		TEST(endpoint__with_two_links_is_refused),
		TEST(endpoints__that_cannot_reach_each_other_are_refused),
		TEST(link__to_nowhere_is_refused),
		TEST(link__to_itself_is_refused),
		TEST(link__without_a_rate_is_refused),
		TEST(link__that_is_early_is_refused),
		TEST(network__without_endpoints_is_refused),
		TEST(profile__that_does_not_exist_is_refused),
		TEST(memory__that_was_wanting_is_told_at_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
