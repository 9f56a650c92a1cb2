#include "rspreload/rspreload.h"
#include "../unit.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { TIMEOUT_MS = 10000, WAITERS = 3 };

/* A connected pair: ends[0] is an rsocket to the program. */
static void open_pair(int ends[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	vb_table_add(ends[0], ends[0]);
}

static void close_pair(const int ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

static void watch(int epfd, int operation, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };
	assert_int_equal(epoll_ctl(epfd, operation, fd, &event), 0);
}

/* The events of the one descriptor that is ready; 0: none is. */
static uint32_t look(int epfd, int fd)
{
	struct epoll_event event;
	int count = epoll_wait(epfd, &event, 1, 0);
	assert_in_range(count, 0, 1);
	if (!count)
		return 0;
	assert_int_equal(event.data.fd, fd);
	return event.events;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

struct wait {
	pthread_t thread;
	int epfd, count;
	struct epoll_event event;
};

static void *wait_for_one(void *argument)
{
	struct wait *wait = argument;
	wait->count = epoll_wait(wait->epfd, &wait->event, 1, TIMEOUT_MS);
	return NULL;
}

static void start(struct wait *wait, int epfd)
{
	*wait = (struct wait){ .epfd = epfd };
	assert_int_equal(pthread_create(&wait->thread, NULL, wait_for_one, wait), 0);
}

static void expect(struct wait *wait, int fd)
{
	pthread_join(wait->thread, NULL);
	assert_int_equal(wait->count, 1);
	assert_int_equal(wait->event.data.fd, fd);
}

static void wait__sees_an_rsocket_that_came_after_it_began(void **state)
{
	int epfd = epoll_create1(0), first[2], second[2];
	struct wait wait;

	for (int round = 0; round < 3; round++) { /* no list yet, an empty one, one of another rsocket */
		open_pair(first);
		open_pair(second);
		if (round == 2)
			watch(epfd, EPOLL_CTL_ADD, first[0], EPOLLIN);
		start(&wait, epfd);
		pause_ms(20);
		watch(epfd, EPOLL_CTL_ADD, second[0], EPOLLIN);
		assert_int_equal(write(second[1], "x", 1), 1);
		expect(&wait, second[0]);
		close_pair(first);
		close_pair(second);
	}
	close(epfd);
}

static void wait__in_nanoseconds_sees_rsockets_too(void **state)
{
	int epfd = epoll_create1(0), ends[2];
	struct epoll_event event;
	const struct timespec none = { 0 }, some = { .tv_nsec = 20 * 1000000 }, bad = { .tv_nsec = 1000000000 };

	open_pair(ends);
	watch(epfd, EPOLL_CTL_ADD, ends[0], EPOLLIN);
	assert_int_equal(epoll_pwait2(epfd, &event, 1, &none, NULL), 0);
	assert_int_equal(epoll_pwait2(epfd, &event, 1, &some, NULL), 0);
	assert_int_equal(epoll_pwait2(epfd, &event, 1, &bad, NULL), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(epoll_pwait2(epfd, &event, 1, NULL, NULL), 1);
	assert_int_equal(event.data.fd, ends[0]);
	close_pair(ends);
	close(epfd);
}

/* The first to wake must not take the news away from the others. */
static void every_wait__learns_of_every_rsocket(void **state)
{
	int epfd = epoll_create1(0), ends[WAITERS][2];
	struct wait waits[WAITERS];

	for (int i = 0; i < WAITERS; i++)
		start(&waits[i], epfd);
	pause_ms(20);
	for (int i = 0; i < WAITERS; i++) {
		open_pair(ends[i]);
		watch(epfd, EPOLL_CTL_ADD, ends[i][0], EPOLLIN | EPOLLONESHOT);
	}
	pause_ms(20);
	for (int i = 0; i < WAITERS; i++)
		assert_int_equal(write(ends[i][1], "x", 1), 1);
	bool is_told[WAITERS] = { false };
	for (int i = 0; i < WAITERS; i++) {
		pthread_join(waits[i].thread, NULL);
		assert_int_equal(waits[i].count, 1);
		for (int j = 0; j < WAITERS; j++)
			is_told[j] |= waits[i].event.data.fd == ends[j][0];
	}
	for (int i = 0; i < WAITERS; i++) {
		assert_true(is_told[i]);
		close_pair(ends[i]);
	}
	close(epfd);
}

static sem_t stopped, resumed;

static void stop_here(int signal)
{
	sem_post(&stopped);
	sem_wait(&resumed);
}

/* Looks while another wait has yet to learn of the list, as its thread does not run. */
static void own_event__is_nobodys(void **state)
{
	int epfd = epoll_create1(0), ends[2], pipe_ends[2];
	struct wait wait;

	sem_init(&stopped, 0, 0);
	sem_init(&resumed, 0, 0);
	signal(SIGUSR1, stop_here);
	open_pair(ends);
	assert_int_equal(pipe(pipe_ends), 0);
	start(&wait, epfd);
	pause_ms(20);
	pthread_kill(wait.thread, SIGUSR1);
	sem_wait(&stopped);
	watch(epfd, EPOLL_CTL_ADD, ends[0], EPOLLIN);
	assert_int_equal(look(epfd, -1), 0);
	watch(epfd, EPOLL_CTL_ADD, pipe_ends[0], EPOLLIN);
	assert_int_equal(write(pipe_ends[1], "x", 1), 1);
	assert_int_equal(look(epfd, pipe_ends[0]), EPOLLIN);
	watch(epfd, EPOLL_CTL_DEL, ends[0], 0);
	assert_int_equal(look(epfd, pipe_ends[0]), EPOLLIN);
	sem_post(&resumed);
	pthread_join(wait.thread, NULL);
	close_pair(ends);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	close(epfd);
}

static void cancelled_wait__leaves_nothing_behind(void **state)
{
	int epfd = epoll_create1(0), ends[2];
	struct wait wait;

	start(&wait, epfd);
	pause_ms(20);
	pthread_cancel(wait.thread);
	pthread_join(wait.thread, NULL);
	open_pair(ends);
	watch(epfd, EPOLL_CTL_ADD, ends[0], EPOLLIN);
	/* Nobody is left to be told of it. */
	struct pollfd fd = { .fd = epfd, .events = POLLIN };
	assert_int_equal(vb_real()->poll(&fd, 1, 0), 0);
	close_pair(ends);
	close(epfd);
}

/* ---- Edge-triggered ---------------------------------------------------------------------------------------------- */

enum { ET = EPOLLIN | EPOLLRDHUP | EPOLLET };

static void end_of_input__is_told_once(void **state)
{
	int epfd = epoll_create1(0), ends[2];
	char byte;

	open_pair(ends);
	watch(epfd, EPOLL_CTL_ADD, ends[0], ET);
	assert_int_equal(write(ends[1], "ab", 2), 2);
	assert_int_equal(look(epfd, ends[0]), EPOLLIN);
	shutdown(ends[1], SHUT_WR);
	assert_int_equal(look(epfd, ends[0]), EPOLLIN | EPOLLRDHUP);
	assert_int_equal(look(epfd, ends[0]), 0);
	/* What a read left may be told again; the end is not. */
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(look(epfd, ends[0]), EPOLLIN | EPOLLRDHUP);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(look(epfd, ends[0]), EPOLLIN | EPOLLRDHUP);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	assert_int_equal(look(epfd, ends[0]), 0);
	/* Nor does it hide what comes after it. */
	watch(epfd, EPOLL_CTL_MOD, ends[0], ET);
	assert_int_equal(look(epfd, ends[0]), EPOLLIN | EPOLLRDHUP);
	shutdown(ends[0], SHUT_WR);
	assert_int_equal(look(epfd, ends[0]), EPOLLIN | EPOLLRDHUP | EPOLLHUP);
	assert_int_equal(look(epfd, ends[0]), 0);
	close_pair(ends);
	close(epfd);
}

static void end_of_input__that_nobody_asked_for_is_told_as_input(void **state)
{
	int epfd = epoll_create1(0), ends[2];

	open_pair(ends);
	watch(epfd, EPOLL_CTL_ADD, ends[0], EPOLLIN | EPOLLET);
	shutdown(ends[1], SHUT_WR);
	assert_int_equal(look(epfd, ends[0]), EPOLLIN);
	assert_int_equal(look(epfd, ends[0]), 0);
	watch(epfd, EPOLL_CTL_MOD, ends[0], EPOLLOUT | EPOLLET);
	assert_int_equal(look(epfd, ends[0]), EPOLLOUT);
	assert_int_equal(look(epfd, ends[0]), 0);
	close_pair(ends);
	close(epfd);
}

static void data__is_told_until_it_is_read(void **state)
{
	int epfd = epoll_create1(0), ends[2];
	char byte;

	open_pair(ends);
	watch(epfd, EPOLL_CTL_ADD, ends[0], ET);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(write(ends[1], "a", 1), 1);
		assert_int_equal(look(epfd, ends[0]), EPOLLIN);
		assert_int_equal(read(ends[0], &byte, 1), 1);
		assert_int_equal(look(epfd, ends[0]), 0);
	}
	close_pair(ends);
	close(epfd);
}

/* A thread that sends while another waits. */
static void room__wakes_a_wait_that_began_before_there_was_none(void **state)
{
	int epfd = epoll_create1(0), ends[2];
	static char bytes[65536];
	struct wait wait;

	open_pair(ends);
	watch(epfd, EPOLL_CTL_ADD, ends[0], EPOLLOUT | EPOLLET);
	assert_int_equal(look(epfd, ends[0]), EPOLLOUT);
	start(&wait, epfd);
	pause_ms(20);
	while (write(ends[0], bytes, sizeof(bytes)) > 0)
		;
	while (read(ends[1], bytes, sizeof(bytes)) > 0)
		;
	expect(&wait, ends[0]);
	close_pair(ends);
	close(epfd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wait__sees_an_rsocket_that_came_after_it_began),
		cmocka_unit_test(wait__in_nanoseconds_sees_rsockets_too),
		cmocka_unit_test(every_wait__learns_of_every_rsocket),
		cmocka_unit_test(own_event__is_nobodys),
		cmocka_unit_test(cancelled_wait__leaves_nothing_behind),
		cmocka_unit_test(end_of_input__is_told_once),
		cmocka_unit_test(end_of_input__that_nobody_asked_for_is_told_as_input),
		cmocka_unit_test(data__is_told_until_it_is_read),
		cmocka_unit_test(room__wakes_a_wait_that_began_before_there_was_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
