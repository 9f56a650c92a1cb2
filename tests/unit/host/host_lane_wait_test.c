/* Who waits for descriptors, two of them, and which of the two is to be woken. What they drive is played by the test:
 * turns find what it says, and the port's descriptors become others when it likes. */
#include "../unit.h"
#include <pthread.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "host/lanes/host_lane_state.h"
#include "os/clock.h"

static struct vb_process process = { .alarm_fd = -1 };
static struct vb_host_lane_state state_of_host_lane = {
	.host_lane = { .process = &process }, .wakeups = { .timer_fd = -1 } /* not standard input */
};
static struct vb_host_lane *const host_lane = &state_of_host_lane.host_lane;
static struct vb_ownership *const ownership = &state_of_host_lane.ownership;
static struct vb_device device = { .process = &process };
static int bell, first_fd, second_fd;
static pthread_t first, second;
static sem_t second_is_there;
static unsigned turns; /* of the first */
static bool is_second_there, was_awake, is_always_busy;
static atomic_uint *news; /* of one that polls: its next turn makes some */

/* ---- What is driven ---------------------------------------------------------------------------------------------- */

static void *wait_as_second(void *unused)
{
	return (void *)(uintptr_t)vb_device_wait(&device, 1, second_fd, NULL);
}

int vb_host_lane_lock(struct vb_host_lane *d)
{
	return -pthread_mutex_lock(&d->mutex);
}

/* As vb_wakeups_watch_port; then another waiter comes, and takes over. */
static void let_the_second_take_over(struct vb_host_lane *d)
{
	vb_ownership_port_changed(ownership);
	pthread_mutex_unlock(&d->mutex);
	assert_int_equal(pthread_create(&second, NULL, wait_as_second, NULL), 0);
	while (sem_wait(&second_is_there) < 0)
		;
	pthread_mutex_lock(&d->mutex);
}

void vb_host_lane_unlock(struct vb_host_lane *d)
{
	if (pthread_equal(pthread_self(), first) && turns == 2 && !is_second_there)
		let_the_second_take_over(d);
	pthread_mutex_unlock(&d->mutex);
}

/* The first one's second turn is the one after he was woken. */
bool vb_host_lane_turn(struct vb_host_lane *d, unsigned looks)
{
	eventfd_t rings;

	if (is_always_busy) {
		if (++turns == 100)
			eventfd_write(second_fd, 1);
		return true;
	}
	if (news) {
		eventfd_read(bell, &rings);
		atomic_store(news, 1);
		return true;
	}
	if (!pthread_equal(pthread_self(), first))
		return false;
	turns++;
	if (turns == 2)
		eventfd_read(bell, &rings);
	if (turns == 3) {
		was_awake = vb_ownership_is_awake(ownership);
		eventfd_write(first_fd, 1);
	}
	return turns > 1;
}

unsigned vb_host_lane_looks_next(const struct vb_host_lane *d, bool sleeps)
{
	return 0;
}

void vb_host_lane_settle(struct vb_host_lane *d) {}

void vb_process_lose_descriptors(struct vb_process *p)
{
	fail();
}

void vb_wakeups_do(struct vb_host_lane_state *s, unsigned actions) {}

void vb_wakeups_take_timer(struct vb_host_lane_state *s) {}

/* Asked for by whoever is about to sleep as the one who attends. */
bool vb_host_peers_doze(struct vb_host_lane *d, vb_time now)
{
	if (pthread_equal(pthread_self(), first))
		return true;
	is_second_there = true;
	sem_post(&second_is_there); /* the mutex is still his */
	return true;
}

int vb_host_peers_fd(const struct vb_host_lane *d)
{
	return bell;
}

int vb_frames_fd(const struct vb_host_lane *d)
{
	return -1;
}

vb_time vb_host_now(void)
{
	return 0;
}

unsigned vb_host_lane_bit(const struct vb_host_lane *d)
{
	return 1u << d->index;
}

uint32_t vb_lane_mark(struct vb_lane *lane)
{
	return 0;
}

bool vb_lane_is_back(const struct vb_lane *lane, uint32_t mark)
{
	return true;
}

/* ---- Two waiters ------------------------------------------------------------------------------------------------- */

/* Or bells would not be rung, and timers not be set, for one who sleeps. */
static void waiter__who_was_relieved_is_not_taken_for_who_attends(void **state)
{
	void *is_readable;

	vb_ownership_init(ownership, true);
	pthread_mutex_init(&host_lane->mutex, NULL);
	process.host_lanes[0] = host_lane;
	process.host_lane_count = 1;
	assert_int_equal(sem_init(&second_is_there, 0, 0), 0);
	bell = eventfd(1, EFD_CLOEXEC);
	first_fd = eventfd(0, EFD_CLOEXEC);
	second_fd = eventfd(0, EFD_CLOEXEC);
	first = pthread_self();
	assert_true(vb_device_wait(&device, 1, first_fd, NULL));
	assert_int_equal(turns, 3);
	assert_false(was_awake);
	vb_host_lane_lock(host_lane);
	assert_int_equal(vb_ownership_owner(ownership), VB_OWNER_WAITER_ASLEEP);
	vb_host_lane_unlock(host_lane);
	eventfd_write(second_fd, 1);
	pthread_join(second, &is_readable);
	assert_non_null(is_readable);
	close(bell);
	close(first_fd);
	close(second_fd);
}

/* A channel whose CQs have no QPs yet is in no lane. */
static void waiter__who_waits_in_no_lane_drives_the_first(void **state)
{
	vb_ownership_init(ownership, false);
	turns = 0;
	bell = eventfd(1, EFD_CLOEXEC);
	first_fd = eventfd(0, EFD_CLOEXEC);
	assert_true(vb_device_wait(&device, 0, first_fd, NULL));
	assert_int_equal(turns, 3);
	close(bell);
	close(first_fd);
}

/* ---- One that polls descriptors of its own ----------------------------------------------------------------------- */

static struct pollfd fds[2 + VB_WAIT_FDS];
static pthread_t nobody;

static void open_poll(unsigned rings)
{
	vb_ownership_init(ownership, true);
	first = nobody;
	bell = eventfd(rings, EFD_CLOEXEC);
	for (unsigned i = 0; i < 2; i++)
		fds[i] = (struct pollfd){ .fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN, .revents = POLLERR };
}

static void close_poll(void)
{
	close(bell);
	close(fds[0].fd);
	close(fds[1].fd);
}

static void poll__ends_in_time_and_leaves_the_lane_to_the_thread(void **state)
{
	atomic_uint none = 0;
	open_poll(0);
	int64_t began = vb_clock_ms();
	assert_int_equal(vb_device_poll(&device, 1, fds, 2, 20, &none), 0);
	assert_true(vb_clock_ms() - began >= 19);
	assert_int_equal(fds[0].revents | fds[1].revents, 0);
	assert_int_equal(vb_ownership_owner(ownership), VB_OWNER_THREAD_ASLEEP);
	close_poll();
}

static void poll__says_which_descriptor_is_ready_and_comes_back(void **state)
{
	atomic_uint none = 0;
	open_poll(0);
	eventfd_write(fds[1].fd, 1);
	assert_int_equal(vb_device_poll(&device, 1, fds, 2, -1, &none), 1);
	assert_int_equal(fds[0].revents, 0);
	assert_int_equal(fds[1].revents, POLLIN);
	assert_int_equal(vb_ownership_owner(ownership), VB_OWNER_RETURNER);
	close_poll();
}

static void poll__ends_with_the_news_that_its_own_driving_brings(void **state)
{
	atomic_uint some = 0;
	open_poll(1);
	news = &some;
	assert_int_equal(vb_device_poll(&device, 1, fds, 2, -1, &some), 0);
	news = NULL;
	assert_int_equal(atomic_load(&some), 1);
	assert_int_equal(vb_ownership_owner(ownership), VB_OWNER_RETURNER);
	close_poll();
}

/* Packets for others keep the lane busy without end, and another thread makes the descriptor ready; or time is up. */
static void poll__sees_its_descriptors_and_the_time_while_the_lane_is_busy(void **state)
{
	atomic_uint none = 0;
	open_poll(1);
	second_fd = fds[1].fd;
	is_always_busy = true;
	turns = 0;
	assert_int_equal(vb_device_poll(&device, 1, fds, 2, -1, &none), 1);
	assert_int_equal(fds[1].revents, POLLIN);
	assert_in_range(turns, 100, 120);
	eventfd_t ignored;
	eventfd_read(second_fd, &ignored);
	turns = 100;
	assert_int_equal(vb_device_poll(&device, 1, fds, 2, 20, &none), 0);
	is_always_busy = false;
	assert_false(vb_ownership_is_waiter(ownership));
	close_poll();
}

static void *poll_for_ever(void *unused)
{
	atomic_uint none = 0;
	vb_device_poll(&device, 1, fds, 2, -1, &none);
	return NULL;
}

static void poll__that_is_cancelled_leaves_the_lane_to_the_thread(void **state)
{
	pthread_t poller;
	open_poll(0);
	assert_int_equal(pthread_create(&poller, NULL, poll_for_ever, NULL), 0);
	while (vb_ownership_owner(ownership) != VB_OWNER_WAITER_ASLEEP)
		sched_yield();
	pthread_cancel(poller);
	pthread_join(poller, NULL);
	assert_int_equal(vb_ownership_owner(ownership), VB_OWNER_THREAD_ASLEEP);
	close_poll();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waiter__who_was_relieved_is_not_taken_for_who_attends),
		cmocka_unit_test(waiter__who_waits_in_no_lane_drives_the_first),
		cmocka_unit_test(poll__ends_in_time_and_leaves_the_lane_to_the_thread),
		cmocka_unit_test(poll__says_which_descriptor_is_ready_and_comes_back),
		cmocka_unit_test(poll__ends_with_the_news_that_its_own_driving_brings),
		cmocka_unit_test(poll__sees_its_descriptors_and_the_time_while_the_lane_is_busy),
		cmocka_unit_test(poll__that_is_cancelled_leaves_the_lane_to_the_thread),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
