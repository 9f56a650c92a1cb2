/* What a forked child has of its parent's rsockets. The child's NIC is another one. */
#include "pair.h"

#include <sys/wait.h>
#include <unistd.h>

/* In a child a failed claim ends it with its line. */
#define CLAIM(what)                                                                                                    \
	do {                                                                                                           \
		if (!(what))                                                                                           \
			_exit(__LINE__ & 0xff ? __LINE__ & 0xff : 1);                                                  \
	} while (0)

static bool fails(ssize_t result, int error)
{
	return result == -1 && errno == error;
}

static void run_child(void (*child)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		CLAIM(freopen("/dev/null", "w", stderr)); /* where a reset connection is spoken of */
		CLAIM(loop_setup(NULL) == 0);
		loop_set_verbs(pair_verbs->context, pair_verbs->pd);
		child();
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int count_descriptors(void)
{
	int count = 0;
	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static int connect_in_child(void)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);
	CLAIM(rconnect(fd, loop_address("10.0.0.1", PAIR_PORT), sizeof(struct sockaddr_in)) == 0);
	return fd;
}

static void listen_too(void)
{
	int value = 0;
	socklen_t length = sizeof(value);
	char text[4];

	CLAIM(rgetsockopt(pair_listener, SOL_SOCKET, SO_ACCEPTCONN, &value, &length) == 0 && value == 1);
	int client = connect_in_child(), server = raccept(pair_listener, NULL, NULL);
	CLAIM(server >= 0);
	CLAIM(rsend(client, "text", 4, 0) == 4);
	CLAIM(rrecv(server, text, 4, MSG_WAITALL) == 4);
}

static void child__listens_where_its_parent_does(void **state)
{
	run_child(listen_too);
	assert_int_equal(pair_option(pair_listener, SOL_SOCKET, SO_ACCEPTCONN), 1);
}

static void do_nothing(void) {}

/* Whose program is to have it shows when one of them accepts. */
static void listener__with_children_makes_no_connection_ahead(void **state)
{
	struct sockaddr *to = loop_address("10.0.0.1", PAIR_PORT);
	struct pollfd connected = { .events = POLLOUT };

	run_child(do_nothing);
	connected.fd = pair_client = rsocket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(rfcntl(pair_client, F_SETFL, O_NONBLOCK), 0);
	pair_assert_fails(rconnect(pair_client, to, sizeof(struct sockaddr_in)), EINPROGRESS);
	assert_int_equal(rpoll(&connected, 1, 20), 0);
	pair_server = raccept(pair_listener, NULL, NULL);
	assert_true(pair_server >= 0);
	assert_int_equal(rpoll(&connected, 1, 1000), 1);
	assert_int_equal(pair_option(pair_client, SOL_SOCKET, SO_ERROR), 0);
}

/* It accepts, as is known by now. */
static void listener__that_accepted_before_goes_on_as_it_did(void **state)
{
	run_child(do_nothing);
	assert_int_equal(rclose(pair_client), 0);
	assert_int_equal(rclose(pair_server), 0);
	pair_connect();
}

static void find_it_reset(void)
{
	char byte;

	CLAIM(fails(rrecv(pair_client, &byte, 1, 0), ECONNRESET));
	CLAIM(rrecv(pair_client, &byte, 1, 0) == 0); /* told once */
	CLAIM(fails(rsend(pair_server, "a", 1, MSG_NOSIGNAL), ECONNRESET));
	CLAIM(rclose(pair_client) == 0);
	CLAIM(rclose(pair_server) == 0);
}

static void expect_it_works(void)
{
	char text[5] = "";

	assert_int_equal(rsend(pair_client, "text", 4, 0), 4);
	assert_int_equal(rrecv(pair_server, text, 4, MSG_WAITALL), 4);
	assert_string_equal(text, "text");
}

static void connection__is_the_parents_and_reset_in_its_child(void **state)
{
	run_child(find_it_reset);
	expect_it_works();
}

/* Its own, and those of its channels. */
static void only_close(void)
{
	int before = count_descriptors();

	CLAIM(rclose(pair_client) == 0);
	CLAIM(count_descriptors() == before - 3);
	CLAIM(fails(rclose(pair_client), EBADF));
	CLAIM(rclose(pair_listener) == 0);
}

/* As a server does that forks for each connection. */
static void child__that_closes_leaves_its_parent_alone(void **state)
{
	run_child(only_close);
	expect_it_works();
	assert_int_equal(pair_option(pair_listener, SOL_SOCKET, SO_ACCEPTCONN), 1);
}

static void find_it_as_it_was(void)
{
	int value = 0, before = count_descriptors();
	socklen_t length = sizeof(value);

	CLAIM(rgetsockopt(pair_client, SOL_SOCKET, SO_RCVBUF, &value, &length) == 0 && value == 8192);
	CLAIM(count_descriptors() == before); /* the parent's are closed */
	CLAIM(rfcntl(pair_client, F_GETFL) == (O_RDWR | O_NONBLOCK));
	CLAIM(fcntl(pair_client, F_GETFD) == FD_CLOEXEC); /* its number and what exec does to it */
	CLAIM(fails(rshutdown(pair_client, SHUT_WR), ENOTCONN));
}

static void unconnected__is_the_childs_own_with_its_options(void **state)
{
	int room = 8192;

	pair_client = rsocket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(rsetsockopt(pair_client, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
	assert_int_equal(rfcntl(pair_client, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(rfcntl(pair_client, F_SETFD, FD_CLOEXEC), 0);
	run_child(find_it_as_it_was);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(child__listens_where_its_parent_does, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(
			listener__with_children_makes_no_connection_ahead, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(
			listener__that_accepted_before_goes_on_as_it_did, pair_setup_connected, pair_teardown),
		cmocka_unit_test_setup_teardown(
			connection__is_the_parents_and_reset_in_its_child, pair_setup_connected, pair_teardown),
		cmocka_unit_test_setup_teardown(
			child__that_closes_leaves_its_parent_alone, pair_setup_connected, pair_teardown),
		cmocka_unit_test_setup_teardown(
			unconnected__is_the_childs_own_with_its_options, pair_setup, pair_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
