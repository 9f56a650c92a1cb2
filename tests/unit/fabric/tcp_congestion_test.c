/* Each control by itself: what it makes of acks, losses, timeouts and marks. */
#include <math.h>
#include "fabric/tcp.h"
#include "../unit.h"

static const struct tcp_control_kind *const newreno = &tcp_controls[FABRIC_NEWRENO];
static const struct tcp_control_kind *const cubic = &tcp_controls[FABRIC_CUBIC];
static const struct tcp_control_kind *const dctcp = &tcp_controls[FABRIC_DCTCP];

static struct tcp_control control;

static double window(void)
{
	return (double)control.window / (double)TCP_ONE;
}

static void acknowledge(const struct tcp_control_kind *kind, uint64_t segments, vb_time now)
{
	kind->on_ack(
		&control, &(struct tcp_acked){ .segments = segments, .may_grow = true, .may_cut = true, .now = now });
}

static void near(double is, double should, double error)
{
	if (is < should * (1 - error) || is > should * (1 + error))
		fail_msg("%g is not %g", is, should);
}

static void newreno__doubles_then_adds_one_a_round(void **state)
{
	tcp_control_init(&control, 10 * TCP_ONE, TCP_MOST_WINDOW);
	for (unsigned i = 0; i < 10; i++)
		acknowledge(newreno, 1, 0);
	assert_int_equal(control.window, 20 * TCP_ONE);
	acknowledge(newreno, 2, 0); /* an ack is worth one, however many it is for */
	assert_int_equal(control.window, 21 * TCP_ONE);
	newreno->on_loss(&control, 20);
	assert_int_equal(control.window, 10 * TCP_ONE);
	for (unsigned i = 0; i < 10; i++)
		acknowledge(newreno, 1, 0);
	near(window(), 11, 0.005);
	newreno->on_timeout(&control, 3);
	assert_int_equal(control.window, TCP_ONE);
	assert_int_equal(control.threshold, 2 * TCP_ONE);
}

static void windows__have_bounds(void **state)
{
	for (unsigned i = FABRIC_NEWRENO; i <= FABRIC_DCTCP; i++) {
		tcp_control_init(&control, 10 * TCP_ONE, 12 * TCP_ONE);
		for (unsigned k = 0; k < 100; k++)
			acknowledge(&tcp_controls[i], 1, 0);
		assert_int_equal(control.window, 12 * TCP_ONE);
		for (unsigned k = 0; k < 10; k++)
			tcp_controls[i].on_loss(&control, control.window / TCP_ONE);
		assert_int_equal(control.window, 2 * TCP_ONE);
		tcp_controls[i].on_ack(&control, &(struct tcp_acked){ .segments = 1 });
		assert_int_equal(control.window, 2 * TCP_ONE);
	}
}

/* W(t) = 0.4 (t - K)^3 + W_max with K = (0.3 W_max / 0.4)^(1/3), to which the window comes within a round trip. */
static void cubic__follows_its_curve(void **state)
{
	const double w_max = 1000, k = cbrt(0.3 * w_max / 0.4);
	tcp_control_init(&control, 1000 * TCP_ONE, TCP_MOST_WINDOW);
	cubic->on_loss(&control, 1000);
	near(window(), 700, 0.0001);
	for (vb_time now = 0; now < 20 * VB_S; now += 100 * VB_MS) {
		double seconds = (double)now / (double)VB_S;
		acknowledge(cubic, (uint64_t)window(), now); /* all of a window */
		near(window(), 0.4 * pow(seconds - k, 3) + w_max, 0.002);
	}
}

/* It is where the curve will be in a round trip; and by half as much again at most, however long nothing was heard. */
static void cubic__looks_a_round_trip_ahead(void **state)
{
	tcp_control_init(&control, 1000 * TCP_ONE, TCP_MOST_WINDOW);
	cubic->on_loss(&control, 1000);
	acknowledge(cubic, 1, 0);
	const struct tcp_acked late = { .segments = 700, .may_grow = true, .now = VB_S, .rtt = VB_S };
	cubic->on_ack(&control, &late);
	near(window(), 0.4 * pow(2 - cbrt(750), 3) + 1000, 0.002);
	const double before = window();
	acknowledge(cubic, 1000, 100 * VB_S);
	near(window(), before * 1.5, 0.001);
}

/* Where that has more: 3 (1 - 0.7) / (1 + 0.7) a round until what was before the cut is there again, then 1. */
static void cubic__has_no_less_than_reno(void **state)
{
	tcp_control_init(&control, 20 * TCP_ONE, TCP_MOST_WINDOW);
	cubic->on_loss(&control, 20);
	vb_time now = 0;
	unsigned rounds = 0;
	for (; window() < 20; rounds++, now += 100 * VB_US)
		for (unsigned i = (unsigned)window(); i > 0; i--)
			acknowledge(cubic, 1, now);
	assert_in_range(rounds, 11, 13); /* 6 of 0.53 each */
	double before = window();
	for (unsigned i = (unsigned)window(); i > 0; i--)
		acknowledge(cubic, 1, now);
	near(window() - before, 1, 0.1);
}

static void cubic__converges_fast(void **state)
{
	tcp_control_init(&control, 100 * TCP_ONE, TCP_MOST_WINDOW);
	cubic->on_loss(&control, 100);
	assert_int_equal(control.w_max, 100 * TCP_ONE);
	cubic->on_loss(&control, 70); /* not where it was */
	assert_int_equal(control.w_max, 70 * TCP_ONE * 85 / 100);
	cubic->on_timeout(&control, 40);
	assert_int_equal(control.threshold, 40 * TCP_ONE * 70 / 100);
	control.window = control.threshold;
	acknowledge(cubic, 1, VB_S); /* its plateau is where congestion avoidance begins */
	assert_int_equal(control.w_max, 28 * TCP_ONE);
	assert_int_equal(control.k, 0);
}

static uint64_t una;

/* So many acks, each for a segment of a window of 16. Returns how often the window was cut. */
static unsigned hear(unsigned count, unsigned marked_of_4)
{
	unsigned cuts = 0;
	while (count-- > 0) {
		const uint64_t before = control.window = 16 * TCP_ONE;
		una++;
		dctcp->on_ack(&control, &(struct tcp_acked){ .segments = 1,
						.una = una,
						.next = una + 15,
						.is_echo = una % 4 < marked_of_4,
						.may_cut = true });
		if (control.window < before) {
			assert_int_equal(control.window, before - before / TCP_ONE * control.alpha / 2);
			cuts++;
		}
	}
	return cuts;
}

/* alpha is the share that is marked, by steps of a sixteenth a window of data; in each there is one cut, by half of it.
 */
static void dctcp__cuts_by_half_the_share_that_is_marked(void **state)
{
	tcp_control_init(&control, 16 * TCP_ONE, TCP_MOST_WINDOW);
	una = 0;
	hear(16 * 100, 1);
	near((double)control.alpha / (double)TCP_ONE, 0.25, 0.02);
	assert_int_equal(hear(16 * 10, 1), 10);
	hear(16, 0);
	const double alpha = control.alpha;
	assert_int_equal(hear(16 * 10, 0), 0);
	near(control.alpha, alpha * pow(15. / 16, 10), 0.001);
	control.window = 16 * TCP_ONE;
	dctcp->on_loss(&control, 16);
	assert_int_equal(control.window, 8 * TCP_ONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newreno__doubles_then_adds_one_a_round),
		cmocka_unit_test(windows__have_bounds),
		cmocka_unit_test(cubic__follows_its_curve),
		cmocka_unit_test(cubic__looks_a_round_trip_ahead),
		cmocka_unit_test(cubic__has_no_less_than_reno),
		cmocka_unit_test(cubic__converges_fast),
		cmocka_unit_test(dctcp__cuts_by_half_the_share_that_is_marked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
