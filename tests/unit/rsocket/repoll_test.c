/* repoll over descriptors of the kernel, with poll in rpoll's place: the list, its changes under a wait, closing. */
#include "../unit.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>
#include "os/clock.h"
#include "rsocket/later.h"
#include "rsocket/objects.h"

int rpoll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	return poll(fds, count, timeout_ms);
}

static int epfd, pipes[2][2];

static int setup(void **state)
{
	epfd = later_repoll_create(EPOLL_CLOEXEC);
	return epfd < 0 || pipe(pipes[0]) || pipe(pipes[1]);
}

static int teardown(void **state)
{
	for (int i = 0; i < 4; i++)
		close(pipes[i / 2][i % 2]);
	vb_repoll_close(epfd);
	return 0;
}

static int control(int operation, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = { .events = events, .data.u64 = data };
	return later_repoll_ctl(epfd, operation, fd, &event);
}

static void assert_fails(int result, int error)
{
	assert_int_equal(result, -1);
	assert_int_equal(errno, error);
}

static void make_readable(int which)
{
	assert_int_equal(write(pipes[which][1], "x", 1), 1);
}

static void create__knows_one_flag(void **state)
{
	assert_fails(later_repoll_create(1), EINVAL);
}

static void list__is_changed_as_epolls_is(void **state)
{
	assert_fails(control(EPOLL_CTL_MOD, pipes[0][0], EPOLLIN, 1), ENOENT);
	assert_int_equal(control(EPOLL_CTL_ADD, pipes[0][0], EPOLLIN, 1), 0);
	assert_fails(control(EPOLL_CTL_ADD, pipes[0][0], EPOLLIN, 1), EEXIST);
	assert_fails(control(99, pipes[0][0], EPOLLIN, 1), EINVAL);
	assert_fails(control(EPOLL_CTL_ADD, -1, EPOLLIN, 1), EBADF);
	assert_fails(control(EPOLL_CTL_ADD, epfd, EPOLLIN, 1), EINVAL);
	assert_fails(later_repoll_ctl(epfd, EPOLL_CTL_MOD, pipes[0][0], NULL), EFAULT);
	assert_int_equal(later_repoll_ctl(epfd, EPOLL_CTL_DEL, pipes[0][0], NULL), 0);
	assert_fails(later_repoll_ctl(epfd, EPOLL_CTL_DEL, pipes[0][0], NULL), ENOENT);
	assert_fails(later_repoll_ctl(pipes[0][0], EPOLL_CTL_ADD, pipes[1][0], &(struct epoll_event){ 0 }), EINVAL);
}

static void wait__tells_of_what_is_ready_with_its_data(void **state)
{
	struct epoll_event events[4];
	assert_int_equal(control(EPOLL_CTL_ADD, pipes[0][0], EPOLLIN, 10), 0);
	assert_int_equal(control(EPOLL_CTL_ADD, pipes[1][0], EPOLLIN, 11), 0);
	assert_int_equal(control(EPOLL_CTL_ADD, pipes[1][1], EPOLLOUT, 12), 0);
	assert_int_equal(later_repoll_wait(epfd, events, 4, 0), 1);
	assert_int_equal(events[0].data.u64, 12);
	assert_int_equal(events[0].events, EPOLLOUT);
	make_readable(1);
	assert_int_equal(later_repoll_wait(epfd, events, 4, -1), 2);
	assert_int_equal(later_repoll_wait(epfd, events, 1, -1), 1); /* no more than there is room for */
	close(pipes[1][1]);
	pipes[1][1] = -1;
	assert_int_equal(later_repoll_ctl(epfd, EPOLL_CTL_DEL, pipes[0][0], NULL), 0);
	assert_fails(later_repoll_wait(epfd, events, 0, 0), EINVAL);
}

static void wait__ends_at_its_time(void **state)
{
	struct epoll_event event;
	int64_t began = vb_clock_us();
	assert_int_equal(control(EPOLL_CTL_ADD, pipes[0][0], EPOLLIN, 1), 0);
	assert_int_equal(later_repoll_wait(epfd, &event, 1, 20), 0);
	assert_true(vb_clock_us() - began >= 20000);
}

static void oneshot__is_told_once_until_it_is_armed_again(void **state)
{
	struct epoll_event event;
	assert_int_equal(control(EPOLL_CTL_ADD, pipes[0][0], EPOLLIN | EPOLLONESHOT, 1), 0);
	make_readable(0);
	assert_int_equal(later_repoll_wait(epfd, &event, 1, 0), 1);
	assert_int_equal(later_repoll_wait(epfd, &event, 1, 0), 0);
	assert_int_equal(control(EPOLL_CTL_MOD, pipes[0][0], EPOLLIN, 2), 0);
	assert_int_equal(later_repoll_wait(epfd, &event, 1, 0), 1);
	assert_int_equal(event.data.u64, 2);
}

struct waiter {
	pthread_t thread;
	struct epoll_event event;
	int result, error;
};

static void *wait_forever(void *pointer)
{
	struct waiter *waiter = pointer;
	waiter->result = later_repoll_wait(epfd, &waiter->event, 1, -1);
	waiter->error = errno;
	return NULL;
}

static void start_waiters(struct waiter waiters[2])
{
	for (int i = 0; i < 2; i++)
		pthread_create(&waiters[i].thread, NULL, wait_forever, &waiters[i]);
	usleep(20000); /* asleep, most likely; either way it must come out the same */
}

static void change__reaches_every_wait_under_way(void **state)
{
	struct waiter waiters[2];
	start_waiters(waiters);
	make_readable(0);
	assert_int_equal(control(EPOLL_CTL_ADD, pipes[0][0], EPOLLIN, 7), 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(waiters[i].thread, NULL);
		assert_int_equal(waiters[i].result, 1);
		assert_int_equal(waiters[i].event.data.u64, 7);
	}
}

static void close__ends_every_wait_under_way(void **state)
{
	struct waiter waiters[2];
	start_waiters(waiters);
	assert_true(vb_repoll_close(epfd));
	for (int i = 0; i < 2; i++) {
		pthread_join(waiters[i].thread, NULL);
		assert_int_equal(waiters[i].result, -1);
		assert_true(waiters[i].error == EBADF || waiters[i].error == EINVAL); /* the latter: it came too late */
	}
	assert_false(vb_repoll_close(epfd));
	assert_fails(later_repoll_wait(epfd, &waiters[0].event, 1, 0), EINVAL);
}

/* As epoll has it: by close(2) with the next look, by rclose at once. */
static void member__that_was_closed_leaves_the_list(void **state)
{
	struct epoll_event event;
	assert_int_equal(control(EPOLL_CTL_ADD, pipes[0][0], EPOLLIN, 1), 0);
	assert_int_equal(close(pipes[0][0]), 0);
	assert_int_equal(later_repoll_wait(epfd, &event, 1, 10), 0);
	assert_fails(control(EPOLL_CTL_DEL, pipes[0][0], EPOLLIN, 1), ENOENT);
	assert_int_equal(control(EPOLL_CTL_ADD, pipes[1][0], EPOLLIN, 1), 0);
	vb_repoll_forget(pipes[1][0]);
	make_readable(1);
	assert_int_equal(later_repoll_wait(epfd, &event, 1, 10), 0);
	assert_int_equal(control(EPOLL_CTL_ADD, pipes[1][0], EPOLLIN, 2), 0);
}

/* The descriptor was closed by close(2); its number comes again. */
static void create__replaces_an_instance_that_is_gone(void **state)
{
	assert_int_equal(control(EPOLL_CTL_ADD, pipes[0][0], EPOLLIN, 1), 0);
	close(epfd);
	int again = later_repoll_create(0);
	assert_int_equal(again, epfd);
	make_readable(0);
	struct epoll_event event;
	assert_int_equal(later_repoll_wait(epfd, &event, 1, 0), 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(create__knows_one_flag),
		TEST(list__is_changed_as_epolls_is),
		TEST(wait__tells_of_what_is_ready_with_its_data),
		TEST(wait__ends_at_its_time),
		TEST(oneshot__is_told_once_until_it_is_armed_again),
		TEST(change__reaches_every_wait_under_way),
		TEST(close__ends_every_wait_under_way),
		TEST(member__that_was_closed_leaves_the_list),
		TEST(create__replaces_an_instance_that_is_gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
