/* Users who share a broker and not its sockets: what forwarders bring, who dies, and what whoever holds a socket can
 * do.
 */
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "harness.h"

/* Forwarders of this namespace; *last is one of them. */
static unsigned find_forwarders(pid_t *last)
{
	unsigned count = 0;
	char path[300], text[32], ours[64] = "", its[64] = "";
	DIR *dir = opendir("/proc");
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		FILE *file = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(path, "r") : NULL;
		bool is_forwarder = file && fgets(text, sizeof(text), file) && strcmp(text, "verbena-forward\n") == 0;
		if (file)
			fclose(file);
		snprintf(path, sizeof(path), "/proc/%s/ns/net", entry->d_name);
		if (!is_forwarder || readlink("/proc/self/ns/net", ours, sizeof(ours) - 1) < 0 ||
			readlink(path, its, sizeof(its) - 1) < 0 || strcmp(ours, its))
			continue;
		*last = atoi(entry->d_name);
		count++;
	}
	closedir(dir);
	return count;
}

static void await_forwarders(unsigned wanted)
{
	pid_t any;
	for (double until = seconds() + PATIENCE_S; find_forwarders(&any) != wanted; usleep(5000))
		assert_true(seconds() < until);
}

/* A client of root, whose broker it is, and then as many of another user. */
static void start_users(unsigned others)
{
	if (geteuid() != 0) {
		print_message("skipped: needs root to have two users\n");
		skip();
	}
	start_clients(1);
	for (unsigned i = 1; i <= others; i++) {
		client_start(&clients[client_count++], NOBODY);
		assert_true(client_do(&clients[i], ORDER_SLOT));
		if (clients[i].last.rc)
			print_error("client %u: %s\n", i, clients[i].last.why);
		assert_int_equal(clients[i].last.rc, 0);
		assert_true(clients[i].last.is_carried);
	}
	assert_false(clients[0].last.is_carried);
	await_forwarders(others);
}

#define CARRYING_US 30000 /* that a forwarder takes, and more */

static void check_carrying(void)
{
	send_to_all();
	collect_all(true);
}

/* A moment ago somebody died: datagrams may still be under way to nobody. */
static void await_steering(void)
{
	for (double until = seconds() + PATIENCE_S;; usleep(20000)) {
		bool is_right = true;
		send_to_all();
		usleep(CARRYING_US);
		collect_all(false);
		for (unsigned i = 0; i < client_count; i++)
			is_right = is_right && (!clients[i].pid || clients[i].last.good == 2 * ROUNDS);
		if (is_right)
			break;
		assert_true(seconds() < until);
	}
	check_carrying();
}

void forwarder__brings_another_user_what_is_his(void **state)
{
	start_users(3);
	check_carrying();
	await_sockets(5);
	client_kill(&clients[2]);
	await_forwarders(2);
	assert_true(client_do(&clients[3], ORDER_RELEASE));
	await_forwarders(1);
	clients[3].last.slot = 0;
	client_kill(&clients[3]);
	check_carrying();
}

void forwarder__joins_multicast_groups_for_another(void **state)
{
	start_users(2);
	struct order join = { .kind = ORDER_JOIN, .gid = vb_gid_from_ipv4(239, 1, 2, 3) };
	client_order(&clients[1], &join);
	assert_true(client_wait(&clients[1]));
	assert_int_equal(clients[1].last.rc, 0);
	const uint8_t bytes[64] = { [0] = 0x64, [5] = 0xFF, [6] = 0xFF, [7] = 0xFF };
	send_bytes(AF_INET, "\xef\x01\x02\x03", bytes, sizeof(bytes));
	usleep(50000);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(client_do(&clients[i], ORDER_COLLECT));
		assert_int_equal(clients[i].last.good, i == 1);
	}
}

void forwarder__outlives_both_brokers(void **state)
{
	start_users(2);
	for (unsigned round = 1; round <= 3; round++) {
		for (unsigned i = 0; i < client_count; i++) /* stopped: nobody recovers yet */
			kill(clients[i].pid, SIGSTOP);
		kill_both();
		assert_true(wait_for_brokers(0, PATIENCE_S));
		await_sockets(3);
		send_to_all();
		for (unsigned i = 0; i < client_count; i++)
			kill(clients[i].pid, SIGCONT);
		wait_for_recoveries(round);
		await_steering();
	}
	client_kill(&clients[1]);
	await_forwarders(1);
	check_carrying();
}

void forwarder__outlives_worker_and_parent(void **state)
{
	pid_t parent, worker;
	start_users(2);
	for (unsigned round = 0; round < 4; round++) {
		find_both(&parent, &worker);
		pid_t victim = round % 2 ? parent : worker;
		kill(victim, SIGKILL);
		check_carrying();
		find_both_without(victim, &parent, &worker);
	}
	for (unsigned i = 0; i < client_count; i++)
		assert_int_equal(clients[i].last.recoveries, 0);
	client_kill(&clients[1]);
	client_kill(&clients[2]);
	await_forwarders(0);
	check_carrying();
}

void forwarder__killed_is_replaced(void **state)
{
	pid_t forwarder, next;
	start_users(1);
	uint8_t slot = clients[1].last.slot;
	for (unsigned round = 0; round < 3; round++) {
		assert_int_equal(find_forwarders(&forwarder), 1);
		kill(forwarder, SIGKILL);
		await_steering();
		assert_int_equal(find_forwarders(&next), 1);
		assert_int_not_equal(forwarder, next);
		assert_int_equal(clients[1].last.slot, slot);
	}
}

/* Whatever becomes of the map: this is what a client of the broker's own user can do to it. */
void socket__lets_nothing_in_but_its_own(void **state)
{
	start_clients(4);
	struct order detach = { .kind = ORDER_DETACH };
	client_order(&clients[2], &detach);
	assert_true(client_wait(&clients[2]));
	assert_int_equal(clients[2].last.rc, 0);
	for (unsigned round = 0; round < 50; round++)
		send_to_all();
	for (unsigned i = 0; i < client_count; i++) {
		assert_true(client_do(&clients[i], ORDER_COLLECT));
		assert_int_equal(clients[i].last.strays, 0);
	}
}

/* Root has a socket of another user's broker, as that user has. */
void map__that_one_of_several_users_has_detached_is_put_back(void **state)
{
	if (geteuid() != 0) {
		print_message("skipped: needs root to have two users\n");
		skip();
	}
	for (unsigned i = 0; i < 6; i++)
		client_start(&clients[client_count++], i < 3 ? NOBODY : 0);
	for (unsigned i = 0; i < 6; i++) {
		client_order(&clients[i], &(struct order){ .kind = ORDER_SLOT, .broker_any = true });
		assert_true(client_wait(&clients[i]));
		assert_int_equal(clients[i].last.rc, 0);
		assert_false(clients[i].last.is_carried);
	}
	for (unsigned round = 0; round < 3; round++) {
		client_order(&clients[round], &(struct order){ .kind = ORDER_DETACH });
		assert_true(client_wait(&clients[round]));
		assert_int_equal(clients[round].last.rc, 0);
		await_steering();
	}
}

void socket__of_the_group_is_not_given_to_another_user(void **state)
{
	start_users(1);
	struct order detach = { .kind = ORDER_DETACH };
	client_order(&clients[1], &detach);
	assert_true(client_wait(&clients[1]));
	assert_int_equal(clients[1].last.rc, -EINVAL); /* a channel is no socket of the group */
	check_carrying();
}
