/* Packets of 4,000 bytes; a queue of 5 ms and a few packets is allowed, on ways that are no longer than that. What many
 * flows come to is in queue_laws_test.c. */
#include "cc/cc.h"
#include "cc/choice.h"
#include "../unit.h"

enum { PACKET = 4000, FIRST = 65536, LARGEST = 64 << 20 };

struct flow {
	struct vb_cc cc;
	struct vb_cc_choice choice;
	vb_time now;
};

static void start(struct flow *flow, const char *text)
{
	char why[400];
	*flow = (struct flow){ .now = VB_S };
	if (vb_cc_choose_live(text, &flow->choice, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(vb_cc_start(&flow->cc,
				 &(struct vb_cc_config){ .algorithm = flow->choice.algorithm,
					 .parameters = flow->choice.values,
					 .max_window = LARGEST },
				 PACKET, flow->now),
		0);
}

static void stop(struct flow *flow)
{
	vb_cc_stop(&flow->cc);
}

static void tell(struct flow *flow, struct vb_cc_signal signal)
{
	signal.now = flow->now;
	vb_cc_queue.on_signal(&flow->cc, &signal);
}

/* A full window is acknowledged, and took so long. */
static void round_of(struct flow *flow, vb_time rtt)
{
	const uint32_t window = flow->cc.window_bytes;
	flow->now += rtt;
	tell(flow, (struct vb_cc_signal){ .event = VB_CC_ACKED, .acked = window, .flight = window, .rtt = rtt });
}

static void rounds(struct flow *flow, unsigned count, vb_time rtt)
{
	for (unsigned i = 0; i < count; i++)
		round_of(flow, rtt);
}

static void lose(struct flow *flow)
{
	tell(flow, (struct vb_cc_signal){ .event = VB_CC_LOST, .flight = flow->cc.window_bytes });
}

/* Of a way of 100 us, of which it has 1 MiB and knows the length; it is in slow start. */
static void start_with_a_mebibyte(struct flow *flow)
{
	start(flow, "queue");
	rounds(flow, 4, 100 * VB_US);
	assert_int_equal(flow->cc.window_bytes, 1 << 20);
}

static void queue__begins_as_the_plain_window(void **state)
{
	struct flow flow;
	start(&flow, "queue");
	assert_int_equal(flow.cc.window_bytes, FIRST);
	assert_int_equal(flow.cc.rate, 0);
	round_of(&flow, 100 * VB_US);
	assert_int_equal(flow.cc.window_bytes, 2 * FIRST);
	round_of(&flow, 0); /* nothing was measured */
	assert_int_equal(flow.cc.window_bytes, 4 * FIRST);
	tell(&flow,
		(struct vb_cc_signal){ .event = VB_CC_ACKED, .acked = PACKET, .flight = FIRST, .rtt = 100 * VB_US });
	assert_int_equal(flow.cc.window_bytes, 4 * FIRST); /* less than half of it was used */
	stop(&flow);
}

static void queue__does_not_grow_at_a_round_trip_that_is_too_long(void **state)
{
	struct flow flow;
	start_with_a_mebibyte(&flow);
	round_of(&flow, 6 * VB_MS);
	assert_int_equal(flow.cc.window_bytes, 1 << 20);
	round_of(&flow, 100 * VB_US); /* it was late, no more */
	assert_int_equal(flow.cc.window_bytes, 2 << 20);
	stop(&flow);
}

static void queue__is_cut_when_several_in_a_row_are_too_long(void **state)
{
	struct flow flow;
	start_with_a_mebibyte(&flow);
	rounds(&flow, 7, 6 * VB_MS);
	assert_int_equal(flow.cc.window_bytes, 1 << 20);
	round_of(&flow, 6 * VB_MS);
	assert_int_equal(flow.cc.window_bytes, PACKET); /* it gives way, and sees that the way is empty */
	rounds(&flow, 2, 100 * VB_US);
	assert_in_range(flow.cc.window_bytes, 1 << 19, (1 << 20) * 2 / 3);
	stop(&flow);
}

static void queue__is_cut_sooner_when_they_are_too_long_by_far(void **state)
{
	struct flow flow;
	start_with_a_mebibyte(&flow);
	round_of(&flow, 50 * VB_MS);
	assert_int_equal(flow.cc.window_bytes, 1 << 20);
	rounds(&flow, 2, 50 * VB_MS);
	assert_int_equal(flow.cc.window_bytes, PACKET);
	stop(&flow);
}

/* A round trip of 1 to 9 ms, up and down, as of processes on a core that is taken. */
static void queue__is_not_cut_by_round_trips_that_vary(void **state)
{
	struct flow flow;
	uint64_t random = 1;
	start_with_a_mebibyte(&flow);
	for (int i = 0; i < 400; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		round_of(&flow, (vb_time)(1 + (random >> 33) % 9) * VB_MS);
	}
	assert_in_range(flow.cc.window_bytes, 16 << 20, LARGEST);
	stop(&flow);
}

/* Five cuts, and the queue is as long as before. */
static void queue__that_no_cut_makes_shorter_is_somebody_elses(void **state)
{
	struct flow flow;
	start_with_a_mebibyte(&flow);
	rounds(&flow, 50, 20 * VB_MS);
	assert_true(flow.cc.window_bytes >= 1 << 20);
	uint32_t before = flow.cc.window_bytes;
	rounds(&flow, 10, 20 * VB_MS);
	assert_in_range(flow.cc.window_bytes, before + 10 * 4096, before + 10 * 4096 + before / 4);
	lose(&flow);
	assert_in_range(flow.cc.window_bytes, before * 7 / 10, before * 8 / 10);
	stop(&flow);
}

static void queue__losses_without_one_do_not_count(void **state)
{
	struct flow flow;
	start_with_a_mebibyte(&flow);
	for (int i = 0; i < 1000; i++) {
		lose(&flow);
		if (i % 2)
			rounds(&flow, 1, 100 * VB_US);
	}
	assert_in_range(flow.cc.window_bytes, 16 << 20, LARGEST);
	stop(&flow);
}

/* At 1.1 ms of which 1 ms are a queue: to 0.35 ms, but not below 0.7 of it. */
static void queue__losses_with_one_count(void **state)
{
	struct flow flow;
	start(&flow, "queue");
	round_of(&flow, 100 * VB_US);
	rounds(&flow, 8, 1100 * VB_US);
	uint32_t before = flow.cc.window_bytes;
	lose(&flow);
	assert_in_range(flow.cc.window_bytes, before / 10 * 7, before / 10 * 7 + 10);
	stop(&flow);
}

/* At 120 ms of which 20 ms are a queue: to 105 ms. */
static void queue__losses_do_not_cut_below_what_the_way_holds(void **state)
{
	struct flow flow;
	start(&flow, "queue");
	round_of(&flow, 100 * VB_MS);
	rounds(&flow, 8, 120 * VB_MS);
	uint32_t before = flow.cc.window_bytes;
	lose(&flow);
	assert_in_range(flow.cc.window_bytes, before / 120 * 105 - 10, before / 120 * 105 + 200);
	stop(&flow);
}

static void queue__losses_count_where_no_round_trip_is_measured(void **state)
{
	struct flow flow;
	start(&flow, "queue");
	lose(&flow); /* nothing is known of the way */
	assert_int_equal(flow.cc.window_bytes, FIRST / 2);
	stop(&flow);
	start_with_a_mebibyte(&flow);
	lose(&flow);
	rounds(&flow, 2, 100 * VB_US);
	lose(&flow);
	lose(&flow);
	rounds(&flow, 200, 100 * VB_US);
	uint32_t before = flow.cc.window_bytes;
	lose(&flow);
	lose(&flow);
	lose(&flow);
	assert_int_equal(flow.cc.window_bytes, before / 2);
	lose(&flow);
	assert_int_equal(flow.cc.window_bytes, before / 4);
	stop(&flow);
}

/* In the time of a round trip only half of what was under way is acknowledged. */
static void queue__much_that_is_lost_counts_without_one(void **state)
{
	struct flow flow;
	start_with_a_mebibyte(&flow);
	lose(&flow);
	rounds(&flow, 200, 100 * VB_US);
	uint32_t before = flow.cc.window_bytes;
	lose(&flow);
	flow.now += 100 * VB_US;
	tell(&flow, (struct vb_cc_signal){
			    .event = VB_CC_ACKED, .acked = before / 2, .flight = before, .rtt = 100 * VB_US });
	assert_in_range(flow.cc.window_bytes, before / 2, before / 2 + 64 * 1024);
	stop(&flow);
}

static void lose_packets(struct flow *flow, uint32_t packets)
{
	tell(flow, (struct vb_cc_signal){ .event = VB_CC_LOST, .lost = packets, .flight = flow->cc.window_bytes });
}

/* That of a receive buffer may have stood there from the first, so that no round trip shows it. Once a round. */
static void queue__a_full_receive_buffer_cuts_whatever_round_trips_show(void **state)
{
	struct flow flow;
	start_with_a_mebibyte(&flow);
	const struct vb_cc_signal overflow = { .event = VB_CC_LOST, .lost = 1, .is_overflow = true };
	const uint32_t before = flow.cc.window_bytes;
	lose_packets(&flow, 1); /* of which it gives way */
	tell(&flow, overflow);
	assert_int_equal(flow.cc.window_bytes, before / 2);
	tell(&flow, overflow);
	assert_int_equal(flow.cc.window_bytes, before / 2);
	round_of(&flow, 100 * VB_US);
	tell(&flow, overflow);
	assert_in_range(flow.cc.window_bytes, before / 4, before / 4 + 4096);
}

/* Where they are counted it is the count that says so, however long nothing was heard. */
static void queue__losses_that_are_counted_count_by_their_share(void **state)
{
	for (int is_much = 0; is_much < 2; is_much++) {
		struct flow flow;
		start_with_a_mebibyte(&flow);
		lose_packets(&flow, 1);
		rounds(&flow, 200, 100 * VB_US);
		const uint32_t before = flow.cc.window_bytes, packets = before / flow.cc.min_window;
		for (uint32_t i = 0; i < packets / (is_much ? 2 : 8); i++)
			lose_packets(&flow, 1);
		assert_int_equal(flow.cc.window_bytes, before);
		flow.now += 2 * VB_MS;
		tell(&flow, (struct vb_cc_signal){
				    .event = VB_CC_ACKED, .acked = before / 2, .flight = before, .rtt = 100 * VB_US });
		if (is_much)
			assert_in_range(flow.cc.window_bytes, before / 5 * 2, before / 3 * 2);
		else
			assert_true(flow.cc.window_bytes >= before);
		stop(&flow);
	}
}

/* A queue that is as long as processes are late when they wake up is none. */
static void queue__losses_with_a_very_short_one_do_not_count(void **state)
{
	struct flow flow;
	start(&flow, "queue");
	round_of(&flow, 50 * VB_US);
	rounds(&flow, 8, 120 * VB_US);
	uint32_t before = flow.cc.window_bytes;
	lose_packets(&flow, 1);
	flow.now += 50 * VB_MS;
	round_of(&flow, 50 * VB_US);
	round_of(&flow, 50 * VB_US);
	assert_true(flow.cc.window_bytes >= before);
	stop(&flow);
}

static void queue__gives_way_to_see_how_long_the_way_is(void **state)
{
	struct flow flow;
	start(&flow, "queue, again=100ms");
	rounds(&flow, 4, 100 * VB_US);
	rounds(&flow, 35, 3 * VB_MS); /* longer, and not too long: for 105 ms */
	assert_int_equal(flow.cc.window_bytes, PACKET);
	rounds(&flow, 5, 3 * VB_MS);
	assert_true(flow.cc.window_bytes > 1 << 20);
	stop(&flow);
}

/* As when it goes back, and what it sends again is not timed. */
static void queue__gives_way_no_longer_when_nothing_is_measured(void **state)
{
	struct flow flow;
	start(&flow, "queue");
	rounds(&flow, 5, 8 * VB_MS);
	uint32_t before = flow.cc.window_bytes;
	lose(&flow);
	assert_int_equal(flow.cc.window_bytes, PACKET);
	for (int i = 0; i < 6; i++) {
		flow.now += 20 * VB_MS;
		tell(&flow, (struct vb_cc_signal){ .event = VB_CC_ACKED, .acked = PACKET, .flight = PACKET });
	}
	assert_in_range(flow.cc.window_bytes, before, before + PACKET);
	stop(&flow);
}

static void queue__is_paced_on_long_ways(void **state)
{
	struct flow flow;
	start(&flow, "queue");
	rounds(&flow, 8, 999 * VB_US);
	assert_int_equal(flow.cc.rate, 0);
	stop(&flow);
	start(&flow, "queue");
	rounds(&flow, 2, 10 * VB_MS);
	assert_int_equal(flow.cc.rate, 0); /* too small a window */
	round_of(&flow, 10 * VB_MS);
	assert_in_range(flow.cc.rate, 2 * 8 * FIRST * 100, 2 * 8 * FIRST * 100 + 1); /* it doubles, in slow start */
	rounds(&flow, 8, 11 * VB_MS);
	assert_in_range(flow.cc.rate, (uint64_t)flow.cc.window_bytes * 90, (uint64_t)flow.cc.window_bytes * 200);
	stop(&flow);
}

/* Of a way of 100 ms, of which it has 4 MiB; it is in slow start. */
static void start_on_a_long_way(struct flow *flow)
{
	start(flow, "queue");
	rounds(flow, 6, 100 * VB_MS);
	assert_int_equal(flow->cc.window_bytes, 4 << 20);
}

static void queue__ends_slow_start_of_a_long_way_by_the_first_queue(void **state)
{
	struct flow flow;
	start_on_a_long_way(&flow);
	round_of(&flow, 110 * VB_MS);
	assert_in_range(flow.cc.window_bytes, 4 << 20, (4 << 20) * 17 / 16);
	rounds(&flow, 2, 100 * VB_MS);
	assert_in_range(flow.cc.window_bytes, 4 << 20, (4 << 20) * 20 / 16);
	stop(&flow);
}

/* By a 16th of it a round. */
static void queue__regains_what_a_long_way_holds(void **state)
{
	struct flow flow;
	start_on_a_long_way(&flow);
	round_of(&flow, 110 * VB_MS);
	rounds(&flow, 16, 100 * VB_MS);
	assert_in_range(flow.cc.window_bytes, 8 << 20, 16 << 20);
	stop(&flow);
}

static void queue__gives_a_long_way_but_keeps_what_sends_again(void **state)
{
	struct flow flow;
	start_on_a_long_way(&flow);
	lose(&flow);
	assert_int_equal(flow.cc.window_bytes, (4 << 20) / 16);
	rounds(&flow, 3, 100 * VB_MS);
	assert_true(flow.cc.window_bytes >= 4 << 20);
	stop(&flow);
}

static void queue__a_full_receive_buffer_cuts_less_on_a_long_way(void **state)
{
	struct flow flow;
	const struct vb_cc_signal overflow = { .event = VB_CC_LOST, .lost = 1, .is_overflow = true };
	start_on_a_long_way(&flow);
	tell(&flow, overflow);
	assert_int_equal(flow.cc.window_bytes, (4 << 20) / 8 * 7);
	round_of(&flow, 100 * VB_MS); /* of what left before */
	const uint32_t before = flow.cc.window_bytes;
	rounds(&flow, 2, 100 * VB_MS);
	tell(&flow, overflow);
	assert_in_range(flow.cc.window_bytes, before / 8 * 7, before);
	stop(&flow);
}

/* It says nothing of a queue, and a long way would take long to be learned. */
static void queue__a_loss_before_the_first_round_trip_ends_no_slow_start(void **state)
{
	struct flow flow;
	start(&flow, "queue");
	lose(&flow);
	assert_int_equal(flow.cc.window_bytes, FIRST / 2);
	rounds(&flow, 2, 100 * VB_MS);
	assert_int_equal(flow.cc.window_bytes, 2 * FIRST);
	stop(&flow);
}

/* The first halves, as DCTCP's; the share then falls. */
static void queue__marks_cut_by_half_of_their_share(void **state)
{
	struct flow flow;
	start(&flow, "queue");
	for (int i = 0; i < 2; i++) {
		tell(&flow, (struct vb_cc_signal){
				    .event = VB_CC_ACKED, .acked = PACKET, .flight = FIRST, .is_marked = true });
		assert_int_equal(flow.cc.window_bytes, FIRST / 2); /* the second is of the same window */
	}
	rounds(&flow, 100, 100 * VB_US);
	uint32_t before = flow.cc.window_bytes;
	tell(&flow,
		(struct vb_cc_signal){ .event = VB_CC_ACKED, .acked = PACKET, .flight = before, .is_marked = true });
	assert_in_range(flow.cc.window_bytes, before - before / 64, before);
	stop(&flow);
}

static void queue__cnps_cut_as_if_all_were_marked(void **state)
{
	struct flow flow;
	start_with_a_mebibyte(&flow);
	rounds(&flow, 40, 100 * VB_US);
	for (int i = 0; i < 60; i++) {
		tell(&flow, (struct vb_cc_signal){ .event = VB_CC_CNP });
		round_of(&flow, 100 * VB_US);
	}
	assert_int_equal(flow.cc.window_bytes, 2 * PACKET + 4096);
	stop(&flow);
}

static void queue__stands_whatever_it_is_told(void **state)
{
	struct flow flow;
	uint64_t random = 1;
	start(&flow, "queue, longest=100us, again=10ms");
	for (int i = 0; i < 300000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		flow.now += (vb_time)(random >> 30);
		tell(&flow, (struct vb_cc_signal){
				    .event = (enum vb_cc_event)(random % 16 < 3 ? random % 16 : 0),
				    .acked = (uint32_t)((random >> 32) >> random % 32),
				    .flight = (uint32_t)((random >> 20) >> random % 30),
				    .rtt = (vb_time)((random >> 2) >> random % 62),
				    .is_marked = random % 5 == 0,
			    });
		assert_in_range(flow.cc.window_bytes, PACKET, LARGEST);
	}
	stop(&flow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue__begins_as_the_plain_window),
		cmocka_unit_test(queue__does_not_grow_at_a_round_trip_that_is_too_long),
		cmocka_unit_test(queue__is_cut_when_several_in_a_row_are_too_long),
		cmocka_unit_test(queue__is_cut_sooner_when_they_are_too_long_by_far),
		cmocka_unit_test(queue__is_not_cut_by_round_trips_that_vary),
		cmocka_unit_test(queue__that_no_cut_makes_shorter_is_somebody_elses),
		cmocka_unit_test(queue__losses_without_one_do_not_count),
		cmocka_unit_test(queue__losses_with_one_count),
		cmocka_unit_test(queue__losses_do_not_cut_below_what_the_way_holds),
		cmocka_unit_test(queue__losses_count_where_no_round_trip_is_measured),
		cmocka_unit_test(queue__much_that_is_lost_counts_without_one),
		cmocka_unit_test(queue__a_full_receive_buffer_cuts_whatever_round_trips_show),
		cmocka_unit_test(queue__losses_that_are_counted_count_by_their_share),
		cmocka_unit_test(queue__losses_with_a_very_short_one_do_not_count),
		cmocka_unit_test(queue__gives_way_to_see_how_long_the_way_is),
		cmocka_unit_test(queue__gives_way_no_longer_when_nothing_is_measured),
		cmocka_unit_test(queue__is_paced_on_long_ways),
		cmocka_unit_test(queue__ends_slow_start_of_a_long_way_by_the_first_queue),
		cmocka_unit_test(queue__regains_what_a_long_way_holds),
		cmocka_unit_test(queue__gives_a_long_way_but_keeps_what_sends_again),
		cmocka_unit_test(queue__a_full_receive_buffer_cuts_less_on_a_long_way),
		cmocka_unit_test(queue__a_loss_before_the_first_round_trip_ends_no_slow_start),
		cmocka_unit_test(queue__marks_cut_by_half_of_their_share),
		cmocka_unit_test(queue__cnps_cut_as_if_all_were_marked),
		cmocka_unit_test(queue__stands_whatever_it_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
