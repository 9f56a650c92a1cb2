/* Many flows: what they take grows with how many there are, in whatever order they are listed. */
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include "base/random.h"
#include "nets.h"

enum { ENDPOINTS = 4, FLOWS = 120000 };

static struct network network;
static struct flow_list flows;

static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };

static int teardown(void **state)
{
	network_free(&network);
	flow_list_free(&flows);
	return 0;
}

static double cpu_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void shuffle(struct flow_list *list)
{
	struct vb_random random;
	vb_random_seed(&random, 3);
	for (uint32_t i = list->count; i > 1; i--) {
		const uint32_t other = vb_random_below(&random, i);
		const struct flow flow = list->flows[i - 1];
		list->flows[i - 1] = list->flows[other];
		list->flows[other] = flow;
	}
}

static int by_start(const void *a, const void *b)
{
	const struct flow_result *one = a, *other = b;
	return (one->start > other->start) - (one->start < other->start);
}

/* The results by when the flows began; which takes so much of the CPU's time. */
static double run_sorted(const struct fabric_config *config, struct fabric_result *result)
{
	const double before = cpu_s();
	run(config, result);
	const double taken = cpu_s() - before;
	assert_int_equal(result->end, FABRIC_DONE);
	qsort(result->flows, FLOWS, sizeof(result->flows[0]), by_start);
	return taken;
}

/* Each begins at a time of its own, so that nothing depends on numbers. */
static void many_flows__in_any_order_are_as_many_sorted_ones(void **state)
{
	struct fabric_result sorted, shuffled;
	make_star(&network, ENDPOINTS, 100 * GBPS, VB_US, &ideal);
	for (uint32_t i = 0; i < FLOWS; i++)
		add_flow(&flows, i % 2, 2 + i / 2 % 2, 1000 + i % 7, i * (VB_US / 2));
	struct fabric_config config = config_hpcc(&network, &flows);
	config.endpoint = FABRIC_IDEAL;
	const double of_sorted = run_sorted(&config, &sorted);
	shuffle(&flows);
	const double of_shuffled = run_sorted(&config, &shuffled);
	assert_memory_equal(sorted.flows, shuffled.flows, FLOWS * sizeof(sorted.flows[0]));
	if (of_shuffled > 10 * of_sorted) /* each is in no cache: 2 to 4; a list that is walked took 500 */
		fail_msg("shuffled they take %.2f s of the CPU, sorted %.2f", of_shuffled, of_sorted);
	fabric_result_free(&sorted);
	fabric_result_free(&shuffled);
}

/* A sanitizer's own memory is beside it: shadows, and what was freed and is kept. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MOST_MB = 1000 };
#else
enum { MOST_MB = 100 };
#endif

/* Each ends before the next of its source begins; some packets come twice, or late, when it is over. */
static void many_flows__take_memory_while_they_are_open(void **state)
{
	struct fabric_result result;
	struct rusage usage;
	make_star(&network, 8, 100 * GBPS, 100 * VB_NS, &ideal);
	network_set_fault(&network, 0,
		&(struct network_fault){ .duplicate_ppm = 10000, .late_ppm = 10000, .late_by = 20 * VB_US });
	for (uint32_t i = 0; i < FLOWS; i++)
		add_flow(&flows, i % 8, (i % 8 + 1 + i / 8 % 7) % 8, 2000, i / 8 * (4 * VB_US));
	struct fabric_config config = config_hpcc(&network, &flows);
	config.cc.algorithm = &vb_cc_hpcc;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 0);
	const uint64_t hash = result.hash;
	fabric_result_free(&result);
	getrusage(RUSAGE_SELF, &usage);
	if (usage.ru_maxrss > MOST_MB * 1024L)
		fail_msg("%d flows, few of them at once, took %ld MB", FLOWS, usage.ru_maxrss / 1024);
	config.threads = 2;
	run(&config, &result);
	assert_int_equal(result.hash, hash);
	fabric_result_free(&result);
}

/* ---- Where switches pause and mark ------------------------------------------------------------------------------- */

enum { HOSTS = 8, LEAVES = 4, SPINES = 2, BUSY_FLOWS = 15000 };

/* Hosts, two of a leaf, and two more on a leaf of their own. */
static void make_leaf_spine(const struct switch_profile *profile, vb_time wake_latency)
{
	char why[100];
	network = (struct network){ 0 };
	network_add_profile(&network, profile);
	network_add_nic(&network, &(struct nic_profile){ .name = "sleepy", .wake_latency = wake_latency });
	for (uint32_t i = 0; i < HOSTS + 2; i++)
		network_add_endpoint(&network, i, 0);
	for (uint32_t i = 0; i < LEAVES + SPINES + 1; i++)
		network_add_switch(&network, 0, i < LEAVES || i == LEAVES + SPINES ? 0 : 1, NETWORK_NONE);
	for (uint32_t i = 0; i < HOSTS + 2; i++)
		network_connect(
			&network, i, network_switch_node(i < HOSTS ? i / 2 : LEAVES + SPINES), 10 * GBPS, 500 * VB_NS);
	for (uint32_t leaf = 0; leaf < LEAVES; leaf++)
		for (uint32_t spine = 0; spine < SPINES; spine++)
			network_connect(&network, network_switch_node(leaf), network_switch_node(LEAVES + spine),
				10 * GBPS, 500 * VB_NS);
	network_connect(
		&network, network_switch_node(LEAVES + SPINES), network_switch_node(LEAVES), 10 * GBPS, 500 * VB_NS);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
}

static struct switch_profile small_switch(void)
{
	struct switch_profile profile = *switch_profile_find("hpcc");
	profile.buffer_bytes = 200000;
	profile.headroom_bytes = 20000;
	for (uint32_t i = 0; i < profile.class_count; i++) {
		profile.classes[i].mark_min = 1000;
		profile.classes[i].mark_max = 3000;
		profile.classes[i].mark_ppm = 1000000;
	}
	return profile;
}

/* In bursts to one host each, of which two may overlap. */
static void add_bursts(uint32_t count, uint64_t bytes, vb_time period)
{
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t burst = i / (HOSTS - 1), to = burst * 5 % HOSTS;
		add_flow(&flows, (to + 1 + i % (HOSTS - 1)) % HOSTS, to, bytes + i % 7 * 100, VB_US + burst * period);
	}
}

static void are_the_same_by(const struct vb_cc_algorithm *algorithm)
{
	struct fabric_result result;
	uint64_t hash = 0, events = 0;
	struct rusage usage;
	const struct switch_profile profile = small_switch();
	make_leaf_spine(&profile, 0);
	add_bursts(BUSY_FLOWS, 4000, 20 * VB_US);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.cc.algorithm = algorithm;
	for (config.threads = 1; config.threads <= 4; config.threads *= 2) {
		run(&config, &result);
		assert_int_equal(result.end, FABRIC_DONE);
		assert_int_not_equal(result.pauses, 0);
		assert_int_equal(result.hash, config.threads == 1 ? result.hash : hash);
		assert_int_equal(result.events, config.threads == 1 ? result.events : events);
		hash = result.hash;
		events = result.events;
		fabric_result_free(&result);
		getrusage(RUSAGE_SELF, &usage);
		if (usage.ru_maxrss > MOST_MB * 1024L)
			fail_msg("with %u threads %d flows took %ld MB", config.threads, BUSY_FLOWS,
				usage.ru_maxrss / 1024);
	}
	network_free(&network);
	flow_list_free(&flows);
}

static void many_flows__are_the_same_on_all_threads_where_switches_pause(void **state)
{
	are_the_same_by(&vb_cc_none);
	are_the_same_by(&vb_cc_dcqcn);
}

/* The results of all but the last flow, of which a packet may be late until all others are over: then none is
 * closed. */
static struct fabric_result run_beside(bool is_one_late, const struct vb_cc_algorithm *algorithm, vb_time wake_latency)
{
	struct fabric_result result;
	const struct switch_profile profile = small_switch();
	make_leaf_spine(&profile, wake_latency);
	for (uint32_t i = HOSTS; i < network.link_count; i++)
		if (network.links[i].from == network_switch_node(LEAVES))
			network_set_fault(&network, i,
				&(struct network_fault){ .loss_ppm = 20000,
					.duplicate_ppm = 20000,
					.late_ppm = 50000,
					.late_by = 50 * VB_US });
	for (uint32_t i = 0; is_one_late && i < network.link_count; i++)
		if (network.links[i].from == HOSTS)
			network_set_fault(
				&network, i, &(struct network_fault){ .late_ppm = 1000000, .late_by = 100 * VB_S });
	add_bursts(350, 20000, 30 * VB_US);
	add_flow(&flows, HOSTS, HOSTS + 1, 100, 0);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.cc.algorithm = algorithm;
	config.ack_timeout = 300 * VB_US;
	run(&config, &result);
	network_free(&network);
	flow_list_free(&flows);
	return result;
}

static void many_flows__do_not_depend_on_when_they_are_closed(void **state)
{
	const struct vb_cc_algorithm *const algorithms[] = { &vb_cc_none, &vb_cc_dcqcn, &vb_cc_hpcc };
	for (unsigned i = 0; i < 6; i++) {
		struct fabric_result soon = run_beside(false, algorithms[i / 2], i % 2 * VB_US);
		struct fabric_result never = run_beside(true, algorithms[i / 2], i % 2 * VB_US);
		if (memcmp(soon.flows, never.flows, 350 * sizeof(soon.flows[0])) != 0)
			fail_msg("with %s, hosts that %s", algorithms[i / 2]->name, i % 2 ? "sleep" : "do not sleep");
		fabric_result_free(&soon);
		fabric_result_free(&never);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			many_flows__take_memory_while_they_are_open, teardown), /* first: the most ever counts */
		cmocka_unit_test_teardown(many_flows__are_the_same_on_all_threads_where_switches_pause, teardown),
		cmocka_unit_test_teardown(many_flows__do_not_depend_on_when_they_are_closed, teardown),
		cmocka_unit_test_teardown(many_flows__in_any_order_are_as_many_sorted_ones, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
