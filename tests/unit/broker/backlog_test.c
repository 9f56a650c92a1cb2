/* Messages for a client that does not read. */
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../unit.h"
#include "broker/backlog.h"

static int ends[2]; /* the broker's, the client's */
static struct backlog backlog;

static int setup(void **state)
{
	backlog_init(&backlog);
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);
}

static int teardown(void **state)
{
	backlog_discard(&backlog);
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static struct vb_message message_of(uint16_t kind, uint32_t request)
{
	return (struct vb_message){ .kind = kind, .request = request };
}

static void pass(unsigned count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct vb_message mad = message_of(VB_MESSAGE_MAD, i);
		backlog_pass(&backlog, ends[0], &mad);
	}
}

static void say(unsigned count, const int *fd)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct vb_message answer = message_of(VB_MESSAGE_SENT, i);
		assert_true(backlog_say(&backlog, ends[0], &answer, fd, 1000));
	}
}

/* Reads all there is, as it is refilled; counts what comes, in its order. */
static void read_all(unsigned *answers, unsigned *mads)
{
	struct vb_message message;
	int fd;
	*answers = *mads = 0;
	for (;;) {
		if (vb_message_receive(ends[1], &message, &fd)) {
			if (!backlog_is_waiting(&backlog))
				return;
			backlog_flush(&backlog, ends[0], 2000);
			continue;
		}
		assert_int_equal(message.request, message.kind == VB_MESSAGE_MAD ? (*mads)++ : (*answers)++);
		if (fd >= 0)
			close(fd);
	}
}

static void answers__are_never_lost(void **state)
{
	unsigned answers, mads;
	pass(3000);
	say(BACKLOG_SAID_MAX, NULL);
	read_all(&answers, &mads);
	assert_int_equal(answers, BACKLOG_SAID_MAX);
	assert_int_equal(mads, 3000);
}

/* Those that wait; what is in the socket already goes before. */
static void answers__go_before_mads(void **state)
{
	struct vb_message message;
	int fd;
	pass(3000);
	const unsigned waiting = backlog.mad_count;
	say(500, NULL);
	assert_true(backlog_is_waiting(&backlog) && backlog.said_count > 0);
	while (backlog.said_count > 0) {
		if (vb_message_receive(ends[1], &message, &fd))
			fail();
		backlog_flush(&backlog, ends[0], 2000);
		assert_true(backlog.said_count == 0 || backlog.mad_count == waiting);
	}
}

static void mads__beyond_the_limit_are_dropped(void **state)
{
	pass(BACKLOG_MADS_MAX + 5000);
	assert_int_equal(backlog.mad_count, BACKLOG_MADS_MAX);
}

/* Many who do not read, all over one full connection. */
static void mads__of_many_leave_room_for_one_more(void **state)
{
	enum { MANY = 100, ENOUGH = 2000 };
	static struct backlog others[MANY];
	unsigned all = 0;
	pass(BACKLOG_MADS_MAX + 5000);
	for (unsigned i = 0; i < MANY; i++) {
		backlog_init(&others[i]);
		for (uint32_t k = 0; k < BACKLOG_MADS_MAX; k++) {
			const struct vb_message mad = message_of(VB_MESSAGE_MAD, k);
			backlog_pass(&others[i], ends[0], &mad);
		}
		all += others[i].mad_count;
	}
	assert_in_range(all, BACKLOG_MADS_OF_ALL / 2, BACKLOG_MADS_OF_ALL + MANY * BACKLOG_MADS_OWN);
	assert_int_equal(others[MANY - 1].mad_count, BACKLOG_MADS_OWN);
	for (unsigned i = 0; i < MANY; i++)
		backlog_discard(&others[i]);
	backlog_discard(&backlog);
	pass(ENOUGH);
	assert_true(backlog.mad_count > ENOUGH / 2); /* there is room again */
}

static void client__that_lets_answers_pile_up_is_told_of(void **state)
{
	const struct vb_message answer = message_of(VB_MESSAGE_SENT, 0);
	unsigned i = 0;
	while (i < 10000 && backlog_say(&backlog, ends[0], &answer, NULL, 1000))
		i++;
	assert_in_range(i, BACKLOG_SAID_MAX, BACKLOG_SAID_MAX + 1000);
	assert_false(backlog_is_blocked(&backlog, 1000 + BACKLOG_BLOCKED_MS - 1));
	assert_true(backlog_is_blocked(&backlog, 1000 + BACKLOG_BLOCKED_MS));
	int fd;
	struct vb_message message;
	while (vb_message_receive(ends[1], &message, &fd) == 0)
		;
	backlog_flush(&backlog, ends[0], 50000);
	assert_false(backlog_is_blocked(&backlog, 1000 + BACKLOG_BLOCKED_MS));
}

static void descriptor__that_goes_along_is_kept(void **state)
{
	int pipe_ends[2], fd = -1;
	struct stat sent, got;
	struct vb_message message;
	assert_int_equal(pipe(pipe_ends), 0);
	assert_int_equal(fstat(pipe_ends[0], &sent), 0);
	say(900, NULL);
	const struct vb_message slot = message_of(VB_MESSAGE_SLOT, 900);
	assert_true(backlog.said_count > 0);
	assert_true(backlog_say(&backlog, ends[0], &slot, &pipe_ends[0], 1000));
	close(pipe_ends[0]);
	for (unsigned i = 0; i <= 900; i++) {
		while (vb_message_receive(ends[1], &message, &fd))
			backlog_flush(&backlog, ends[0], 2000);
		assert_int_equal(fd >= 0, i == 900);
	}
	assert_int_equal(fstat(fd, &got), 0);
	assert_int_equal(sent.st_ino, got.st_ino);
	close(fd);
	close(pipe_ends[1]);
}

static void connection__that_is_broken_is_told_of(void **state)
{
	const struct vb_message answer = message_of(VB_MESSAGE_SENT, 0);
	shutdown(ends[1], SHUT_RDWR);
	assert_false(backlog_say(&backlog, ends[0], &answer, NULL, 1000));
	pass(5);
	assert_false(backlog_is_waiting(&backlog));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(answers__are_never_lost),
		TEST(answers__go_before_mads),
		TEST(mads__beyond_the_limit_are_dropped),
		TEST(mads__of_many_leave_room_for_one_more),
		TEST(client__that_lets_answers_pile_up_is_told_of),
		TEST(descriptor__that_goes_along_is_kept),
		TEST(connection__that_is_broken_is_told_of),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
