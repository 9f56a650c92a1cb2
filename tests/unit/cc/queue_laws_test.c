/* What flows that go by the queue come to: alone, with each other, beside TCP, where packets are lost by chance. */
#include "bottleneck.h"
#include "../unit.h"

#define GBIT 1000000000u
#define MBIT 1000000u
#define MB   1000000u

static struct bottleneck net;

static int teardown(void **state)
{
	bottleneck_free(&net);
	return 0;
}

static void add(unsigned count, const char *text, vb_time base, vb_time apart)
{
	for (unsigned i = 0; i < count; i++)
		bottleneck_add(&net, text, base, (vb_time)net.flow_count * apart);
}

static void measure(vb_time from, vb_time until)
{
	bottleneck_run(&net, from);
	bottleneck_clear(&net);
	bottleneck_run(&net, until);
}

static void at_least(const char *what, double is, double should)
{
	if (is < should)
		fail_msg("%s: %g, not %g", what, is, should);
}

/* Flows that begin together, or half a second apart: equal shares, all of the bottleneck, and a queue of 5 ms and four
 * packets of each, and what more comes within a round trip, or until each knows how long the way is. */
static void share_alike(unsigned flows, uint64_t rate, vb_time base, vb_time apart, double queue_ms)
{
	bottleneck_init(&net, rate, 5 * MB);
	add(flows, "queue", base, apart);
	measure(10 * VB_S + flows * apart, 40 * VB_S + flows * apart);
	at_least("Jain", bottleneck_jain(&net), 0.95);
	at_least("share of the bottleneck", bottleneck_total(&net), 0.95);
	at_least("no drops", net.dropped == 0, true);
	if (bottleneck_queue_ms(&net) > queue_ms)
		fail_msg("a queue of %g ms", bottleneck_queue_ms(&net));
	bottleneck_free(&net);
}

static void queue__flows_of_one_length_share_alike(void **state)
{
	static const unsigned counts[] = { 2, 8, 32 };
	for (unsigned i = 0; i < 3; i++) {
		const double packets = counts[i] * 4 * 4096 * 8e3 / GBIT;
		share_alike(counts[i], GBIT, 20 * VB_MS, 0, 8 + packets);
		share_alike(counts[i], GBIT, 20 * VB_MS, VB_S / 2, 8 + packets);
	}
	share_alike(2, GBIT, 100 * VB_US, 0, 6);
	share_alike(8, GBIT, 100 * VB_US, 0, 9);
}

/* Full buffers, of which the shortest is no queue that could be seen: 160 us. */
static void queue__flows_share_short_buffers(void **state)
{
	static const uint64_t buffers[] = { MB / 5, MB, 4 * MB };
	static const unsigned counts[] = { 8, 32, 32 };
	for (unsigned i = 0; i < 3; i++) {
		bottleneck_init(&net, 10ull * GBIT, buffers[i]);
		add(counts[i], "queue", 50 * VB_US, 0);
		measure(VB_S, 3 * VB_S);
		at_least("Jain", bottleneck_jain(&net), 0.95);
		at_least("share", bottleneck_total(&net), 0.98);
		bottleneck_free(&net);
	}
}

static void beside_cubic(uint64_t rate, vb_time base, uint64_t buffer)
{
	bottleneck_init(&net, rate, buffer);
	add(1, "queue", base, 0);
	add(1, NULL, base, 0);
	bottleneck_run(&net, 30 * VB_S);
	at_least("ours", bottleneck_share(&net, net.flows[0]), 0.25 / 2);
	at_least("CUBIC's", bottleneck_share(&net, net.flows[1]), 0.25 / 2);
	at_least("both", bottleneck_total(&net), 0.95);
	bottleneck_free(&net);
}

/* A quarter of an equal share and more, whatever the buffer: a quarter of what the way holds to four times as much. */
static void queue__stands_beside_cubic(void **state)
{
	beside_cubic(GBIT, 100 * VB_US, MB);
	beside_cubic(GBIT, 5 * VB_MS, MB);
	beside_cubic(GBIT, 20 * VB_MS, 5 * MB / 8);
	beside_cubic(GBIT, 20 * VB_MS, 5 * MB / 2);
	beside_cubic(GBIT, 20 * VB_MS, 10 * MB);
	beside_cubic(100 * MBIT, 40 * VB_MS, MB / 2);
	beside_cubic(100 * MBIT, 40 * VB_MS, MB);
}

static double with_losses(const char *text, uint64_t rate, vb_time base, uint32_t of_a_million)
{
	bottleneck_init(&net, rate, 4 * MB);
	net.loss = of_a_million;
	add(1, text, base, 0);
	measure(5 * VB_S, 20 * VB_S);
	const double share = bottleneck_total(&net);
	assert_int_equal(net.dropped, 0);
	bottleneck_free(&net);
	return share;
}

static void queue__keeps_its_rate_where_packets_are_lost_by_chance(void **state)
{
	static const uint32_t losses[] = { 100, 1000, 10000, 50000 };
	for (unsigned i = 0; i < 4; i++) {
		const double got = 1 - losses[i] * 1e-6;
		at_least("20 ms", with_losses("queue", GBIT, 20 * VB_MS, losses[i]), got * 0.95);
		at_least("100 us", with_losses("queue", GBIT, 100 * VB_US, losses[i]), got * 0.99);
	}
	if (with_losses("window", GBIT, 20 * VB_MS, 10000) > 0.1)
		fail_msg("the plain window does so, too");
}

/* From the first packet on, of which slow start takes a second. */
static void queue__fills_a_way_of_100_ms_that_loses_one_in_a_hundred(void **state)
{
	bottleneck_init(&net, GBIT, 25 * MB / 2);
	net.loss = 10000;
	add(1, "queue", 100 * VB_MS, 0);
	bottleneck_run(&net, 30 * VB_S);
	at_least("share", bottleneck_total(&net), 0.8);
}

/* A core that is taken for 1 ms on average: no queue at all, and round trips of up to 5 ms. */
static void queue__is_no_slower_than_the_plain_window_where_processes_wake_up_late(void **state)
{
	double shares[2];
	for (unsigned i = 0; i < 2; i++) {
		bottleneck_init(&net, 10ull * GBIT, 4 * MB);
		net.late = VB_MS;
		add(1, i ? "window" : "queue", 30 * VB_US, 0);
		measure(VB_S, 5 * VB_S);
		shares[i] = bottleneck_total(&net);
		bottleneck_free(&net);
	}
	at_least("share", shares[0], shares[1] * 0.97);
}

static void queue__flows_hold_the_queue_at_the_marks(void **state)
{
	bottleneck_init(&net, GBIT, MB);
	net.mark_from = MB / 20;
	add(2, "queue", 100 * VB_US, 0);
	measure(VB_S, 4 * VB_S);
	at_least("Jain", bottleneck_jain(&net), 0.99);
	at_least("share", bottleneck_total(&net), 0.99);
	at_least("no drops", net.dropped == 0, true);
	if (bottleneck_queue_ms(&net) > 1)
		fail_msg("a queue of %g ms", bottleneck_queue_ms(&net));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(queue__flows_of_one_length_share_alike, teardown),
		cmocka_unit_test_teardown(queue__flows_share_short_buffers, teardown),
		cmocka_unit_test_teardown(queue__stands_beside_cubic, teardown),
		cmocka_unit_test_teardown(queue__keeps_its_rate_where_packets_are_lost_by_chance, teardown),
		cmocka_unit_test_teardown(queue__fills_a_way_of_100_ms_that_loses_one_in_a_hundred, teardown),
		cmocka_unit_test_teardown(
			queue__is_no_slower_than_the_plain_window_where_processes_wake_up_late, teardown),
		cmocka_unit_test_teardown(queue__flows_hold_the_queue_at_the_marks, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
