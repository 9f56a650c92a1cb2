/* Numbers by hand: packets of 1,000 bytes; a target of 25 us unless something else is said. */
#include "cc/cc.h"
#include "cc/choice.h"
#include "../unit.h"

enum { PACKET = 1000 };

struct flow {
	struct vb_cc cc;
	struct vb_cc_choice choice;
	vb_time now;
};

static void start(struct flow *flow, const char *text, uint32_t packets)
{
	char why[400];
	*flow = (struct flow){ 0 };
	if (vb_cc_choose(text, &flow->choice, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(vb_cc_start(&flow->cc,
				 &(struct vb_cc_config){ .algorithm = flow->choice.algorithm,
					 .parameters = flow->choice.values,
					 .first_window = packets * PACKET,
					 .max_window = 1000 * PACKET },
				 PACKET, 0),
		0);
}

static void stop(struct flow *flow)
{
	vb_cc_stop(&flow->cc);
}

static void ack(struct flow *flow, uint32_t bytes, vb_time rtt)
{
	vb_cc_swift.on_signal(&flow->cc, &(struct vb_cc_signal){ .event = VB_CC_ACKED,
						 .acked = bytes,
						 .flight = flow->cc.window_bytes,
						 .rtt = rtt,
						 .now = flow->now });
}

static void lose(struct flow *flow)
{
	vb_cc_swift.on_signal(&flow->cc, &(struct vb_cc_signal){ .event = VB_CC_LOST, .now = flow->now });
}

static void assert_window(const struct flow *flow, double packets)
{
	double window = (double)flow->cc.window_bytes;
	if (window < packets * PACKET - 1 || window > packets * PACKET + 1)
		fail_msg("a window of %.0f bytes, not %.0f", window, packets * PACKET);
}

static void swift__keeps_its_window_when_packets_grow(void **state)
{
	struct flow flow;
	start(&flow, "swift", 80);
	flow.cc.min_window = 8 * PACKET;
	ack(&flow, PACKET, 20 * VB_US);
	assert_true(flow.cc.window_bytes >= 80 * PACKET && flow.cc.window_bytes <= 81 * PACKET);
	stop(&flow);
}

static void swift__starts_with_the_holders_window(void **state)
{
	struct flow flow;
	start(&flow, "swift", 10);
	assert_window(&flow, 10);
	assert_int_equal(flow.cc.rate, 0);
	ack(&flow, 10 * PACKET, 0); /* nothing is measured yet */
	assert_window(&flow, 10);
	stop(&flow);
}

static void swift__adds_a_packet_a_window_below_the_target(void **state)
{
	struct flow flow;
	start(&flow, "swift, fs-range=0", 10);
	ack(&flow, 10 * PACKET, 24 * VB_US);
	assert_window(&flow, 11);
	ack(&flow, 5500, 0); /* which was the newest measurement */
	assert_window(&flow, 11.5);
	stop(&flow);
	start(&flow, "swift, fs-range=0, ai=0.5", 10);
	ack(&flow, 10 * PACKET, 24 * VB_US);
	assert_window(&flow, 10.5);
	stop(&flow);
}

/* Of 8 ms the shortest and a quarter: 10 ms. */
static void swift__above_the_shortest_round_trip_goes_on_whatever_the_target_is(void **state)
{
	struct flow flow;
	start(&flow, "swift, fs-range=0, above-least=0.25", 10);
	ack(&flow, 10 * PACKET, 8 * VB_MS);
	assert_window(&flow, 11);
	flow.now += 20 * VB_MS;
	ack(&flow, 11 * PACKET, 99 * VB_MS / 10);
	assert_window(&flow, 12);
	flow.now += 20 * VB_MS;
	ack(&flow, 12 * PACKET, 16 * VB_MS); /* 0.8 * 6 / 16 */
	assert_window(&flow, 12 * 0.7);
	ack(&flow, PACKET, 12 * VB_US); /* so the way is short: 25 us */
	flow.now += 20 * VB_MS;
	ack(&flow, PACKET, 8 * VB_MS);
	if (flow.cc.window_bytes > 5 * PACKET)
		fail_msg("a window of %u bytes", flow.cc.window_bytes);
	stop(&flow);
}

static void swift__does_not_grow_while_it_is_not_used(void **state)
{
	struct flow flow;
	start(&flow, "swift, fs-range=0", 10);
	vb_cc_swift.on_signal(
		&flow.cc, &(struct vb_cc_signal){
				  .event = VB_CC_ACKED, .acked = PACKET, .flight = 4 * PACKET, .rtt = 10 * VB_US });
	assert_window(&flow, 10);
	stop(&flow);
}

/* 50 us: 0.8 * 25 / 50 = 0.4. */
static void swift__cuts_by_how_far_above_the_target(void **state)
{
	struct flow flow;
	start(&flow, "swift, fs-range=0", 10);
	ack(&flow, PACKET, 50 * VB_US);
	assert_window(&flow, 6);
	stop(&flow);
}

/* 0.8 * 475 / 500 = 0.76. */
static void swift__cuts_no_more_than_max_mdf(void **state)
{
	struct flow flow;
	start(&flow, "swift, fs-range=0", 10);
	ack(&flow, PACKET, 500 * VB_US);
	assert_window(&flow, 5);
	stop(&flow);
	start(&flow, "swift, fs-range=0, max-mdf=0.25", 10);
	ack(&flow, PACKET, 500 * VB_US);
	assert_window(&flow, 7.5);
	stop(&flow);
}

static void swift__cuts_once_a_round_trip(void **state)
{
	struct flow flow;
	start(&flow, "swift, fs-range=0", 100);
	flow.now = VB_MS;
	ack(&flow, PACKET, 50 * VB_US);
	assert_window(&flow, 60);
	flow.now += 50 * VB_US - 1;
	ack(&flow, PACKET, 50 * VB_US);
	assert_window(&flow, 60);
	flow.now += 1;
	ack(&flow, PACKET, 0); /* says nothing of the time */
	assert_window(&flow, 60);
	ack(&flow, PACKET, 50 * VB_US);
	assert_window(&flow, 36);
	stop(&flow);
}

/* 25 + 5 * 2 = 35 us. */
static void swift__has_a_longer_target_on_longer_ways(void **state)
{
	struct flow flow;
	start(&flow, "swift, fs-range=0, hops=5, per-hop=2us", 10);
	ack(&flow, 10 * PACKET, 35 * VB_US - 1);
	assert_window(&flow, 11);
	ack(&flow, 11 * PACKET, 35 * VB_US + VB_NS);
	assert_true(flow.cc.window_bytes < 11 * PACKET);
	stop(&flow);
}

/* Does a window of so many packets grow at 25 us and so much? */
static bool grows(uint32_t packets, vb_time more)
{
	struct flow flow;
	start(&flow, "swift, fs-range=100us", packets);
	ack(&flow, PACKET, 25 * VB_US + more);
	bool has_grown = flow.cc.window_bytes > packets * PACKET;
	stop(&flow);
	return has_grown;
}

/* Of 100 us: (1 / sqrt(w) - 1 / sqrt(100)) / (1 / sqrt(0.1) - 1 / sqrt(100)); for one packet 0.9 / 3.0623, for 16
 * 0.15 / 3.0623. */
static void swift__has_a_longer_target_for_smaller_windows(void **state)
{
	assert_true(grows(1, 29380 * VB_NS));
	assert_false(grows(1, 29400 * VB_NS));
	assert_true(grows(16, 4895 * VB_NS));
	assert_false(grows(16, 4901 * VB_NS));
	assert_true(grows(100, -VB_NS));
	assert_false(grows(100, VB_NS));
	assert_false(grows(400, VB_NS));
}

/* Below 0.1 packets it is no longer than there. */
static void swift__has_no_more_than_fs_range(void **state)
{
	struct flow flow;
	start(&flow, "swift, fs-range=100us", 1);
	for (int i = 0; i < 5; i++) {
		flow.now += VB_MS;
		ack(&flow, PACKET, 500 * VB_US);
	}
	uint64_t before = flow.cc.rate; /* 1/32 of a packet in 500 us */
	assert_int_equal(before, 62500);
	flow.now += VB_MS;
	ack(&flow, 1, 126 * VB_US);
	assert_true(flow.cc.rate < before * 500 / 126);
	flow.now += VB_MS;
	before = flow.cc.rate;
	ack(&flow, 1, 124 * VB_US);
	assert_true(flow.cc.rate > before * 126 / 124);
	stop(&flow);
}

/* Half a packet in 100 us: 5,000,000 bytes a second. What is acknowledged then adds ai times as much. */
static void swift__paces_windows_below_a_packet(void **state)
{
	struct flow flow;
	start(&flow, "swift, fs-range=0", 1);
	ack(&flow, PACKET, 100 * VB_US);
	assert_window(&flow, 1);
	assert_int_equal(flow.cc.rate, 5000000);
	ack(&flow, 250, 20 * VB_US);
	assert_int_equal(flow.cc.rate, 37500000); /* 0.75 in 20 us */
	ack(&flow, PACKET, 20 * VB_US);
	assert_int_equal(flow.cc.rate, 0);
	assert_window(&flow, 1.75);
	stop(&flow);
}

static void swift__halves_on_loss_once_a_round_trip(void **state)
{
	struct flow flow;
	start(&flow, "swift, fs-range=0", 100);
	ack(&flow, PACKET, 24 * VB_US);
	lose(&flow);
	assert_window(&flow, 50.005);
	flow.now += 23 * VB_US;
	lose(&flow);
	assert_window(&flow, 50.005);
	flow.now += VB_US;
	lose(&flow);
	assert_window(&flow, 25.0025);
	stop(&flow);
}

/* 0.001 packets in 24 us. */
static void swift__has_the_smallest_window_after_losses_in_a_row(void **state)
{
	struct flow flow;
	start(&flow, "swift, fs-range=0", 100);
	ack(&flow, PACKET, 24 * VB_US);
	for (int i = 0; i < 4; i++)
		lose(&flow);
	ack(&flow, 0, 0);
	for (int i = 0; i < 4; i++)
		lose(&flow);
	assert_window(&flow, 50.005);
	lose(&flow);
	assert_window(&flow, 1);
	assert_in_range(flow.cc.rate, 41600, 41667);
	stop(&flow);
}

/* At a port that sends 12.5 packets in a microsecond, 10 us away, where others' traffic adds up to 1 us or takes as
 * much, all windows together are what it sends in the target, 30 us, and each an equal share, wherever they began. */
static void swift__of_several_holds_the_target_with_equal_windows(void **state)
{
	enum { FLOWS = 10, ROUNDS = 4000 };
	struct flow flows[FLOWS];
	double windows[FLOWS] = { 0 }, times = 0, all = 0, squares = 0;
	for (uint32_t i = 0; i < FLOWS; i++)
		start(&flows[i], "swift, base-target=30us, fs-range=0", 1 + 20 * i);
	vb_time now = 0;
	uint64_t random = 1;
	for (int round = 0; round < ROUNDS; round++) {
		bool counts = round >= ROUNDS / 2;
		double sum = 0;
		for (uint32_t i = 0; i < FLOWS; i++) {
			double window = (double)flows[i].cc.window_bytes / PACKET;
			sum += window;
			windows[i] += counts ? window / (ROUNDS - ROUNDS / 2) : 0;
		}
		double rtt = sum / 12.5 > 10 ? sum / 12.5 : 10;
		times += counts ? rtt / (ROUNDS - ROUNDS / 2) : 0;
		now += (vb_time)(rtt * VB_US);
		for (uint32_t i = 0; i < FLOWS; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			flows[i].now = now;
			ack(&flows[i], flows[i].cc.window_bytes,
				(vb_time)(rtt * VB_US) + (vb_time)(random >> 33) % (2 * VB_US) - VB_US);
		}
	}
	for (uint32_t i = 0; i < FLOWS; i++) {
		all += windows[i];
		squares += windows[i] * windows[i];
	}
	double jain = all * all / FLOWS / squares;
	if (times < 29 || times > 31 || all < 362 || all > 388 || jain < 0.99)
		fail_msg("%f us, %f packets, %f", times, all, jain);
	for (uint32_t i = 0; i < FLOWS; i++)
		stop(&flows[i]);
}

static void swift__stands_whatever_it_is_told(void **state)
{
	struct flow flow;
	uint64_t random = 1;
	start(&flow, "swift, fs-min=1", 64);
	for (int i = 0; i < 100000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		flow.now += (vb_time)(random >> 36);
		if (i % 50 < 6)
			lose(&flow);
		else
			ack(&flow, (uint32_t)(random >> 34), (vb_time)((random >> 24) >> random % 40));
		assert_in_range(flow.cc.window_bytes, PACKET, 1000 * PACKET);
	}
	stop(&flow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(swift__keeps_its_window_when_packets_grow),
		cmocka_unit_test(swift__starts_with_the_holders_window),
		cmocka_unit_test(swift__adds_a_packet_a_window_below_the_target),
		cmocka_unit_test(swift__above_the_shortest_round_trip_goes_on_whatever_the_target_is),
		cmocka_unit_test(swift__does_not_grow_while_it_is_not_used),
		cmocka_unit_test(swift__cuts_by_how_far_above_the_target),
		cmocka_unit_test(swift__cuts_no_more_than_max_mdf),
		cmocka_unit_test(swift__cuts_once_a_round_trip),
		cmocka_unit_test(swift__has_a_longer_target_on_longer_ways),
		cmocka_unit_test(swift__has_a_longer_target_for_smaller_windows),
		cmocka_unit_test(swift__has_no_more_than_fs_range),
		cmocka_unit_test(swift__paces_windows_below_a_packet),
		cmocka_unit_test(swift__halves_on_loss_once_a_round_trip),
		cmocka_unit_test(swift__has_the_smallest_window_after_losses_in_a_row),
		cmocka_unit_test(swift__of_several_holds_the_target_with_equal_windows),
		cmocka_unit_test(swift__stands_whatever_it_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
