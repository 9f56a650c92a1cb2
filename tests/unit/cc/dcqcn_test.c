/* DCQCN by its published equations (Zhu et al., SIGCOMM 2015, algorithm 1 and the text beside it), and what NICs do
 * otherwise. */
#include "cc/cc.h"
#include "cc/choice.h"
#include "../unit.h"

#define LINE  5000000000ull /* bytes a second: 40 Gb/s */
#define PAPER "dcqcn"
/* Alpha that moves fast, so that its steps are seen. */
#define HALVES "dcqcn, g=1/2, alpha-start=1/2"
#define TIMER  (55 * VB_US)
#define PACKET 1000

static struct vb_cc cc;
static struct vb_cc_choice choice;
static vb_time now;

static void start_on(const char *text, uint64_t line_rate, uint32_t max_window)
{
	char why[200];
	if (vb_cc_choose(text, &choice, why, sizeof(why)))
		fail_msg("%s", why);
	struct vb_cc_config config = { .algorithm = choice.algorithm,
		.parameters = choice.values,
		.max_window = max_window,
		.line_rate = line_rate };
	now = 7 * VB_S;
	assert_int_equal(vb_cc_start(&cc, &config, PACKET, now), 0);
}

static void start(const char *text)
{
	start_on(text, LINE, 1 << 20);
}

static void tell(enum vb_cc_event event, bool is_marked)
{
	cc.algorithm->on_signal(&cc, &(struct vb_cc_signal){ .event = event, .is_marked = is_marked, .now = now });
}

static void cnp(void)
{
	tell(VB_CC_CNP, false);
}

/* As a holder does who comes in time. */
static void wait_until(vb_time until)
{
	while (cc.timer.is_set && cc.timer.at <= until) {
		now = cc.timer.at;
		cc.timer.is_set = false;
		cc.algorithm->on_timer(&cc, now);
		assert_false(vb_deadline_due(cc.timer, now));
	}
	now = until;
}

static void wait(vb_time span)
{
	wait_until(now + span);
}

static void send(uint32_t bytes)
{
	for (; bytes >= PACKET; bytes -= PACKET)
		cc.algorithm->on_send(&cc, PACKET, now);
}

static void expect_rate(double rate)
{
	double is = cc.rate ? (double)cc.rate : LINE;
	if (is < rate * 0.999999 - 2 || is > rate * 1.000001 + 2)
		fail_msg("the rate is %.0f, not %.0f", is, rate);
}

/* ---- The paper's ------------------------------------------------------------------------------------------------- */

static void flow__starts_at_the_rate_of_its_link_which_paces_it(void **state)
{
	start(PAPER);
	assert_int_equal(cc.rate, 0);
	assert_int_equal(cc.window_bytes, 1 << 20);
	assert_false(cc.timer.is_set);
	assert_null(cc.large_state);
	send(100000000); /* nothing to come back to */
	assert_int_equal(cc.rate, 0);
	assert_false(cc.timer.is_set);
}

static void flow__of_an_unknown_link_starts_at_10_gbps_or_at_what_is_said(void **state)
{
	start_on(PAPER, 0, 1 << 20);
	assert_int_equal(cc.rate, 1250000000);
	start_on("dcqcn, line-rate=2G", 0, 1 << 20);
	assert_int_equal(cc.rate, 250000000);
	start("dcqcn, line-rate=2G");
	assert_int_equal(cc.rate, 250000000);
}

/* R_C = R_C (1 - alpha / 2); alpha = (1 - g) alpha + g. */
static void cnp__cuts_by_half_of_alpha_which_then_rises(void **state)
{
	start(PAPER);
	cnp();
	expect_rate(LINE / 2.0);
	cnp();
	expect_rate(LINE / 4.0);
	start(HALVES);
	cnp();
	expect_rate(LINE * 3 / 4.0);
	cnp(); /* alpha: 3/4 */
	expect_rate(LINE * 3 / 4.0 * 5 / 8);
	cnp(); /* 7/8 */
	expect_rate(LINE * 3 / 4.0 * 5 / 8 * 9 / 16);
}

/* alpha = (1 - g) alpha, each 55 us without a CNP: counted from the last. */
static void alpha__falls_while_no_cnp_comes(void **state)
{
	start("dcqcn, g=1/2, increase-time=1s");
	cnp();
	wait(3 * TIMER); /* 1/8 */
	cnp();
	expect_rate(LINE / 2.0 * 15 / 16);
	wait(TIMER - 1); /* 1/16 + 1/2, and not yet less */
	cnp();
	expect_rate(LINE / 2.0 * 15 / 16 * 23 / 32);
	wait(1000 * TIMER);
	cnp();
	expect_rate(LINE / 2.0 * 15 / 16 * 23 / 32);
}

/* Five times half of the way back; then the target rises by R_AI, too. */
static void timer__recovers_fast_then_adds(void **state)
{
	start(PAPER);
	cnp();
	cnp();
	double rate = LINE / 4.0, target = LINE / 2.0;
	wait(TIMER - 1);
	expect_rate(rate);
	wait(1);
	for (int i = 0; i < 5; i++, wait(TIMER))
		expect_rate(rate = (rate + target) / 2);
	for (int i = 0; i < 7; i++, wait(TIMER)) {
		target += 5000000; /* 40 Mb/s; bytes have not come so far as to make more of it */
		expect_rate(rate = (rate + target) / 2);
	}
}

static void bytes__recover_as_the_timer_does(void **state)
{
	start("dcqcn, increase-time=1s");
	cnp();
	cnp();
	double rate = LINE / 4.0, target = LINE / 2.0;
	send(9999000);
	expect_rate(rate);
	send(1000);
	for (int i = 0; i < 5; i++, send(10000000))
		expect_rate(rate = (rate + target) / 2);
	for (int i = 0; i < 3; i++, send(10000000))
		expect_rate(rate = (rate + (target += 5000000)) / 2);
	start("dcqcn, increase-time=1s, increase-bytes=0");
	cnp();
	send(100000000);
	expect_rate(LINE / 2.0);
}

/* Where both have gone on for longer than that, by as much, i R_HAI is added: each round more. */
static void hyper_increase__comes_when_both_have_gone_on(void **state)
{
	for (int grows = 0; grows <= 1; grows++) {
		start(grows ? "dcqcn, fast-rounds=1, rai=8M, rhai=80M"
			    : "dcqcn, fast-rounds=1, rai=8M, rhai=80M, hyper-grows=0");
		cnp();
		cnp();
		double rate = LINE / 4.0, target = LINE / 2.0;
		wait(TIMER); /* 1 by time: half of the way */
		expect_rate(rate = (rate + target) / 2);
		wait(TIMER); /* 2 by time: that and R_AI, which is 1 MB/s */
		expect_rate(rate = (rate + (target += 1e6)) / 2);
		send(10000000);
		expect_rate(rate = (rate + (target += 1e6)) / 2);
		send(10000000);
		expect_rate(rate = (rate + (target += 1e6)) / 2);
		wait(TIMER); /* 3 by time, before which 2 by time, 2 by bytes */
		expect_rate(rate = (rate + (target += 1e7)) / 2);
		send(10000000);
		expect_rate(rate = (rate + (target += 1e7)) / 2);
		wait(TIMER); /* 3 and 3 */
		expect_rate(rate = (rate + (target += grows ? 2e7 : 1e7)) / 2);
	}
}

/* Timer, bytes and rounds of both. */
static void cut__begins_all_anew(void **state)
{
	start("dcqcn, fast-rounds=1");
	cnp();
	cnp();
	wait(3 * TIMER);
	send(9000000);
	wait(TIMER / 2);
	double target = (double)cc.rate;
	cnp();
	double rate = (double)cc.rate;
	wait(TIMER - 1);
	send(9999000);
	expect_rate(rate);
	wait(1);
	expect_rate(rate = (rate + target) / 2);
	send(1000);
	expect_rate((rate + target + 5000000) / 2);
}

static void rate__comes_back_to_the_lines_and_no_timer_is_left(void **state)
{
	start("dcqcn, rai=1G");
	cnp();
	wait(100 * TIMER);
	assert_int_equal(cc.rate, 0);
	assert_false(cc.timer.is_set);
}

static void rate__does_not_fall_below_the_least(void **state)
{
	start(PAPER);
	for (int i = 0; i < 100; i++)
		cnp();
	expect_rate(LINE / 1000.0);
	start("dcqcn, min-rate=1G");
	for (int i = 0; i < 100; i++)
		cnp();
	expect_rate(125000000);
}

static void increases__are_of_the_lines_rate_or_as_they_are_said(void **state)
{
	start_on("dcqcn, fast-rounds=0, increase-bytes=0", LINE / 4, 1 << 20);
	cnp();
	wait(TIMER);
	expect_rate(LINE / 8.0 + (LINE / 8.0 + 0) / 2);
	start_on("dcqcn, fast-rounds=0, increase-bytes=0", LINE, 1 << 20);
	cnp();
	cnp();
	wait(TIMER);
	expect_rate((LINE / 4.0 + LINE / 2.0 + LINE / 1000.0) / 2);
	start_on("dcqcn, fast-rounds=0, increase-bytes=0, rai=80M", LINE, 1 << 20);
	cnp();
	cnp();
	wait(TIMER);
	expect_rate((LINE / 4.0 + LINE / 2.0 + 1e7) / 2);
}

/* ---- What tells of congestion ------------------------------------------------------------------------------------ */

static void marks__that_acknowledgements_tell_of_count_as_cnps(void **state)
{
	start(PAPER);
	tell(VB_CC_ACKED, false);
	assert_int_equal(cc.rate, 0);
	tell(VB_CC_ACKED, true);
	expect_rate(LINE / 2.0);
}

static void loss__counts_as_a_cnp_where_it_shall(void **state)
{
	start(PAPER);
	tell(VB_CC_LOST, false);
	expect_rate(LINE / 2.0);
	start("dcqcn, cut-on-loss=0");
	tell(VB_CC_LOST, false);
	assert_int_equal(cc.rate, 0);
}

/* ---- What NICs do ------------------------------------------------------------------------------------------------ */

#define NIC                                                                                                            \
	"dcqcn, decrease-time=4us, alpha-time=1us, increase-time=300us, increase-bytes=0, fast-rounds=1, "             \
	"hyper-grows=0, rai=8M, rhai=80M"

/* As many CNPs as come, one cut, at the next tick of the clock that the first of all has started. */
static void decrease_clock__cuts_once_a_tick(void **state)
{
	start(NIC ", g=1/4294967295");
	vb_time begin = now;
	cnp();
	wait(VB_US);
	cnp();
	cnp();
	wait_until(begin + 4 * VB_US - 1);
	assert_int_equal(cc.rate, 0);
	wait(1);
	expect_rate(LINE / 2.0);
	wait_until(begin + 10 * VB_US); /* the tick at 8 us: nothing came */
	expect_rate(LINE / 2.0);
	cnp();
	wait_until(begin + 12 * VB_US - 1);
	expect_rate(LINE / 2.0);
	wait(1);
	expect_rate(LINE / 4.0);
}

/* Alpha's clock says only whether there was one, beginning with the second. */
static void alpha_clock__rises_once_a_tick_and_falls_otherwise(void **state)
{
	start(NIC ", g=1/2");
	cnp();
	wait(4 * VB_US); /* 1/16 */
	expect_rate(LINE * 31 / 32.0);
	double rate = LINE * 31 / 32.0;
	wait(VB_US / 2);
	cnp();
	cnp();
	wait(VB_US); /* 1/32 + 1/2 */
	cnp();       /* 17/64 + 1/2 at the next, then two without: at 8 us 49/256 */
	wait(5 * VB_US / 2);
	expect_rate(rate - rate * 49 / 256 / 2);
}

/* Only once the timer has come up since the last cut does a cut make the rate the target. */
static void clamp_target__is_off_where_it_shall(void **state)
{
	for (int clamps = 0; clamps <= 1; clamps++) {
		start(clamps ? NIC ", clamp-target=1, g=1/4294967295" : NIC ", clamp-target=0, g=1/4294967295");
		cnp();
		wait(4 * VB_US);
		cnp();
		wait(4 * VB_US); /* a quarter */
		wait(300 * VB_US);
		double rate = (LINE / 4.0 + (clamps ? LINE / 2.0 : LINE)) / 2;
		expect_rate(rate);
		cnp();
		wait(4 * VB_US);
		expect_rate(rate / 2);
		wait(300 * VB_US);
		expect_rate((rate / 2 + rate) / 2);
	}
}

/* An increase and a cut at one time: the increase is first, and neither is lost. */
static void ticks__at_one_time_are_both_heeded(void **state)
{
	start(NIC ", clamp-target=1, g=1/4294967295");
	cnp();
	wait(4 * VB_US);
	wait(298 * VB_US);
	cnp();
	wait(2 * VB_US);
	double rate = (LINE / 2.0 + LINE) / 2;
	expect_rate(rate / 2);
	wait(300 * VB_US);
	expect_rate((rate / 2 + rate) / 2);
}

/* A pace, then R_AI, then R_HAI, always as much. */
static void nic__adds_after_one_round(void **state)
{
	start(NIC ", clamp-target=1, g=1/4294967295");
	cnp();
	wait(4 * VB_US);
	cnp();
	wait(4 * VB_US);
	double rate = LINE / 4.0, target = LINE / 2.0;
	static const double adds[] = { 0, 1e6, 1e7, 1e7, 1e7 };
	for (size_t i = 0; i < COUNT_OF(adds); i++) {
		wait(300 * VB_US);
		expect_rate(rate = (rate + (target += adds[i])) / 2);
	}
}

/* It rounds up to packets: one may leave while less than the window is under way. */
static void window__is_in_proportion_to_the_rate_where_it_shall(void **state)
{
	start_on("dcqcn, variable-window=1", LINE, 153000);
	assert_int_equal(cc.window_bytes, 153000);
	cnp();
	assert_int_equal(cc.window_bytes, 76500 + PACKET - 1);
	for (int i = 0; i < 100; i++)
		cnp();
	assert_int_equal(cc.window_bytes / PACKET, 1);
	start_on(PAPER, LINE, 153000);
	cnp();
	assert_int_equal(cc.window_bytes, 153000);
}

/* ---- Whoever holds it -------------------------------------------------------------------------------------------- */

static void holder__who_comes_late_makes_up_for_nothing(void **state)
{
	start(PAPER);
	cnp();
	now += 1000 * TIMER;
	cc.timer.is_set = false;
	cc.algorithm->on_timer(&cc, now);
	expect_rate(LINE * 3 / 4.0);
	assert_true(cc.timer.is_set);
	assert_int_equal(cc.timer.at, now + TIMER);
	start(NIC);
	cnp();
	cnp();
	now += VB_MS + 3 * VB_US;
	cc.timer.is_set = false;
	cc.algorithm->on_timer(&cc, now);
	assert_true(cc.rate > 0);
	assert_int_equal(cc.timer.at, now + 300 * VB_US);
}

/* Longer than rounds are counted. */
static void timer__goes_on_for_ever(void **state)
{
	start("dcqcn, rai=8k, increase-bytes=0, rhai=8k, hyper-grows=0");
	for (int i = 0; i < 20; i++)
		cnp();
	wait(10 * TIMER);
	uint64_t before = cc.rate;
	wait(1000 * TIMER);
	assert_in_range(cc.rate, before + 990 * 1000, before + 1010 * 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flow__starts_at_the_rate_of_its_link_which_paces_it),
		cmocka_unit_test(flow__of_an_unknown_link_starts_at_10_gbps_or_at_what_is_said),
		cmocka_unit_test(cnp__cuts_by_half_of_alpha_which_then_rises),
		cmocka_unit_test(alpha__falls_while_no_cnp_comes),
		cmocka_unit_test(timer__recovers_fast_then_adds),
		cmocka_unit_test(bytes__recover_as_the_timer_does),
		cmocka_unit_test(hyper_increase__comes_when_both_have_gone_on),
		cmocka_unit_test(cut__begins_all_anew),
		cmocka_unit_test(rate__comes_back_to_the_lines_and_no_timer_is_left),
		cmocka_unit_test(rate__does_not_fall_below_the_least),
		cmocka_unit_test(increases__are_of_the_lines_rate_or_as_they_are_said),
		cmocka_unit_test(marks__that_acknowledgements_tell_of_count_as_cnps),
		cmocka_unit_test(loss__counts_as_a_cnp_where_it_shall),
		cmocka_unit_test(decrease_clock__cuts_once_a_tick),
		cmocka_unit_test(alpha_clock__rises_once_a_tick_and_falls_otherwise),
		cmocka_unit_test(clamp_target__is_off_where_it_shall),
		cmocka_unit_test(ticks__at_one_time_are_both_heeded),
		cmocka_unit_test(nic__adds_after_one_round),
		cmocka_unit_test(window__is_in_proportion_to_the_rate_where_it_shall),
		cmocka_unit_test(holder__who_comes_late_makes_up_for_nothing),
		cmocka_unit_test(timer__goes_on_for_ever),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
