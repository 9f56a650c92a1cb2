/* What leaves, what is sent again, and when the timer comes up. */
#include <stdlib.h>
#include <string.h>
#include "base/random.h"
#include "fabric/tcp.h"
#include "../unit.h"

static const struct tcp_control_kind *const newreno = &tcp_controls[FABRIC_NEWRENO];
static struct tcp_sender sender;

enum { RTT = 100, RTO_MIN = 1000 };

static int setup(void **state)
{
	sender = (struct tcp_sender){ 0 };
	tcp_sender_open(&sender, 1000, (struct tcp_times){ .rtt = RTT, .rto_min = RTO_MIN });
	tcp_control_init(&sender.control, 10 * TCP_ONE, TCP_MOST_WINDOW);
	return 0;
}

static int teardown(void **state)
{
	tcp_sender_close(&sender);
	return 0;
}

static void sends(uint64_t segment, bool is_resent, vb_time now)
{
	uint64_t sent;
	bool is_again;
	assert_true(tcp_sender_may_send(&sender));
	assert_int_equal(tcp_sender_send(&sender, now, &sent, &is_again), 0);
	assert_int_equal(sent, segment);
	assert_int_equal(is_again, is_resent);
}

/* All that may leave is new: from `first` to before `end`. */
static void sends_new(uint64_t first, uint64_t end, vb_time now)
{
	for (uint64_t i = first; i < end; i++)
		sends(i, false, now);
	assert_false(tcp_sender_may_send(&sender));
}

static void hears(uint64_t there, uint64_t first, uint64_t end, vb_time now)
{
	struct tcp_ack ack = { .there = there, .block_count = end > first, .blocks = { { first, end } } };
	tcp_sender_take_ack(&sender, newreno, &ack, now);
}

static void window__bounds_what_is_under_way(void **state)
{
	sends_new(0, 10, 0);
	hears(2, 0, 0, RTT);
	sends_new(10, 13, RTT);
	for (uint64_t there = 3; there < 1000; there++) {
		hears(there, 0, 0, RTT);
		while (tcp_sender_may_send(&sender))
			sends(sender.next, false, RTT);
	}
	assert_int_equal(sender.next, 1000);
	assert_false(tcp_sender_is_done(&sender));
	hears(1000, 0, 0, RTT);
	assert_true(tcp_sender_is_done(&sender));
	assert_false(sender.timer.is_set);
}

/* One that does not use its window has no need of a larger one. */
static void window__grows_where_it_was_used(void **state)
{
	for (uint64_t i = 0; i < 100; i++) {
		sends(i, false, 0);
		hears(i + 1, 0, 0, RTT);
	}
	assert_int_equal(sender.control.window, 10 * TCP_ONE);
}

/* Two more may be out of order; for them something new leaves (limited transmit). The third says what is lost. */
static void three_sacked__are_a_loss(void **state)
{
	sends_new(0, 10, 0);
	hears(1, 0, 0, RTT);
	sends_new(10, 12, RTT);
	hears(1, 2, 3, RTT);
	sends_new(12, 13, RTT);
	hears(1, 2, 4, RTT);
	sends_new(13, 14, RTT);
	assert_int_equal(sender.state, TCP_OPEN);
	hears(1, 2, 5, RTT);
	assert_int_equal(sender.state, TCP_RECOVERY);
	assert_int_equal(sender.control.window, 11 * TCP_ONE / 2);
	sends(1, true, RTT); /* at once, though more is under way than the window lets */
	assert_false(tcp_sender_may_send(&sender));
	for (uint64_t end = 6; end < 12; end++)
		hears(1, 2, end, RTT);
	sends_new(14, 15, RTT);
	hears(14, 0, 0, 2 * RTT);
	assert_int_equal(sender.state, TCP_OPEN);
	assert_int_equal(sender.control.window, 11 * TCP_ONE / 2); /* recovering adds nothing */
	sends_new(15, 19, 2 * RTT);
}

/* All that three were sacked behind, each once; a window is halved once. */
static void several_losses__are_repaired_in_a_round_trip(void **state)
{
	sends_new(0, 10, 0);
	hears(0, 3, 4, RTT);
	hears(0, 3, 5, RTT);
	sends_new(10, 12, RTT);
	hears(0, 3, 6, RTT);
	assert_int_equal(sender.lost, 3);
	sends(0, true, RTT);
	assert_false(tcp_sender_may_send(&sender));
	for (uint64_t end = 7; end < 11; end++)
		hears(0, 3, end, RTT);
	sends(1, true, RTT);
	sends(2, true, RTT);
	assert_false(tcp_sender_may_send(&sender));
	hears(10, 0, 0, 2 * RTT);
	assert_int_equal(sender.state, TCP_RECOVERY); /* 10 and 11 were sent before */
	assert_int_equal(sender.control.window, 5 * TCP_ONE);
}

/* RFC 6582: what is first after a repair was sent before the recovery, and is lost, too. */
static void partial_ack__says_what_else_is_lost(void **state)
{
	sends_new(0, 10, 0);
	hears(0, 1, 9, RTT); /* 0 and 9 are lost */
	sends(0, true, RTT);
	while (tcp_sender_may_send(&sender))
		sends(sender.next, false, RTT);
	hears(9, 0, 0, 2 * RTT);
	assert_int_equal(sender.state, TCP_RECOVERY);
	sends(9, true, 2 * RTT);
}

/* RFC 6298: SRTT + 4 RTTVAR, the minimum at least, twice as much each time, and fifteen times. */
static void timer__backs_off_and_gives_up(void **state)
{
	sends_new(0, 10, 0);
	assert_true(sender.timer.is_set);
	assert_int_equal(sender.timer.at, RTO_MIN);
	vb_time now = 0;
	for (unsigned i = 0; i < 15; i++) {
		assert_int_equal(sender.timer.at - now, (vb_time)RTO_MIN << i);
		now = sender.timer.at;
		assert_int_equal(tcp_sender_time_out(&sender, newreno, now), TCP_TIMED_OUT);
		assert_int_equal(sender.control.window, TCP_ONE);
		assert_int_equal(sender.control.threshold, 5 * TCP_ONE);
		sends(0, true, now);
		assert_false(tcp_sender_may_send(&sender));
	}
	assert_int_equal(tcp_sender_time_out(&sender, newreno, sender.timer.at), TCP_GAVE_UP);
}

static void after_a_timeout__all_that_is_not_sacked_goes_again(void **state)
{
	sends_new(0, 10, 0);
	hears(0, 5, 6, RTT);
	sends_new(10, 11, RTT);
	assert_int_equal(tcp_sender_time_out(&sender, newreno, RTO_MIN), TCP_TIMED_OUT);
	sends(0, true, RTO_MIN);
	hears(1, 5, 6, RTO_MIN + RTT);
	assert_int_equal(sender.timer.at, RTO_MIN + RTT + RTO_MIN); /* it does not back off any more */
	sends(1, true, RTO_MIN + RTT);
	sends(2, true, RTO_MIN + RTT);
	assert_false(tcp_sender_may_send(&sender));
	hears(3, 5, 6, RTO_MIN + 2 * RTT);
	sends(3, true, RTO_MIN + 2 * RTT);
	sends(4, true, RTO_MIN + 2 * RTT);
	sends(6, true, RTO_MIN + 2 * RTT);
	hears(11, 0, 0, RTO_MIN + 3 * RTT);
	assert_int_equal(sender.state, TCP_OPEN);
	assert_int_equal(sender.lost + sender.sacked + sender.resent, 0);
}

static void round_trips__are_measured_of_what_was_sent_once(void **state)
{
	sender.times.rto_min = 0;
	sends_new(0, 10, 0);
	hears(1, 0, 0, 500);
	assert_int_equal(sender.srtt, 100 + 400 / 8);
	assert_int_equal(sender.rttvar, 50 + (400 - 50) / 4);
	assert_int_equal(sender.timer.at, 500 + sender.srtt + 4 * sender.rttvar);
	sends_new(10, 12, 500);
	assert_int_equal(tcp_sender_time_out(&sender, newreno, 5000), TCP_TIMED_OUT);
	sends(1, true, 5000);
	hears(12, 0, 0, 5010);
	assert_int_equal(sender.srtt, 150);
}

/* Nor of what was, because it was sacked around. */
static void recovery__is_not_measured(void **state)
{
	sends_new(0, 10, 0);
	hears(0, 1, 10, RTT);
	sends(0, true, RTT);
	hears(10, 0, 0, 50 * RTT);
	assert_int_equal(sender.srtt, RTT);
}

/* Three that left after it are there: the timer is not waited for. */
static void retransmission_that_is_lost__goes_once_more(void **state)
{
	sends_new(0, 10, 0);
	hears(0, 1, 9, RTT);
	sends(0, true, RTT);
	sends_new(10, 13, RTT);
	hears(0, 1, 10, RTT);
	hears(0, 1, 12, 2 * RTT);
	assert_int_equal(sender.resent, 1);
	while (tcp_sender_may_send(&sender))
		sends(sender.next, false, 2 * RTT);
	hears(0, 1, 13, 2 * RTT);
	assert_int_equal(sender.resent, 0);
	sends(0, true, 2 * RTT);
	assert_int_equal(sender.control.window, 5 * TCP_ONE); /* it is one recovery */
}

/* Two round trips of silence: what is new, though the window is full, or the last again. Where that is sacked, what is
 * before it is lost. */
static void tail_loss__is_found_by_a_probe(void **state)
{
	sender.times.probe = 10;
	sender.count = 12;
	sends_new(0, 10, 0);
	assert_int_equal(sender.timer.at, 2 * RTT);
	assert_int_equal(tcp_sender_time_out(&sender, newreno, 2 * RTT), TCP_PROBES);
	sends(10, false, 2 * RTT);
	assert_false(tcp_sender_may_send(&sender));
	assert_int_equal(sender.timer.at, 2 * RTT + RTO_MIN);
	hears(8, 0, 0, 2 * RTT + 1);            /* of those before; 8 and 9 are lost */
	assert_true(sender.timer.at > RTO_MIN); /* there is one probe at a time */
	sends_new(11, 12, 3 * RTT);
	hears(8, 10, 11, 4 * RTT);
	assert_int_equal(sender.state, TCP_RECOVERY);
	sends(8, true, 4 * RTT);
	hears(9, 10, 11, 5 * RTT);
	sends(9, true, 5 * RTT);
	hears(11, 0, 0, 5 * RTT);
	sends(11, true, 5 * RTT);
	hears(12, 0, 0, 6 * RTT);
	assert_true(tcp_sender_is_done(&sender));
}

/* Of what is sent and what is heard, and only where nothing is known to be missing. */
static void probe__waits_for_silence(void **state)
{
	sender.times.probe = 10;
	sends(0, false, 0);
	for (uint64_t i = 1; i < 10; i++)
		sends(i, false, 50);
	assert_int_equal(sender.timer.at, 50 + 2 * RTT);
	hears(0, 2, 3, RTT);
	assert_int_equal(sender.timer.at, RTT + RTO_MIN);
	hears(5, 0, 0, RTT + 50);
	assert_true(sender.is_probe_timer);
	assert_int_equal(tcp_sender_time_out(&sender, newreno, sender.timer.at), TCP_PROBES);
	hears(5, 6, 9, 500); /* before it has left: there is no need of it */
	assert_int_equal(sender.state, TCP_RECOVERY);
	sends(5, true, 500);
	hears(10, 0, 0, 600); /* and it may be waited for again */
	sends(10, false, 600);
	assert_true(sender.is_probe_timer);
}

static void probe__sends_the_last_again_once(void **state)
{
	sender.times.probe = 300;
	sender.times.ack_delay = 50;
	sender.count = 1;
	sends_new(0, 1, 0);
	assert_int_equal(sender.timer.at, 350);
	assert_int_equal(tcp_sender_time_out(&sender, newreno, 350), TCP_PROBES);
	sends(0, true, 350);
	assert_false(tcp_sender_may_send(&sender));
	assert_int_equal(sender.control.window, 10 * TCP_ONE);
	assert_int_equal(tcp_sender_time_out(&sender, newreno, sender.timer.at), TCP_TIMED_OUT);
}

/* A sender and a receiver, and what lies between them: some is lost, doubled, or passes what is before it. */
struct pipe {
	struct {
		uint64_t segment;
		struct tcp_ack ack;
	} under_way[256];
	unsigned count;
};

static void put(struct pipe *pipe, uint64_t segment, struct tcp_ack ack, struct vb_random *random)
{
	const unsigned copies = vb_random_below(random, 5) ? 1 : (unsigned)vb_random_below(random, 3);
	for (unsigned i = 0; i < copies && pipe->count < 256; i++) {
		pipe->under_way[pipe->count].segment = segment;
		pipe->under_way[pipe->count++].ack = ack;
	}
}

static unsigned take(const struct pipe *pipe, struct vb_random *random)
{
	return pipe->count > 3 && vb_random_below(random, 10) == 0 ? (unsigned)vb_random_below(random, 4) : 0;
}

static void drop(struct pipe *pipe, unsigned i)
{
	pipe->count--;
	memmove(&pipe->under_way[i], &pipe->under_way[i + 1], (pipe->count - i) * sizeof(pipe->under_way[0]));
}

static void all_arrives__whatever_is_between(void **state)
{
	static struct pipe there, back;
	for (unsigned seed = 0; seed < 200; seed++) {
		struct tcp_receiver receiver = { .count = 500 };
		struct vb_random random;
		vb_time now = 0;
		vb_random_seed(&random, seed);
		sender = (struct tcp_sender){ 0 };
		tcp_sender_open(
			&sender, 500, (struct tcp_times){ .rtt = RTT, .rto_min = RTO_MIN, .probe = seed % 2 * RTT });
		tcp_control_init(&sender.control, 10 * TCP_ONE, 200 * TCP_ONE);
		there.count = back.count = 0;
		for (unsigned steps = 0; !tcp_sender_is_done(&sender); steps++, now++) {
			uint64_t segment;
			bool is_resent;
			assert_true(steps < 100000);
			if (tcp_sender_may_send(&sender) && vb_random_below(&random, 2)) {
				tcp_sender_send(&sender, now, &segment, &is_resent);
				put(&there, segment, (struct tcp_ack){ 0 }, &random);
			} else if (there.count && vb_random_below(&random, 2)) {
				unsigned i = take(&there, &random);
				struct tcp_taken taken =
					tcp_receiver_take(&receiver, there.under_way[i].segment, false, 2, false);
				drop(&there, i);
				for (unsigned k = 0; k < taken.ack_count; k++)
					put(&back, 0, taken.acks[k], &random);
			} else if (back.count) {
				unsigned i = take(&back, &random);
				tcp_sender_take_ack(&sender, &tcp_controls[seed % 3], &back.under_way[i].ack, now);
				drop(&back, i);
			} else if (there.count == 0 && !tcp_sender_may_send(&sender)) {
				now = sender.timer.at;
				tcp_sender_time_out(&sender, &tcp_controls[seed % 3], now);
			}
			assert_true(tcp_sender_check(&sender));
		}
		assert_int_equal(receiver.there, 500);
		free(receiver.seen);
		tcp_sender_close(&sender);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(window__bounds_what_is_under_way, setup, teardown),
		cmocka_unit_test_setup_teardown(window__grows_where_it_was_used, setup, teardown),
		cmocka_unit_test_setup_teardown(three_sacked__are_a_loss, setup, teardown),
		cmocka_unit_test_setup_teardown(several_losses__are_repaired_in_a_round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(partial_ack__says_what_else_is_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(timer__backs_off_and_gives_up, setup, teardown),
		cmocka_unit_test_setup_teardown(after_a_timeout__all_that_is_not_sacked_goes_again, setup, teardown),
		cmocka_unit_test_setup_teardown(round_trips__are_measured_of_what_was_sent_once, setup, teardown),
		cmocka_unit_test_setup_teardown(retransmission_that_is_lost__goes_once_more, setup, teardown),
		cmocka_unit_test_setup_teardown(tail_loss__is_found_by_a_probe, setup, teardown),
		cmocka_unit_test_setup_teardown(probe__sends_the_last_again_once, setup, teardown),
		cmocka_unit_test_setup_teardown(probe__waits_for_silence, setup, teardown),
		cmocka_unit_test(all_arrives__whatever_is_between),
		cmocka_unit_test_setup_teardown(recovery__is_not_measured, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
