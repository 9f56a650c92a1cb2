#include "base/random.h"
#include "net/route.h"
#include "../unit.h"

#define RATE (100 * 1000000000ull)

static struct network network;
static struct routes *routes;

static int setup(void **state)
{
	network = (struct network){ 0 };
	routes = NULL;
	network_add_profile(&network, &(struct switch_profile){ .name = "p" });
	network_add_nic(&network, &(struct nic_profile){ .name = "n" });
	return 0;
}

static int teardown(void **state)
{
	routes_free(routes);
	network_free(&network);
	return 0;
}

static void add_switches(uint32_t count)
{
	while (count--)
		network_add_switch(&network, 0, 0, NETWORK_NONE);
}

static void add_endpoint(uint32_t at)
{
	uint32_t endpoint = network_add_endpoint(&network, network.endpoint_count, 0);
	network_connect(&network, endpoint, network_switch_node(at), RATE, 0);
}

static uint32_t join(uint32_t a, uint32_t b)
{
	return network_connect(&network, network_switch_node(a), network_switch_node(b), RATE, 0);
}

static void finish(void)
{
	char why[100] = "";
	int error = network_finish(&network, why, sizeof(why));
	assert_string_equal(why, "");
	assert_int_equal(error, 0);
	routes = routes_make(&network);
	assert_non_null(routes);
}

static void choices(uint32_t at, uint32_t endpoint, uint32_t count, const uint32_t *links)
{
	struct route_choice choice = routes_towards(routes, at, endpoint);
	assert_int_equal(choice.count, count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(choice.links[i], links[i]);
}
#define CHOICES(at, endpoint, ...)                                                                                     \
	choices(at, endpoint, COUNT_OF(((uint32_t[]){ __VA_ARGS__ })), (uint32_t[]){ __VA_ARGS__ })

static void last_switch__leads_to_each_of_its_endpoints(void **state)
{
	add_switches(1);
	for (int i = 0; i < 5; i++)
		add_endpoint(0);
	finish();
	for (uint32_t i = 0; i < 5; i++)
		CHOICES(0, i, 2 * i + 1);
	assert_true(routes_lead(routes, &network, 0, 4));
}

static void ring__is_gone_round_the_shorter_way(void **state)
{
	add_switches(6);
	for (uint32_t i = 0; i < 6; i++)
		add_endpoint(i);
	uint32_t links[6];
	for (uint32_t i = 0; i < 6; i++)
		links[i] = join(i, (i + 1) % 6);
	finish();
	CHOICES(0, 1, links[0]);
	CHOICES(0, 2, links[0]);
	CHOICES(0, 3, links[0], links[5] + 1); /* as long either way */
	CHOICES(0, 4, links[5] + 1);
	CHOICES(0, 5, links[5] + 1);
}

static void parallel_links__are_choices_in_the_order_of_ports(void **state)
{
	add_switches(2);
	uint32_t first = join(1, 0), second = join(0, 1);
	add_endpoint(0);
	add_endpoint(1);
	uint32_t third = join(0, 1);
	finish();
	CHOICES(0, 1, first + 1, second, third);
	CHOICES(1, 0, first, second + 1, third + 1);
}

static void switch__without_endpoints_is_no_place(void **state)
{
	add_switches(3);
	uint32_t a = join(0, 1), b = join(1, 2);
	add_endpoint(0);
	add_endpoint(2);
	finish();
	assert_int_equal(routes->place_count, 2);
	CHOICES(1, 0, a + 1);
	CHOICES(1, 1, b);
}

static void island__has_no_way_to_another(void **state)
{
	add_switches(2);
	add_endpoint(0);
	add_endpoint(0);
	add_endpoint(1);
	network.is_split = true;
	finish();
	assert_int_equal(routes_towards(routes, 0, 2).count, 0);
	assert_false(routes_lead(routes, &network, 0, 2));
	assert_true(routes_lead(routes, &network, 0, 1));
}

static void pair__needs_no_route(void **state)
{
	for (uint32_t i = 0; i < 2; i++)
		network_add_endpoint(&network, i, 0);
	network_connect(&network, 0, 1, RATE, 0);
	finish();
	assert_true(routes_lead(routes, &network, 0, 1));
	assert_true(routes_lead(routes, &network, 1, 0));
}

/* More groups than a cell of one byte can name. */
static void star__of_many_arms_has_wide_cells(void **state)
{
	enum { ARMS = 700 };
	add_switches(ARMS + 1);
	uint32_t links[ARMS];
	for (uint32_t i = 0; i < ARMS; i++) {
		add_endpoint(i);
		links[i] = join(ARMS, i);
	}
	finish();
	assert_true(routes->rows[ARMS].is_wide);
	for (uint32_t i = 0; i < ARMS; i++) {
		CHOICES(ARMS, i, links[i]);
		CHOICES(i, (i + 1) % ARMS, links[i] + 1);
	}
}

/* ---- Any graph, beside distances found in another way ------------------------------------------------------------ */

enum { MOST = 24, UNREACHED = 1000 };
static uint32_t distance[MOST][MOST];

static void measure(void)
{
	uint32_t n = network.switch_count;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < n; j++)
			distance[i][j] = i == j ? 0 : UNREACHED;
	for (uint32_t i = 0; i < network.link_count; i++) {
		const struct network_link *link = &network.links[i];
		if (network_is_switch(link->from) && network_is_switch(link->to))
			distance[network_index(link->from)][network_index(link->to)] = 1;
	}
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t i = 0; i < n; i++)
			for (uint32_t j = 0; j < n; j++)
				if (distance[i][k] + distance[k][j] < distance[i][j])
					distance[i][j] = distance[i][k] + distance[k][j];
}

/* All links that lead nearer, no other, in the order of ports. */
static void check(uint32_t at, uint32_t endpoint)
{
	const struct network_link *uplink = &network.links[network.endpoints[endpoint].link];
	uint32_t last = network_index(uplink->to), found = 0;
	struct route_choice choice = routes_towards(routes, at, endpoint);
	if (at == last) {
		assert_int_equal(choice.count, 1);
		assert_int_equal(choice.links[0], uplink->reverse);
		return;
	}
	for (uint32_t port = 0; port < network.switches[at].port_count; port++) {
		uint32_t link = network.ports[network.switches[at].first_port + port];
		network_node to = network.links[link].to;
		if (!network_is_switch(to) || distance[at][last] >= UNREACHED ||
			distance[network_index(to)][last] + 1 != distance[at][last])
			continue;
		assert_true(found < choice.count);
		assert_int_equal(choice.links[found++], link);
	}
	assert_int_equal(found, choice.count);
}

static void any_graph__has_all_shortest_ways_and_no_other(void **state)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		teardown(NULL);
		setup(NULL);
		struct vb_random random;
		vb_random_seed(&random, seed);
		uint32_t switches = 2 + vb_random_below(&random, MOST - 2);
		add_switches(switches);
		for (uint32_t i = 1 + vb_random_below(&random, 30); i > 0; i--)
			add_endpoint(vb_random_below(&random, switches));
		for (uint32_t i = vb_random_below(&random, 60); i > 0; i--) {
			uint32_t a = vb_random_below(&random, switches);
			join(a, (a + 1 + vb_random_below(&random, switches - 1)) % switches);
		}
		network.is_split = true;
		finish();
		measure();
		for (uint32_t at = 0; at < switches; at++)
			for (uint32_t i = 0; i < network.endpoint_count; i++)
				check(at, i);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(last_switch__leads_to_each_of_its_endpoints),
		TEST(ring__is_gone_round_the_shorter_way),
		TEST(parallel_links__are_choices_in_the_order_of_ports),
		TEST(switch__without_endpoints_is_no_place),
		TEST(island__has_no_way_to_another),
		TEST(pair__needs_no_route),
		TEST(star__of_many_arms_has_wide_cells),
		TEST(any_graph__has_all_shortest_ways_and_no_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
