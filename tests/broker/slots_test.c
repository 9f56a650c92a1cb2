/* Slots: who gets what, who is refused, and clients that misbehave. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "harness.h"
#include "host/client/broker.h"
#include "host/protocol.h"

void slots__each_process_gets_its_own_datagrams(void **state)
{
	start_clients(6);
	for (unsigned i = 0; i < client_count; i++)
		assert_true(clients[i].last.receive_buffer >= 212992);
	check_steering();
	await_sockets(7);
}

void slots__sixty_four_processes_at_once(void **state)
{
	start_clients(64);
	check_steering();
	for (unsigned i = 0; i < 64; i += 2)
		client_kill(&clients[i]);
	check_steering();
	for (unsigned i = 0; i < 64; i += 2) {
		client_start(&clients[i], 0);
		assert_true(client_do(&clients[i], ORDER_SLOT));
		assert_int_equal(clients[i].last.rc, 0);
	}
	check_steering();
	assert_in_range(count_sockets(), 65, 67); /* places are used again; a death may be noticed late */
}

/* Each that dies has somebody behind it whose place must not change while datagrams keep coming. The first stays: when
 * the kernel takes the oldest socket of the port away, a datagram that it looks a socket up for at that moment is
 * lost. */
void slots__local_peers_that_leave_cost_nobody_a_datagram(void **state)
{
	enum { CLIENTS = 16, A_DEATH = 400 };
	start_clients_in_order(CLIENTS);
	struct client_process *last = &clients[CLIENTS - 1];
	for (unsigned i = 1; i + 1 < CLIENTS; i++) {
		unsigned good = 0;
		kill(clients[i].pid, SIGKILL);
		for (unsigned n = 0; n < A_DEATH; n++)
			send_to_qpn(AF_INET, (uint32_t)last->last.slot << 16 | 5);
		client_kill(&clients[i]);
		for (double until = seconds() + PATIENCE_S; good < A_DEATH && seconds() < until;
			good += last->last.good)
			assert_true(client_do(last, ORDER_COLLECT));
		assert_int_equal(good, A_DEATH);
	}
}

void slots__strays_reach_nobody(void **state)
{
	start_clients(3);
	const uint8_t bytes[12] = { 0 };
	for (size_t length = 0; length < sizeof(bytes); length++)
		send_bytes(AF_INET, NULL, bytes, length);
	send_to_qpn(AF_INET, 0);
	send_to_qpn(AF_INET6, 1);
	for (uint32_t slot = 1; slot < 256; slot++) {
		bool is_taken = false;
		for (unsigned i = 0; i < client_count; i++)
			is_taken = is_taken || clients[i].last.slot == slot;
		if (!is_taken)
			send_to_qpn(AF_INET, slot << 16 | 5);
	}
	for (unsigned i = 0; i < client_count; i++) {
		assert_true(client_do(&clients[i], ORDER_COLLECT));
		assert_int_equal(clients[i].last.good + clients[i].last.strays, 0);
	}
	check_steering();
}

void slots__multicast_reaches_only_those_who_joined(void **state)
{
	start_clients(3);
	struct order join = { .kind = ORDER_JOIN, .gid = vb_gid_from_ipv4(239, 1, 2, 3) };
	client_order(&clients[1], &join);
	assert_true(client_wait(&clients[1]));
	assert_int_equal(clients[1].last.rc, 0);
	const uint8_t bytes[64] = { [0] = 0x64, [5] = 0xFF, [6] = 0xFF, [7] = 0xFF };
	send_bytes(AF_INET, "\xef\x01\x02\x03", bytes, sizeof(bytes));
	for (unsigned i = 0; i < 3; i++) {
		assert_true(client_do(&clients[i], ORDER_COLLECT));
		assert_int_equal(clients[i].last.good, i == 1);
	}
}

void slots__the_last_one_taken_is_an_error_that_says_so(void **state)
{
	char why[256];
	struct vb_broker *broker;
	struct vb_slot slots[VB_SLOT_MAX + 1];
	assert_int_equal(client_connect(&broker, why, sizeof(why)), 0);
	for (unsigned i = 0; i < VB_SLOT_MAX; i++)
		assert_int_equal(vb_broker_get_slot(broker, 65536, false, &slots[i], why, sizeof(why)), 0);
	assert_int_equal(vb_broker_get_slot(broker, 65536, false, &slots[VB_SLOT_MAX], why, sizeof(why)), -EUSERS);
	assert_non_null(strstr(why, "254"));
	for (unsigned i = 0; i < VB_SLOT_MAX; i++) {
		uint8_t bytes[100];
		send_to_qpn(AF_INET, (uint32_t)slots[i].number << 16 | 3);
		assert_int_equal(recv(slots[i].fd, bytes, sizeof(bytes), MSG_DONTWAIT), 64);
		assert_int_equal(bytes[5], slots[i].number);
	}
	vb_broker_release_slot(broker, &slots[100]);
	close(slots[100].fd);
	assert_int_equal(vb_broker_get_slot(broker, 65536, false, &slots[VB_SLOT_MAX], why, sizeof(why)), 0);
	assert_int_equal(slots[VB_SLOT_MAX].number, slots[100].number);
	for (unsigned i = 0; i <= VB_SLOT_MAX; i++)
		if (i != 100)
			close(slots[i].fd);
	vb_broker_disconnect(broker);
}

/* Who has one already can do without another, and a process that comes has none. */
void slots__further_ones_leave_half_to_others(void **state)
{
	char why[256];
	struct vb_broker *broker;
	struct vb_slot slots[VB_SLOT_MAX];
	unsigned count = 0;
	assert_int_equal(client_connect(&broker, why, sizeof(why)), 0);
	while (vb_broker_get_slot(broker, 65536, true, &slots[count], why, sizeof(why)) == 0)
		count++;
	assert_int_equal(count, VB_SLOT_MAX / 2);
	assert_non_null(strstr(why, "half of the 254 slots"));
	while (count < VB_SLOT_MAX)
		assert_int_equal(vb_broker_get_slot(broker, 65536, false, &slots[count++], why, sizeof(why)), 0);
	while (count)
		close(slots[--count].fd);
	vb_broker_disconnect(broker);
}

void slots__local_peers_come_and_go_without_counting_as_overflow(void **state)
{
	char why[256];
	struct vb_broker *broker;
	struct vb_slot slot;
	uint32_t before[SK_MEMINFO_VARS], after[SK_MEMINFO_VARS];
	socklen_t length = sizeof(before);
	assert_int_equal(client_connect(&broker, why, sizeof(why)), 0);
	assert_int_equal(vb_broker_get_slot(broker, 65536, false, &slot, why, sizeof(why)), 0);
	assert_int_equal(getsockopt(slot.fd, SOL_SOCKET, SO_MEMINFO, before, &length), 0);
	start_clients_in_order(5);
	assert_true(client_do(&clients[1], ORDER_RELEASE));
	for (unsigned i = 0; i < 5; i += 2)
		client_kill(&clients[i]);
	await_sockets(6); /* the last one is gone, the others have left their places to nobody */
	assert_int_equal(getsockopt(slot.fd, SOL_SOCKET, SO_MEMINFO, after, &length), 0);
	assert_int_equal(before[SK_MEMINFO_DROPS], after[SK_MEMINFO_DROPS]);
	vb_broker_release_slot(broker, &slot);
	close(slot.fd);
	vb_broker_disconnect(broker);
}

void client__release_frees_the_slot(void **state)
{
	start_clients_in_order(3);
	assert_true(client_do(&clients[1], ORDER_RELEASE));
	clients[1].pid = -clients[1].pid; /* has no slot: not asked */
	pid_t resting = -clients[1].pid;
	clients[1].pid = 0;
	check_steering();
	start_clients(1);
	await_sockets(4); /* in its place */
	check_steering();
	clients[1].pid = resting;
}

void broker__of_another_user_is_refused(void **state)
{
	if (geteuid() != 0) {
		print_message("skipped: needs root to have two users\n");
		skip();
	}
	client_start(&clients[client_count++], NOBODY);
	assert_true(client_do(&clients[0], ORDER_SLOT));
	assert_int_equal(clients[0].last.rc, 0);
	client_start(&clients[client_count++], 0);
	assert_true(client_do(&clients[1], ORDER_SLOT));
	assert_int_equal(clients[1].last.rc, -EPERM);
	assert_non_null(strstr(clients[1].last.why, "65534"));
	assert_non_null(strstr(clients[1].last.why, "VERBENA_BROKER=any"));
	client_order(&clients[1], &(struct order){ .kind = ORDER_SLOT, .broker_any = true });
	assert_true(client_wait(&clients[1]));
	assert_int_equal(clients[1].last.rc, 0);
	check_steering();
}

void start__port_taken_says_by_whom(void **state)
{
	char why[256], us[64];
	struct vb_broker *broker;
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	int rc = client_connect(&broker, why, sizeof(why));
	close(fd);
	assert_int_equal(rc, -EADDRINUSE);
	snprintf(us, sizeof(us), "(pid %d)", getpid());
	/* In a user namespace we have capabilities that the broker has not, so it may not look into us. */
	if (!strstr(why, us))
		assert_non_null(strstr(why, "of this user"));
}

void start__missing_program_is_named(void **state)
{
	char why[256];
	struct vb_broker *broker;
	assert_int_equal(
		vb_broker_connect(&(struct vb_broker_config){ .libexec = "/nonexistent" }, &broker, why, sizeof(why)),
		-ENOENT);
	assert_non_null(strstr(why, "/nonexistent"));
}

void start__program_that_cannot_run_is_named(void **state)
{
	char why[256], directory[] = "/tmp/broker-test-XXXXXX", path[64];
	struct vb_broker *broker;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/" VB_BROKER_PROGRAM, directory);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	int rc = vb_broker_connect(&(struct vb_broker_config){ .libexec = directory }, &broker, why, sizeof(why));
	unlink(path);
	rmdir(directory);
	assert_int_equal(rc, -EACCES);
	assert_non_null(strstr(why, path));
}

static volatile sig_atomic_t children_heard_of;

static void on_child(int signal)
{
	children_heard_of++;
}

/* Like a shell's loop: takes every child there is, as soon as it can be taken. */
static void *wait_for_children(void *is_over)
{
	while (!atomic_load((atomic_bool *)is_over))
		if (wait(NULL) > 0)
			children_heard_of++;
	return NULL;
}

void start__is_not_seen_by_the_program(void **state)
{
	char why[256];
	struct vb_broker *broker;
	struct sigaction action = { .sa_handler = on_child }, before;
	atomic_bool is_over = false;
	pthread_t waiter;
	while (wait(NULL) > 0) /* of earlier tests */
		;
	children_heard_of = 0;
	assert_int_equal(sigaction(SIGCHLD, &action, &before), 0);
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_children, &is_over), 0);
	int rc = client_connect(&broker, why, sizeof(why));
	atomic_store(&is_over, true);
	pthread_join(waiter, NULL);
	sigaction(SIGCHLD, &before, NULL);
	assert_int_equal(rc, 0);
	vb_broker_disconnect(broker);
	assert_int_equal(children_heard_of, 0);
}

/* ---- Bad clients ------------------------------------------------------------------------------------------------- */

void bad_client__is_refused_and_leaks_nothing(void **state)
{
	pid_t parent, worker;
	start_clients(2);
	find_both(&parent, &worker);
	uint8_t taken = clients[0].last.slot;
	usleep(50000);
	unsigned before = count_descriptors(worker), parent_before = count_descriptors(parent);
	uint8_t garbage[600];
	memset(garbage, 0xA5, sizeof(garbage));
	static const size_t lengths[] = { 1, 47, sizeof(struct vb_message) - 1, sizeof(struct vb_message),
		sizeof(struct vb_message) + 1, sizeof(garbage) };
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		int fd = connect_raw();
		assert_int_equal(send(fd, garbage, lengths[i], 0), lengths[i]);
		assert_int_equal(answer_of(fd), -1);
		close(fd);
	}
	int own = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct vb_message steal = { .kind = VB_MESSAGE_ADOPT, .slot = taken };
	int fd = connect_raw();
	assert_int_equal(vb_message_send(fd, &steal, &own), 0);
	assert_int_equal(answer_of(fd), EINVAL);
	assert_int_equal(vb_message_send(fd, &steal, NULL), 0);
	assert_int_equal(answer_of(fd), EINVAL);
	for (unsigned slot = 0; slot < 256; slot += 255) {
		steal.slot = (uint8_t)slot;
		assert_int_equal(vb_message_send(fd, &steal, &fd), 0);
		assert_int_equal(answer_of(fd), EINVAL);
	}
	const int many[4] = { own, own, own, own };
	assert_int_equal(vb_pass_send(fd, &steal, sizeof(steal), many, 4, 0), 0);
	assert_int_equal(answer_of(fd), -1);
	close(fd);
	static const uint8_t others[] = { 0, 255, 0 };
	for (unsigned i = 0; i < 3; i++) {
		const struct vb_message release = { .kind = VB_MESSAGE_RELEASE_SLOT,
			.slot = i == 2 ? taken : others[i] };
		fd = connect_raw();
		assert_int_equal(vb_message_send(fd, &release, NULL), 0);
		assert_int_equal(answer_of(fd), -1);
		close(fd);
	}
	close(own);
	usleep(200000);
	pid_t same_parent, same_worker;
	find_both(&same_parent, &same_worker);
	assert_int_equal(worker, same_worker);
	await_descriptors(worker, before);
	await_descriptors(parent, parent_before);
	check_steering();
}

void bad_client__that_never_reads_is_dropped(void **state)
{
	start_clients(1);
	int fd = connect_raw();
	const struct vb_message hello = { .kind = VB_MESSAGE_HELLO };
	double until = seconds() + PATIENCE_S;
	int rc = 0;
	while (seconds() < until && (rc = vb_message_send(fd, &hello, NULL)) != -EPIPE && rc != -ECONNRESET)
		;
	assert_true(rc == -EPIPE || rc == -ECONNRESET);
	close(fd);
	check_steering();
}
