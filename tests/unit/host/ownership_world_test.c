/* Whole lanes on a clock of the test's: a progress thread that sleeps on port, bells and timer, threads that poll, work
 * beside, and stop, threads that wait and come again, packets, local peers that ring, deadlines, and a port that
 * changes its descriptors. The ownership is the real one, and the world carries out what it says as wakeups.c does.
 * Threads run when the scheduler lets them: each is late by a time of its own.
 *
 * Holds, in each step of each seed:
 *   - the thread sleeps on exactly what the owner's row says, and no action asks for what is so already
 *   - a packet, a local peer's request and a deadline are attended to within BOUND
 *   - a thread that waits is told of what came for it within BOUND
 *   - when nothing comes any more everybody falls asleep, and no timer looks for anybody */
#include "base/random.h"
#include "../unit.h"
#include "host/lanes/ownership.h"

#define WAITERS   3
#define SEEDS     1000
#define STEPS     300           /* things that come, of a seed */
#define MOST_LATE (300 * VB_US) /* of a thread that is woken, behind the event that woke it */
/* A poller that stops just after it was looked for is missed at the next look, and the thread may be late. */
#define BOUND       (VB_POLLER_LOOK_MOST + VB_POLLER_LATE_CROWDED + 2 * MOST_LATE)
#define QUIET_FOR   (20 * VB_MS)
#define QUIET_STEPS 40 /* that may be left to do when nothing comes any more */

enum waiter_state { AWAY, ASLEEP_OWNER, ASLEEP_BESIDE };

struct waiter {
	enum waiter_state state;
	struct vb_deadline runs_at;     /* it was woken, or comes again */
	struct vb_deadline event_since; /* its descriptor is readable */
};

static struct {
	struct vb_random random;
	struct vb_ownership o;
	vb_time now;
	/* The progress thread's descriptors, and what is to be seen at them. */
	bool watches_port, hears_bells, is_rung, is_told_to_look;
	struct vb_deadline timer, runs_at;
	/* What is there to be attended to, since when. */
	struct vb_deadline packet, request, deadline;
	bool peer_rings; /* the local peer rings when it has a request */
	/* The program. */
	struct vb_deadline polls_at;
	vb_time poll_every;
	bool is_kept_away;
	struct waiter waiters[WAITERS];
	unsigned steps, polls, takeovers, leaves, rings;
} world;

static bool chance(unsigned percent)
{
	return vb_random_below(&world.random, 100) < percent;
}

static vb_time up_to(vb_time most)
{
	return (vb_time)vb_random_below(&world.random, (uint32_t)(most / VB_NS)) * VB_NS;
}

static struct vb_deadline in(vb_time span)
{
	return (struct vb_deadline){ vb_time_add(world.now, span), true };
}

/* ---- What the holder does ---------------------------------------------------------------------------------------- */

static void carry_out(unsigned actions)
{
	assert_false(actions & VB_DO_WATCH_PORT && world.watches_port);
	assert_false(actions & VB_DO_LEAVE_PORT && !world.watches_port);
	assert_false(actions & VB_DO_HEAR_BELLS && world.hears_bells);
	assert_false(actions & VB_DO_LEAVE_BELLS && !world.hears_bells);
	world.watches_port = (world.watches_port || actions & VB_DO_WATCH_PORT) && !(actions & VB_DO_LEAVE_PORT);
	world.hears_bells = (world.hears_bells || actions & VB_DO_HEAR_BELLS) && !(actions & VB_DO_LEAVE_BELLS);
	if (actions & VB_DO_ROUSE)
		world.peer_rings = false;
	if (actions & VB_DO_SET_TIMER)
		world.timer = (struct vb_deadline){ world.o.alarm_at, world.o.alarm != VB_ALARM_NONE };
}

static void attend(struct vb_deadline *what)
{
	if (!what->is_set)
		return;
	assert_true(vb_time_since(what->at, world.now) <= BOUND);
	what->is_set = false;
}

/* A thread that waits gets most of what comes. */
static void turn(void)
{
	if (world.packet.is_set || world.request.is_set) {
		struct waiter *waiter = &world.waiters[vb_random_below(&world.random, WAITERS)];
		if (waiter->state != AWAY && !waiter->event_since.is_set)
			waiter->event_since = in(0);
	}
	attend(&world.packet);
	attend(&world.request);
	if (vb_deadline_due(world.deadline, world.now))
		attend(&world.deadline);
	vb_ownership_served(&world.o, world.now);
}

/* False: the peer has asked for something already. */
static bool doze(void)
{
	world.peer_rings = !world.request.is_set;
	return world.peer_rings;
}

/* As tidy_up() of host_lane.c. */
static void unlock(void)
{
	bool wakes = !vb_ownership_is_left_to_pollers(&world.o) && !vb_ownership_is_awake(&world.o) && !doze();

	if (vb_ownership_needs_timer(&world.o))
		carry_out(wakes && !world.o.has_thread ? vb_ownership_arm_at_once(&world.o, world.now)
						       : vb_ownership_arm(&world.o, world.deadline));
	if (wakes && world.o.has_thread)
		world.is_told_to_look = true;
}

/* ---- The progress thread ----------------------------------------------------------------------------------------- */

static bool thread_is_woken(void)
{
	return world.is_told_to_look || (world.watches_port && world.packet.is_set) ||
	       (world.hears_bells && world.is_rung) || vb_deadline_due(world.timer, world.now);
}

static void thread_drives(void)
{
	bool is_quiet = true;

	for (unsigned turns = 0; turns == 0 || !is_quiet; turns++) {
		assert_true(turns < 4);
		turn();
		vb_ownership_thread_turn(&world.o);
		unlock();
		is_quiet = true;
		if (vb_ownership_is_thread(&world.o) || vb_ownership_owner(&world.o) == VB_OWNER_WAITER_ASLEEP)
			is_quiet = doze();
		if (is_quiet)
			vb_ownership_thread_sleeps(&world.o);
		else
			vb_ownership_thread_turn(&world.o);
		unlock();
	}
}

static bool hear_timer(void)
{
	struct vb_look look = vb_ownership_timer_is_up(&world.o, chance(50), chance(20), world.now);

	world.timer.is_set = false;
	world.takeovers += vb_ownership_owner(&world.o) == VB_OWNER_THREAD_AWAKE && look.actions;
	carry_out(look.actions);
	unlock();
	return look.must_drive;
}

/* As run() of progress.c. */
static void thread_runs(void)
{
	const bool by_timer = vb_deadline_due(world.timer, world.now);
	const bool by_bell = world.hears_bells && world.is_rung;
	const bool by_timer_alone =
		by_timer && !by_bell && !world.is_told_to_look && !(world.watches_port && world.packet.is_set);

	world.is_told_to_look = false;
	world.is_rung &= !by_bell;
	world.runs_at.is_set = false;
	if (by_timer && hear_timer())
		thread_drives();
	else if (vb_ownership_is_left_to_pollers(&world.o) || by_timer_alone)
		return;
	else
		thread_drives();
}

/* ---- Threads that poll ------------------------------------------------------------------------------------------- */

static void poll(void)
{
	world.polls++;
	turn();
	if (vb_ownership_polled(&world.o, world.now) == VB_POLL_JUDGED)
		carry_out(vb_ownership_judge(&world.o, world.is_kept_away, world.now));
	if (vb_ownership_owner(&world.o) == VB_OWNER_POLLERS && chance(5))
		carry_out(vb_ownership_leaves(&world.o)); /* it has awaited an answer in vain */
	unlock();
	world.polls_at = in(chance(2) ? up_to(2 * VB_MS) : world.poll_every);
}

/* ---- Threads that wait ------------------------------------------------------------------------------------------- */

static void begin_wait(struct waiter *waiter)
{
	if (waiter->state == ASLEEP_BESIDE)
		vb_ownership_end_wait_beside(&world.o);
	carry_out(vb_ownership_wait(&world.o, waiter));
	waiter->state = vb_ownership_is_owned_by(&world.o, waiter) ? ASLEEP_OWNER : ASLEEP_BESIDE;
	waiter->runs_at.is_set = false;
	turn();
	if (waiter->state == ASLEEP_OWNER) {
		if (doze())
			vb_ownership_waiter_sleeps(&world.o, waiter);
		else
			waiter->runs_at = in(0);
	}
	unlock();
}

static void leave(struct waiter *waiter, bool has_event)
{
	if (waiter->state == ASLEEP_BESIDE)
		vb_ownership_end_wait_beside(&world.o);
	else if (has_event)
		carry_out(vb_ownership_leave(&world.o, waiter, world.now));
	else
		carry_out(vb_ownership_end_wait(&world.o, waiter));
	world.leaves += has_event;
	*waiter = (struct waiter){ .state = AWAY };
	unlock();
}

static void waiter_runs(struct waiter *waiter)
{
	waiter->runs_at.is_set = false;
	if (waiter->state == ASLEEP_OWNER) {
		vb_ownership_waiter_turn(&world.o, waiter);
		if (!world.o.has_thread && vb_deadline_due(world.timer, world.now))
			world.timer.is_set = false;
		world.is_rung &= vb_ownership_owner(&world.o) != VB_OWNER_WAITER_AWAKE;
		turn();
		vb_ownership_returned(&world.o, world.now);
		unlock();
	}
	attend(&waiter->event_since);
	if (chance(60)) {
		leave(waiter, true);
		if (chance(80))
			waiter->runs_at = in(up_to(50 * VB_US));
	} else if (chance(10)) {
		leave(waiter, false); /* cancelled */
	} else {
		begin_wait(waiter);
	}
}

/* It sleeps on its own descriptor, and as the owner on the lane's. */
static bool waiter_is_woken(const struct waiter *waiter)
{
	bool is_owner = waiter->state == ASLEEP_OWNER && vb_ownership_is_owned_by(&world.o, waiter);

	if (waiter->state == AWAY)
		return false;
	return waiter->event_since.is_set ||
	       (is_owner && (world.packet.is_set || world.is_rung ||
				    (!world.o.has_thread && vb_deadline_due(world.timer, world.now))));
}

/* ---- What comes -------------------------------------------------------------------------------------------------- */

static void request_comes(void)
{
	if (!world.request.is_set)
		world.request = in(0);
	world.rings += world.peer_rings;
	world.is_rung |= world.peer_rings;
	world.peer_rings = false;
}

static void program_does_something(void)
{
	struct waiter *waiter = &world.waiters[vb_random_below(&world.random, WAITERS)];

	if (chance(30)) { /* it begins to poll, or goes on otherwise, or stops */
		world.poll_every = chance(50) ? VB_US : up_to(400 * VB_US) + VB_US;
		world.is_kept_away = chance(30);
		world.polls_at = chance(60) && world.o.has_thread ? in(0) : (struct vb_deadline){ 0 };
	} else if (waiter->state == AWAY && !waiter->runs_at.is_set && chance(60)) {
		begin_wait(waiter);
	} else if (chance(30)) { /* it posts */
		world.deadline = vb_deadline_earlier(world.deadline, in(up_to(VB_MS)));
		unlock();
	}
}

static void something_comes(void)
{
	const unsigned kind = vb_random_below(&world.random, 100);

	if (kind < 30 && !world.packet.is_set)
		world.packet = in(0);
	else if (kind < 60)
		request_comes();
	else if (kind < 62) {
		carry_out(vb_ownership_port_changed(&world.o));
		unlock();
	} else
		program_does_something();
}

/* ---- Time -------------------------------------------------------------------------------------------------------- */

static void check(void)
{
	const struct vb_ownership *o = &world.o;
	const bool is_thread = vb_ownership_is_thread(o);
	unsigned owners = 0;

	assert_int_equal(world.watches_port, is_thread);
	assert_int_equal(world.hears_bells, is_thread || vb_ownership_owner(o) == VB_OWNER_POLLERS);
	for (unsigned i = 0; i < WAITERS; i++)
		owners += vb_ownership_is_owned_by(o, &world.waiters[i]);
	assert_int_equal(owners, vb_ownership_is_waiter(o));
	if (vb_ownership_is_left_to_pollers(o))
		assert_int_equal(o->alarm, VB_ALARM_LOOK);
	if (!vb_ownership_is_left_to_pollers(o) && o->has_thread)
		assert_false(
			world.request.is_set && !world.is_rung && !world.is_told_to_look && !vb_ownership_is_awake(o));
}

static void wake_sleepers(void)
{
	if (world.o.has_thread && !world.runs_at.is_set && thread_is_woken())
		world.runs_at = in(up_to(MOST_LATE));
	for (unsigned i = 0; i < WAITERS; i++)
		if (!world.waiters[i].runs_at.is_set && waiter_is_woken(&world.waiters[i]))
			world.waiters[i].runs_at = in(up_to(MOST_LATE));
}

static struct vb_deadline next_event(void)
{
	struct vb_deadline next = vb_deadline_earlier(world.runs_at, world.polls_at);

	for (unsigned i = 0; i < WAITERS; i++)
		next = vb_deadline_earlier(next, world.waiters[i].runs_at);
	if (!world.runs_at.is_set)
		next = vb_deadline_earlier(next, world.timer);
	return next;
}

static void run_what_is_due(void)
{
	for (unsigned i = 0; i < WAITERS; i++) {
		struct waiter *waiter = &world.waiters[i];
		if (!vb_deadline_due(waiter->runs_at, world.now))
			continue;
		if (waiter->state == AWAY)
			begin_wait(waiter); /* it has come again */
		else
			waiter_runs(waiter);
	}
	if (vb_deadline_due(world.polls_at, world.now))
		poll();
	if (vb_deadline_due(world.runs_at, world.now))
		thread_runs();
}

/* Until the next thing happens, or until. False: nothing does before. */
static bool step(vb_time until)
{
	wake_sleepers();
	struct vb_deadline next = next_event();
	if (!next.is_set || vb_time_before(until, next.at)) {
		world.now = until;
		return false;
	}
	if (vb_time_before(world.now, next.at))
		world.now = next.at;
	wake_sleepers();
	run_what_is_due();
	check();
	world.steps++;
	return true;
}

static void begin(uint64_t seed, bool has_thread)
{
	memset(&world, 0, sizeof(world));
	vb_random_seed(&world.random, seed);
	world.now = VB_S;
	vb_ownership_init(&world.o, has_thread);
	world.watches_port = world.hears_bells = world.peer_rings = has_thread;
}

/* Nothing comes any more: the program neither polls nor comes again. */
static void fall_silent(void)
{
	vb_time until = vb_time_add(world.now, QUIET_FOR);

	world.polls_at.is_set = false;
	for (unsigned i = 0; i < WAITERS; i++)
		if (world.waiters[i].state == AWAY)
			world.waiters[i].runs_at.is_set = false;
	world.steps = 0;
	while (step(until))
		for (unsigned i = 0; i < WAITERS; i++)
			if (world.waiters[i].state == AWAY)
				world.waiters[i].runs_at.is_set = false;
	assert_in_range(world.steps, 0, QUIET_STEPS);
}

/* ---- Cases ------------------------------------------------------------------------------------------------------- */

static void world__attends_to_everything_in_time_and_falls_asleep(void **state)
{
	unsigned polls = 0, takeovers = 0, leaves = 0, rings = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		begin(seed, true);
		for (unsigned i = 0; i < STEPS; i++) {
			vb_time until = vb_time_add(world.now, up_to(chance(10) ? 4 * VB_MS : 100 * VB_US));
			while (step(until) && world.steps < (i + 1) * 10)
				;
			something_comes();
			check();
		}
		polls += world.polls;
		takeovers += world.takeovers;
		leaves += world.leaves;
		rings += world.rings;
		fall_silent();
		assert_false(world.packet.is_set || world.request.is_set || world.deadline.is_set);
		assert_int_not_equal(world.o.alarm, VB_ALARM_LOOK);
		assert_true(vb_ownership_owner(&world.o) == VB_OWNER_THREAD_ASLEEP ||
			    vb_ownership_owner(&world.o) == VB_OWNER_WAITER_ASLEEP);
	}
	/* The seeds have been everywhere. */
	assert_true(polls > 1000 && takeovers > 1000 && leaves > 1000 && rings > 1000);
}

/* Without a progress thread a waiter that owns the lane does it all, and another looks whether that one has gone. */
static void world__without_a_thread_has_waiters(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		begin(seed, false);
		begin_wait(&world.waiters[0]);
		for (unsigned i = 0; i < 100; i++) {
			world.packet = in(0);
			vb_time until = vb_time_add(world.now, up_to(2 * VB_MS) + MOST_LATE);
			while (step(until))
				;
			for (unsigned k = 0; k < WAITERS; k++) {
				if (world.waiters[k].state == ASLEEP_BESIDE)
					begin_wait(&world.waiters[k]); /* after VB_WAIT_BESIDE */
				if (world.waiters[k].state == AWAY && chance(50))
					begin_wait(&world.waiters[k]);
			}
			if (vb_ownership_owner(&world.o) == VB_OWNER_NOBODY)
				begin_wait(&world.waiters[0]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(world__attends_to_everything_in_time_and_falls_asleep),
		cmocka_unit_test(world__without_a_thread_has_waiters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
