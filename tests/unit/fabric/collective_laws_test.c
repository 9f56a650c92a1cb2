/* On a network without contention a collective takes the time of its closed form, which follows from the rate B of the
 * payload and from the one-way time alpha of a message of one byte. */
#include <math.h>
#include "net/collective_job.h"
#include "nets.h"

#define RATE (400 * GBPS)
#define MTU  4096u

enum { RANKS = 8 };

static struct network network;
static struct flow_list no_flows;
static struct collective_job collective_job;
static struct job *const jobs[] = { &collective_job.job };
static struct fabric_result result;
static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };

static int teardown(void **state)
{
	network_free(&network);
	collective_job_close(&collective_job);
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

static vb_time time_of(const char *kind, const char *algorithm, uint64_t bytes, enum fabric_endpoint endpoint)
{
	const struct fabric_config config = config_of(endpoint);
	const struct collective collective = { .kind = kind, .algorithm = algorithm, .ranks = RANKS, .bytes = bytes };
	collective_job_close(&collective_job);
	fabric_result_free(&result);
	assert_int_equal(collective_job_open(&collective_job, &collective), 0);
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 0);
	assert_true(result.last_flow > 0);
	return result.last_flow;
}

static const struct law {
	const char *kind, *algorithm;
	double alphas, buffers; /* alphas * alpha + buffers * S / B */
} laws[] = {
	{ "allreduce", "ring", 2 * (RANKS - 1), 2.0 * (RANKS - 1) / RANKS },
	{ "allreduce", "recursive-doubling", 3, 3 },
	{ "allreduce", "halving-doubling", 6, 2.0 * (RANKS - 1) / RANKS },
	{ "allreduce", "direct", 2, 2.0 * (RANKS - 1) / RANKS },
	{ "all-gather", "ring", RANKS - 1, 1.0 * (RANKS - 1) / RANKS },
	{ "all-gather", "recursive-doubling", 3, 1.0 * (RANKS - 1) / RANKS },
	{ "all-gather", "direct", 1, 1.0 * (RANKS - 1) / RANKS },
	{ "reduce-scatter", "ring", RANKS - 1, 1.0 * (RANKS - 1) / RANKS },
	{ "reduce-scatter", "halving-doubling", 3, 1.0 * (RANKS - 1) / RANKS },
	{ "reduce-scatter", "direct", 1, 1.0 * (RANKS - 1) / RANKS },
	{ "alltoall", "pairwise", 1, 1.0 * (RANKS - 1) / RANKS },
	{ "all-gather", "pat", 3, 1.0 * (RANKS - 1) / RANKS },
	{ "reduce-scatter", "pat", 3, 1.0 * (RANKS - 1) / RANKS },
};

static void expect_law(
	const struct law *law, uint64_t bytes, double alpha, enum fabric_endpoint endpoint, double within)
{
	const double payload_per_ps = (double)RATE / 8 / VB_S * MTU / (MTU + 90);
	const double is = (double)time_of(law->kind, law->algorithm, bytes, endpoint);
	const double said = law->alphas * alpha + law->buffers * (double)bytes / payload_per_ps;

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

/* What goes on piece by piece: 2%, of which most is the pieces that fill it. In a double tree the links of inner ranks
 * are busy both ways all the time, by the closed form: they are if none of its edges gets ahead of the others. */
static void pipelines__take_their_closed_forms(void **state)
{
	static const struct law pipelines[] = {
		{ "broadcast", "chain", RANKS - 1, 1 },
		{ "reduce", "chain", RANKS - 1, 1 },
		{ "allreduce", "double-tree", 6, 2 },
	};
	make_star(&network, RANKS, RATE, VB_US, &ideal);
	const double alpha = (double)time_of("barrier", NULL, 1, FABRIC_ENGINE) / 3;
	for (unsigned i = 0; i < sizeof(pipelines) / sizeof(pipelines[0]); i++)
		expect_law(&pipelines[i], 256ull << 20, alpha, FABRIC_ENGINE, 0.02);
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

enum { GPUS = 8, HOSTS = 4 };

static struct collective_job rings[GPUS];

/* Rails of HOSTS endpoints each, and a ring for each NIC. */
static vb_time time_of_hosts(const char *algorithm, uint64_t bytes, uint32_t hosts)
{
	char why[200] = "";
	struct job *all[GPUS];
	struct fabric_config config = config_of(FABRIC_ENGINE);
	const struct collective of = { .kind = "allreduce",
		.algorithm = algorithm,
		.ranks = hosts * GPUS,
		.bytes = bytes,
		.gpus = GPUS,
		.reduces = true };
	assert_int_equal(collective_check(&of, why, sizeof(why)), 0);
	const uint32_t count = collective_rings(&of, GPUS);

	network_free(&network);
	network = (struct network){ .is_split = true };
	network_add_profile(&network, &ideal);
	network_add_nic(&network, &(struct nic_profile){ .name = "ideal" });
	for (uint32_t i = 0; i < GPUS; i++)
		network_add_switch(&network, 0, 0, NETWORK_NONE);
	for (uint32_t i = 0; i < hosts * GPUS; i++) {
		network_add_endpoint(&network, i / GPUS, 0);
		network_connect(&network, i, network_switch_node(i % GPUS), RATE, VB_US);
	}
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
	config.hosts = (struct hosts){
		.gpus = GPUS, .nics = GPUS, .scale_up = 3600 * GBPS, .scale_up_time = 500 * VB_NS, .keeps_rails = true
	};
	config.jobs = all;
	config.job_count = count;
	for (uint32_t i = 0; i < count; i++) {
		const struct collective ring = collective_ring(&of, GPUS, i);
		assert_int_equal(collective_job_open(&rings[i], &ring), 0);
		all[i] = &rings[i].job;
	}
	fabric_result_free(&result);
	run(&config, &result);
	for (uint32_t i = 0; i < count; i++)
		collective_job_close(&rings[i]);
	assert_int_equal(result.end, FABRIC_DONE);
	return result.last_flow;
}

/* Of S bytes each NIC carries 2 (n - 1) / n S / N, and not 2 S: each ring enters and leaves by a NIC of its own. */
static void rings_over_hosts__share_out_the_nics(void **state)
{
	const uint64_t bytes = 64ull << 20;
	const double n = HOSTS * GPUS, payload_per_ps = (double)RATE / 8 / VB_S * MTU / (MTU + 90);
	const double said = 2 * (n - 1) / n * (double)bytes / GPUS;
	const double is = (double)time_of_hosts("ring", bytes, HOSTS);

	for (uint32_t i = 0; i < HOSTS * GPUS; i++) {
		const double payload = (double)result.links[network.endpoints[i].link].bytes * MTU / (MTU + 90);
		assert_true(payload > said && payload < 1.03 * said); /* acknowledgements are the rest */
	}
	print_message("%.1f us, the NICs alone %.1f us\n", is / VB_US, said / payload_per_ps / VB_US);
	assert_true(is > said / payload_per_ps && is < 1.1 * said / payload_per_ps);
}

/* Within one host the ring takes what the domain's ports say: 0.1%. */
static void ring_in_a_host__takes_its_closed_form(void **state)
{
	const uint64_t bytes = 256ull << 20;
	const double said = 14 * (500e3 + (double)bytes / GPUS / 450e9 * 1e12);
	const double is = (double)time_of_hosts("ring", bytes, 1);

	assert_true(fabs(is / said - 1) < 0.001);
	assert_int_equal(result.data_packets, 0);
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
	const double is = (double)time_of_hosts("hierarchical", bytes, HOSTS), said = in_host + between;
	print_message("%.1f us, law %.1f us, %+.3f%%\n", is / VB_US, said / VB_US, 100 * (is / said - 1));
	assert_true(fabs(is / said - 1) < 0.005);
}

/* A tree for each NIC over the hosts, and a chain in each: a host has what an inner node of a tree has, on all NICs.
 * The pieces that fill the chains take 80 us. */
static void trees_over_hosts__take_their_closed_form(void **state)
{
	const uint64_t bytes = 1ull << 30;
	const struct collective of = {
		.kind = "allreduce", .algorithm = "double-tree", .ranks = HOSTS * GPUS, .bytes = bytes, .gpus = GPUS
	};
	const double payload_per_ps = (double)RATE / 8 / VB_S * MTU / (MTU + 90);
	const double said = 2.0 * (double)bytes / GPUS / payload_per_ps;
	const double is = (double)time_of_hosts("double-tree", bytes, HOSTS);

	assert_true(collective_law(&of).bytes == 2.0 * (double)bytes);
	print_message("%.1f us, law %.1f us, %+.3f%%\n", is / VB_US, said / VB_US, 100 * (is / said - 1));
	assert_true(is > said && is < 1.02 * said);
	for (uint32_t i = 0; i < HOSTS * GPUS; i++)
		assert_true((double)result.links[network.endpoints[i].link].bytes < 1.03 * 2 * (double)bytes / GPUS);
}

/* Each GPU sends S to the switch once and gets S from it once: S over the port's rate, a piece that comes first, and
 * two ways: 0.1%. */
static void switch_that_reduces__takes_its_closed_form(void **state)
{
	const uint64_t bytes = 4ull << 30;
	const double said = 2 * 500e3 + (double)(bytes + (128 << 10)) / 450e9 * 1e12;
	const double is = (double)time_of_hosts("nvls", bytes, 1);

	print_message("%.1f us, law %.1f us, %+.3f%%\n", is / VB_US, said / VB_US, 100 * (is / said - 1));
	assert_true(fabs(is / said - 1) < 0.001);
	assert_int_equal(result.data_packets, 0);
}

/* Between hosts the trees of a double tree, without chains: each NIC has at most 2S / N, and it takes that time. */
static void switches_and_trees__take_their_closed_form(void **state)
{
	const uint64_t bytes = 1ull << 30;
	const double payload_per_ps = (double)RATE / 8 / VB_S * MTU / (MTU + 90);
	const double said = 2.0 * (double)bytes / GPUS / payload_per_ps;
	const double is = (double)time_of_hosts("nvls", bytes, HOSTS);

	print_message("%.1f us, law %.1f us, %+.3f%%\n", is / VB_US, said / VB_US, 100 * (is / said - 1));
	assert_true(is > said && is < 1.02 * said);
	for (uint32_t i = 0; i < HOSTS * GPUS; i++)
		assert_true((double)result.links[network.endpoints[i].link].bytes < 1.03 * 2 * (double)bytes / GPUS);
}

static void result__is_the_same_with_several_threads(void **state)
{
	make_star(&network, RANKS, RATE, VB_US, &ideal);
	struct fabric_config config = config_of(FABRIC_ENGINE);
	const struct collective collective = { .kind = "allreduce", .ranks = RANKS, .bytes = 1 << 20 };
	vb_time arrival = 0;
	uint64_t hash = 0;

	for (config.threads = 1; config.threads <= 4; config.threads *= 2) {
		collective_job_close(&collective_job);
		fabric_result_free(&result);
		assert_int_equal(collective_job_open(&collective_job, &collective), 0);
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
		cmocka_unit_test_teardown(ideal_ends__take_the_closed_forms, teardown),
		cmocka_unit_test_teardown(engines__take_the_closed_forms, teardown),
		cmocka_unit_test_teardown(pipelines__take_their_closed_forms, teardown),
		cmocka_unit_test_teardown(rings_over_hosts__share_out_the_nics, teardown),
		cmocka_unit_test_teardown(ring_in_a_host__takes_its_closed_form, teardown),
		cmocka_unit_test_teardown(hierarchy__takes_its_closed_form, teardown),
		cmocka_unit_test_teardown(trees_over_hosts__take_their_closed_form, teardown),
		cmocka_unit_test_teardown(switch_that_reduces__takes_its_closed_form, teardown),
		cmocka_unit_test_teardown(switches_and_trees__take_their_closed_form, teardown),
		cmocka_unit_test_teardown(result__is_the_same_with_several_threads, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
