/* NICs with two ports at two leaves: flows are hashed over both, and one that is down leaves the other. */
#include <math.h>
#include "net/topologies.h"
#include "nets.h"

#define RATE (200 * GBPS)

enum { NICS = 8, FLOWS = 16, MTU = 4096 };

static struct network network;
static struct flow_list flows;
static struct fabric_result result;

static int teardown(void **state)
{
	fabric_result_free(&result);
	flow_list_free(&flows);
	network_free(&network);
	return 0;
}

/* Two hosts of so many NICs, each on a rail of its own, which has a leaf for each of its ports. */
static void build(uint32_t nics)
{
	char why[200] = "";
	const struct topology topology = { .kind = "rail",
		.machines = 2,
		.nics_a_machine = nics,
		.nic_ports = 2,
		.host_bits_per_second = RATE,
		.host_delay = VB_US,
		.profile = { .name = "ideal", .class_count = 1 },
		.nic = { .name = "ideal" } };
	teardown(NULL);
	if (topology_build(&topology, &network, why, sizeof(why)))
		fail_msg("%s", why);
}

/* The link up from a NIC's port. */
static uint32_t port_of(uint32_t endpoint, uint32_t port)
{
	const network_node nic = network.links[network.endpoints[endpoint].link].to;
	return network.ports[network.switches[network_index(nic)].first_port + 1 + port];
}

static uint64_t sent_by(uint32_t endpoint, uint32_t port)
{
	return result.links[port_of(endpoint, port)].bytes;
}

/* From each NIC of the first host to the other's. Windows leave no flow far ahead of others. */
static void play(uint32_t nics, uint64_t bytes, vb_time limit, uint32_t threads)
{
	for (uint32_t nic = 0; nic < nics && flows.count < nics * FLOWS; nic++)
		for (uint32_t i = 0; i < FLOWS; i++)
			add_flow(&flows, nic, nics + nic, bytes, 0);
	const struct fabric_config config = { .network = &network,
		.flows = &flows,
		.seed = 1,
		.threads = threads,
		.mtu = MTU,
		.ack_every = 4,
		.probe_after = 100 * VB_US,
		.limit = limit,
		.cc = { .algorithm = &vb_cc_window, .first_window = 32 << 10, .max_window = 32 << 10 } };
	fabric_result_free(&result);
	run(&config, &result);
}

static void nic__has_a_link_of_all_ports_and_a_leaf_for_each(void **state)
{
	build(NICS);
	assert_int_equal(network.endpoint_count, 2 * NICS);
	assert_int_equal(network.switch_count - network.nic_switch_count, 2 * NICS);
	for (uint32_t i = 0; i < network.endpoint_count; i++) {
		uint32_t endpoint;
		const network_node nic = network.links[network.endpoints[i].link].to;
		assert_true(network_is_nic(&network, network_index(nic), &endpoint));
		assert_int_equal(endpoint, i);
		assert_int_equal(network_rate(&network, network.endpoints[i].link), 2 * RATE);
		for (uint32_t port = 0; port < 2; port++) {
			const struct network_link *is = &network.links[port_of(i, port)];
			assert_int_equal(network_index(is->to), 2 * (i % NICS) + port);
			assert_int_equal(is->bits_per_second, RATE);
			assert_int_equal(is->delay + network.links[network.endpoints[i].link].delay, VB_US);
		}
		assert_int_equal(network_leaf_of(&network, i), network_switch_node(2 * (i % NICS)));
	}
}

/* All of a host's sixteen ports are busy. Of sixteen one is down: a sixteenth of what they carry. */
static void port__that_is_down_is_its_share_of_the_host(void **state)
{
	uint64_t carried[2] = { 0 };
	for (uint32_t is_down = 0; is_down < 2; is_down++) {
		build(NICS);
		if (is_down)
			network_set_fault(&network, port_of(3, 1), &(struct network_fault){ .down_at = 1 });
		play(NICS, 1000000000, VB_MS, 1);
		assert_int_equal(result.end, FABRIC_LIMIT);
		for (uint32_t i = 0; i < 2 * NICS; i++)
			carried[is_down] += sent_by(i / 2, i % 2);
		assert_true(is_down ? sent_by(3, 1) < 1000000 : sent_by(3, 1) > 23000000);
	}
	const double all = 2.0 * NICS * (double)RATE / 8 / 1000;
	print_message("%.4f of all ports, %.4f of that with one down\n", (double)carried[0] / all,
		(double)carried[1] / (double)carried[0]);
	assert_true((double)carried[0] > 0.98 * all);
	assert_true(fabs((double)carried[1] / (double)carried[0] - 15.0 / 16) < 0.003);
}

/* A port fails under way, at the sender and at the receiver: what was on it is sent again by the other. */
static void flows__outlive_one_of_two_ports(void **state)
{
	for (uint32_t endpoint = 0; endpoint < 2; endpoint++) {
		uint64_t hash = 0;
		build(1);
		network_set_fault(&network, port_of(endpoint, 0),
			&(struct network_fault){ .down_at = 50 * VB_US, .detection = VB_US, .convergence = 5 * VB_US });
		for (uint32_t threads = 1; threads <= 4; threads *= 2) {
			play(1, 1000000, 0, threads);
			assert_int_equal(result.end, FABRIC_DONE);
			assert_int_equal(result.flows_failed, 0);
			assert_int_equal(result.flows_done, FLOWS);
			assert_true(result.lost > 0);
			assert_true(sent_by(0, 0) < 2000000 && sent_by(0, 1) > 13000000);
			assert_true(threads == 1 || result.hash == hash);
			hash = result.hash;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(nic__has_a_link_of_all_ports_and_a_leaf_for_each, teardown),
		cmocka_unit_test_teardown(port__that_is_down_is_its_share_of_the_host, teardown),
		cmocka_unit_test_teardown(flows__outlive_one_of_two_ports, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
