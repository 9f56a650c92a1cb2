/* Which thread runs a lane: what the table promises, and one case for each hang and stall that once was. The time is
 * the test's. ownership_world_test.c has whole lanes with threads, packets and timers. */
#include "host/lanes/ownership.h"
#include "../unit.h"

#define NOW  (10 * VB_S)
#define BELL (VB_DO_HEAR_BELLS | VB_DO_LEAVE_BELLS)
#define PORT (VB_DO_WATCH_PORT | VB_DO_LEAVE_PORT)

static struct vb_ownership o;
static const int first, second; /* waiters, by their addresses */

static int with_thread(void **state)
{
	vb_ownership_init(&o, true);
	return 0;
}

static int without_thread(void **state)
{
	vb_ownership_init(&o, false);
	return 0;
}

/* ---- What cases begin with --------------------------------------------------------------------------------------- */

static void is_owned(enum vb_owner owner)
{
	assert_string_equal(vb_owner_name(vb_ownership_owner(&o)), vb_owner_name(owner));
}

/* Actions of the last of so many polls in a row. */
static unsigned poll_often(vb_time now, bool kept_away)
{
	for (unsigned i = 1; i < VB_POLLS_TO_OWN; i++)
		assert_int_equal(vb_ownership_polled(&o, now), VB_POLL_NOTED);
	assert_int_equal(vb_ownership_polled(&o, now), VB_POLL_JUDGED);
	unsigned actions = vb_ownership_judge(&o, kept_away, now);
	is_owned(VB_OWNER_POLLERS);
	return actions;
}

/* A waiter sleeps as the owner, or has left with its event. */
static void let_wait(const void *waiter)
{
	vb_ownership_wait(&o, waiter);
	assert_true(vb_ownership_is_owned_by(&o, waiter));
	vb_ownership_waiter_sleeps(&o, waiter);
	is_owned(VB_OWNER_WAITER_ASLEEP);
}

static unsigned let_leave(const void *waiter, vb_time now)
{
	let_wait(waiter);
	vb_ownership_waiter_turn(&o, waiter);
	return vb_ownership_leave(&o, waiter, now);
}

static struct vb_look timer_up(vb_time now)
{
	return vb_ownership_timer_is_up(&o, true, false, now);
}

/* ---- Polls ------------------------------------------------------------------------------------------------------- */

static void pollers__own_the_lane_after_some_polls_in_a_row(void **state)
{
	assert_int_equal(poll_often(NOW, false), VB_DO_LEAVE_PORT | VB_DO_SET_TIMER | VB_DO_ROUSE);
	assert_int_equal(o.alarm, VB_ALARM_LOOK);
	assert_true(o.alarm_at == vb_time_add(NOW, VB_POLLER_LATE));
}

static void polls__are_counted_anew_when_the_owner_has_changed(void **state)
{
	for (unsigned i = 1; i < VB_POLLS_TO_OWN; i++)
		vb_ownership_polled(&o, NOW);
	let_wait(&first);
	vb_ownership_end_wait(&o, &first);
	assert_int_equal(vb_ownership_polled(&o, NOW), VB_POLL_NOTED);
	is_owned(VB_OWNER_THREAD_ASLEEP);
}

/* A poller once set a timer each 100 us, a system call that took up to 28 us. */
static void poll__of_the_owner_sets_no_timer(void **state)
{
	vb_time now = NOW;

	poll_often(now, false);
	for (unsigned i = 0; i < 1000; i++) {
		now = vb_time_add(now, 10 * VB_US);
		if (vb_ownership_polled(&o, now) == VB_POLL_JUDGED)
			assert_int_equal(vb_ownership_judge(&o, false, now), 0);
	}
	is_owned(VB_OWNER_POLLERS);
	assert_true(o.polled_at == now);
}

static void presence__is_asked_for_seldom(void **state)
{
	unsigned asked = 0;

	poll_often(NOW, false);
	for (vb_time now = NOW; now < NOW + VB_MS; now += VB_US) {
		bool is_asked = vb_ownership_polled(&o, now) == VB_POLL_JUDGED;
		asked += is_asked;
		if (is_asked)
			vb_ownership_judge(&o, false, now);
	}
	assert_in_range(asked, 8, 10);
}

static void poller__that_leaves_gives_the_lane_to_the_thread(void **state)
{
	poll_often(NOW, false);
	assert_int_equal(vb_ownership_leaves(&o), VB_DO_WATCH_PORT | VB_DO_SET_TIMER);
	is_owned(VB_OWNER_THREAD_ASLEEP);
	assert_int_equal(o.alarm, VB_ALARM_NONE);
	assert_int_equal(poll_often(NOW, false), VB_DO_LEAVE_PORT | VB_DO_SET_TIMER | VB_DO_ROUSE);
}

static void poll__while_a_waiter_owns_the_lane_changes_nothing(void **state)
{
	let_wait(&first);
	for (unsigned i = 0; i < 2 * VB_POLLS_TO_OWN; i++)
		assert_int_equal(vb_ownership_polled(&o, NOW), VB_POLL_NOTED);
	is_owned(VB_OWNER_WAITER_ASLEEP);
}

static void poll__without_a_thread_changes_nothing(void **state)
{
	for (unsigned i = 0; i < 2 * VB_POLLS_TO_OWN; i++)
		assert_int_equal(vb_ownership_polled(&o, NOW), VB_POLL_NOTED);
	is_owned(VB_OWNER_NOBODY);
}

/* ---- Looking for pollers ----------------------------------------------------------------------------------------- */

static void poller__that_stops_is_missed_within_its_time(void **state)
{
	poll_often(NOW, false);
	struct vb_look look = timer_up(o.alarm_at);
	assert_true(look.must_drive);
	assert_int_equal(look.actions, VB_DO_WATCH_PORT);
	is_owned(VB_OWNER_THREAD_AWAKE);
	assert_int_equal(o.alarm, VB_ALARM_NONE);
}

/* It has much to post before it polls. */
static void poller__that_posts_is_not_missed(void **state)
{
	poll_often(NOW, false);
	const vb_time at = o.alarm_at;
	vb_ownership_posted(&o, vb_time_add(at, -VB_US));
	const struct vb_look look = timer_up(at);
	assert_true(look.has_looked && !look.must_drive);
	is_owned(VB_OWNER_POLLERS);
}

static void post__of_who_does_not_poll_changes_nothing(void **state)
{
	vb_ownership_posted(&o, NOW);
	is_owned(VB_OWNER_THREAD_ASLEEP);
	assert_true(o.polled_at == 0);
}

/* Looks the thread has for a poller that polls each microsecond; when the last two are so far apart. */
static vb_time gap_of_looks(bool kept_away, bool is_quiet, bool had_held_posts)
{
	vb_time before = NOW;

	poll_often(NOW, kept_away);
	for (unsigned i = 0; i < 10; i++) {
		before = o.alarm_at;
		vb_ownership_polled(&o, vb_time_add(before, -VB_US));
		struct vb_look look = vb_ownership_timer_is_up(&o, is_quiet, had_held_posts, before);
		assert_true(look.has_looked && !look.must_drive);
		assert_int_equal(look.actions, VB_DO_SET_TIMER);
	}
	return vb_time_diff(o.alarm_at, before) + VB_US;
}

/* Each look may take a poller's core. */
static void look__at_pollers_is_ever_more_seldom(void **state)
{
	assert_true(gap_of_looks(false, true, false) == VB_POLLER_LOOK_MOST);
}

/* It was each 800 us, on the core that they share: 145 sleeps of the thread where it is 31. */
static void look__at_pollers_that_share_their_core_is_as_seldom(void **state)
{
	assert_true(gap_of_looks(true, false, false) == VB_POLLER_LOOK_MOST);
}

static void look__is_sooner_where_packets_come(void **state)
{
	assert_true(gap_of_looks(false, false, false) == VB_POLLER_LOOK_BUSY);
}

/* Or a post that waits for the next poll would wait for long where none comes. */
static void look__is_sooner_where_posts_have_waited_for_polls(void **state)
{
	assert_true(gap_of_looks(false, true, true) == VB_POLLER_LOOK_BUSY);
}

static void look__at_a_poller_that_may_be_leaving_is_soon(void **state)
{
	gap_of_looks(false, true, false);
	vb_time polled_at = vb_time_add(o.alarm_at, -VB_POLLER_LATE / 2 - VB_US);
	vb_ownership_polled(&o, polled_at);
	assert_false(timer_up(o.alarm_at).must_drive);
	assert_true(o.alarm_at == vb_time_add(polled_at, VB_POLLER_LATE));
}

/* ---- Pollers that are kept away ---------------------------------------------------------------------------------- */

static void poller__that_is_kept_away_is_waited_for_longer(void **state)
{
	poll_often(NOW, true);
	assert_true(o.alarm_at == vb_time_add(NOW, VB_POLLER_LATE_CROWDED));
	assert_false(timer_up(vb_time_add(NOW, VB_POLLER_LATE_CROWDED - VB_NS)).must_drive);
	assert_true(timer_up(vb_time_add(NOW, VB_POLLER_LATE_CROWDED)).must_drive);
}

/* On one core the thread, woken for each packet, preempted the peer: 2.3 ms a message where it is 0.8. */
static void poller__that_was_kept_away_owns_the_lane_at_its_first_poll(void **state)
{
	poll_often(NOW, true);
	timer_up(vb_time_add(NOW, VB_MS));
	is_owned(VB_OWNER_THREAD_AWAKE);
	assert_int_equal(vb_ownership_polled(&o, NOW + 2 * VB_MS), VB_POLL_JUDGED);
	vb_ownership_judge(&o, true, NOW + 2 * VB_MS);
	is_owned(VB_OWNER_POLLERS);
}

static void poller__that_was_away_by_itself_does_not(void **state)
{
	poll_often(NOW, false);
	timer_up(vb_time_add(NOW, VB_MS));
	assert_int_equal(vb_ownership_polled(&o, NOW + 2 * VB_MS), VB_POLL_JUDGED);
	vb_ownership_judge(&o, false, NOW + 2 * VB_MS);
	is_owned(VB_OWNER_THREAD_AWAKE);
	for (unsigned i = 2; i < VB_POLLS_TO_OWN; i++)
		assert_int_equal(vb_ownership_polled(&o, NOW + 2 * VB_MS), VB_POLL_NOTED);
	assert_int_equal(vb_ownership_polled(&o, NOW + 2 * VB_MS), VB_POLL_JUDGED);
}

/* ---- Waiters ----------------------------------------------------------------------------------------------------- */

static void waiter__takes_the_lane_from_whichever_owner(void **state)
{
	assert_int_equal(vb_ownership_wait(&o, &first), VB_DO_LEAVE_PORT | VB_DO_LEAVE_BELLS);
	assert_int_equal(vb_ownership_end_wait(&o, &first), VB_DO_WATCH_PORT | VB_DO_HEAR_BELLS);
	poll_often(NOW, false);
	assert_int_equal(vb_ownership_wait(&o, &first), VB_DO_LEAVE_BELLS | VB_DO_SET_TIMER);
	assert_int_equal(o.alarm, VB_ALARM_NONE);
	is_owned(VB_OWNER_WAITER_AWAKE);
}

static void waiter__beside_another_does_not(void **state)
{
	let_wait(&first);
	assert_int_equal(vb_ownership_wait(&o, &second), 0);
	assert_true(vb_ownership_is_owned_by(&o, &first));
	assert_int_equal(o.beside, 1);
}

/* The thread would be woken, and wake the peer in turn: 3.7 switches a message where it is 1.03. */
static void returner__that_comes_again_costs_nothing(void **state)
{
	assert_int_equal(let_leave(&first, NOW) & (PORT | BELL), 0);
	for (unsigned i = 1; i < 10; i++) {
		vb_time now = NOW + i * VB_US;
		assert_int_equal(vb_ownership_wait(&o, &first), 0);
		vb_ownership_waiter_sleeps(&o, &first);
		vb_ownership_waiter_turn(&o, &first);
		assert_int_equal(vb_ownership_leave(&o, &first, now), VB_DO_SEND_ACKS | VB_DO_ROUSE);
		is_owned(VB_OWNER_RETURNER);
	}
}

static void returner__that_stays_away_is_stood_in_for(void **state)
{
	let_leave(&first, NOW);
	assert_true(o.alarm_at == vb_time_add(NOW, VB_POLLER_LATE));
	struct vb_look look = timer_up(o.alarm_at);
	assert_true(look.must_drive);
	assert_int_equal(look.actions, VB_DO_WATCH_PORT | VB_DO_HEAR_BELLS);
	is_owned(VB_OWNER_THREAD_AWAKE);
}

/* The alarm came up; before the thread had the mutex the waiter had come back and gone again. The alarm was taken for
 * still set, nobody stood in, and the peers of a program that did not come again hung. */
static void returner__is_missed_though_its_alarm_came_up_amid_its_coming_and_going(void **state)
{
	let_leave(&first, NOW);
	vb_time up = o.alarm_at;
	assert_int_equal(let_leave(&first, up) & VB_DO_SET_TIMER, 0);
	struct vb_look look = timer_up(up);
	assert_int_equal(look.actions & VB_DO_SET_TIMER, VB_DO_SET_TIMER);
	assert_int_equal(o.alarm, VB_ALARM_LOOK);
	assert_true(timer_up(o.alarm_at).must_drive);
}

/* The same where the waiter is there when the thread has the mutex: the next leave sets the alarm again. */
static void returner__is_missed_though_its_alarm_came_up_while_it_waited(void **state)
{
	let_leave(&first, NOW);
	vb_time up = o.alarm_at;
	let_wait(&first);
	assert_false(timer_up(up).must_drive);
	assert_int_equal(o.alarm, VB_ALARM_NONE);
	assert_int_equal(vb_ownership_leave(&o, &first, up) & VB_DO_SET_TIMER, VB_DO_SET_TIMER);
	assert_true(timer_up(o.alarm_at).must_drive);
}

static void returner__that_came_back_is_looked_for_later(void **state)
{
	for (unsigned i = 0; i < 5; i++) {
		let_leave(&first, NOW);
		let_wait(&first);
		timer_up(o.alarm_at);
	}
	let_leave(&first, NOW);
	assert_true(o.alarm_at == vb_time_add(NOW, VB_POLLER_LOOK_BUSY));
}

static void returner__that_polls_on_is_a_poller(void **state)
{
	let_leave(&first, NOW);
	assert_int_equal(poll_often(NOW + VB_US, false), VB_DO_HEAR_BELLS | VB_DO_SET_TIMER | VB_DO_ROUSE);
}

/* Others wait: nobody would wake them while everybody took the returner for awake. */
static void waiter__that_leaves_others_behind_is_no_returner(void **state)
{
	let_wait(&first);
	vb_ownership_wait(&o, &second);
	assert_int_equal(vb_ownership_leave(&o, &first, NOW), VB_DO_WATCH_PORT | VB_DO_HEAR_BELLS);
	is_owned(VB_OWNER_THREAD_ASLEEP);
}

/* It counted as awake, so nobody was to be woken, and what a local peer then sent lay there. */
static void waiter__beside_that_goes_leaves_the_owner_asleep(void **state)
{
	let_wait(&first);
	vb_ownership_wait(&o, &second);
	vb_ownership_end_wait_beside(&o);
	is_owned(VB_OWNER_WAITER_ASLEEP);
	assert_false(vb_ownership_is_awake(&o));
}

/* So did the turn that the thread ran while the waiter slept. */
static void thread__that_runs_leaves_the_waiter_asleep(void **state)
{
	let_wait(&first);
	vb_ownership_thread_turn(&o);
	assert_false(vb_ownership_is_awake(&o));
	vb_ownership_thread_sleeps(&o);
	is_owned(VB_OWNER_WAITER_ASLEEP);
}

/* Programs cancel threads that wait for events: nobody looked after the socket any more, and requests ran into their
 * retries. */
static void waiter__that_is_cancelled_gives_the_lane_to_the_thread(void **state)
{
	let_wait(&first);
	assert_int_equal(vb_ownership_end_wait(&o, &first), VB_DO_WATCH_PORT | VB_DO_HEAR_BELLS);
	is_owned(VB_OWNER_THREAD_ASLEEP);
	assert_true(vb_ownership_needs_timer(&o));
}

/* The port's descriptors have become others, and a second waiter has taken over. The first one, woken by the same bell,
 * said that it was awake: then bells were not asked for, and timers not set, for one that slept. */
static void waiter__that_was_relieved_is_not_taken_for_the_owner(void **state)
{
	let_wait(&first);
	assert_int_equal(vb_ownership_port_changed(&o), VB_DO_WATCH_PORT | VB_DO_HEAR_BELLS);
	is_owned(VB_OWNER_THREAD_ASLEEP);
	let_wait(&second);
	vb_ownership_waiter_turn(&o, &first);
	is_owned(VB_OWNER_WAITER_ASLEEP);
	assert_int_equal(vb_ownership_leave(&o, &first, NOW), 0);
	assert_int_equal(vb_ownership_end_wait(&o, &first), 0);
	assert_true(vb_ownership_is_owned_by(&o, &second));
}

/* ---- Without a progress thread ----------------------------------------------------------------------------------- */

/* The second slept for ever, and nobody drove. */
static void second_waiter__takes_over_when_the_first_has_gone(void **state)
{
	let_wait(&first);
	vb_ownership_wait(&o, &second);
	assert_int_equal(vb_ownership_leave(&o, &first, NOW), 0);
	is_owned(VB_OWNER_NOBODY);
	vb_ownership_end_wait_beside(&o); /* it looks, after VB_WAIT_BESIDE */
	let_wait(&second);
}

/* It slept for a time that was fixed before it fell asleep; what others posted meanwhile was never looked after. */
static void sleeping_waiter__is_woken_for_what_others_post(void **state)
{
	let_wait(&first);
	assert_int_equal(vb_ownership_arm(&o, (struct vb_deadline){ NOW + VB_S, true }), VB_DO_SET_TIMER);
	assert_int_equal(vb_ownership_arm(&o, (struct vb_deadline){ NOW + VB_MS, true }), VB_DO_SET_TIMER);
	assert_true(o.alarm_at == NOW + VB_MS);
	assert_int_equal(vb_ownership_arm_at_once(&o, NOW), VB_DO_SET_TIMER);
	assert_true(o.alarm_at == NOW);
}

static void timer__is_nobodys_while_no_thread_sleeps_on_it(void **state)
{
	assert_false(vb_ownership_needs_timer(&o));
	vb_ownership_wait(&o, &first);
	assert_false(vb_ownership_needs_timer(&o));
	vb_ownership_waiter_sleeps(&o, &first);
	assert_true(vb_ownership_needs_timer(&o));
}

/* ---- The timer --------------------------------------------------------------------------------------------------- */

/* It was armed again and again, every 70 us, and took the program's core. */
static void timer__that_is_due_is_not_set_again_before_it_was_served(void **state)
{
	const struct vb_deadline due = { NOW, true };

	assert_int_equal(vb_ownership_arm(&o, due), VB_DO_SET_TIMER);
	assert_true(timer_up(NOW).must_drive);
	assert_int_equal(vb_ownership_arm(&o, due), 0);
	vb_ownership_served(&o, vb_time_add(NOW, -VB_NS));
	assert_int_equal(vb_ownership_arm(&o, due), 0);
	vb_ownership_served(&o, NOW);
	assert_int_equal(vb_ownership_arm(&o, due), VB_DO_SET_TIMER);
}

static void timer__is_set_to_what_is_earlier_alone(void **state)
{
	assert_int_equal(vb_ownership_arm(&o, (struct vb_deadline){ 0 }), 0);
	assert_int_equal(vb_ownership_arm(&o, (struct vb_deadline){ NOW, true }), VB_DO_SET_TIMER);
	assert_int_equal(vb_ownership_arm(&o, (struct vb_deadline){ NOW + VB_NS, true }), 0);
	assert_int_equal(vb_ownership_arm(&o, (struct vb_deadline){ NOW - VB_NS, true }), VB_DO_SET_TIMER);
}

/* Deadlines of the lane were not kept: the alarm that looks for the waiter stands in their place. */
static void timer__of_a_waiter_that_came_back_serves_the_lane_too(void **state)
{
	let_leave(&first, NOW);
	let_wait(&first);
	assert_int_equal(o.alarm, VB_ALARM_LOOK);
	assert_int_equal(vb_ownership_arm(&o, (struct vb_deadline){ o.alarm_at - VB_US, true }), VB_DO_SET_TIMER);
	assert_int_equal(o.alarm, VB_ALARM_LANE);
	assert_true(timer_up(o.alarm_at).must_drive);
}

static void thread__that_is_awake_needs_no_timer(void **state)
{
	vb_ownership_thread_turn(&o);
	assert_false(vb_ownership_needs_timer(&o));
	vb_ownership_thread_sleeps(&o);
	assert_true(vb_ownership_needs_timer(&o));
}

/* ---- Lingering --------------------------------------------------------------------------------------------------- */

/* It was woken for each message, and its peer spent a quarter of its time on that. */
static void thread__that_is_woken_soon_again_and_again_lingers(void **state)
{
	vb_time linger = 0;

	for (unsigned i = 0; i < 5; i++)
		linger = vb_ownership_linger(linger, 5 * VB_US);
	assert_true(linger == VB_LINGER_MOST);
	for (unsigned i = 0; i < 5; i++)
		linger = vb_ownership_linger(linger, VB_MS);
	assert_true(linger == 0);
}

#define WITH(name)    cmocka_unit_test_setup(name, with_thread)
#define WITHOUT(name) cmocka_unit_test_setup(name, without_thread)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(pollers__own_the_lane_after_some_polls_in_a_row),
		WITH(polls__are_counted_anew_when_the_owner_has_changed),
		WITH(poll__of_the_owner_sets_no_timer),
		WITH(presence__is_asked_for_seldom),
		WITH(poller__that_leaves_gives_the_lane_to_the_thread),
		WITH(poll__while_a_waiter_owns_the_lane_changes_nothing),
		WITHOUT(poll__without_a_thread_changes_nothing),
		WITH(poller__that_stops_is_missed_within_its_time),
		WITH(poller__that_posts_is_not_missed),
		WITH(post__of_who_does_not_poll_changes_nothing),
		WITH(look__at_pollers_is_ever_more_seldom),
		WITH(look__at_pollers_that_share_their_core_is_as_seldom),
		WITH(look__is_sooner_where_packets_come),
		WITH(look__is_sooner_where_posts_have_waited_for_polls),
		WITH(look__at_a_poller_that_may_be_leaving_is_soon),
		WITH(poller__that_is_kept_away_is_waited_for_longer),
		WITH(poller__that_was_kept_away_owns_the_lane_at_its_first_poll),
		WITH(poller__that_was_away_by_itself_does_not),
		WITH(waiter__takes_the_lane_from_whichever_owner),
		WITH(waiter__beside_another_does_not),
		WITH(returner__that_comes_again_costs_nothing),
		WITH(returner__that_stays_away_is_stood_in_for),
		WITH(returner__is_missed_though_its_alarm_came_up_amid_its_coming_and_going),
		WITH(returner__is_missed_though_its_alarm_came_up_while_it_waited),
		WITH(returner__that_came_back_is_looked_for_later),
		WITH(returner__that_polls_on_is_a_poller),
		WITH(waiter__that_leaves_others_behind_is_no_returner),
		WITH(waiter__beside_that_goes_leaves_the_owner_asleep),
		WITH(thread__that_runs_leaves_the_waiter_asleep),
		WITH(waiter__that_is_cancelled_gives_the_lane_to_the_thread),
		WITH(waiter__that_was_relieved_is_not_taken_for_the_owner),
		WITHOUT(second_waiter__takes_over_when_the_first_has_gone),
		WITHOUT(sleeping_waiter__is_woken_for_what_others_post),
		WITHOUT(timer__is_nobodys_while_no_thread_sleeps_on_it),
		WITH(timer__that_is_due_is_not_set_again_before_it_was_served),
		WITH(timer__is_set_to_what_is_earlier_alone),
		WITH(timer__of_a_waiter_that_came_back_serves_the_lane_too),
		WITH(thread__that_is_awake_needs_no_timer),
		WITH(thread__that_is_woken_soon_again_and_again_lingers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
