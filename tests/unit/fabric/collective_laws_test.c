/* On a network without contention a collective takes the time of its closed form, which follows from the rate B of the
 * payload and from the one-way time alpha of a message of one byte. */
#include <math.h>
#include "net/collective_job.h"
#include "net/graph_job.h"
#include "nets.h"

#define RATE (400 * GBPS)
#define MTU  4096u

enum { RANKS = 8, PIECE = 128 << 10 };

static struct network network;
static struct flow_list no_flows;
static struct collective_job collective_job;
static struct rank_groups groups;
static struct job *const jobs[] = { &collective_job.job };
static struct fabric_result result;
static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };

static int teardown(void **state)
{
	network_free(&network);
	collective_job_close(&collective_job);
	rank_groups_close(&groups);
	fabric_result_free(&result);
	return 0;
}

static struct fabric_config config_of(enum fabric_endpoint endpoint)
{
	return (struct fabric_config){ .network = &network,
		.flows = &no_flows,
		.jobs = jobs,
		.job_count = 1,
		.seed = 1,
		.endpoint = endpoint,
		.mtu = MTU,
		.data_overhead = 90,
		.ack_overhead = 90,
		.ack_every = 64,
		.cc = { .algorithm = &vb_cc_none, .max_window = VB_CC_UNLIMITED } };
}

static void open_job(const struct collective *collective)
{
	collective_job_close(&collective_job);
	rank_groups_close(&groups);
	assert_int_equal(rank_groups_open(&groups, &(struct hosts){ 0 }, 0, collective->ranks), 0);
	assert_int_equal(collective_job_open(&collective_job, collective, &groups), 0);
}

static vb_time time_of_ranks(
	const char *kind, const char *algorithm, uint64_t bytes, enum fabric_endpoint endpoint, uint32_t ranks)
{
	const struct fabric_config config = config_of(endpoint);
	const struct collective collective = { .kind = kind, .algorithm = algorithm, .ranks = ranks, .bytes = bytes };
	fabric_result_free(&result);
	open_job(&collective);
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 0);
	assert_true(result.last_flow > 0);
	return result.last_flow;
}

static vb_time time_of(const char *kind, const char *algorithm, uint64_t bytes, enum fabric_endpoint endpoint)
{
	return time_of_ranks(kind, algorithm, bytes, endpoint, RANKS);
}

static const struct law {
	const char *kind, *algorithm;
	double alphas, buffers, pieces; /* alphas * alpha + (buffers * S + pieces * PIECE) / B */
} laws[] = {
	{ "allreduce", "ring", 2 * (RANKS - 1), 2.0 * (RANKS - 1) / RANKS, 0 },
	{ "allreduce", "recursive-doubling", 3, 3, 0 },
	{ "allreduce", "halving-doubling", 6, 2.0 * (RANKS - 1) / RANKS, 0 },
	{ "allreduce", "direct", 2, 2.0 * (RANKS - 1) / RANKS, 0 },
	{ "all-gather", "ring", RANKS - 1, 1.0 * (RANKS - 1) / RANKS, 0 },
	{ "all-gather", "recursive-doubling", 3, 1.0 * (RANKS - 1) / RANKS, 0 },
	{ "all-gather", "direct", 1, 1.0 * (RANKS - 1) / RANKS, 0 },
	{ "reduce-scatter", "ring", RANKS - 1, 1.0 * (RANKS - 1) / RANKS, 0 },
	{ "reduce-scatter", "halving-doubling", 3, 1.0 * (RANKS - 1) / RANKS, 0 },
	{ "reduce-scatter", "direct", 1, 1.0 * (RANKS - 1) / RANKS, 0 },
	{ "alltoall", "pairwise", 1, 1.0 * (RANKS - 1) / RANKS, 0 },
	{ "all-gather", "pat", 3, 1.0 * (RANKS - 1) / RANKS, 0 },
	{ "reduce-scatter", "pat", 3, 1.0 * (RANKS - 1) / RANKS, 0 },
};

static void expect_law(
	const struct law *law, uint64_t bytes, double alpha, enum fabric_endpoint endpoint, double within)
{
	const double payload_per_ps = (double)RATE / 8 / VB_S * MTU / (MTU + 90);
	const double is = (double)time_of(law->kind, law->algorithm, bytes, endpoint);
	const double said = law->alphas * alpha + (law->buffers * (double)bytes + law->pieces * PIECE) / payload_per_ps;

	print_message("%s %s: %.3f us, law %.3f us, %+.3f%%\n", law->kind, law->algorithm, is / VB_US, said / VB_US,
		100 * (is / said - 1));
	if (fabs(is / said - 1) > within)
		fail_msg("%s %s: %.1f us, not %.1f us", law->kind, law->algorithm, is / VB_US, said / VB_US);
}

static void expect_laws(enum fabric_endpoint endpoint)
{
	make_star(&network, RANKS, RATE, VB_US, &ideal);
	const double alpha = (double)time_of("barrier", NULL, 1, endpoint) / 3;
	for (unsigned i = 0; i < sizeof(laws) / sizeof(laws[0]); i++)
		expect_law(&laws[i], 64ull << 20, alpha, endpoint, 0.001);
}

/* What goes on piece by piece: 0.2%, with the pieces that fill it. In a double tree the links of inner ranks
 * are busy both ways all the time, by the closed form: they are if none of its edges gets ahead of the others. */
static void pipelines__take_their_closed_forms(void **state)
{
	static const struct law pipelines[] = {
		{ "broadcast", "chain", RANKS - 1, 1, RANKS - 2 },
		{ "reduce", "chain", RANKS - 1, 1, RANKS - 2 },
		{ "allreduce", "double-tree", 6, 2, 5 },
	};
	make_star(&network, RANKS, RATE, VB_US, &ideal);
	const double alpha = (double)time_of("barrier", NULL, 1, FABRIC_ENGINE) / 3;
	for (unsigned i = 0; i < sizeof(pipelines) / sizeof(pipelines[0]); i++)
		expect_law(&pipelines[i], 256ull << 20, alpha, FABRIC_ENGINE, 0.002);
}

/* More ranks than a rank has messages under way, and all sizes from where only latency counts to where only the rate
 * does. */
static void pairwise__takes_its_form_at_all_sizes(void **state)
{
	static const uint32_t all[] = { 12, 32, 64 };
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		make_star(&network, all[i], RATE, VB_US, &ideal);
		for (uint64_t share = 16; share <= 1 << 18; share *= 4) {
			const struct collective of = { .kind = "alltoall", .ranks = all[i], .bytes = share * all[i] };
			const struct collective_law law = collective_law(&of);
			const double payload_per_ps = (double)RATE / 8 / VB_S * MTU / (MTU + 90);
			const double is = (double)time_of_ranks("alltoall", NULL, of.bytes, FABRIC_ENGINE, all[i]);
			const double said = collective_law_time(&law, 2.0 * VB_US, law.bytes / payload_per_ps);
			print_message("%u ranks, %u bytes each: %.3f us, law %+.1f%%\n", all[i], (unsigned)share,
				is / VB_US, 100 * (said / is - 1));
			assert_true(fabs(said / is - 1) < 0.1);
		}
		network_free(&network);
	}
}

static void ideal_ends__take_the_closed_forms(void **state)
{
	expect_laws(FABRIC_IDEAL);
}

static void engines__take_the_closed_forms(void **state)
{
	expect_laws(FABRIC_ENGINE);
}

/* ---- Hosts with GPUs --------------------------------------------------------------------------------------------- */

enum { GPUS = 8, HOSTS = 4, MOST_NICS = 2 * GPUS };

static struct collective_job parts[MOST_NICS];

static struct hosts hosts_of(uint32_t nics)
{
	return (struct hosts){
		.gpus = GPUS, .nics = nics, .scale_up = 3600 * GBPS, .scale_up_time = 500 * VB_NS, .keeps_rails = true
	};
}

/* Rails of HOSTS endpoints each, and as many parts as there are to be. */
static vb_time time_of_hosts_with(const char *kind, const char *algorithm, uint64_t bytes, uint32_t hosts,
	uint32_t nics, const struct nccl_settings *nccl)
{
	char why[200] = "";
	struct job *all[MOST_NICS];
	struct fabric_config config = config_of(FABRIC_ENGINE);
	const struct collective of = { .kind = kind,
		.algorithm = algorithm,
		.ranks = hosts * GPUS,
		.bytes = bytes,
		.nccl = *nccl,
		.gpus = GPUS,
		.reduces = true };

	assert_int_equal(collective_check(&of, why, sizeof(why)), 0);
	network_free(&network);
	network = (struct network){ .is_split = true };
	network_add_profile(&network, &ideal);
	network_add_nic(&network, &(struct nic_profile){ .name = "ideal" });
	for (uint32_t i = 0; i < nics; i++)
		network_add_switch(&network, 0, 0, NETWORK_NONE);
	for (uint32_t i = 0; i < hosts * nics; i++) {
		network_add_endpoint(&network, i / nics, 0);
		network_connect(&network, i, network_switch_node(i % nics), RATE, VB_US);
	}
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
	config.hosts = hosts_of(nics);
	config.jobs = all;
	config.job_count = collective_parts(&of, &config.hosts);
	collective_job_close(&collective_job);
	rank_groups_close(&groups);
	assert_int_equal(rank_groups_open(&groups, &config.hosts, 0, of.ranks), 0);
	assert_int_equal(groups.gpus, GPUS);
	for (uint32_t i = 0; i < config.job_count; i++) {
		const struct collective part = collective_part_of(&of, &config.hosts, i);
		assert_int_equal(collective_job_open(&parts[i], &part, &groups), 0);
		all[i] = &parts[i].job;
	}
	fabric_result_free(&result);
	run(&config, &result);
	for (uint32_t i = 0; i < config.job_count; i++)
		collective_job_close(&parts[i]);
	assert_int_equal(result.end, FABRIC_DONE);
	return result.last_flow;
}

static vb_time time_of_hosts(const char *algorithm, uint64_t bytes, uint32_t hosts, uint32_t nics)
{
	return time_of_hosts_with("allreduce", algorithm, bytes, hosts, nics, &(struct nccl_settings){ 0 });
}

/* Of S bytes each of N NICs carries 2 (n - 1) / n S / N, and not 2 S: each ring enters and leaves by a NIC of its own.
 */
static void expect_rings(uint32_t nics)
{
	const uint64_t bytes = 64ull << 20;
	const double n = HOSTS * GPUS, payload_per_ps = (double)RATE / 8 / VB_S * MTU / (MTU + 90);
	const double said = 2 * (n - 1) / n * (double)bytes / nics;
	const double is = (double)time_of_hosts("ring", bytes, HOSTS, nics);

	for (uint32_t i = 0; i < HOSTS * nics; i++) {
		const double payload = (double)result.links[network.endpoints[i].link].bytes * MTU / (MTU + 90);
		assert_true(payload > said && payload < 1.03 * said); /* acknowledgements are the rest */
	}
	/* In a host 7 of 8 hops of all rings go by a GPU's port. */
	const double by_nics = said / payload_per_ps, by_ports = said * nics / 450e9 * 1e12 * (GPUS - 1) / GPUS;
	print_message("%.1f us, the NICs alone %.1f us, the ports alone %.1f us\n", is / VB_US, by_nics / VB_US,
		by_ports / VB_US);
	assert_true(is > fmax(by_nics, by_ports) && is < 1.1 * fmax(by_nics, by_ports));
}

static void rings_over_hosts__share_out_the_nics(void **state)
{
	expect_rings(GPUS);
	expect_rings(2 * GPUS);
	expect_rings(GPUS / 2);
}

/* Where a GPU has two NICs, what is not a ring goes by both, half by each: S/8 of 32 ranks to each of 24 others. */
static void nics_of_a_gpu__share_what_is_no_ring(void **state)
{
	const uint64_t bytes = 64ull << 20;
	const double said = 2 * (HOSTS - 1) * GPUS * (double)bytes / (HOSTS * GPUS) / 2;

	time_of_hosts("direct", bytes, HOSTS, 2 * GPUS);
	for (uint32_t i = 0; i < HOSTS * 2 * GPUS; i++) {
		const double payload = (double)result.links[network.endpoints[i].link].bytes * MTU / (MTU + 90);
		assert_true(payload > said && payload < 1.03 * said);
	}
}

/* Within one host the ring takes what the domain's ports say: 0.1%. */
static void ring_in_a_host__takes_its_closed_form(void **state)
{
	const uint64_t bytes = 256ull << 20;
	const double said = 14 * (500e3 + (double)bytes / GPUS / 450e9 * 1e12);
	const double is = (double)time_of_hosts("ring", bytes, 1, GPUS);

	assert_true(fabs(is / said - 1) < 0.001);
	assert_int_equal(result.data_packets, 0);
}

/* A graph's collective is of as many parts and QPs as a scenario's: the same messages at the same times.
 * Of what begins at one time a graph sends first what goes to lower ranks. */
static void expect_messages_of_a_scenario(
	const char *kind, const char *algorithm, uint64_t bytes, const struct nccl_settings *nccl, double within)
{
	const vb_time of_scenario = time_of_hosts_with(kind, algorithm, bytes, HOSTS, GPUS, nccl);
	const uint64_t packets = result.data_packets;
	struct fabric_config config = config_of(FABRIC_ENGINE);
	struct graph graph = { .ranks = HOSTS * GPUS };
	struct graph_operation operation = { .kind = GRAPH_COLLECTIVE, .bytes = bytes, .stream = GRAPH_NO_STREAM };
	struct graph_job job;
	uint64_t hash = 0;
	char why[200] = "";

	assert_int_equal(graph_add_group(&graph, NULL, graph.ranks), 0);
	assert_int_equal(graph_find_collective(&graph, kind, algorithm, &operation.collective), 0);
	for (; operation.rank < graph.ranks; operation.rank++)
		assert_int_equal(graph_add(&graph, &operation), 0);
	assert_int_equal(graph_finish(&graph, NULL, why, sizeof(why)), 0);
	config.hosts = hosts_of(GPUS);
	config.jobs = (struct job *[]){ &job.job };
	for (config.threads = 1; config.threads <= 4; config.threads *= 2) {
		assert_int_equal(graph_job_open(&job, &graph, &config.hosts, nccl), 0);
		fabric_result_free(&result);
		run(&config, &result);
		graph_job_close(&job);
		assert_int_equal(result.end, FABRIC_DONE);
		print_message("%s %s: %.3f us, of a scenario %.3f us\n", kind, algorithm ? algorithm : "",
			(double)result.last_flow / VB_US, (double)of_scenario / VB_US);
		assert_true(fabs((double)result.last_flow / (double)of_scenario - 1) <= within);
		assert_int_equal(result.data_packets, packets);
		assert_true(config.threads == 1 || result.hash == hash);
		hash = result.hash;
	}
	graph_free(&graph);
}

static void graph__has_the_messages_of_a_scenario(void **state)
{
	static const struct nccl_settings all[] = { { 0 }, { .channels = 3 }, { .qps = 4 },
		{ .qps = 4, .is_cut = true }, { .qps = 128, .is_cut = true, .channels = 2 } };
	static const char *const kinds[][2] = { { "alltoall", NULL }, { "all-gather", "pat" },
		{ "allreduce", "halving-doubling" }, { "allreduce", "direct" } };
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		expect_messages_of_a_scenario("allreduce", NULL, 8 << 20, &all[i], 0);
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (unsigned k = 2; k < 4; k++)
			expect_messages_of_a_scenario(kinds[i][0], kinds[i][1], 2 << 20, &all[k], 0.03);
	expect_messages_of_a_scenario("allreduce", "double-tree", 8 << 20,
		&(struct nccl_settings){ .qps = 3, .is_cut = true, .buffer = 64 << 10 }, 0.03);
}

/* In the host, between hosts and in the host again, one after the other: 0.5%. */
static void hierarchy__takes_its_closed_form(void **state)
{
	const uint64_t bytes = 64ull << 20;
	const double in_host = 2 * (GPUS - 1) * (500e3 + (double)bytes / GPUS / 450e9 * 1e12);
	const double payload_per_ps = (double)RATE / 8 / VB_S * MTU / (MTU + 90);

	make_star(&network, RANKS, RATE, VB_US, &ideal);
	const double alpha = (double)time_of("barrier", NULL, 1, FABRIC_ENGINE) / 3;
	const double between = 2 * (HOSTS - 1) * (alpha + (double)bytes / GPUS / HOSTS / payload_per_ps);
	const double is = (double)time_of_hosts("hierarchical", bytes, HOSTS, GPUS), said = in_host + between;
	print_message("%.1f us, law %.1f us, %+.3f%%\n", is / VB_US, said / VB_US, 100 * (is / said - 1));
	assert_true(fabs(is / said - 1) < 0.005);
}

/* Both trees of one host are chains, and the ports of inner GPUs are never idle: each sends and gets 2S. */
static void trees_in_a_host__take_their_closed_form(void **state)
{
	const uint64_t bytes = 256ull << 20;
	const double said = 2.0 * (double)bytes / 450e9 * 1e12;
	const double is = (double)time_of_hosts("double-tree", bytes, 1, GPUS);

	print_message("%.1f us, law %.1f us, %+.3f%%\n", is / VB_US, said / VB_US, 100 * (is / said - 1));
	assert_true(is > said && is < 1.02 * said);
	assert_int_equal(result.data_packets, 0);
}

/* A tree for each NIC over the hosts, and a chain in each: a host has what an inner node of a tree has, on all NICs.
 * Between two hosts no node is an inner one, and the ports of the GPUs take longer: in seven of eight trees each passes
 * all on, both ways. */
static void expect_trees(uint32_t hosts, uint32_t depth, double alpha, double within)
{
	const uint64_t bytes = 256ull << 20;
	const struct collective of = {
		.kind = "allreduce", .algorithm = "double-tree", .ranks = hosts * GPUS, .bytes = bytes, .gpus = GPUS
	};
	const struct collective_law law = collective_law(&of);
	const double payload_per_ps = (double)RATE / 8 / VB_S * MTU / (MTU + 90), port_per_ps = 450e9 / VB_S;
	const double fill = PIECE * ((2 * depth - 1) / payload_per_ps + 2 * (GPUS - 1) / port_per_ps);
	const double waits = 2 * (depth * alpha + (GPUS - 1) * 500e3);
	const double by_nics = law.bytes / GPUS / payload_per_ps,
		     by_ports = 2.0 * (GPUS - 1) / GPUS * (double)bytes / port_per_ps;
	const double said = waits + fill + fmax(by_nics, by_ports);
	const double is = (double)time_of_hosts("double-tree", bytes, hosts, GPUS);

	assert_true(law.bytes == (hosts > 2 ? 2.0 : 1.0) * (double)bytes);
	assert_true(fabs(collective_law_fill(&law, port_per_ps, payload_per_ps) / fill - 1) < 1e-9);
	print_message(
		"%u hosts: %.1f us, law %.1f us, %+.3f%%\n", hosts, is / VB_US, said / VB_US, 100 * (is / said - 1));
	assert_true(fabs(is / said - 1) < within);
	for (uint32_t i = 0; i < hosts * GPUS; i++)
		assert_true((double)result.links[network.endpoints[i].link].bytes < 1.03 * 2 * (double)bytes / GPUS);
}

static void trees_over_hosts__take_their_closed_form(void **state)
{
	make_star(&network, RANKS, RATE, VB_US, &ideal);
	const double alpha = (double)time_of("barrier", NULL, 1, FABRIC_ENGINE) / 3;
	expect_trees(2, 1, alpha, 0.02);
	expect_trees(HOSTS, 2, alpha, 0.01);
	expect_trees(2 * HOSTS, 3, alpha, 0.01);
	expect_trees(4 * HOSTS, 4, alpha, 0.01);
}

/* Each GPU sends S to the switch once and gets S from it once: S over the port's rate, a piece that comes first, and
 * two ways: 0.1%. */
static void switch_that_reduces__takes_its_closed_form(void **state)
{
	const uint64_t bytes = 4ull << 30;
	const double said = 2 * 500e3 + (double)(bytes + (128 << 10)) / 450e9 * 1e12;
	const double is = (double)time_of_hosts("nvls", bytes, 1, GPUS);

	print_message("%.1f us, law %.1f us, %+.3f%%\n", is / VB_US, said / VB_US, 100 * (is / said - 1));
	assert_true(fabs(is / said - 1) < 0.001);
	assert_int_equal(result.data_packets, 0);
}

/* Between hosts the trees of a double tree, without chains: each NIC has at most 2S / N, and it takes that time, also
 * where a sum's way to the root and back is long: its place in the switch is free once it is on its way. */
static void expect_switches_and_trees(uint32_t hosts, double alpha)
{
	const uint64_t bytes = 256ull << 20;
	const struct collective of = {
		.kind = "allreduce", .algorithm = "nvls", .ranks = hosts * GPUS, .bytes = bytes, .gpus = GPUS
	};
	const double payload_per_ps = (double)RATE / 8 / VB_S * MTU / (MTU + 90);
	const struct collective_law law = collective_law(&of);
	const double said = law.alphas * alpha + 2.0 * (double)bytes / GPUS / payload_per_ps +
			    collective_law_fill(&law, 450e9 / VB_S, payload_per_ps);
	const double is = (double)time_of_hosts("nvls", bytes, hosts, GPUS);

	print_message("%.1f us, law %.1f us, %+.3f%%\n", is / VB_US, said / VB_US, 100 * (is / said - 1));
	assert_true(fabs(is / said - 1) < 0.01);
	for (uint32_t i = 0; i < hosts * GPUS; i++)
		assert_true((double)result.links[network.endpoints[i].link].bytes < 1.03 * 2 * (double)bytes / GPUS);
}

static void switches_and_trees__take_their_closed_form(void **state)
{
	make_star(&network, RANKS, RATE, VB_US, &ideal);
	const double alpha = (double)time_of("barrier", NULL, 1, FABRIC_ENGINE) / 3;
	expect_switches_and_trees(HOSTS, alpha);
	expect_switches_and_trees(4 * HOSTS, alpha);
}

static void result__is_the_same_with_several_threads(void **state)
{
	make_star(&network, RANKS, RATE, VB_US, &ideal);
	struct fabric_config config = config_of(FABRIC_ENGINE);
	const struct collective collective = { .kind = "allreduce", .ranks = RANKS, .bytes = 1 << 20 };
	vb_time arrival = 0;
	uint64_t hash = 0;

	for (config.threads = 1; config.threads <= 4; config.threads *= 2) {
		fabric_result_free(&result);
		open_job(&collective);
		run(&config, &result);
		if (config.threads > 1) {
			assert_int_equal(result.hash, hash);
			assert_int_equal(result.last_flow, arrival);
		}
		hash = result.hash;
		arrival = result.last_flow;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(pairwise__takes_its_form_at_all_sizes, teardown),
		cmocka_unit_test_teardown(ideal_ends__take_the_closed_forms, teardown),
		cmocka_unit_test_teardown(engines__take_the_closed_forms, teardown),
		cmocka_unit_test_teardown(pipelines__take_their_closed_forms, teardown),
		cmocka_unit_test_teardown(rings_over_hosts__share_out_the_nics, teardown),
		cmocka_unit_test_teardown(nics_of_a_gpu__share_what_is_no_ring, teardown),
		cmocka_unit_test_teardown(graph__has_the_messages_of_a_scenario, teardown),
		cmocka_unit_test_teardown(ring_in_a_host__takes_its_closed_form, teardown),
		cmocka_unit_test_teardown(hierarchy__takes_its_closed_form, teardown),
		cmocka_unit_test_teardown(trees_in_a_host__take_their_closed_form, teardown),
		cmocka_unit_test_teardown(trees_over_hosts__take_their_closed_form, teardown),
		cmocka_unit_test_teardown(switch_that_reduces__takes_its_closed_form, teardown),
		cmocka_unit_test_teardown(switches_and_trees__take_their_closed_form, teardown),
		cmocka_unit_test_teardown(result__is_the_same_with_several_threads, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
