/* Numbers by hand: packets of 1,000 bytes; a path of 12 us at 100 Gb/s holds 150,000 bytes, so that nothing is scaled.
 * The target is 9 us, the largest window 225,000 bytes. */
#include "cc/cc.h"
#include "cc/choice.h"
#include "../unit.h"

enum { PACKET = 1000, MOST = 225000, FLIGHT = 100000 };

#define RTT    (12 * VB_US)
#define TARGET (9 * VB_US)

struct flow {
	struct vb_cc cc;
	struct vb_cc_choice choice;
	vb_time now;
};

static void start(struct flow *flow, const char *text)
{
	char why[400];
	*flow = (struct flow){ .now = VB_S };
	if (vb_cc_choose(text, &flow->choice, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(vb_cc_start(&flow->cc,
				 &(struct vb_cc_config){ .algorithm = flow->choice.algorithm,
					 .parameters = flow->choice.values,
					 .line_rate = 12500000000,
					 .max_window = 1000 * PACKET },
				 PACKET, flow->now),
		0);
}

static void stop(struct flow *flow)
{
	vb_cc_stop(&flow->cc);
}

static void ack(struct flow *flow, uint32_t bytes, vb_time delay, bool is_marked)
{
	vb_cc_nscc.on_signal(&flow->cc, &(struct vb_cc_signal){ .event = VB_CC_ACKED,
						.acked = bytes,
						.is_marked = is_marked,
						.flight = FLIGHT,
						.rtt = RTT + delay,
						.now = flow->now });
}

static void lose(struct flow *flow)
{
	vb_cc_nscc.on_signal(
		&flow->cc, &(struct vb_cc_signal){ .event = VB_CC_LOST, .flight = FLIGHT, .now = flow->now });
}

/* Gains are parts of 2^32. */
static void assert_window(const struct flow *flow, uint32_t window)
{
	assert_in_range(flow->cc.window_bytes, window - 1, window + 1);
}

/* Losses in a row, without adapting, until the window is that. */
static void shrink_to(struct flow *flow, uint32_t window)
{
	lose(flow); /* the first span begins */
	while (flow->cc.window_bytes > window)
		lose(flow);
	assert_int_equal(flow->cc.window_bytes, window);
}

#define NO_AVERAGE "nscc, rtt=12us, average=1, " /* the newest delay is the average */

static void nscc__starts_with_one_and_a_half_of_what_the_path_holds(void **state)
{
	struct flow flow;
	start(&flow, "nscc, rtt=12us");
	assert_int_equal(flow.cc.window_bytes, MOST);
	assert_int_equal(flow.cc.rate, 0);
	stop(&flow);
	start(&flow, "nscc, rtt=12us, max-window=100%, line-rate=400G");
	assert_int_equal(flow.cc.window_bytes, 600000);
	stop(&flow);
	start(&flow, "nscc, rtt=100us, line-rate=400G"); /* more than the holder's largest */
	assert_int_equal(flow.cc.window_bytes, 1000 * PACKET);
	stop(&flow);
}

static void nscc__takes_a_packet_off_for_a_loss(void **state)
{
	struct flow flow;
	start(&flow, "nscc, rtt=12us");
	lose(&flow);
	assert_int_equal(flow.cc.window_bytes, MOST - PACKET);
	lose(&flow);
	assert_int_equal(flow.cc.window_bytes, MOST - 2 * PACKET);
	stop(&flow);
}

/* 4 packets of 1,000 bytes, times (9 - 3) / 12, over a window of 100,000 bytes; 8,001 bytes are acknowledged before it
 * is applied. eta comes once a round trip. */
static void nscc__grows_by_what_is_missing_to_the_target(void **state)
{
	struct flow flow;
	start(&flow, "nscc, rtt=12us, eta=0");
	shrink_to(&flow, 100000);
	ack(&flow, 8000, 3 * VB_US, false);
	assert_int_equal(flow.cc.window_bytes, 100000);
	ack(&flow, 92000, 3 * VB_US, false);
	assert_int_equal(flow.cc.window_bytes, 102000);
	stop(&flow);
}

static void nscc__grows_by_a_fair_step_at_the_target_while_nothing_is_marked(void **state)
{
	struct flow flow;
	start(&flow, "nscc, rtt=12us, eta=0");
	shrink_to(&flow, 100000);
	ack(&flow, 100000, TARGET, false);
	assert_int_equal(flow.cc.window_bytes, 105000);
	stop(&flow);
}

static void nscc__grows_by_eta_once_a_round_trip(void **state)
{
	struct flow flow;
	start(&flow, "nscc, rtt=12us, raise=0");
	shrink_to(&flow, 100000);
	ack(&flow, 10000, 3 * VB_US, false);
	assert_int_equal(flow.cc.window_bytes, 100000);
	flow.now += RTT;
	ack(&flow, 10000, 3 * VB_US, false);
	assert_window(&flow, 100150);
	ack(&flow, 10000, 3 * VB_US, false);
	assert_window(&flow, 100150);
	stop(&flow);
}

/* Of a path that holds four times as much each step is four times as long. */
static void nscc__scales_its_steps_with_the_path(void **state)
{
	struct flow flow;
	start(&flow, "nscc, rtt=12us, eta=0, line-rate=400G");
	shrink_to(&flow, 100000);
	ack(&flow, 100000, TARGET, false);
	assert_int_equal(flow.cc.window_bytes, 120000);
	stop(&flow);
}

/* Over a window of 100,000 bytes without a queue, then 0.25 of what is acknowledged. */
static void nscc__grows_fast_after_a_window_without_a_queue(void **state)
{
	struct flow flow;
	start(&flow, "nscc, rtt=12us, raise=0, eta=0");
	shrink_to(&flow, 100000);
	ack(&flow, 100000, VB_NS, false);
	assert_int_equal(flow.cc.window_bytes, 100000);
	ack(&flow, 1000, VB_NS, false);
	assert_int_equal(flow.cc.window_bytes, 100250);
	ack(&flow, 4000, VB_NS, false);
	assert_int_equal(flow.cc.window_bytes, 101250);
	ack(&flow, 4000, VB_US, false); /* a queue */
	ack(&flow, 4000, VB_NS, false);
	assert_int_equal(flow.cc.window_bytes, 101250);
	stop(&flow);
}

static void nscc__never_grows_beyond_the_largest_window(void **state)
{
	struct flow flow;
	start(&flow, "nscc, rtt=12us");
	for (int i = 0; i < 100; i++, flow.now += RTT)
		ack(&flow, FLIGHT, VB_NS, false);
	assert_int_equal(flow.cc.window_bytes, MOST);
	stop(&flow);
}

/* 0.8 * (18 - 9) / 18 = 0.4 of the window, once a round trip. */
static void nscc__cuts_by_how_far_the_average_delay_is_above_the_target(void **state)
{
	struct flow flow;
	start(&flow, NO_AVERAGE "qa-gate=30");
	ack(&flow, PACKET, 18 * VB_US, true);
	assert_window(&flow, MOST * 6 / 10);
	ack(&flow, PACKET, 18 * VB_US, true);
	assert_window(&flow, MOST * 6 / 10);
	stop(&flow);
}

static void nscc__cuts_once_a_round_trip(void **state)
{
	struct flow flow;
	start(&flow, NO_AVERAGE "eta=0");
	ack(&flow, PACKET, 18 * VB_US, true);
	const uint32_t once = flow.cc.window_bytes;
	flow.now += RTT;
	ack(&flow, PACKET, 18 * VB_US, true);
	assert_int_equal(flow.cc.window_bytes, once);
	flow.now += 1;
	ack(&flow, PACKET, 18 * VB_US, true);
	assert_window(&flow, once * 6 / 10);
	stop(&flow);
}

/* 0.8 * (81 - 9) / 81 = 0.71. */
static void nscc__cuts_no_more_than_max_md(void **state)
{
	struct flow flow;
	start(&flow, NO_AVERAGE "qa-delay=1000");
	ack(&flow, PACKET, 81 * VB_US, true);
	assert_int_equal(flow.cc.window_bytes, MOST / 2);
	stop(&flow);
}

/* One long delay in an average of eighty weighs little: 0.0125 * 18 is below the target. */
static void nscc__goes_by_the_average_delay(void **state)
{
	struct flow flow;
	start(&flow, "nscc, rtt=12us");
	ack(&flow, PACKET, 18 * VB_US, true);
	assert_int_equal(flow.cc.window_bytes, MOST);
	stop(&flow);
}

static void nscc__neither_cuts_nor_grows_for_a_mark_below_the_target(void **state)
{
	struct flow flow;
	start(&flow, NO_AVERAGE "eta=0");
	shrink_to(&flow, 100000);
	ack(&flow, FLIGHT, 8 * VB_US, true);
	assert_int_equal(flow.cc.window_bytes, 100000);
	stop(&flow);
}

static void nscc__takes_a_cnp_as_a_mark(void **state)
{
	struct flow flow;
	start(&flow, NO_AVERAGE "eta=0, fair=0");
	shrink_to(&flow, 100000);
	flow.now += VB_MS;
	ack(&flow, PACKET, 8 * VB_US, false);
	vb_cc_nscc.on_signal(&flow.cc, &(struct vb_cc_signal){ .event = VB_CC_CNP, .now = flow.now });
	const uint32_t before = flow.cc.window_bytes;
	ack(&flow, PACKET, 8 * VB_US, true);
	assert_int_equal(flow.cc.window_bytes, before);
	ack(&flow, PACKET, 18 * VB_US, true);
	stop(&flow);
	start(&flow, NO_AVERAGE "eta=0, fair=0");
	ack(&flow, PACKET, 18 * VB_US, true); /* the average is above, and that has cut */
	flow.now += RTT + 1;
	const uint32_t cut = flow.cc.window_bytes;
	vb_cc_nscc.on_signal(&flow.cc, &(struct vb_cc_signal){ .event = VB_CC_CNP, .now = flow.now });
	assert_window(&flow, cut * 6 / 10);
	stop(&flow);
}

/* After a round trip and a target, 21 us: 5,000 bytes have arrived since, less than an eighth of 225,000. */
static void nscc__adapts_after_a_loss_to_what_has_arrived(void **state)
{
	struct flow flow;
	start(&flow, "nscc, rtt=12us");
	ack(&flow, PACKET, 10 * VB_US, false);
	flow.now += 20 * VB_US;
	ack(&flow, 5000, 10 * VB_US, true);
	assert_int_equal(flow.cc.window_bytes, MOST);
	flow.now += VB_US;
	lose(&flow);
	assert_int_equal(flow.cc.window_bytes, 5000);
	stop(&flow);
}

static void nscc__adapts_for_a_very_long_delay(void **state)
{
	struct flow flow;
	start(&flow, "nscc, rtt=12us, fair=0, eta=0");
	ack(&flow, PACKET, 36 * VB_US, false);
	flow.now += 21 * VB_US;
	ack(&flow, 5000, 36 * VB_US, false); /* four targets are not beyond four targets */
	assert_int_equal(flow.cc.window_bytes, MOST);
	flow.now += 21 * VB_US;
	ack(&flow, 5000, 36 * VB_US + VB_NS, false);
	assert_int_equal(flow.cc.window_bytes, 5000);
	stop(&flow);
}

static void nscc__does_not_adapt_where_much_arrives(void **state)
{
	struct flow flow;
	start(&flow, "nscc, rtt=12us, fair=0, eta=0");
	ack(&flow, PACKET, 10 * VB_US, false);
	flow.now += 21 * VB_US - 1;
	ack(&flow, MOST / 8, 10 * VB_US, false);
	flow.now += 1;
	lose(&flow);
	assert_int_equal(flow.cc.window_bytes, MOST - PACKET);
	stop(&flow);
}

/* 100,000 bytes were in flight: losses of them, and marks, say nothing new. */
static void nscc__ignores_after_adapting_what_was_in_flight(void **state)
{
	struct flow flow;
	start(&flow, NO_AVERAGE "fair=0, eta=0");
	ack(&flow, PACKET, 10 * VB_US, false);
	flow.now += 20 * VB_US;
	ack(&flow, 5000, 10 * VB_US, false);
	flow.now += VB_US;
	lose(&flow);
	assert_int_equal(flow.cc.window_bytes, 5000);
	for (int i = 0; i < 99; i++)
		lose(&flow);
	ack(&flow, 500, 30 * VB_US, true);
	assert_int_equal(flow.cc.window_bytes, 5000);
	lose(&flow); /* this one left later */
	assert_int_equal(flow.cc.window_bytes, 4000);
	stop(&flow);
}

/* It counts as a quarter of the round trip, 3 us. */
static void nscc__takes_what_is_late_and_not_marked_for_a_queue_that_drains(void **state)
{
	struct flow flow;
	const struct vb_cc_signal cnp = { .event = VB_CC_CNP };
	start(&flow, NO_AVERAGE "fair=0, eta=0");
	ack(&flow, PACKET, 18 * VB_US, false);
	vb_cc_nscc.on_signal(&flow.cc, &cnp);
	assert_int_equal(flow.cc.window_bytes, MOST);
	stop(&flow);
	start(&flow, NO_AVERAGE "fair=0, eta=0");
	ack(&flow, PACKET, 18 * VB_US, true);
	assert_window(&flow, MOST * 6 / 10);
	stop(&flow);
}

/* A loss counts as a round trip, 12 us: 0.8 * (12 - 9) / 12 = 0.2. */
static void nscc__takes_a_loss_for_a_queue_that_was_full(void **state)
{
	struct flow flow;
	const struct vb_cc_signal cnp = { .event = VB_CC_CNP };
	start(&flow, NO_AVERAGE "fair=0, eta=0");
	ack(&flow, PACKET, 18 * VB_US, false);
	lose(&flow);
	vb_cc_nscc.on_signal(&flow.cc, &cnp);
	assert_window(&flow, (MOST - PACKET) * 8 / 10);
	stop(&flow);
}

static void nscc__never_goes_below_a_packet(void **state)
{
	struct flow flow;
	start(&flow, NO_AVERAGE "qa-gate=0");
	for (int i = 0; i < 1000; i++, flow.now += RTT) {
		ack(&flow, 1, 30 * VB_US, true);
		lose(&flow);
		assert_in_range(flow.cc.window_bytes, PACKET, MOST);
	}
	assert_int_equal(flow.cc.window_bytes, PACKET);
	stop(&flow);
}

/* Of 6 us: the largest window is 1.5 times 75,000. */
static void nscc__learns_that_the_way_is_shorter(void **state)
{
	struct flow flow;
	start(&flow, "nscc, rtt=12us");
	ack(&flow, PACKET, -6 * VB_US, false);
	assert_int_equal(flow.cc.window_bytes, 112500);
	stop(&flow);
}

/* Nothing overflows, whatever is told. */
static void nscc__keeps_its_bounds_at_the_ends_of_all_numbers(void **state)
{
	struct flow flow;
	start(&flow, "nscc, rtt=1s, line-rate=10T, raise=1000, fair=1000, fast=1, eta=1, target=100, max-window=100");
	for (int i = 0; i < 200; i++, flow.now += 300 * VB_MS) {
		ack(&flow, UINT32_MAX / 4, i % 3 ? VB_S : 100 * VB_S, i % 7 == 0);
		assert_in_range(flow.cc.window_bytes, PACKET, 1000 * PACKET);
	}
	stop(&flow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nscc__starts_with_one_and_a_half_of_what_the_path_holds),
		cmocka_unit_test(nscc__takes_a_packet_off_for_a_loss),
		cmocka_unit_test(nscc__grows_by_what_is_missing_to_the_target),
		cmocka_unit_test(nscc__grows_by_a_fair_step_at_the_target_while_nothing_is_marked),
		cmocka_unit_test(nscc__grows_by_eta_once_a_round_trip),
		cmocka_unit_test(nscc__scales_its_steps_with_the_path),
		cmocka_unit_test(nscc__grows_fast_after_a_window_without_a_queue),
		cmocka_unit_test(nscc__never_grows_beyond_the_largest_window),
		cmocka_unit_test(nscc__cuts_by_how_far_the_average_delay_is_above_the_target),
		cmocka_unit_test(nscc__cuts_once_a_round_trip),
		cmocka_unit_test(nscc__cuts_no_more_than_max_md),
		cmocka_unit_test(nscc__goes_by_the_average_delay),
		cmocka_unit_test(nscc__neither_cuts_nor_grows_for_a_mark_below_the_target),
		cmocka_unit_test(nscc__takes_a_cnp_as_a_mark),
		cmocka_unit_test(nscc__adapts_after_a_loss_to_what_has_arrived),
		cmocka_unit_test(nscc__adapts_for_a_very_long_delay),
		cmocka_unit_test(nscc__does_not_adapt_where_much_arrives),
		cmocka_unit_test(nscc__ignores_after_adapting_what_was_in_flight),
		cmocka_unit_test(nscc__takes_what_is_late_and_not_marked_for_a_queue_that_drains),
		cmocka_unit_test(nscc__takes_a_loss_for_a_queue_that_was_full),
		cmocka_unit_test(nscc__never_goes_below_a_packet),
		cmocka_unit_test(nscc__learns_that_the_way_is_shorter),
		cmocka_unit_test(nscc__keeps_its_bounds_at_the_ends_of_all_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
