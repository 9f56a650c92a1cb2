/* Numbers by hand: a line of 100 Gb/s, which is 12.5 bytes a nanosecond, T 12 us, so a first window of 150,000 bytes;
 * 40 Mb/s are 60 bytes in T; packets of 1,000 bytes, which may leave while less than the window is under way. */
#include "cc/cc.h"
#include "cc/choice.h"
#include "cc/telemetry.h"
#include "../unit.h"

enum { PACKET = 1000, WINDOW = 150000, STEP = 5000000 };

#define LINE UINT64_C(12500000000)
#define T    (12 * VB_US)

struct flow {
	struct vb_cc cc;
	struct vb_cc_choice choice;
	struct vb_cc_telemetry told;
};

static void start(struct flow *flow, const char *text)
{
	char why[400];
	*flow = (struct flow){ 0 };
	assert_int_equal(vb_cc_choose(text, &flow->choice, why, sizeof(why)), 0);
	assert_int_equal(vb_cc_start(&flow->cc,
				 &(struct vb_cc_config){ .algorithm = flow->choice.algorithm,
					 .parameters = flow->choice.values,
					 .max_window = VB_CC_UNLIMITED,
					 .line_rate = LINE },
				 PACKET, 0),
		0);
}

static void stop(struct flow *flow)
{
	vb_cc_stop(&flow->cc);
}

/* A packet is acknowledged, of so many under way. */
static void ack_of(struct flow *flow, uint32_t flight)
{
	flow->choice.algorithm->on_signal(
		&flow->cc, &(struct vb_cc_signal){ .event = VB_CC_ACKED,
				   .acked = PACKET,
				   .flight = flight,
				   .telemetry = flow->told.count ? vb_cc_telemetry_word(&flow->told) : 0 });
}

static void ack(struct flow *flow)
{
	ack_of(flow, PACKET);
}

static void pass(struct flow *flow, uint32_t hop, vb_time time, uint64_t sent, uint32_t queue)
{
	flow->told.hops[hop].at += time;
	flow->told.hops[hop].tx_bytes += sent;
	flow->told.hops[hop].queue_bytes = queue;
}

/* One port of the line's rate is on the way, and has told of itself once. */
static void start_with_a_port(struct flow *flow, const char *text)
{
	start(flow, text);
	flow->told.count = 1;
	flow->told.hops[0] = (struct vb_cc_hop){ .at = VB_US, .tx_bytes = 1000000, .rate = LINE, .port = 1 };
	ack(flow);
}

/* To a part in 100,000: shares are kept to one in a million. */
static void assert_rate(const struct flow *flow, double expected)
{
	double rate = (double)flow->cc.rate;
	if (rate < expected * 0.99999 || rate > expected * 1.00001)
		fail_msg("%.0f bytes a second, not %.0f", rate, expected);
}

static void hpcc__starts_with_what_the_line_sends_in_a_round_trip(void **state)
{
	struct flow flow;
	start(&flow, "hpcc, rtt=12us");
	assert_int_equal(flow.cc.rate, LINE);
	assert_int_equal(flow.cc.window_bytes, WINDOW + PACKET - 1);
	assert_false(flow.cc.timer.is_set);
	stop(&flow);
}

static void hpcc__only_remembers_what_it_is_told_first(void **state)
{
	struct flow flow;
	start_with_a_port(&flow, "hpcc, rtt=12us");
	assert_int_equal(flow.cc.rate, LINE);
	stop(&flow);
}

static void hpcc__says_nothing_without_telemetry(void **state)
{
	struct flow flow;
	start(&flow, "hpcc, rtt=12us");
	for (int i = 0; i < 10; i++)
		ack(&flow);
	flow.choice.algorithm->on_signal(&flow.cc, &(struct vb_cc_signal){ .event = VB_CC_CNP });
	flow.choice.algorithm->on_signal(&flow.cc, &(struct vb_cc_signal){ .event = VB_CC_LOST });
	assert_int_equal(flow.cc.rate, LINE);
	stop(&flow);
}

/* All of T the port has sent as fast as it can, and 15,000 bytes, a tenth of what that is, waited: U = 1.1, and the
 * window becomes 150,000 / (1.1 / 0.95) + 60. */
static void hpcc__sets_the_window_by_what_is_sent_and_what_waits(void **state)
{
	struct flow flow;
	start_with_a_port(&flow, "hpcc, rtt=12us");
	pass(&flow, 0, T, WINDOW, 15000);
	ack(&flow); /* nothing waited the time before: U = 1, 0.95 of the reference */
	assert_rate(&flow, 0.95 * (double)LINE + STEP);
	stop(&flow);

	start_with_a_port(&flow, "hpcc, rtt=12us");
	pass(&flow, 0, 1, 0, 30000);
	ack_of(&flow, 3 * PACKET);
	uint64_t before = flow.cc.rate;
	pass(&flow, 0, T, WINDOW, 15000);
	ack(&flow); /* of the same round trip: the reference is what the first one has made it */
	assert_rate(&flow, (double)before * 0.95 / 1.1 + STEP);
	assert_int_equal(flow.cc.window_bytes, flow.cc.rate * 12 / 1000000 + PACKET - 1);
	stop(&flow);
}

/* A quarter of T at twice the rate: U = 3/4 * 1 + 1/4 * 2 = 1.25, and 0.95 / 1.25 = 0.76. */
static void hpcc__smooths_over_a_round_trip(void **state)
{
	struct flow flow;
	start_with_a_port(&flow, "hpcc, rtt=12us");
	pass(&flow, 0, T / 4, WINDOW / 2, 0);
	ack(&flow);
	assert_rate(&flow, 0.76 * (double)LINE + STEP);
	stop(&flow);
}

/* The faster port has more under way, and is less busy: a half and a quarter. */
static void hpcc__goes_by_the_busiest_port(void **state)
{
	struct flow flow;
	start(&flow, "hpcc, rtt=12us, wai=8Mb/s");
	flow.told.count = 2;
	flow.told.hops[0] = (struct vb_cc_hop){ .at = VB_US, .rate = 4 * LINE, .port = 1 };
	flow.told.hops[1] = (struct vb_cc_hop){ .at = 70 * VB_US, .rate = LINE / 2, .port = 2 };
	ack(&flow);
	pass(&flow, 0, T, WINDOW, 0); /* a quarter */
	pass(&flow, 1, T, WINDOW, 0); /* twice what it can */
	ack(&flow);
	assert_rate(&flow, 0.475 * (double)LINE + 1000000);
	stop(&flow);
}

static void hpcc__is_back_at_the_line_rate_when_nothing_is_busy(void **state)
{
	struct flow flow;
	start_with_a_port(&flow, "hpcc, rtt=12us");
	pass(&flow, 0, T, 2 * WINDOW, 0);
	ack(&flow);
	assert_rate(&flow, 0.475 * (double)LINE + STEP);
	pass(&flow, 0, T, 0, 0);
	ack(&flow);
	assert_int_equal(flow.cc.rate, LINE);
	stop(&flow);
}

/* Of ten packets under way each tells that the port is twice as busy as it can: that is one congestion. The eleventh
 * was sent after it. */
static void hpcc__heeds_the_packets_of_a_round_trip_once(void **state)
{
	struct flow flow;
	start_with_a_port(&flow, "hpcc, rtt=12us");
	pass(&flow, 0, T, 2 * WINDOW, 0);
	ack_of(&flow, 11 * PACKET);
	const uint64_t once = flow.cc.rate;
	assert_rate(&flow, 0.475 * (double)LINE + STEP);
	for (int i = 0; i < 10; i++) {
		pass(&flow, 0, T, 2 * WINDOW, 0);
		ack_of(&flow, 11 * PACKET);
		assert_rate(&flow, 0.475 * (double)once + STEP);
	}
	pass(&flow, 0, T, 2 * WINDOW, 0);
	ack_of(&flow, 11 * PACKET);
	assert_rate(&flow, 0.475 * (double)once + STEP); /* and this is the reference from now on */
	const uint64_t twice = flow.cc.rate;
	pass(&flow, 0, T, 2 * WINDOW, 0);
	ack_of(&flow, 11 * PACKET);
	assert_rate(&flow, 0.475 * (double)twice + STEP);
	stop(&flow);
}

/* The port is half as busy as it may be: two round trips add, the third makes up for all. */
static void hpcc__adds_for_some_round_trips_before_it_multiplies(void **state)
{
	struct flow flow;
	start_with_a_port(&flow, "hpcc, rtt=12us, max-stage=2, wai=800Mb/s");
	const double step = 100000000;
	pass(&flow, 0, T, 4 * WINDOW, 0);
	ack(&flow);
	const double low = 0.2375 * (double)LINE + step;
	assert_rate(&flow, low);
	for (int i = 1; i <= 2; i++) {
		pass(&flow, 0, T, WINDOW / 2, 0);
		ack(&flow);
		assert_rate(&flow, low + i * step);
	}
	pass(&flow, 0, T, WINDOW / 2, 0);
	ack(&flow);
	assert_rate(&flow, (low + 2 * step) * 1.9 + step);
	stop(&flow);
}

static void hpcc__does_not_go_below_the_least_rate(void **state)
{
	struct flow flow;
	start_with_a_port(&flow, "hpcc, rtt=12us, min-rate=1Gb/s");
	for (int i = 0; i < 10; i++) {
		pass(&flow, 0, T, 10 * WINDOW, 0);
		ack(&flow);
	}
	assert_int_equal(flow.cc.rate, 125000000);
	assert_int_equal(flow.cc.window_bytes, 1500 + PACKET - 1);
	stop(&flow);
}

static void hpcc__begins_anew_on_another_way(void **state)
{
	struct flow flow;
	start_with_a_port(&flow, "hpcc, rtt=12us");
	flow.told.hops[0].port = 2;
	pass(&flow, 0, T, 10 * WINDOW, 0);
	ack(&flow);
	assert_int_equal(flow.cc.rate, LINE);
	flow.told.count = 2;
	flow.told.hops[1] = (struct vb_cc_hop){ .at = VB_US, .rate = LINE, .port = 3 };
	pass(&flow, 0, T, 10 * WINDOW, 0);
	ack(&flow);
	assert_int_equal(flow.cc.rate, LINE);
	pass(&flow, 0, T, 2 * WINDOW, 0);
	pass(&flow, 1, T, WINDOW, 0);
	ack(&flow);
	assert_rate(&flow, 0.475 * (double)LINE + STEP);
	stop(&flow);
}

static void hpcc__ignores_what_is_not_news(void **state)
{
	struct flow flow;
	start_with_a_port(&flow, "hpcc, rtt=12us");
	pass(&flow, 0, 0, WINDOW, 100000);
	ack(&flow);
	pass(&flow, 0, -1, WINDOW, 100000);
	ack(&flow);
	assert_int_equal(flow.cc.rate, LINE);
	stop(&flow);
}

/* Flows alike at one port that sends all that they do: where they stay, W = W * eta / U + W_AI, so U = eta * W / (W -
 * W_AI). Two of them: W = 71,310 bytes, U = 0.9508. 127: W = 1,207, U = 1 would be W_AI = 0.05 W. */
static void fixed_point(uint32_t flows)
{
	struct flow flow;
	start_with_a_port(&flow, "hpcc, rtt=12us");
	for (int i = 0; i < 2000; i++) {
		pass(&flow, 0, T, flows * flow.cc.rate * 12 / 1000000, 0);
		ack(&flow);
	}
	double rate = (double)flow.cc.rate, u = rate * flows / (double)LINE;
	if (u / (0.95 * rate / (rate - STEP)) < 0.9999 || u / (0.95 * rate / (rate - STEP)) > 1.0001)
		fail_msg("%u flows: U is %f, not %f", flows, u, 0.95 * rate / (rate - STEP));
	stop(&flow);
}

static void hpcc__stays_where_what_is_added_is_what_is_taken(void **state)
{
	fixed_point(1);
	fixed_point(2);
	fixed_point(16);
	fixed_point(127);
}

static void hpcc__stands_whatever_it_is_told(void **state)
{
	struct flow flow;
	uint64_t random = 1;
	start(&flow, "hpcc");
	for (int i = 0; i < 100000; i++) {
		flow.told.count = 1 + i % VB_CC_HOPS;
		for (uint32_t hop = 0; hop < flow.told.count; hop++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			flow.told.hops[hop] = (struct vb_cc_hop){ .at = (vb_time)(random >> 2 >> random % 50),
				.tx_bytes = random << 20 >> random % 60,
				.rate = 125000 + (random >> random % 64 >> 24),
				.queue_bytes = (uint32_t)random,
				.port = hop };
		}
		for (int again = 0; again < 2; again++) {
			flow.told.hops[0].at += again;
			ack_of(&flow, (uint32_t)random);
			assert_in_range(flow.cc.rate, 1, LINE);
			assert_in_range(flow.cc.window_bytes, PACKET, LINE * 13 / 1000000 + PACKET);
		}
	}
	stop(&flow);
}

static void hpcc__of_a_line_nobody_knows_begins_with_the_holders_window(void **state)
{
	struct flow flow;
	char why[400];
	assert_int_equal(vb_cc_choose("hpcc, rtt=10us", &flow.choice, why, sizeof(why)), 0);
	flow.cc = (struct vb_cc){ 0 };
	assert_int_equal(vb_cc_start(&flow.cc,
				 &(struct vb_cc_config){ .algorithm = flow.choice.algorithm,
					 .parameters = flow.choice.values,
					 .first_window = 20000,
					 .max_window = VB_CC_UNLIMITED },
				 PACKET, 0),
		0);
	assert_int_equal(flow.cc.rate, 2000000000);
	assert_int_equal(flow.cc.window_bytes, 20000 + PACKET - 1);
	stop(&flow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hpcc__starts_with_what_the_line_sends_in_a_round_trip),
		cmocka_unit_test(hpcc__only_remembers_what_it_is_told_first),
		cmocka_unit_test(hpcc__says_nothing_without_telemetry),
		cmocka_unit_test(hpcc__sets_the_window_by_what_is_sent_and_what_waits),
		cmocka_unit_test(hpcc__smooths_over_a_round_trip),
		cmocka_unit_test(hpcc__goes_by_the_busiest_port),
		cmocka_unit_test(hpcc__is_back_at_the_line_rate_when_nothing_is_busy),
		cmocka_unit_test(hpcc__heeds_the_packets_of_a_round_trip_once),
		cmocka_unit_test(hpcc__adds_for_some_round_trips_before_it_multiplies),
		cmocka_unit_test(hpcc__does_not_go_below_the_least_rate),
		cmocka_unit_test(hpcc__begins_anew_on_another_way),
		cmocka_unit_test(hpcc__ignores_what_is_not_news),
		cmocka_unit_test(hpcc__stays_where_what_is_added_is_what_is_taken),
		cmocka_unit_test(hpcc__stands_whatever_it_is_told),
		cmocka_unit_test(hpcc__of_a_line_nobody_knows_begins_with_the_holders_window),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
