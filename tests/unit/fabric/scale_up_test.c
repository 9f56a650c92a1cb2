/* Hosts with GPUs: transfers in a host take what max-min shares of the ports say, exactly, and messages between hosts
 * leave and come by the GPUs' own NICs. */
#include "base/random.h"
#include "net/job.h"
#include "nets.h"

enum { GPUS = 4, HOSTS = 2, MOST = 1 << 17, CROWD = 200 };

#define GB_S (8 * GBPS)

static struct network network;
static struct flow_list no_flows;
static struct fabric_result result;
static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };

static int teardown(void **state)
{
	fabric_result_free(&result);
	network_free(&network);
	return 0;
}

/* ---- A job of given messages ------------------------------------------------------------------------------------- */

struct given {
	uint32_t src, dst;
	uint64_t bytes;
	vb_time start;
};

/* How a message goes that is a piece of some data. */
struct piece {
	bool is_of_sum, is_copy;
	uint32_t channel; /* 0: it is none */
};

struct plan {
	struct job job;
	const struct given *messages;
	const struct piece *pieces; /* by message; NULL: none is */
	uint32_t count;
	vb_time arrived[MOST], ended[MOST];
};

static void begin(struct job *job, uint32_t rank, struct job_sink *sink)
{
	const struct plan *plan = (const struct plan *)job;
	for (uint32_t i = 0; i < plan->count; i++) {
		const struct piece by = plan->pieces ? plan->pieces[i] : (struct piece){ 0 };
		if (plan->messages[i].src == rank)
			sink->send(sink, &(struct message){ .src = rank,
						 .dst = plan->messages[i].dst,
						 .bytes = plan->messages[i].bytes,
						 .start = plan->messages[i].start,
						 .tag = i,
						 .channel = by.channel,
						 .is_piece = by.channel > 0,
						 .is_of_sum = by.is_of_sum,
						 .is_copy = by.is_copy,
						 .tells_arrival = true });
	}
}

static void arrived(
	struct job *job, uint32_t rank, uint64_t tag, vb_time at, const void *carried, struct job_sink *sink)
{
	struct plan *plan = (struct plan *)job;
	assert_int_equal(plan->messages[tag].dst, rank);
	plan->arrived[tag] = at;
}

static void ended(struct job *job, uint32_t rank, uint64_t tag, vb_time at, const struct flow_result *is,
	const void *carried, struct job_sink *sink)
{
	struct plan *plan = (struct plan *)job;
	assert_int_equal(plan->messages[tag].src, rank);
	assert_int_equal(is->error, 0);
	plan->ended[tag] = at;
}

static const struct job_kind kind = { .begin = begin, .arrived = arrived, .ended = ended, .ends_by_arrival = true };

static struct plan plan;

static const struct piece *pieces;

static void run_messages(const struct given *messages, uint32_t count, struct hosts hosts, uint32_t threads)
{
	char why[200] = "";
	network_free(&network);
	network = (struct network){ 0 };
	network_add_profile(&network, &ideal);
	network_add_nic(&network, &(struct nic_profile){ .name = "ideal" });
	network_add_switch(&network, 0, 0, NETWORK_NONE);
	network_add_switch(&network, 0, 0, NETWORK_NONE);
	network_add_switch(&network, 0, 1, NETWORK_NONE);
	for (uint32_t i = 0; i < HOSTS * hosts.nics; i++) { /* a host's NICs are at both leaves */
		network_add_endpoint(&network, i / hosts.nics, 0);
		network_connect(&network, i, network_switch_node(i % 2), 100 * GBPS, VB_US);
	}
	for (uint32_t i = 0; i < 2; i++)
		network_connect(&network, network_switch_node(i), network_switch_node(2), 400 * GBPS, VB_US);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
	plan = (struct plan){
		.job = { &kind, count, HOSTS * hosts.gpus }, .messages = messages, .pieces = pieces, .count = count
	};
	struct job *const jobs[] = { &plan.job };
	struct fabric_config config = config_hpcc(&network, &no_flows);
	config.hosts = hosts;
	config.jobs = jobs;
	config.job_count = 1;
	config.threads = threads;
	fabric_result_free(&result);
	run(&config, &result);
}

static void run_plan(const struct given *messages, uint32_t count, struct hosts hosts, uint32_t threads)
{
	run_messages(messages, count, hosts, threads);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_done, count);
}

static const struct hosts four = { .gpus = GPUS, .nics = GPUS, .scale_up = 100 * GB_S, .scale_up_time = 300 * VB_NS };

/* ---- Shares ------------------------------------------------------------------------------------------------------ */

/* 100 kB at 100 GB/s take 1 us. */
static void transfer__alone_takes_its_bytes_and_the_latency(void **state)
{
	const struct given messages[] = { { 0, 1, 100000, VB_US } };
	run_plan(messages, 1, four, 1);
	assert_int_equal(plan.arrived[0], 2 * VB_US + 300 * VB_NS);
	assert_int_equal(plan.ended[0], plan.arrived[0]);
	assert_int_equal(result.last_flow, plan.arrived[0]);
	assert_int_equal(result.scale_up_bytes, 100000);
	assert_int_equal(result.data_packets, 0);
}

/* Two out of GPU 0 share its port; when one is over the other has all. Another pair has ports of its own. */
static void transfers__share_a_port(void **state)
{
	const struct given messages[] = { { 0, 1, 100000, 0 }, { 0, 2, 50000, 0 }, { 3, 0, 100000, 0 } };
	run_plan(messages, 3, four, 1);
	assert_int_equal(plan.arrived[1], VB_US + 300 * VB_NS);
	assert_int_equal(plan.arrived[0], 1500 * VB_NS + 300 * VB_NS);
	assert_int_equal(plan.arrived[2], VB_US + 300 * VB_NS);
}

/* Three into GPU 3 have a third each. The one from GPU 0 leaves two thirds of its port to the one to GPU 1, which is
 * 100 kB in 1.5 us. */
static void shares__are_max_min(void **state)
{
	const struct given messages[] = { { 0, 3, 100000, 0 }, { 1, 3, 100000, 0 }, { 2, 3, 100000, 0 },
		{ 0, 1, 100000, 0 } };
	run_plan(messages, 4, four, 1);
	assert_in_range(plan.arrived[3], 1500 * VB_NS + 300 * VB_NS, 1500 * VB_NS + 300 * VB_NS + 10);
	for (uint32_t i = 0; i < 3; i++)
		assert_in_range(plan.arrived[i], 3 * VB_US + 300 * VB_NS, 3 * VB_US + 300 * VB_NS + 100);
}

/* A transfer that begins later changes the rates of those that are under way. */
static void transfer__that_comes_later_takes_its_share(void **state)
{
	const struct given messages[] = { { 0, 1, 100000, 0 }, { 2, 1, 100000, 500 * VB_NS } };
	run_plan(messages, 2, four, 1);
	assert_int_equal(plan.arrived[0], 1500 * VB_NS + 300 * VB_NS);
	assert_int_equal(plan.arrived[1], 2 * VB_US + 300 * VB_NS);
}

/* Ten seconds without a packet are no livelock. */
static void transfer__may_take_as_long_as_it_needs(void **state)
{
	const struct given messages[] = { { 0, 1, 10000000000, 0 } };
	run_plan(messages, 1, (struct hosts){ .gpus = GPUS, .nics = GPUS, .scale_up = GB_S }, 1);
	assert_int_equal(plan.arrived[0], 10 * VB_S);
}

/* 2 TiB at 125 kB/s take 204 days, which is more than fits in vb_time. */
static void transfer__that_takes_longer_than_a_run_may_is_open_at_its_end(void **state)
{
	const struct given messages[] = { { 0, 1, (uint64_t)1 << 41, 0 }, { 2, 3, 1000, 0 } };
	run_messages(messages, 2, (struct hosts){ .gpus = GPUS, .nics = GPUS, .scale_up = 1000000 }, 1);
	assert_int_equal(result.end, FABRIC_LIMIT);
	assert_int_equal(result.ended_at, FABRIC_HORIZON);
	assert_int_equal(plan.arrived[1], 8 * VB_MS);
	assert_int_equal(result.flows_done, 1);
}

/* A port of 125 kB/s cannot give each a byte per second: each has one all the same. */
static void more_transfers_than_bytes_per_second__end(void **state)
{
	enum { COUNT = 125001 };
	static struct given messages[COUNT];
	for (uint32_t i = 0; i < COUNT; i++)
		messages[i] = (struct given){ 0, 1, 1, 0 };
	run_plan(messages, COUNT, (struct hosts){ .gpus = GPUS, .nics = GPUS, .scale_up = 1000000 }, 1);
	assert_int_equal(plan.arrived[0], VB_S);
	assert_int_equal(plan.arrived[COUNT - 1], VB_S);
}

/* ---- Pieces, and a switch that reduces ----------------------------------------------------------------------------
 */

static void run_pieces(const struct given *messages, const struct piece *ways, uint32_t count)
{
	pieces = ways;
	run_plan(messages, count, four, 1);
	pieces = NULL;
}

/* A GPU's part of a sum goes to the switch by the GPU's own port alone, even if its program is told of the sum. */
static void parts_of_a_sum__use_the_sender_s_port_alone(void **state)
{
	const struct given messages[] = { { 0, 0, 100000, 0 }, { 1, 0, 100000, 0 }, { 2, 0, 100000, 0 } };
	const struct piece ways[] = { { true, false, 1 }, { true, false, 1 }, { false, false, 0 } };
	run_pieces(messages, ways, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(plan.arrived[i], VB_US + 300 * VB_NS);
}

/* All GPUs get a copy by their own ports, and the sender's port is free for another message. */
static void copies__use_the_receivers_ports_alone(void **state)
{
	const struct given messages[] = { { 0, 0, 100000, 0 }, { 0, 1, 100000, 0 }, { 0, 2, 100000, 0 },
		{ 0, 3, 100000, 0 } };
	const struct piece ways[] = { { false, true, 1 }, { false, true, 1 }, { false, true, 1 }, { false, false, 0 } };
	run_pieces(messages, ways, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(plan.arrived[i], VB_US + 300 * VB_NS);
}

/* By a switch that reduces or by none: pieces of one connection go one after the other, and the first of each of two
 * share the port. */
static void expect_order(uint32_t to, bool is_of_sum)
{
	const struct given messages[] = { { 0, to, 100000, 0 }, { 0, to, 100000, 0 }, { 0, to, 100000, 500 * VB_NS } };
	struct piece ways[] = { { is_of_sum, false, 1 }, { is_of_sum, false, 1 }, { is_of_sum, false, 1 } };
	run_pieces(messages, ways, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(plan.arrived[i], (i + 1) * VB_US + 300 * VB_NS);
	ways[1].channel = 2;
	run_pieces(messages, ways, 3);
	assert_int_equal(plan.arrived[0], 2 * VB_US + 300 * VB_NS);
	assert_int_equal(plan.arrived[1], 2 * VB_US + 300 * VB_NS);
	assert_int_equal(plan.arrived[2], 3 * VB_US + 300 * VB_NS);
}

static void pieces__are_in_order_on_their_connection(void **state)
{
	expect_order(0, true);
	expect_order(1, false);
}

/* ---- Against a simple simulation --------------------------------------------------------------------------------- */

/* All ports and transfers are looked at whenever one begins or ends. */
struct simple {
	const struct given *messages; /* in the order in which they begin */
	uint32_t count, ports;
	uint64_t rate_of_port;
	uint64_t rate[CROWD], free[2 * CROWD];
	uint32_t waiting[2 * CROWD];
	unsigned __int128 left[CROWD];
	vb_time now, over[CROWD]; /* -1: not yet */
};

static bool is_under_way(const struct simple *simple, uint32_t i)
{
	return simple->messages[i].start <= simple->now && simple->over[i] < 0;
}

static uint32_t port_of(const struct simple *simple, uint32_t i, bool is_in)
{
	return is_in ? simple->ports / 2 + simple->messages[i].dst : simple->messages[i].src;
}

static uint64_t simple_tightest(const struct simple *simple)
{
	uint64_t least = UINT64_MAX;
	for (uint32_t i = 0; i < simple->ports; i++)
		if (simple->waiting[i] && simple->free[i] / simple->waiting[i] < least)
			least = simple->free[i] / simple->waiting[i];
	return least;
}

static void simple_give(struct simple *simple, uint64_t share)
{
	for (uint32_t i = 0; i < simple->count; i++) {
		const uint32_t from = port_of(simple, i, false), to = port_of(simple, i, true);
		if (!is_under_way(simple, i) || simple->rate[i] > 0)
			continue;
		if (simple->free[from] / simple->waiting[from] > share &&
			simple->free[to] / simple->waiting[to] > share)
			continue;
		simple->rate[i] = share;
		simple->free[from] -= share;
		simple->free[to] -= share;
		simple->waiting[from]--;
		simple->waiting[to]--;
	}
}

static void simple_rates(struct simple *simple)
{
	for (uint32_t i = 0; i < simple->ports; i++) {
		simple->free[i] = simple->rate_of_port;
		simple->waiting[i] = 0;
	}
	for (uint32_t i = 0; i < simple->count; i++) {
		simple->rate[i] = 0;
		simple->waiting[port_of(simple, i, false)] += is_under_way(simple, i);
		simple->waiting[port_of(simple, i, true)] += is_under_way(simple, i);
	}
	for (uint64_t share; (share = simple_tightest(simple)) != UINT64_MAX;)
		simple_give(simple, share);
}

/* Up to when the next begins or ends; -1: none does. */
static vb_time simple_next(const struct simple *simple)
{
	vb_time next = -1;
	for (uint32_t i = 0; i < simple->count; i++) {
		vb_time at = simple->messages[i].start;
		if (simple->over[i] >= 0)
			continue;
		if (is_under_way(simple, i))
			at = simple->now + (vb_time)((simple->left[i] + simple->rate[i] - 1) / simple->rate[i]);
		if (next < 0 || at < next)
			next = at;
	}
	return next;
}

static void simple_run(struct simple *simple)
{
	simple->now = -1;
	for (uint32_t i = 0; i < simple->count; i++) {
		simple->left[i] = (unsigned __int128)simple->messages[i].bytes * VB_S;
		simple->over[i] = -1;
	}
	for (vb_time next; (next = simple_next(simple)) >= 0;) {
		for (uint32_t i = 0; i < simple->count; i++) {
			if (!is_under_way(simple, i))
				continue;
			const unsigned __int128 gone =
				(unsigned __int128)simple->rate[i] * (uint64_t)(next - simple->now);
			simple->left[i] -= gone < simple->left[i] ? gone : simple->left[i];
			if (simple->left[i] == 0)
				simple->over[i] = next;
		}
		simple->now = next;
		simple_rates(simple);
	}
}

static int by_start(const void *a, const void *b)
{
	const struct given *one = a, *other = b;
	if (one->start != other->start)
		return one->start < other->start ? -1 : 1;
	return one->src < other->src ? -1 : one->src > other->src;
}

static void expect_as_simple(struct given *messages, uint32_t count, struct hosts hosts)
{
	static struct simple simple;
	qsort(messages, count, sizeof(*messages), by_start);
	run_plan(messages, count, hosts, 1);
	simple = (struct simple){ .messages = messages, .count = count, .ports = 2 * hosts.gpus };
	simple.rate_of_port = hosts.scale_up / 8;
	simple_run(&simple);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(plan.arrived[i], simple.over[i]);
}

/* Messages of a host of eight GPUs: some begin together, some are of equal size, and some pairs have several. */
static void random_transfers__end_as_in_a_simple_simulation(void **state)
{
	static struct given messages[CROWD];
	const struct hosts eight = { .gpus = 8, .nics = 8, .scale_up = 100 * GB_S + 8 * 17 };
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct vb_random random;
		vb_random_seed(&random, seed);
		for (uint32_t i = 0; i < CROWD; i++) {
			const uint32_t src = vb_random_below(&random, 8);
			messages[i] = (struct given){ .src = src,
				.dst = (src + 1 + vb_random_below(&random, 7)) % 8,
				.bytes = 1 + 30000 * vb_random_below(&random, 4) +
					 vb_random_below(&random, seed & 1 ? 1000 : 1),
				.start = vb_random_below(&random, 32) * 200 * VB_NS };
		}
		expect_as_simple(messages, CROWD, eight);
	}
}

/* Each pair has a size and a begin of its own, so that ports have few transfers, then all, then few. Many ports tie,
 * and a port's rate does not divide by its transfers. */
static void staggered_all_to_all__ends_as_in_a_simple_simulation(void **state)
{
	enum { RANKS = 14, PAIRS = RANKS * (RANKS - 1) };
	static struct given messages[PAIRS];
	const struct hosts host = { .gpus = RANKS, .nics = RANKS, .scale_up = 100 * GB_S + 8 * 13 };
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct vb_random random;
		vb_random_seed(&random, seed);
		for (uint32_t i = 0; i < PAIRS; i++) {
			const uint32_t src = i / (RANKS - 1), step = i % (RANKS - 1);
			messages[i] = (struct given){ .src = src,
				.dst = (src + 1 + step) % RANKS,
				.bytes = 100000 + vb_random_below(&random, 2000000),
				.start = vb_random_below(&random, 20 * VB_US) };
		}
		expect_as_simple(messages, PAIRS, host);
	}
}

/* ---- NICs -------------------------------------------------------------------------------------------------------- */

static uint64_t sent_by(uint32_t endpoint)
{
	return result.links[network.endpoints[endpoint].link].bytes;
}

static void messages_between_hosts__go_by_their_own_nics(void **state)
{
	const struct given messages[] = { { 0, 4, 100000, 0 }, { 3, 5, 50000, 0 }, { 6, 2, 10000, 0 } };
	run_plan(messages, 3, four, 1);
	assert_int_equal(result.scale_up_bytes, 0);
	assert_true(sent_by(0) > 100000 && sent_by(3) > 50000 && sent_by(6) > 10000);
	assert_true(sent_by(1) == 0 && sent_by(5) < 5000);
}

/* Two GPUs a NIC, and two NICs a GPU. */
static void nics__are_shared_out(void **state)
{
	const struct given messages[] = { { 1, 5, 100000, 0 }, { 2, 6, 50000, 0 }, { 0, 1, 7000, 0 } };
	run_plan(messages, 3, (struct hosts){ .gpus = GPUS, .nics = 2, .scale_up = 100 * GB_S }, 1);
	assert_true(sent_by(0) > 100000 && sent_by(1) > 50000);
	assert_int_equal(result.scale_up_bytes, 7000);
	const struct hosts two = { .gpus = 2, .nics = GPUS, .scale_up = 100 * GB_S };
	for (uint32_t turn = 0; turn < 4; turn++)
		assert_int_equal(hosts_endpoint_of(&two, 3, turn), 4 + 2 + turn % 2);
	const struct given from_one[] = { { 1, 2, 100000, 0 }, { 0, 2, 50000, 0 } };
	run_plan(from_one, 2, two, 1); /* to one GPU, each by another of its NICs */
	assert_true(sent_by(2) + sent_by(3) > 100000 && sent_by(0) + sent_by(1) > 50000);
}

/* All to all, in and between hosts. */
static void result__is_the_same_with_several_threads(void **state)
{
	static struct given messages[HOSTS * GPUS * (HOSTS * GPUS - 1)];
	uint32_t count = 0;
	uint64_t hash = 0;
	for (uint32_t src = 0; src < HOSTS * GPUS; src++)
		for (uint32_t dst = 0; dst < HOSTS * GPUS; dst++)
			if (src != dst)
				messages[count++] = (struct given){ src, dst, 20000 + 1000 * src, src * VB_NS };
	assert_true(count <= MOST);
	for (uint32_t threads = 1; threads <= 4; threads *= 2) {
		run_plan(messages, count, four, threads);
		if (threads > 1)
			assert_int_equal(result.hash, hash);
		hash = result.hash;
	}
}

static void expect_refused(struct hosts hosts, uint32_t endpoints, const char *part)
{
	char why[200] = "";
	assert_int_not_equal(hosts_check(&hosts, endpoints, why, sizeof(why)), 0);
	if (!strstr(why, part))
		fail_msg("%s, without %s", why, part);
}

static void hosts_that_do_not_divide__are_refused(void **state)
{
	expect_refused((struct hosts){ .gpus = 8, .nics = 0, .scale_up = GB_S }, 8, "without a NIC");
	expect_refused((struct hosts){ .gpus = 8, .nics = 3, .scale_up = GB_S }, 9, "cannot share out 3 NICs");
	expect_refused((struct hosts){ .gpus = 8, .nics = 8, .scale_up = GB_S }, 12, "no whole number of hosts");
	expect_refused((struct hosts){ .gpus = 8, .nics = 8, .scale_up = 0 }, 16, "set hosts.scale-up, or hosts.gpu");
	expect_refused((struct hosts){ .gpus = 8, .nics = 8, .scale_up = 999999 }, 16, "slower than 1 Mb/s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(transfer__alone_takes_its_bytes_and_the_latency, teardown),
		cmocka_unit_test_teardown(transfers__share_a_port, teardown),
		cmocka_unit_test_teardown(shares__are_max_min, teardown),
		cmocka_unit_test_teardown(transfer__that_comes_later_takes_its_share, teardown),
		cmocka_unit_test_teardown(transfer__may_take_as_long_as_it_needs, teardown),
		cmocka_unit_test_teardown(transfer__that_takes_longer_than_a_run_may_is_open_at_its_end, teardown),
		cmocka_unit_test_teardown(more_transfers_than_bytes_per_second__end, teardown),
		cmocka_unit_test_teardown(parts_of_a_sum__use_the_sender_s_port_alone, teardown),
		cmocka_unit_test_teardown(copies__use_the_receivers_ports_alone, teardown),
		cmocka_unit_test_teardown(pieces__are_in_order_on_their_connection, teardown),
		cmocka_unit_test_teardown(random_transfers__end_as_in_a_simple_simulation, teardown),
		cmocka_unit_test_teardown(staggered_all_to_all__ends_as_in_a_simple_simulation, teardown),
		cmocka_unit_test_teardown(messages_between_hosts__go_by_their_own_nics, teardown),
		cmocka_unit_test_teardown(nics__are_shared_out, teardown),
		cmocka_unit_test_teardown(result__is_the_same_with_several_threads, teardown),
		cmocka_unit_test_teardown(hosts_that_do_not_divide__are_refused, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
