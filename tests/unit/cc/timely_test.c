/* Numbers by hand: a line of 100 Gb/s, 12.5 bytes a nanosecond; a step is 10 Mb/s, 1,250,000 bytes a second. */
#include "cc/cc.h"
#include "cc/choice.h"
#include "../unit.h"

enum { PACKET = 1000, STEP = 1250000 };

#define LINE UINT64_C(12500000000)

struct flow {
	struct vb_cc cc;
	struct vb_cc_choice choice;
};

static void start_with(struct flow *flow, const char *text, uint64_t line_rate)
{
	char why[400];
	*flow = (struct flow){ 0 };
	if (vb_cc_choose(text, &flow->choice, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(vb_cc_start(&flow->cc,
				 &(struct vb_cc_config){ .algorithm = flow->choice.algorithm,
					 .parameters = flow->choice.values,
					 .max_window = 2000000,
					 .line_rate = line_rate },
				 PACKET, 0),
		0);
}

/* At half of the line's rate. */
static void start(struct flow *flow, const char *text)
{
	start_with(flow, text, LINE);
	flow->cc.rate = LINE / 2;
}

static void measure(struct flow *flow, vb_time rtt)
{
	vb_cc_timely.on_signal(&flow->cc, &(struct vb_cc_signal){ .event = VB_CC_ACKED, .acked = PACKET, .rtt = rtt });
}

/* To a part in a million. */
static void assert_rate(const struct flow *flow, double expected)
{
	double rate = (double)flow->cc.rate;
	if (rate < expected * 0.999999 || rate > expected * 1.000001)
		fail_msg("%.0f bytes a second, not %.0f", rate, expected);
}

static void timely__starts_at_the_line_rate_and_has_no_window(void **state)
{
	struct flow flow;
	start_with(&flow, "timely", LINE);
	assert_int_equal(flow.cc.rate, LINE);
	assert_int_equal(flow.cc.window_bytes, 2000000);
	start_with(&flow, "timely", 0);
	assert_int_equal(flow.cc.rate, VB_CC_START_WINDOW * UINT64_C(50000)); /* in 20 us */
}

static void timely__only_remembers_what_is_measured_first(void **state)
{
	struct flow flow;
	start(&flow, "timely");
	measure(&flow, 800 * VB_US);
	assert_int_equal(flow.cc.rate, LINE / 2);
}

static void timely__heeds_nothing_but_measurements(void **state)
{
	struct flow flow;
	start(&flow, "timely");
	measure(&flow, 40 * VB_US);
	measure(&flow, 0);
	vb_cc_timely.on_signal(&flow.cc, &(struct vb_cc_signal){ .event = VB_CC_CNP, .rtt = VB_US });
	vb_cc_timely.on_signal(&flow.cc, &(struct vb_cc_signal){ .event = VB_CC_LOST, .rtt = VB_US });
	assert_int_equal(flow.cc.rate, LINE / 2);
}

/* Whatever the change. */
static void timely__grows_by_a_step_below_t_low(void **state)
{
	struct flow flow;
	start(&flow, "timely");
	measure(&flow, 10 * VB_US);
	for (int i = 1; i <= 10; i++) {
		measure(&flow, (10 + i) * VB_US);
		assert_int_equal(flow.cc.rate, LINE / 2 + (uint64_t)i * STEP);
	}
	for (int i = 0; i < 10000; i++)
		measure(&flow, 40 * VB_US);
	assert_int_equal(flow.cc.rate, LINE);
}

/* 1 - 0.8 * (1 - 500 / 1000) = 0.6, though it has fallen. */
static void timely__shrinks_above_t_high_by_how_far(void **state)
{
	struct flow flow;
	start(&flow, "timely");
	measure(&flow, 1200 * VB_US);
	measure(&flow, 1000 * VB_US);
	assert_rate(&flow, 0.6 * LINE / 2);
}

/* From 100 to 110 us: 0.875 * 10 = 8.75 us, of 20 us 0.4375; 1 - 0.8 * that is 0.65. Then nothing changes: 0.125 *
 * 8.75 us, 0.0546875, 0.95625. */
static void timely__shrinks_by_how_fast_the_time_rises(void **state)
{
	struct flow flow;
	start(&flow, "timely");
	measure(&flow, 100 * VB_US);
	measure(&flow, 110 * VB_US);
	assert_rate(&flow, 0.65 * LINE / 2);
	measure(&flow, 110 * VB_US);
	assert_rate(&flow, 0.65 * 0.95625 * LINE / 2);
}

/* 200 us more than before is ten times what a change is compared with: all of it is taken. */
static void timely__does_not_go_below_the_least_rate(void **state)
{
	struct flow flow;
	start(&flow, "timely, min-rate=1Gb/s");
	measure(&flow, 100 * VB_US);
	measure(&flow, 300 * VB_US);
	assert_int_equal(flow.cc.rate, 125000000);
}

static void timely__grows_by_five_steps_after_five_falls(void **state)
{
	struct flow flow;
	start(&flow, "timely");
	vb_time rtt = 300 * VB_US;
	measure(&flow, rtt);
	for (int i = 1; i <= 5; i++) {
		measure(&flow, rtt -= VB_US);
		assert_int_equal(flow.cc.rate, LINE / 2 + (uint64_t)i * STEP);
	}
	measure(&flow, rtt -= VB_US);
	assert_int_equal(flow.cc.rate, LINE / 2 + 10 * STEP);
	measure(&flow, rtt += 100 * VB_US);
	flow.cc.rate = LINE / 2;
	measure(&flow, rtt -= 100 * VB_US);
	assert_int_equal(flow.cc.rate, LINE / 2 + STEP); /* and begins anew after a rise */
}

static void timely__below_t_low_is_as_published_or_as_simulated(void **state)
{
	struct flow flow;
	start(&flow, "timely");
	for (int i = 0; i <= 8; i++)
		measure(&flow, 30 * VB_US);
	assert_int_equal(flow.cc.rate, LINE / 2 + 8 * STEP);
	start(&flow, "timely, hai-below=1");
	for (int i = 0; i <= 8; i++)
		measure(&flow, 30 * VB_US);
	assert_int_equal(flow.cc.rate, LINE / 2 + 20 * STEP); /* five, and three times five */
}

/* ---- Patched ----------------------------------------------------------------------------------------------------- */

/* No change: w = 1/2; 75 us are half of t-low too long: 1 - 0.008 / 4, and half a step. */
static void patched__heeds_how_far_from_t_low(void **state)
{
	struct flow flow;
	start(&flow, "timely, patched=1, beta=0.008");
	measure(&flow, 75 * VB_US);
	measure(&flow, 75 * VB_US);
	assert_rate(&flow, 0.998 * LINE / 2 + STEP / 2);
}

/* 0.875 * 2 us of 20 us: a gradient of 0.0875, w = 0.675; 100 us are all of t-low too long. */
static void patched__weighs_that_by_the_gradient(void **state)
{
	struct flow flow;
	start(&flow, "timely, patched=1, beta=0.008");
	measure(&flow, 98 * VB_US);
	measure(&flow, 100 * VB_US);
	assert_rate(&flow, (1 - 0.008 * 0.675) * LINE / 2 + 0.325 * STEP);
	start(&flow, "timely, patched=1, beta=0.008");
	measure(&flow, 90 * VB_US);
	measure(&flow, 100 * VB_US); /* 0.4375 */
	assert_rate(&flow, 0.992 * LINE / 2);
	start(&flow, "timely, patched=1, beta=0.008");
	measure(&flow, 110 * VB_US);
	measure(&flow, 100 * VB_US); /* -0.4375 */
	assert_rate(&flow, (double)LINE / 2 + STEP);
}

/* Two flows at one port of 10 Gb/s, one with 3/4 of it: what they see after so many measurements, one a hundredth of
 * the least time after the other, which is where the fluid model holds. */
struct share {
	double first, second; /* of the port */
	double rtt;           /* us */
};

static struct share shared(const char *text)
{
	struct flow flows[2];
	double queue = 0;
	for (int i = 0; i < 2; i++)
		start_with(&flows[i], text, LINE / 10);
	flows[0].cc.rate = LINE / 40 * 3;
	flows[1].cc.rate = LINE / 40;
	for (int round = 0; round < 200000; round++) {
		queue += ((double)flows[0].cc.rate + (double)flows[1].cc.rate - (double)LINE / 10) * 5e-6;
		if (queue < 0)
			queue = 0;
		for (int i = 0; i < 2; i++)
			measure(&flows[i], 10 * VB_US + (vb_time)(queue / ((double)LINE / 10) * VB_S));
	}
	return (struct share){ (double)flows[0].cc.rate / (LINE / 10), (double)flows[1].cc.rate / (LINE / 10),
		10 + queue / ((double)LINE / 10) * 1e6 };
}

/* A time of t-low * (1 + N * delta / (beta * C)): 50 us * (1 + 20 Mb/s / (0.008 * 10 Gb/s)) = 62.5 us. */
static void patched__comes_to_equal_shares_at_the_published_queue(void **state)
{
	struct share end = shared("timely, patched=1, beta=0.008");
	if (end.first < 0.495 || end.first > 0.505 || end.second < 0.495 || end.second > 0.505)
		fail_msg("shares of %f and %f", end.first, end.second);
	if (end.rtt < 62.5 * 0.99 || end.rtt > 62.5 * 1.01)
		fail_msg("%f us", end.rtt);
}

static void timely__stands_whatever_it_is_told(void **state)
{
	uint64_t random = 1;
	for (int patched = 0; patched < 2; patched++) {
		struct flow flow;
		start(&flow, patched ? "timely, patched=1" : "timely");
		for (int i = 0; i < 100000; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			measure(&flow, (vb_time)((random >> 24) >> random % 40));
			assert_in_range(flow.cc.rate, STEP, LINE);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timely__starts_at_the_line_rate_and_has_no_window),
		cmocka_unit_test(timely__only_remembers_what_is_measured_first),
		cmocka_unit_test(timely__heeds_nothing_but_measurements),
		cmocka_unit_test(timely__grows_by_a_step_below_t_low),
		cmocka_unit_test(timely__shrinks_above_t_high_by_how_far),
		cmocka_unit_test(timely__shrinks_by_how_fast_the_time_rises),
		cmocka_unit_test(timely__does_not_go_below_the_least_rate),
		cmocka_unit_test(timely__grows_by_five_steps_after_five_falls),
		cmocka_unit_test(timely__below_t_low_is_as_published_or_as_simulated),
		cmocka_unit_test(patched__heeds_how_far_from_t_low),
		cmocka_unit_test(patched__weighs_that_by_the_gradient),
		cmocka_unit_test(patched__comes_to_equal_shares_at_the_published_queue),
		cmocka_unit_test(timely__stands_whatever_it_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
