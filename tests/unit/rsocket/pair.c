/* See pair.h. */
#include "pair.h"

#include <unistd.h>

struct fixture *pair_verbs;
int pair_listener, pair_client, pair_server;

int pair_setup(void **state)
{
	pair_client = pair_server = -1;
	int error = loop_setup(state) || fixture_open((void **)&pair_verbs);
	loop_set_verbs(pair_verbs->context, pair_verbs->pd);
	pair_listener = rsocket(AF_INET, SOCK_STREAM, 0);
	return error || pair_listener < 0 ||
	       rbind(pair_listener, loop_address("10.0.0.1", PAIR_PORT), sizeof(struct sockaddr_in)) ||
	       rlisten(pair_listener, 2);
}

static void close_one(int fd)
{
	if (fd >= 0)
		assert_int_equal(rclose(fd), 0);
}

/* The thread that answers requests may just have the listener, and gives its port back with it. */
int pair_teardown(void **state)
{
	close_one(pair_client);
	close_one(pair_server);
	close_one(pair_listener);
	for (int i = 0; i < 1000 && loop_bound(); i++)
		usleep(1000);
	return fixture_close((void **)&pair_verbs) || loop_teardown(state);
}

void pair_connect(void)
{
	pair_client = rsocket(AF_INET, SOCK_STREAM, 0);
	assert_true(pair_client >= 0);
	assert_int_equal(rconnect(pair_client, loop_address("10.0.0.1", PAIR_PORT), sizeof(struct sockaddr_in)), 0);
	pair_server = raccept(pair_listener, NULL, NULL);
	assert_true(pair_server >= 0);
}

int pair_setup_connected(void **state)
{
	int error = pair_setup(state);
	if (!error)
		pair_connect();
	return error;
}

void pair_assert_fails(ssize_t result, int error)
{
	assert_int_equal(result, -1);
	assert_int_equal(errno, error);
}

int pair_option(int fd, int level, int name)
{
	int value = -1;
	socklen_t length = sizeof(value);
	assert_int_equal(rgetsockopt(fd, level, name, &value, &length), 0);
	assert_int_equal(length, sizeof(value));
	return value;
}
