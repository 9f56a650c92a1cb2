/* A small network: endpoints 0 and 1 on switch 0, endpoint 2 on switch 1, and a link between the switches. */
#ifndef TESTS_SIM_TWO_SWITCHES_H
#define TESTS_SIM_TWO_SWITCHES_H

#include "../unit.h"
#include "net/network.h"

static inline void make_two_switches(struct network *network)
{
	const struct switch_profile profile = { .class_count = 1 };
	const struct nic_profile nic = { 0 };
	char why[200];

	*network = (struct network){ 0 };
	uint32_t profile_index = network_add_profile(network, &profile), nic_index = network_add_nic(network, &nic);
	for (uint32_t i = 0; i < 2; i++)
		network_add_switch(network, profile_index, 0, NETWORK_NONE);
	for (uint32_t i = 0; i < 3; i++)
		network_connect(network, network_add_endpoint(network, i, nic_index), network_switch_node(i / 2),
			100000000000u, VB_US);
	network_connect(network, network_switch_node(0), network_switch_node(1), 400000000000u, VB_US);
	assert_int_equal(network_finish(network, why, sizeof(why)), 0);
}

#endif
