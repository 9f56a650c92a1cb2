/* A worker's registry and its parent's, over a pair of sockets; the parent repeats in a thread. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include "broker/registry.h"
#include "../unit.h"

static struct registry worker, parent;
static int link_fd, parent_fd;
static pthread_t thread;

static void *repeat(void *unused)
{
	while (registry_repeat(&parent, parent_fd))
		;
	return NULL;
}

static int open_both(void **state)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	link_fd = fds[0];
	parent_fd = fds[1];
	registry_init(&worker, -1);
	registry_init(&parent, -1);
	return pthread_create(&thread, NULL, repeat, NULL);
}

static int close_both(void **state)
{
	close(link_fd);
	pthread_join(thread, NULL);
	return close(parent_fd);
}

static int some_fd(void)
{
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void add_client(int number, pid_t pid)
{
	struct client client = { .connection = some_fd(), .pidfd = -1, .pid = pid, .uid = 1000 };
	assert_int_equal(registry_add_client(&worker, link_fd, number, &client), 0);
}

static void client__is_known_to_both_each_by_its_own_descriptor(void **state)
{
	struct client client = { .connection = some_fd(), .pidfd = some_fd(), .pid = 41, .uid = 1000 };
	assert_false(registry_has_clients(&parent));
	assert_int_equal(registry_add_client(&worker, link_fd, 3, &client), 0);
	assert_true(worker.clients[3].is_used && parent.clients[3].is_used);
	assert_int_equal(parent.clients[3].pid, 41);
	assert_int_equal(worker.clients[3].connection, client.connection);
	assert_int_not_equal(parent.clients[3].connection, client.connection);
	int theirs = parent.clients[3].connection, pidfd = parent.clients[3].pidfd;
	assert_true(is_open(theirs) && is_open(pidfd));
	assert_int_equal(registry_drop_client(&worker, link_fd, 3), 0);
	assert_false(is_open(client.connection) || is_open(client.pidfd) || is_open(theirs) || is_open(pidfd));
	assert_false(registry_has_clients(&worker) || registry_has_clients(&parent));
}

static void client__without_a_pidfd_has_none_in_the_parent(void **state)
{
	add_client(0, 5);
	assert_int_equal(parent.clients[0].pidfd, -1);
	assert_int_equal(registry_drop_client(&worker, link_fd, 0), 0);
}

static void slot__is_known_to_both_until_it_is_dropped(void **state)
{
	add_client(1, 9);
	struct client_slot slot = { .owner = 1, .user = -1, .fd = some_fd(), .receive_buffer = 4096 };
	worker.last_slot = 200;
	assert_int_equal(registry_add_slot(&worker, link_fd, 200, &slot), 0);
	assert_int_equal(parent.last_slot, 200);
	assert_int_equal(parent.slots[200].owner, 1);
	assert_int_equal(registry_set_user(&worker, link_fd, 200, 1), 0);
	assert_int_equal(parent.slots[200].user, 1);
	int theirs = parent.slots[200].fd;
	assert_true(is_open(theirs));
	assert_int_equal(registry_drop_slot(&worker, link_fd, 200), 0);
	assert_false(is_open(theirs));
	assert_true(is_open(slot.fd)); /* left to the caller */
	close(slot.fd);
	assert_int_equal(worker.slots[200].fd, -1);
	assert_int_equal(parent.slots[200].owner, -1);
	assert_int_equal(registry_drop_client(&worker, link_fd, 1), 0);
}

/* The worker goes on with what both knew. */
static void change__that_no_parent_confirms_is_none(void **state)
{
	shutdown(parent_fd, SHUT_RDWR);
	struct client client = { .connection = some_fd(), .pidfd = -1, .pid = 1 };
	assert_true(registry_add_client(&worker, link_fd, 2, &client) < 0);
	assert_false(worker.clients[2].is_used);
	close(client.connection);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_both, close_both)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(client__is_known_to_both_each_by_its_own_descriptor),
		TEST(client__without_a_pidfd_has_none_in_the_parent),
		TEST(slot__is_known_to_both_until_it_is_dropped),
		TEST(change__that_no_parent_confirms_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
