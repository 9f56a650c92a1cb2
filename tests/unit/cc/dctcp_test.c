/* Numbers by hand: a line of 100 Gb/s, which is 12.5 bytes a nanosecond, T 12 us, so a first window of 150,000 bytes;
 * packets of 1,000 bytes, which may leave while less than the window is under way; 615 Mb/s are 76,875,000 bytes a
 * second. */
#include "cc/cc.h"
#include "cc/choice.h"
#include "../unit.h"
#include <math.h>

enum { PACKET = 1000, WINDOW = 150000, STEP = 76875000, LINE_PACKETS = 150 };

#define LINE UINT64_C(12500000000)

struct flow {
	struct vb_cc cc;
	struct vb_cc_choice choice;
};

static void start_with(struct flow *flow, const char *text, uint64_t line_rate, uint32_t first_window)
{
	char why[400];
	*flow = (struct flow){ 0 };
	if (vb_cc_choose(text, &flow->choice, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(vb_cc_start(&flow->cc,
				 &(struct vb_cc_config){ .algorithm = flow->choice.algorithm,
					 .parameters = flow->choice.values,
					 .first_window = first_window,
					 .max_window = VB_CC_UNLIMITED,
					 .line_rate = line_rate },
				 PACKET, 0),
		0);
}

static void start(struct flow *flow, const char *text)
{
	start_with(flow, text, LINE, 0);
}

static void tell(struct flow *flow, enum vb_cc_event event, uint32_t flight)
{
	vb_cc_dctcp.on_signal(&flow->cc, &(struct vb_cc_signal){ .event = event, .flight = flight });
}

/* So many packets, each for itself, of so many under way. */
static void ack(struct flow *flow, uint32_t packets, uint32_t under_way, bool is_marked)
{
	for (uint32_t i = 0; i < packets; i++)
		vb_cc_dctcp.on_signal(&flow->cc, &(struct vb_cc_signal){ .event = VB_CC_ACKED,
							 .acked = PACKET,
							 .flight = under_way * PACKET,
							 .is_marked = is_marked });
}

/* To a part in 100,000. */
static void assert_rate(const struct flow *flow, double expected)
{
	double rate = (double)flow->cc.rate;
	if (rate < expected * 0.99999 || rate > expected * 1.00001)
		fail_msg("%.0f bytes a second, not %.0f", rate, expected);
}

static void dctcp__starts_with_what_the_line_sends_in_a_round_trip(void **state)
{
	struct flow flow;
	start(&flow, "dctcp, rtt=12us");
	assert_int_equal(flow.cc.rate, LINE);
	assert_int_equal(flow.cc.window_bytes, WINDOW + PACKET - 1);
	ack(&flow, 1000, LINE_PACKETS, false);
	assert_int_equal(flow.cc.rate, LINE);
	vb_cc_stop(&flow.cc);
}

/* alpha begins as 1. */
static void dctcp__halves_at_the_first_mark(void **state)
{
	struct flow flow;
	start(&flow, "dctcp, rtt=12us");
	ack(&flow, 1, LINE_PACKETS, true);
	assert_int_equal(flow.cc.rate, LINE / 2);
	assert_int_equal(flow.cc.window_bytes, WINDOW / 2 + PACKET - 1);
	vb_cc_stop(&flow.cc);
}

/* The other 149 were sent before it was cut; what is behind them was not. All were marked: alpha stays 1. */
static void dctcp__cuts_once_in_a_window(void **state)
{
	struct flow flow;
	start(&flow, "dctcp, rtt=12us");
	ack(&flow, LINE_PACKETS, LINE_PACKETS, true);
	assert_int_equal(flow.cc.rate, LINE / 2);
	ack(&flow, 1, LINE_PACKETS / 2, true);
	assert_int_equal(flow.cc.rate, LINE / 4);
	vb_cc_stop(&flow.cc);
}

/* A round trip without marks: alpha = 15/16. One of which 30 of 150 were marked, a fifth: 225/256 + 1/80. */
static void dctcp__cuts_by_the_average_share_of_marks(void **state)
{
	struct flow flow;
	const double first = 15.0 / 16, second = first * 15 / 16 + 0.2 / 16;
	start(&flow, "dctcp, rtt=12us");
	ack(&flow, 1 + LINE_PACKETS, LINE_PACKETS, false);
	ack(&flow, 30, LINE_PACKETS, true);
	assert_rate(&flow, (double)LINE * (1 - first / 2));
	ack(&flow, LINE_PACKETS - 30, LINE_PACKETS, false);
	ack(&flow, 1, LINE_PACKETS, true);
	assert_rate(&flow, (double)LINE * (1 - first / 2) * (1 - second / 2));
	vb_cc_stop(&flow.cc);
}

static void dctcp__averages_as_fast_as_it_is_told(void **state)
{
	struct flow flow;
	start(&flow, "dctcp, rtt=12us, g=0.5");
	ack(&flow, 1 + 2 * LINE_PACKETS, LINE_PACKETS, false);
	ack(&flow, 1, LINE_PACKETS, true);
	assert_rate(&flow, (double)LINE * (1 - 0.25 / 2));
	vb_cc_stop(&flow.cc);
}

/* What was cut is not added to in the same round trip. */
static void dctcp__adds_a_step_a_round_trip_without_marks(void **state)
{
	struct flow flow;
	start(&flow, "dctcp, rtt=12us, ai=615Mb/s");
	ack(&flow, 1, LINE_PACKETS, true);
	ack(&flow, LINE_PACKETS - 1, LINE_PACKETS, false);
	assert_int_equal(flow.cc.rate, LINE / 2);
	for (uint32_t i = 1; i <= 3; i++) {
		ack(&flow, 1, 75, false);
		assert_int_equal(flow.cc.rate, LINE / 2 + i * STEP);
		ack(&flow, 74, 75, false);
		assert_int_equal(flow.cc.rate, LINE / 2 + i * STEP);
	}
	for (uint32_t i = 0; i < 100; i++)
		ack(&flow, LINE_PACKETS, LINE_PACKETS, false);
	assert_int_equal(flow.cc.rate, LINE);
	vb_cc_stop(&flow.cc);
}

static void dctcp__adds_a_packet_if_nothing_else_is_said(void **state)
{
	struct flow flow;
	start(&flow, "dctcp, rtt=12us");
	ack(&flow, LINE_PACKETS, LINE_PACKETS, true);
	ack(&flow, 1, 75, false);
	assert_rate(&flow, (double)LINE / 2 + 1000 / 12e-6);
	assert_in_range(flow.cc.window_bytes, 76998, 76999);
	vb_cc_stop(&flow.cc);
}

static void dctcp__does_not_grow_while_it_is_not_used(void **state)
{
	struct flow flow;
	start(&flow, "dctcp, rtt=12us");
	ack(&flow, LINE_PACKETS, LINE_PACKETS, true);
	ack(&flow, 100, 37, false);
	assert_int_equal(flow.cc.rate, LINE / 2);
	vb_cc_stop(&flow.cc);
}

/* Its round trip is a quarter of T: at half of the line's rate 18 packets are under way, of a window of 75. */
static void dctcp__grows_where_its_own_round_trip_is_short(void **state)
{
	struct flow flow;
	start(&flow, "dctcp, rtt=12us, ai=615Mb/s");
	ack(&flow, LINE_PACKETS / 4, LINE_PACKETS / 4, true);
	assert_int_equal(flow.cc.rate, LINE / 2);
	for (uint32_t i = 1; i <= 3; i++) {
		vb_cc_dctcp.on_signal(&flow.cc,
			&(struct vb_cc_signal){
				.event = VB_CC_ACKED, .acked = PACKET, .flight = 18 * PACKET, .rtt = 3 * VB_US });
		ack(&flow, 17, 18, false);
		assert_int_equal(flow.cc.rate, LINE / 2 + i * STEP);
	}
	const uint64_t before = flow.cc.rate;
	ack(&flow, 100, 8, false); /* not even half of that: its program has no more to send */
	assert_int_equal(flow.cc.rate, before);
	vb_cc_stop(&flow.cc);
}

/* One acknowledgement of several: all of their bytes count as it says. */
static void dctcp__counts_bytes_and_not_acknowledgements(void **state)
{
	struct flow flow;
	start(&flow, "dctcp, rtt=12us, g=0.5");
	ack(&flow, 1, LINE_PACKETS, false);
	vb_cc_dctcp.on_signal(
		&flow.cc, &(struct vb_cc_signal){ .event = VB_CC_ACKED, .acked = 112500, .flight = WINDOW });
	vb_cc_dctcp.on_signal(&flow.cc,
		&(struct vb_cc_signal){ .event = VB_CC_ACKED, .acked = 37500, .flight = WINDOW, .is_marked = true });
	assert_rate(&flow, (double)LINE * (1 - 0.625 / 2)); /* a quarter of them: 1/2 + 1/8 */
	vb_cc_stop(&flow.cc);
}

/* Nobody says how many were marked: of a round trip with a CNP all were. */
static void dctcp__of_cnps_alone_cuts_as_if_all_were_marked(void **state)
{
	struct flow flow;
	start(&flow, "dctcp, rtt=12us");
	ack(&flow, 1, LINE_PACKETS, false);
	tell(&flow, VB_CC_CNP, WINDOW);
	assert_int_equal(flow.cc.rate, LINE / 2);
	tell(&flow, VB_CC_CNP, WINDOW);
	ack(&flow, LINE_PACKETS, LINE_PACKETS, false);
	assert_int_equal(flow.cc.rate, LINE / 2);
	ack(&flow, 1, 75, false);
	const uint64_t before = flow.cc.rate;
	tell(&flow, VB_CC_CNP, WINDOW);
	assert_rate(&flow, (double)before / 2);
	vb_cc_stop(&flow.cc);
}

static void dctcp__halves_on_loss_whatever_the_marks_say(void **state)
{
	struct flow flow;
	start(&flow, "dctcp, rtt=12us");
	ack(&flow, 50 * LINE_PACKETS, LINE_PACKETS, false);
	tell(&flow, VB_CC_LOST, WINDOW);
	assert_int_equal(flow.cc.rate, LINE / 2);
	tell(&flow, VB_CC_LOST, WINDOW);
	assert_int_equal(flow.cc.rate, LINE / 2);
	ack(&flow, LINE_PACKETS + 1, LINE_PACKETS, false);
	const uint64_t before = flow.cc.rate;
	tell(&flow, VB_CC_LOST, WINDOW);
	assert_int_equal(flow.cc.rate, before - before / 2);
	vb_cc_stop(&flow.cc);
}

static void dctcp__keeps_a_packet_in_a_round_trip_or_the_least_rate(void **state)
{
	struct flow flow;
	start(&flow, "dctcp, rtt=12us");
	for (int i = 0; i < 100; i++)
		ack(&flow, 2 * LINE_PACKETS, LINE_PACKETS, true);
	assert_int_equal(flow.cc.rate, 83333333);
	assert_in_range(flow.cc.window_bytes, 2 * PACKET - 2, 2 * PACKET - 1);
	vb_cc_stop(&flow.cc);
	start(&flow, "dctcp, rtt=12us, min-rate=1Gb/s");
	for (int i = 0; i < 100; i++)
		ack(&flow, 2 * LINE_PACKETS, LINE_PACKETS, true);
	assert_int_equal(flow.cc.rate, 125000000);
	vb_cc_stop(&flow.cc);
}

/* As TCP: it doubles a round trip until the first mark, and nothing is paced. One of 20 was marked: alpha is 15/16 +
 * 1/320. */
static void dctcp__of_a_line_nobody_knows_begins_with_slow_start(void **state)
{
	struct flow flow;
	start_with(&flow, "dctcp, rtt=10us", 0, 20000);
	assert_int_equal(flow.cc.window_bytes, 20000 + PACKET - 1);
	ack(&flow, 20, 20, false);
	assert_int_equal(flow.cc.window_bytes, 40000 + PACKET - 1);
	ack(&flow, 1, 40, true);
	assert_in_range(flow.cc.window_bytes, 21187 + PACKET - 2, 21187 + PACKET - 1);
	ack(&flow, 40, 40, false);
	assert_in_range(flow.cc.window_bytes, 22187 + PACKET - 2, 22187 + PACKET - 1);
	assert_int_equal(flow.cc.rate, 0);
	vb_cc_stop(&flow.cc);
}

/* Where all packets of windows above W are marked, W a thousand packets, alpha is about sqrt(2 / W), if it is averaged
 * over longer than from cut to cut: Alizadeh et al., 3.3. */
static void dctcp__settles_at_the_published_share(void **state)
{
	struct flow flow;
	enum { W = 1000, ROUNDS = 4000 };
	double sum = 0;
	uint32_t cuts = 0;
	start(&flow, "dctcp, rtt=120us, g=1/128");
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t window = (flow.cc.window_bytes - PACKET + 1) / PACKET;
		uint64_t before = flow.cc.rate;
		ack(&flow, 1, window, window > W);
		if (i > ROUNDS / 2 && flow.cc.rate < before) {
			sum += 2 * (1 - (double)flow.cc.rate / (double)before);
			cuts++;
		}
		ack(&flow, window - 1, window, window > W);
	}
	double alpha = sum / cuts, expected = sqrt(2.0 / W);
	if (alpha < 0.9 * expected || alpha > 1.1 * expected)
		fail_msg("alpha is %f, not %f", alpha, expected);
	vb_cc_stop(&flow.cc);
}

static void dctcp__stands_whatever_it_is_told(void **state)
{
	struct flow flow;
	uint64_t random = 1;
	start(&flow, "dctcp");
	for (int i = 0; i < 100000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		uint32_t flight = (uint32_t)(random >> 34) >> (random & 15);
		vb_cc_dctcp.on_signal(&flow.cc, &(struct vb_cc_signal){ .event = i % 7 == 0    ? VB_CC_CNP
										 : i % 11 == 0 ? VB_CC_LOST
											       : VB_CC_ACKED,
							.is_marked = random >> 63,
							.flight = flight,
							.acked = (uint32_t)(((random >> 32) * flight) >> 32) });
		assert_in_range(flow.cc.rate, 1000000000000 / 13000, LINE);
		assert_in_range(flow.cc.window_bytes, PACKET, LINE * 13 / 1000000 + PACKET);
	}
	vb_cc_stop(&flow.cc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dctcp__starts_with_what_the_line_sends_in_a_round_trip),
		cmocka_unit_test(dctcp__halves_at_the_first_mark),
		cmocka_unit_test(dctcp__cuts_once_in_a_window),
		cmocka_unit_test(dctcp__cuts_by_the_average_share_of_marks),
		cmocka_unit_test(dctcp__averages_as_fast_as_it_is_told),
		cmocka_unit_test(dctcp__adds_a_step_a_round_trip_without_marks),
		cmocka_unit_test(dctcp__adds_a_packet_if_nothing_else_is_said),
		cmocka_unit_test(dctcp__does_not_grow_while_it_is_not_used),
		cmocka_unit_test(dctcp__grows_where_its_own_round_trip_is_short),
		cmocka_unit_test(dctcp__counts_bytes_and_not_acknowledgements),
		cmocka_unit_test(dctcp__of_cnps_alone_cuts_as_if_all_were_marked),
		cmocka_unit_test(dctcp__halves_on_loss_whatever_the_marks_say),
		cmocka_unit_test(dctcp__keeps_a_packet_in_a_round_trip_or_the_least_rate),
		cmocka_unit_test(dctcp__of_a_line_nobody_knows_begins_with_slow_start),
		cmocka_unit_test(dctcp__settles_at_the_published_share),
		cmocka_unit_test(dctcp__stands_whatever_it_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
