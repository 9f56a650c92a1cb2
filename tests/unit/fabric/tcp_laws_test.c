/* What TCP's congestion controls come to in the long run, held against what was published of each. */
#include <math.h>
#include "fabric/tcp_ends.h"
#include "fabric/windows.h"
#include "nets.h"

static struct network network;
static struct flow_list flows;
static struct fabric_result result;

static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };

static int teardown(void **state)
{
	network_free(&network);
	flow_list_free(&flows);
	fabric_result_free(&result);
	return 0;
}

static void near(const char *what, double is, double should, double error)
{
	if (is < should * (1 - error) || is > should * (1 + error))
		fail_msg("%s: %g is not %g", what, is, should);
}

static struct fabric_config config_tcp(enum fabric_tcp_control control)
{
	return (struct fabric_config){ .network = &network,
		.flows = &flows,
		.seed = 1,
		.mtu = 1000,
		.endpoint = FABRIC_TCP,
		.cc = { .algorithm = &vb_cc_none },
		.tcp = { .control = control },
		.ack_every = 1 };
}

/* A run that is looked into. */
static struct fabric fabric;
static struct flow_result results[64];

/* Its flows begin at 0: their records have their numbers. */
static void begin(const struct fabric_config *config)
{
	char why[200] = "";
	fabric = (struct fabric){ .config = config, .day_shift = 8 };
	assert_true(config->flows->count <= sizeof(results) / sizeof(results[0]));
	if (fabric_begin(&fabric, results, why, sizeof(why)))
		fail_msg("%s", why);
}

static const struct tcp_sender *sender_of(uint32_t flow)
{
	return tcp_sender_of(&fabric, flow);
}

/* The segments that are under way, on average, of one flow that loses data, and no acks, on its first link: of as many
 * round trips as are told, behind a fifth more, which are not counted. */
static double mean_window(
	struct fabric_config config, vb_time round, const struct network_fault *fault, uint64_t rounds)
{
	make_star(&network, 2, 100 * GBPS, round / 4, &ideal);
	network_set_fault(&network, 0, fault);
	network.links[1].fault = NETWORK_NONE;
	add_flow(&flows, 0, 1, 1ull << 40, 0);
	config.tcp.rto_min = 3 * round;
	begin(&config);
	windows_advance(&fabric, (vb_time)rounds * round / 5, NULL);
	const uint64_t before = sender_of(0)->una;
	windows_advance(&fabric, (vb_time)rounds * round * 6 / 5, NULL);
	const uint64_t segments = sender_of(0)->una - before;
	fabric_end(&fabric);
	teardown(NULL);
	return (double)segments / (double)rounds;
}

/* Mathis, Semke, Mahdavi and Ott, 1997: (MSS / RTT) sqrt(3 / 2 b) / sqrt(p), b segments for each ack, where losses are
 * repaired without timeouts. That is so up to p = 0.01 with an ack for each, windows of 12, and up to 0.003 with one
 * for two: with smaller windows fewer than three segments follow a loss too often, and it takes the timer. */
static void newreno__obeys_the_law_of_the_root_of_p(void **state)
{
	static const struct {
		uint32_t b, ppm, losses;
	} runs[] = { { 1, 300, 30 }, { 1, 1000, 60 }, { 1, 3000, 60 }, { 1, 10000, 100 }, { 2, 300, 30 },
		{ 2, 1000, 60 }, { 2, 3000, 100 } };
	for (unsigned i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct fabric_config config = config_tcp(FABRIC_NEWRENO);
		const double p = runs[i].ppm / 1e6, law = sqrt(1.5 / runs[i].b / p);
		const struct network_fault fault = { .loss_ppm = runs[i].ppm };
		double sum = 0;
		config.ack_every = runs[i].b;
		config.cc.max_window = (uint32_t)(4 * law) * 1000; /* where it begins does not matter */
		for (config.seed = 1; config.seed <= 4; config.seed++)
			sum += mean_window(config, 400 * VB_US, &fault, (uint64_t)(runs[i].losses / p / law));
		near("NewReno", sum / 4, law, 0.1);
	}
}

/* RFC 9438, 5.1: with one loss each 1/p segments (C (3 + beta) / (4 (1 - beta)))^(1/4) RTT^(3/4) / p^(3/4). That lets
 * the window move at once: a recovery's round trip, of some twenty from loss to loss, is a twentieth of it. Where Reno
 * would have more, as on all short paths, it is sqrt(3/2) / sqrt(p). */
static void cubic__obeys_its_response_function(void **state)
{
	static const struct {
		vb_time round;
		uint32_t every;
	} runs[] = { { 100 * VB_MS, 10000 }, { 100 * VB_MS, 30000 }, { 200 * VB_MS, 10000 }, { VB_MS, 1000 },
		{ 100 * VB_US, 10000 } };
	for (unsigned i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct fabric_config config = config_tcp(FABRIC_CUBIC);
		const struct network_fault fault = { .loss_every = runs[i].every };
		const double each = runs[i].every, round = (double)runs[i].round / (double)VB_S;
		const double cubic = pow(0.4 * 3.7 / (4 * 0.3), 0.25) * pow(round * each, 0.75),
			     reno = sqrt(1.5 * each);
		const double law = cubic > reno ? cubic : reno;
		config.cc.max_window = (uint32_t)(2 * law) * 1000;
		near("CUBIC", mean_window(config, runs[i].round, &fault, (uint64_t)(10 * each / law)), law, 0.1);
	}
}

/* Of a queue, in packets, that is looked at each microsecond. */
struct seen {
	double least, most, mean, alpha, load;
};

/* N flows over one port of 10 Gb/s that marks from K packets on, 100 us back and forth; 1,500 bytes a packet on the
 * wire. */
static struct seen look_at_dctcp(uint32_t flows_n, uint32_t k, vb_time for_long)
{
	enum { PACKET = 1200 /* ns */, WARM_UP = 20 };
	struct switch_profile profile = { .name = "marks",
		.class_count = 1,
		.classes = { { .mark_min = k * 1500 * 10, .mark_max = k * 1500 * 10 } } };
	char why[100];
	make_star(&network, flows_n, 100 * GBPS, 24 * VB_US, &profile);
	network_add_endpoint(&network, flows_n, 0);
	const uint32_t link = network_connect(&network, network_switch_node(0), flows_n, 10 * GBPS, 24 * VB_US);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
	for (uint32_t i = 0; i < flows_n; i++)
		add_flow(&flows, i, flows_n, 1ull << 40, 0);
	struct fabric_config config = config_tcp(FABRIC_DCTCP);
	config.mtu = 1410;
	begin(&config);
	vb_time now = WARM_UP * VB_MS;
	windows_advance(&fabric, now, NULL);
	struct seen seen = { .least = 1e9 };
	const uint64_t bytes = fabric.links[link].bytes;
	unsigned count = 0;
	for (; now < WARM_UP * VB_MS + for_long; now += VB_US, count++) {
		windows_advance(&fabric, now, NULL);
		const vb_time busy = fabric.links[link].free_at - now;
		const double queued = busy > 0 ? (double)busy / (PACKET * (double)VB_NS) : 0;
		seen.least = queued < seen.least ? queued : seen.least;
		seen.most = queued > seen.most ? queued : seen.most;
		seen.mean += queued;
		for (uint32_t i = 0; i < flows_n; i++)
			seen.alpha += (double)sender_of(i)->control.alpha / (double)TCP_ONE / flows_n;
	}
	seen.mean /= count;
	seen.alpha /= count;
	seen.load = (double)(fabric.links[link].bytes - bytes) * 800 / (double)for_long;
	fabric_end(&fabric);
	teardown(NULL);
	return seen;
}

/* Alizadeh et al., SIGCOMM 2010, 3.3: with a path that holds P packets each window comes to W = (P + K) / N, of which a
 * share of sqrt(2 / W) is marked; the queue goes from K + N down by sqrt(2 N (P + K)) / 2, and the port never rests if
 * K > P / 7. */
static void dctcp__obeys_its_steady_state(void **state)
{
	static const struct {
		uint32_t n, k;
	} runs[] = { { 1, 40 }, { 1, 65 }, { 2, 40 }, { 4, 40 }, { 1, 14 }, { 2, 14 } };
	for (unsigned i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		const double n = runs[i].n, k = runs[i].k, path = 100 / 1.2;
		const struct seen seen = look_at_dctcp(runs[i].n, runs[i].k, 10 * VB_MS);
		near("DCTCP's share of marks", seen.alpha, sqrt(2 * n / (path + k)), 0.15);
		near("DCTCP's queue at most", seen.most, k + n, 0.08);
		if (fabs(seen.least - (k + n - sqrt(2 * n * (path + k)) / 2)) > 2.5) /* several are not in step */
			fail_msg("DCTCP's queue comes down to %g", seen.least);
		near("the port's load", seen.load, 1, 0.002);
	}
	assert_true(look_at_dctcp(1, 2, 10 * VB_MS).load < 0.995);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(newreno__obeys_the_law_of_the_root_of_p, teardown),
		cmocka_unit_test_teardown(cubic__obeys_its_response_function, teardown),
		cmocka_unit_test_teardown(dctcp__obeys_its_steady_state, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
