/* The progress thread among local peers: when it sleeps, and when its timer is armed. What it drives is played by the
 * test, and so is the clock, which goes on by a microsecond each time it is read: nothing here depends on how fast
 * anything runs. */
#include "../unit.h"
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "host/lanes/host_lane_state.h"
#include "host/peers/host_peers.h"

enum { TALKS = 4000 }; /* looks, and so microseconds at least: for many times what is spent in company at once */

static struct vb_host_lane_state state_of_host_lane;
static vb_time clock_now, yield_takes;
static int bell;
static unsigned looks, turns, looks_before_sleep;
static struct vb_deadline due; /* of the local peers; a turn serves it */
static unsigned armed_for_it, turns_that_served;

/* ---- What is driven ---------------------------------------------------------------------------------------------- */

vb_time vb_host_now(void)
{
	clock_now = vb_time_add(clock_now, VB_US);
	return clock_now;
}

/* Whatever it is set to comes at once. */
bool vb_host_set_timer(int fd, struct vb_deadline deadline)
{
	const struct itimerspec at_once = { .it_value.tv_nsec = 1 };

	if (!deadline.is_set)
		return true;
	armed_for_it++;
	return timerfd_settime(fd, 0, &at_once, NULL) == 0;
}

void vb_process_lose_descriptors(struct vb_process *p)
{
	fail();
}

int sched_yield(void)
{
	clock_now = vb_time_add(clock_now, yield_takes);
	return 0;
}

int vb_host_lane_lock(struct vb_host_lane *d)
{
	return 0;
}

void vb_host_lane_unlock(struct vb_host_lane *d)
{
	vb_wakeups_arm(vb_state_of(d), false);
}

bool vb_host_lane_turn(struct vb_host_lane *d, unsigned what)
{
	turns++;
	if (armed_for_it > 0 && due.is_set) {
		due.is_set = false;
		turns_that_served++;
	}
	vb_ownership_served(&vb_state_of(d)->ownership, vb_host_now());
	return false;
}

unsigned vb_host_lane_looks_next(const struct vb_host_lane *d, bool sleeps)
{
	return 0;
}

void vb_host_lane_settle(struct vb_host_lane *d) {}

/* Something at every other look, as long as they talk. */
bool vb_host_lane_turn_to_local_peers(struct vb_host_lane *d)
{
	looks++;
	return looks < TALKS && looks % 2 == 0;
}

bool vb_host_peers_are_awake(const struct vb_host_lane *d)
{
	return true;
}

/* It is asked for before the thread goes to sleep, and then the test is over, unless something is due. */
bool vb_host_peers_doze(struct vb_host_lane *d, vb_time now)
{
	looks_before_sleep = looks;
	if (!due.is_set)
		eventfd_write(vb_state_of(d)->wakeups.stop_fd, 1);
	return true;
}

int vb_host_peers_fd(const struct vb_host_lane *d)
{
	return bell;
}

void vb_host_peers_hear(struct vb_host_lane *d) {}

void vb_host_peers_rouse(struct vb_host_lane *d) {}

void vb_host_peers_part(struct vb_host_lane *d, vb_time now) {}

void vb_host_peers_settle(struct vb_host_lane *d, vb_time now) {}

struct vb_deadline vb_host_peers_next_deadline(const struct vb_host_lane *d)
{
	return due;
}

struct vb_deadline vb_lane_next_deadline(const struct vb_lane *lane)
{
	return (struct vb_deadline){ 0 };
}

static unsigned no_fds(const struct vb_port *port, int fds[VB_PORT_FDS])
{
	return 0;
}

static struct vb_deadline no_deadline(const struct vb_port *port)
{
	return (struct vb_deadline){ 0 };
}

static const struct vb_port_ops no_port = { .fds = no_fds, .next_deadline = no_deadline };

/* ---- Company ----------------------------------------------------------------------------------------------------- */

/* It has slept, a local peer has rung for it soon after, and it drives until it is about to sleep again. */
static void drive_after_a_bell(void)
{
	static struct vb_port port = { .ops = &no_port };
	struct vb_host_lane_state *s = &state_of_host_lane;

	looks = turns = looks_before_sleep = armed_for_it = turns_that_served = 0;
	bell = eventfd(1, EFD_CLOEXEC);
	*s = (struct vb_host_lane_state){ .host_lane = { .port = &port, .peers = (struct vb_host_peers *)&bell } };
	assert_int_equal(vb_wakeups_open(s), 0);
	assert_int_equal(vb_progress_start(&s->host_lane, true), 0);
	pthread_join(s->thread, NULL);
	vb_wakeups_close(s);
	close(bell);
}

/* However long they talk; and other things are looked at meanwhile. */
static void company__is_not_slept_on_before_it_has_left(void **state)
{
	yield_takes = 0;
	drive_after_a_bell();
	assert_in_range(looks_before_sleep, TALKS, TALKS + 100);
	assert_in_range(turns, 4, TALKS / 100);
}

static void company__is_left_when_somebody_wants_the_core(void **state)
{
	yield_takes = 100 * VB_US;
	drive_after_a_bell();
	assert_in_range(looks_before_sleep, 0, 100);
}

/* ---- The timer --------------------------------------------------------------------------------------------------- */

static void timer__that_is_due_is_not_armed_again_before_it_was_served(void **state)
{
	yield_takes = 0;
	due = (struct vb_deadline){ vb_host_now(), true };
	drive_after_a_bell();
	assert_int_equal(turns_that_served, 1);
	assert_int_equal(armed_for_it, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timer__that_is_due_is_not_armed_again_before_it_was_served),
		cmocka_unit_test(company__is_not_slept_on_before_it_has_left),
		cmocka_unit_test(company__is_left_when_somebody_wants_the_core),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
