/* The states of a stream and of its peer, and the list of listeners. */
#include "rsocket/listen.h"
#include "../unit.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct vb_rsocket stream_in(enum vb_rs_state state)
{
	return (struct vb_rsocket){ .type = SOCK_STREAM, .state = state };
}

/* Whether the change ends the process that asks for it. */
static bool is_refused(enum vb_rs_state from, enum vb_rs_state to)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct rlimit no_core = { 0 };
		setrlimit(RLIMIT_CORE, &no_core);
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		struct vb_rsocket rs = stream_in(from);
		vb_rs_set_state(&rs, to);
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void state__never_comes_back(void **state)
{
#ifdef NDEBUG
	skip(); /* changes are not checked */
#endif
	assert_false(is_refused(VB_RS_BOUND, VB_RS_LISTENING));
	assert_true(is_refused(VB_RS_CLOSED, VB_RS_CONNECTED));
	assert_true(is_refused(VB_RS_SEND_ONLY, VB_RS_CONNECTED));
	assert_true(is_refused(VB_RS_LISTENING, VB_RS_CONNECTING));
}

static void reading__stops_and_writing_goes_on(void **state)
{
	struct vb_rsocket rs = stream_in(VB_RS_CONNECTED);

	vb_rs_stop_reading(&rs);
	vb_rs_stop_reading(&rs);
	assert_false(vb_rs_can_read(&rs));
	assert_true(vb_rs_can_write(&rs));
	assert_true(vb_rs_is_connected(&rs));
}

static void end__keeps_the_first_error(void **state)
{
	struct vb_rsocket rs = stream_in(VB_RS_CONNECTED);

	pthread_cond_init(&rs.changed, NULL);
	vb_rs_end(&rs, ETIMEDOUT);
	vb_rs_end(&rs, ECONNRESET);
	assert_int_equal(rs.error, ETIMEDOUT);
	assert_false(vb_rs_is_connected(&rs));
}

static void peer__that_left_does_not_become_ready(void **state)
{
	struct vb_rsocket rs = stream_in(VB_RS_CONNECTED);

	vb_rs_note_peer(&rs, VB_RS_PEER_READY);
	assert_int_equal(rs.peer_state, VB_RS_PEER_READY);
	vb_rs_note_peer(&rs, VB_RS_PEER_LEFT);
	vb_rs_note_peer(&rs, VB_RS_PEER_READY);
	assert_int_equal(rs.peer_state, VB_RS_PEER_LEFT);
}

static void listener__is_kept_while_it_is_served(void **state)
{
	struct vb_rsocket quiet = stream_in(VB_RS_LISTENING), busy = quiet;
	struct vb_rsocket *both[] = { &quiet, &busy };

	assert_int_equal(vb_rs_listeners_open(), 0);
	for (int i = 0; i < 2; i++) {
		both[i]->references = 1;
		both[i]->fd = eventfd(0, EFD_CLOEXEC);
		vb_list_init(&both[i]->answered);
		vb_rs_listeners_add(both[i]);
		assert_true(vb_rs_listeners_has(both[i]));
	}
	assert_int_equal(eventfd_write(busy.fd, 1), 0);
	assert_ptr_equal(vb_rs_listeners_wait(), &busy);
	assert_int_equal(busy.references, 2);
	assert_int_equal(quiet.references, 1);
	for (int i = 0; i < 2; i++) {
		vb_rs_listeners_remove(both[i]);
		assert_false(vb_rs_listeners_has(both[i]));
		close(both[i]->fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(state__never_comes_back),
		cmocka_unit_test(reading__stops_and_writing_goes_on),
		cmocka_unit_test(end__keeps_the_first_error),
		cmocka_unit_test(peer__that_left_does_not_become_ready),
		cmocka_unit_test(listener__is_kept_while_it_is_served),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
