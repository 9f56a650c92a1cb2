/* Users whom a number does not tell: of user namespaces, and those who were another user before. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "harness.h"
#include "raw.h"

#define OVERFLOW NOBODY /* as which a namespace shows whom it does not map */
#define USER     1000
#define STRANGER 1001

static bool is_socket_of_the_port(int fd)
{
	int domain = AF_UNIX;
	socklen_t length = sizeof(domain);
	assert_true(fd >= 0);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length), 0);
	return domain != AF_UNIX;
}

static void start_in(uid_t inside, uid_t outside, bool trusts_any)
{
	struct client_process *client = &clients[client_count++];
	client_start_in(client, inside, outside);
	client_order(client, &(struct order){ .kind = ORDER_SLOT, .broker_any = trusts_any });
	assert_true(client_wait(client));
	if (client->last.rc)
		fail_msg("%s", client->last.why);
}

static void meet(unsigned asker, unsigned other)
{
	client_order(&clients[asker],
		&(struct order){ .kind = ORDER_MEET, .gid = loopback(), .slot = clients[other].last.slot });
	assert_true(client_wait(&clients[asker]));
}

static bool sees_its_own_user(unsigned client, unsigned other)
{
	double until = seconds() + PATIENCE_S;
	do {
		assert_true(seconds() < until);
		client_order(&clients[client], &(struct order){ .kind = ORDER_MET, .slot = clients[other].last.slot });
		assert_true(client_wait(&clients[client]));
		usleep(2000);
	} while (!clients[client].last.met.introductions);
	return clients[client].last.met.is_same_user;
}

/* A container's program that runs as nobody, and a stranger who looks like nobody from in there. */
void namespace__of_nobody_has_a_broker_that_knows_strangers(void **state)
{
	struct vb_message refusal;
	if (!is_root())
		skip();
	for (unsigned i = 0; i < 2; i++)
		start_in(OVERFLOW, USER, false);
	int stranger = connect_as(STRANGER);
	assert_int_equal(hello(stranger), 0);
	assert_true(is_refused(stranger, &refusal));
	assert_int_equal(refusal.error, EPERM);
	close(stranger);
	assert_false(clients[0].last.is_carried || clients[1].last.is_carried);
	meet(0, 1);
	assert_true(sees_its_own_user(0, 1));
	assert_true(sees_its_own_user(1, 0));
	check_steering();
}

void namespace__of_nobody_that_is_shared_gives_strangers_no_socket(void **state)
{
	int channel;
	if (!is_root())
		skip();
	setenv("VERBENA_BROKER", "any", 1);
	start_in(OVERFLOW, USER, false);
	unsetenv("VERBENA_BROKER");
	int stranger = connect_as(STRANGER);
	assert_welcome(stranger);
	get_slot(stranger, &channel);
	assert_false(is_socket_of_the_port(channel));
	close(channel);
	close(stranger);
}

/* Who comes after the process has died that opened the broker's socket knows the broker all the same. */
void namespace__of_nobody_outlives_its_brokers(void **state)
{
	pid_t parent, worker;
	if (!is_root())
		skip();
	start_in(OVERFLOW, USER, false);
	find_both(&parent, &worker);
	kill(parent, SIGKILL);
	find_both_without(parent, &parent, &worker);
	start_in(OVERFLOW, USER, false);
	check_steering();
	kill_both();
	wait_for_recoveries(1);
	check_steering();
}

void introduction__of_equal_numbers_of_two_namespaces_is_of_two_users(void **state)
{
	if (!is_root())
		skip();
	start_clients(1); /* root's broker */
	start_in(STRANGER, USER, true);
	client_start(&clients[client_count++], STRANGER);
	assert_true(client_do(&clients[2], ORDER_SLOT));
	meet(1, 2);
	assert_false(sees_its_own_user(1, 2));
	assert_false(sees_its_own_user(2, 1));
}

void introduction__with_who_has_become_another_user_is_of_two_users(void **state)
{
	if (!is_root())
		skip();
	start_clients(4);
	for (unsigned i = 1; i < 3; i++) {
		client_order(&clients[i], &(struct order){ .kind = ORDER_BECOME, .uid = STRANGER });
		assert_true(client_wait(&clients[i]));
		assert_int_equal(clients[i].last.rc, 0);
	}
	meet(0, 1);
	meet(2, 0);
	meet(0, 3);
	assert_false(sees_its_own_user(0, 1));
	assert_false(sees_its_own_user(1, 0));
	assert_false(sees_its_own_user(0, 2));
	assert_false(sees_its_own_user(2, 0));
	assert_true(sees_its_own_user(0, 3));
}

static _Noreturn void ask_as_another(void)
{
	int fd, connection = connect_raw();
	if (hello(connection) || setresuid(STRANGER, STRANGER, STRANGER))
		_exit(2);
	struct pollfd wait = { .fd = connection, .events = POLLIN };
	struct vb_message welcome;
	if (poll(&wait, 1, PATIENCE_S * 1000) != 1 || vb_message_receive(connection, &welcome, &fd))
		_exit(2);
	get_slot(connection, &fd);
	_exit(is_socket_of_the_port(fd));
}

void socket__is_not_given_to_who_has_become_another_user(void **state)
{
	int status;
	if (!is_root())
		skip();
	start_clients(1);
	pid_t child = fork();
	if (child == 0)
		ask_as_another();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* It acts for its effective user, whoever has called it. */
void socket__is_given_to_a_program_that_is_its_owners(void **state)
{
	int fd;
	if (!is_root())
		skip();
	start_clients(1);
	assert_int_equal(setresuid(STRANGER, 0, 0), 0);
	int connection = connect_raw();
	assert_welcome(connection);
	get_slot(connection, &fd);
	assert_true(is_socket_of_the_port(fd));
	assert_int_equal(setresuid(0, 0, 0), 0);
	close(fd);
	close(connection);
}
