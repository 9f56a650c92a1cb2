/* Networks and runs that several tests look at. */
#ifndef VB_TESTS_UNIT_FABRIC_NETS_H
#define VB_TESTS_UNIT_FABRIC_NETS_H

#include <string.h>
#include "base/random.h"
#include "fabric/fabric.h"
#include "../unit.h"

#define GBPS 1000000000ull

/* The 320-host tree of the HPCC paper: 20 ToRs of 16 hosts, 5 pods of 4 ToRs and 4 aggregation switches, 16 cores. */
static inline void make_tree_320(struct network *network, const struct switch_profile *profile)
{
	char why[100];
	*network = (struct network){ 0 };
	network_add_profile(network, profile);
	network_add_nic(network, &(struct nic_profile){ .name = "ideal" });
	for (uint32_t i = 0; i < 320; i++)
		network_add_endpoint(network, i, 0);
	for (uint32_t i = 0; i < 56; i++)
		network_add_switch(network, 0, i < 20 ? 0 : i < 40 ? 1 : 2, i < 40 ? i % 20 / 4 : NETWORK_NONE);
	for (uint32_t i = 0; i < 320; i++)
		network_connect(network, i, network_switch_node(i / 16), 100 * GBPS, VB_US);
	for (uint32_t tor = 0; tor < 20; tor++)
		for (uint32_t k = 0; k < 4; k++)
			network_connect(network, network_switch_node(tor), network_switch_node(20 + tor / 4 * 4 + k),
				400 * GBPS, VB_US);
	for (uint32_t aggregation = 0; aggregation < 20; aggregation++)
		for (uint32_t k = 0; k < 4; k++)
			network_connect(network, network_switch_node(20 + aggregation),
				network_switch_node(40 + aggregation % 4 * 4 + k), 400 * GBPS, VB_US);
	assert_int_equal(network_finish(network, why, sizeof(why)), 0);
}

/* Endpoints on one switch. */
static inline void make_star(
	struct network *network, uint32_t endpoints, uint64_t rate, vb_time delay, const struct switch_profile *profile)
{
	char why[100];
	*network = (struct network){ 0 };
	network_add_profile(network, profile);
	network_add_nic(network, &(struct nic_profile){ .name = "ideal" });
	network_add_switch(network, 0, 0, NETWORK_NONE);
	for (uint32_t i = 0; i < endpoints; i++) {
		network_add_endpoint(network, i, 0);
		network_connect(network, i, network_switch_node(0), rate, delay);
	}
	assert_int_equal(network_finish(network, why, sizeof(why)), 0);
}

/* Two leaves of so many hosts, with spines between them. */
static inline void make_two_leaves(
	struct network *network, uint32_t hosts, uint32_t spines, uint64_t fabric_rate, enum routing routing)
{
	char why[100];
	const struct switch_profile profile = { .name = "leaf", .class_count = 1, .routing = routing };
	*network = (struct network){ 0 };
	network_add_profile(network, &profile);
	network_add_nic(network, &(struct nic_profile){ .name = "ideal" });
	for (uint32_t i = 0; i < 2 * hosts; i++)
		network_add_endpoint(network, i, 0);
	for (uint32_t i = 0; i < 2 + spines; i++)
		network_add_switch(network, 0, i < 2 ? 0 : 1, NETWORK_NONE);
	for (uint32_t i = 0; i < 2 * hosts; i++)
		network_connect(network, i, network_switch_node(i / hosts), 100 * GBPS, VB_US);
	for (uint32_t leaf = 0; leaf < 2; leaf++)
		for (uint32_t i = 0; i < spines; i++)
			network_connect(
				network, network_switch_node(leaf), network_switch_node(2 + i), fabric_rate, VB_US);
	assert_int_equal(network_finish(network, why, sizeof(why)), 0);
}

static inline void add_flow(struct flow_list *list, uint32_t src, uint32_t dst, uint64_t bytes, vb_time start)
{
	assert_int_equal(
		flow_list_add(list, &(struct flow){ .src = src, .dst = dst, .bytes = bytes, .start = start }), 0);
}

/* As the reference runs have it: packets of 1,000 bytes, 1,048 on the wire, acks of 60, each packet acknowledged. */
static inline struct fabric_config config_hpcc(const struct network *network, const struct flow_list *flows)
{
	return (struct fabric_config){ .network = network,
		.flows = flows,
		.seed = 1,
		.mtu = 1000,
		.data_overhead = 48,
		.ack_overhead = 60,
		.cc = { .algorithm = &vb_cc_none } };
}

static inline void run(const struct fabric_config *config, struct fabric_result *result)
{
	char why[200] = "";
	if (fabric_run(config, result, why, sizeof(why)))
		fail_msg("%s", why);
}

/* A job alone, of a workload that is neither a collective nor a step, to its end. */
static inline void run_service(
	const struct network *network, struct job *job, bool by_flows, uint32_t threads, struct fabric_result *result)
{
	static const struct flow_list no_flows;
	run(&(struct fabric_config){ .network = network,
		    .flows = &no_flows,
		    .jobs = &job,
		    .job_count = 1,
		    .seed = 1,
		    .threads = threads,
		    .endpoint = FABRIC_ENGINE,
		    .by_flows = by_flows,
		    .mtu = 4096,
		    .data_overhead = 90,
		    .ack_overhead = 90,
		    .ack_every = 64,
		    .cc = { .algorithm = &vb_cc_none, .max_window = VB_CC_UNLIMITED } },
		result);
	assert_int_equal(result->end, FABRIC_DONE);
}

static inline void expect_seconds(vb_time is, double seconds, double share)
{
	const double error = (double)is / VB_S / seconds - 1;
	if (error > share || error < -share)
		fail_msg("%.6g s, not %.6g: %+.2f%%", (double)is / VB_S, seconds, 100 * error);
}

#endif
