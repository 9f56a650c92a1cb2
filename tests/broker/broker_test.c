/* The broker with live processes: slots, steering, and every way to die. Runs in a network namespace of its own, as the
 * caller or, given "nobody", as that user (which takes root to set up).
 * Usage: broker_test DIRECTORY_OF_BROKER [nobody] [PATTERN] */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "client.h"
#include "host/broker.h"
#include "host/protocol.h"
#include "wire/mad.h"

#define NOBODY	   65534
#define MAX_CLIENTS 64
#define PORT	   4791

static struct client_process clients[MAX_CLIENTS];
static unsigned client_count;

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- Looking at the system ------------------------------------------------------------------------------------- */

static bool is_our_broker(const char *pid)
{
	char path[300], text[300] = "", ours[100] = "", its[100] = "";
	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	FILE *file = fopen(path, "r");
	if (!file)
		return false;
	bool is_broker = fgets(text, sizeof(text), file) && strncmp(text, VB_BROKER_PROGRAM, 14) == 0;
	fclose(file);
	snprintf(path, sizeof(path), "/proc/%s/ns/net", pid);
	return is_broker && readlink("/proc/self/ns/net", ours, sizeof(ours) - 1) > 0 &&
		readlink(path, its, sizeof(its) - 1) > 0 && strcmp(ours, its) == 0;
}

static pid_t parent_of(pid_t pid)
{
	char path[64];
	int parent = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	FILE *file = fopen(path, "r");
	if (!file)
		return 0;
	if (fscanf(file, "%*d (%*[^)]) %*c %d", &parent) != 1)
		parent = 0;
	fclose(file);
	return parent;
}

/* The broker's processes in this namespace. */
static unsigned find_brokers(pid_t *parent, pid_t *worker)
{
	pid_t found[64];
	unsigned count = 0;
	DIR *dir = opendir("/proc");
	for (struct dirent *entry; dir && (entry = readdir(dir)) && count < 64;)
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && is_our_broker(entry->d_name))
			found[count++] = atoi(entry->d_name);
	closedir(dir);
	*parent = *worker = 0;
	for (unsigned i = 0; i < count; i++)
		for (unsigned j = 0; j < count; j++)
			if (parent_of(found[i]) == found[j]) {
				*worker = found[i];
				*parent = found[j];
			}
	return count;
}

static bool wait_for_brokers(unsigned wanted, double limit)
{
	pid_t parent, worker;
	for (double until = seconds() + limit; seconds() < until; usleep(5000))
		if (find_brokers(&parent, &worker) == wanted)
			return true;
	return false;
}

static void find_both(pid_t *parent, pid_t *worker)
{
	assert_true(wait_for_brokers(2, 3));
	find_brokers(parent, worker);
	assert_true(*parent && *worker);
}

/* Both are there, and neither is the one that was killed. */
static void find_both_without(pid_t killed, pid_t *parent, pid_t *worker)
{
	for (double until = seconds() + 3; seconds() < until; usleep(2000))
		if (find_brokers(parent, worker) == 2 && *parent && *parent != killed && *worker != killed)
			return;
	fail_msg("no pair of broker processes without %d", killed);
}

/* None of the two may see the other die. */
static void kill_both(void)
{
	pid_t parent, worker;
	find_both(&parent, &worker);
	kill(worker, SIGSTOP);
	kill(parent, SIGKILL);
	kill(worker, SIGKILL);
}

static unsigned count_sockets(void)
{
	unsigned count = 0;
	char line[512];
	static const char *const tables[] = { "/proc/net/udp", "/proc/net/udp6" };
	for (unsigned i = 0; i < 2; i++) {
		FILE *file = fopen(tables[i], "r");
		while (file && fgets(line, sizeof(line), file))
			count += strstr(line, ":12B7 ") != NULL;
		if (file)
			fclose(file);
	}
	return count;
}

static unsigned count_descriptors(pid_t pid)
{
	char path[64];
	unsigned count = 0;
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	DIR *dir = opendir(path);
	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

/* ---- Traffic --------------------------------------------------------------------------------------------------- */

static void send_bytes(int family, const char *to4, const uint8_t *bytes, size_t length)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(PORT),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	if (to4)
		memcpy(&four.sin_addr, to4, 4);
	struct ip_mreqn lo = { .imr_ifindex = 1 };
	setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &lo, sizeof(lo));
	assert_int_equal(family == AF_INET6 ? sendto(fd, bytes, length, 0, (struct sockaddr *)&six, sizeof(six))
					    : sendto(fd, bytes, length, 0, (struct sockaddr *)&four, sizeof(four)),
		length);
	close(fd);
}

static void send_to_qpn(int family, uint32_t qpn)
{
	const uint8_t bytes[64] = { [0] = 0x04, [5] = (uint8_t)(qpn >> 16), [6] = (uint8_t)(qpn >> 8),
		[7] = (uint8_t)qpn };
	send_bytes(family, NULL, bytes, sizeof(bytes));
}

#define ROUNDS 3 /* of which each has an IPv4 and an IPv6 datagram, from fresh source ports */

static void send_to_all(void)
{
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < client_count; i++)
			if (clients[i].pid) {
				send_to_qpn(AF_INET, (uint32_t)clients[i].last.slot << 16 | (round + 7));
				send_to_qpn(AF_INET6, (uint32_t)clients[i].last.slot << 16 | (round + 7));
			}
}

static void collect_all(bool is_right)
{
	for (unsigned i = 0; i < client_count; i++) {
		if (!clients[i].pid)
			continue;
		assert_true(client_do(&clients[i], ORDER_COLLECT));
		if (is_right) {
			assert_int_equal(clients[i].last.strays, 0);
			assert_int_equal(clients[i].last.good, 2 * ROUNDS);
		}
	}
}

static void check_steering(void)
{
	send_to_all();
	collect_all(true);
}

static void start_clients(unsigned count)
{
	unsigned first = client_count;
	for (unsigned i = 0; i < count; i++)
		client_start(&clients[client_count++], 0);
	for (unsigned i = first; i < client_count; i++)
		client_order(&clients[i], &(struct order){ .kind = ORDER_SLOT });
	for (unsigned i = first; i < client_count; i++) {
		assert_true(client_wait(&clients[i]));
		if (clients[i].last.rc)
			print_error("client %u: %s\n", i, clients[i].last.why);
		assert_int_equal(clients[i].last.rc, 0);
		for (unsigned j = 0; j < i; j++)
			if (clients[j].pid)
				assert_int_not_equal(clients[i].last.slot, clients[j].last.slot);
	}
}

static void wait_for_recoveries(unsigned wanted, double limit)
{
	double until = seconds() + limit;
	for (unsigned i = 0; i < client_count; i++) {
		while (clients[i].pid) {
			assert_true(client_do(&clients[i], ORDER_COLLECT));
			if (clients[i].last.recoveries == wanted)
				break;
			assert_true(seconds() < until);
			usleep(2000);
		}
	}
}

static int tear_down(void **state)
{
	for (unsigned i = 0; i < client_count; i++)
		client_kill(&clients[i]);
	client_count = 0;
	for (double until = seconds() + 5; seconds() < until; usleep(2000)) {
		pid_t parent, worker;
		if (find_brokers(&parent, &worker) == 0)
			return 0;
		if (parent) {
			kill(parent, SIGKILL);
			kill(worker, SIGKILL);
		}
	}
	return -1;
}

/* ---- Tests ----------------------------------------------------------------------------------------------------- */

static void slots__each_process_gets_its_own_datagrams(void **state)
{
	start_clients(6);
	for (unsigned i = 0; i < client_count; i++)
		assert_true(clients[i].last.receive_buffer >= 212992);
	check_steering();
	assert_int_equal(count_sockets(), 7);
}

static void slots__sixty_four_processes_at_once(void **state)
{
	start_clients(64);
	check_steering();
	for (unsigned i = 0; i < 64; i += 2)
		client_kill(&clients[i]);
	for (double until = seconds() + 5; count_sockets() != 33 && seconds() < until;)
		usleep(5000);
	assert_int_equal(count_sockets(), 33);
	check_steering();
}

static void slots__strays_reach_nobody(void **state)
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

static void slots__multicast_reaches_only_those_who_joined(void **state)
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

static void slots__the_last_one_taken_is_an_error_that_says_so(void **state)
{
	char why[256];
	struct vb_broker *broker;
	struct vb_slot slots[VB_SLOT_MAX + 1];
	assert_int_equal(vb_broker_connect(false, client_libexec, &broker, why, sizeof(why)), 0);
	for (unsigned i = 0; i < VB_SLOT_MAX; i++)
		assert_int_equal(vb_broker_get_slot(broker, 65536, &slots[i], why, sizeof(why)), 0);
	assert_int_equal(vb_broker_get_slot(broker, 65536, &slots[VB_SLOT_MAX], why, sizeof(why)), -EUSERS);
	assert_non_null(strstr(why, "254"));
	for (unsigned i = 0; i < VB_SLOT_MAX; i++) {
		uint8_t bytes[100];
		send_to_qpn(AF_INET, (uint32_t)slots[i].number << 16 | 3);
		assert_int_equal(recv(slots[i].fd, bytes, sizeof(bytes), MSG_DONTWAIT), 64);
		assert_int_equal(bytes[5], slots[i].number);
	}
	vb_broker_release_slot(broker, &slots[100]);
	close(slots[100].fd);
	assert_int_equal(vb_broker_get_slot(broker, 65536, &slots[VB_SLOT_MAX], why, sizeof(why)), 0);
	assert_int_equal(slots[VB_SLOT_MAX].number, slots[100].number);
	for (unsigned i = 0; i <= VB_SLOT_MAX; i++)
		if (i != 100)
			close(slots[i].fd);
	vb_broker_disconnect(broker);
}

static void client__its_death_frees_the_slot_and_disturbs_nobody(void **state)
{
	start_clients(8);
	uint8_t dead[3] = { clients[0].last.slot, clients[3].last.slot, clients[7].last.slot };
	client_kill(&clients[0]);
	client_kill(&clients[3]);
	client_kill(&clients[7]);
	for (double until = seconds() + 3; count_sockets() != 6 && seconds() < until;)
		usleep(1000);
	assert_int_equal(count_sockets(), 6);
	check_steering();
	start_clients(2);
	for (unsigned i = 0; i < 3; i++) /* not used again soon */
		assert_true(clients[8].last.slot != dead[i] && clients[9].last.slot != dead[i]);
	check_steering();
}

static void slots__neighbours_come_and_go_without_counting_as_overflow(void **state)
{
	char why[256];
	struct vb_broker *broker;
	struct vb_slot slot;
	uint32_t before[SK_MEMINFO_VARS], after[SK_MEMINFO_VARS];
	socklen_t length = sizeof(before);
	assert_int_equal(vb_broker_connect(false, client_libexec, &broker, why, sizeof(why)), 0);
	assert_int_equal(vb_broker_get_slot(broker, 65536, &slot, why, sizeof(why)), 0);
	assert_int_equal(getsockopt(slot.fd, SOL_SOCKET, SO_MEMINFO, before, &length), 0);
	start_clients(5);
	assert_true(client_do(&clients[1], ORDER_RELEASE));
	for (unsigned i = 0; i < 5; i += 2)
		client_kill(&clients[i]);
	for (double until = seconds() + 3; count_sockets() != 3 && seconds() < until;)
		usleep(1000);
	assert_int_equal(count_sockets(), 3);
	assert_int_equal(getsockopt(slot.fd, SOL_SOCKET, SO_MEMINFO, after, &length), 0);
	assert_int_equal(before[SK_MEMINFO_DROPS], after[SK_MEMINFO_DROPS]);
	vb_broker_release_slot(broker, &slot);
	close(slot.fd);
	vb_broker_disconnect(broker);
}

static void client__release_frees_the_slot(void **state)
{
	start_clients(3);
	assert_true(client_do(&clients[1], ORDER_RELEASE));
	for (double until = seconds() + 3; count_sockets() != 3 && seconds() < until;)
		usleep(1000);
	assert_int_equal(count_sockets(), 3);
	clients[1].pid = -clients[1].pid; /* has no slot: not asked */
	pid_t resting = -clients[1].pid;
	clients[1].pid = 0;
	check_steering();
	clients[1].pid = resting;
}

static void worker__killed_is_replaced_and_clients_go_on(void **state)
{
	pid_t parent, worker, next_parent, next_worker;
	start_clients(5);
	for (unsigned i = 0; i < 5; i++) {
		find_both(&parent, &worker);
		kill(worker, SIGKILL);
		check_steering();
		find_both_without(worker, &next_parent, &next_worker);
		assert_int_equal(parent, next_parent);
	}
	start_clients(2);
	check_steering();
	for (unsigned i = 0; i < client_count; i++)
		assert_int_equal(clients[i].last.recoveries, 0);
}

static void worker__killed_together_with_clients(void **state)
{
	pid_t parent, worker;
	start_clients(6);
	find_both(&parent, &worker);
	kill(worker, SIGKILL);
	client_kill(&clients[1]);
	client_kill(&clients[4]);
	for (double until = seconds() + 3; count_sockets() != 5 && seconds() < until;)
		usleep(1000);
	start_clients(1);
	assert_int_equal(count_sockets(), 6);
	check_steering();
}

static void parent__killed_is_replaced_and_clients_go_on(void **state)
{
	pid_t parent, worker;
	start_clients(5);
	for (unsigned i = 0; i < 5; i++) {
		find_both(&parent, &worker);
		kill(parent, SIGKILL);
		check_steering();
		pid_t killed = parent;
		find_both_without(killed, &parent, &worker);
	}
	start_clients(2);
	check_steering();
	client_kill(&clients[2]);
	for (double until = seconds() + 3; count_sockets() != 7 && seconds() < until;)
		usleep(1000);
	check_steering();
	for (unsigned i = 0; i < client_count; i++)
		assert_int_equal(clients[i].last.recoveries, 0);
}

static void both__killed_at_once_leave_the_slots_right(void **state)
{
	start_clients(6);
	client_kill(&clients[0]); /* so that indices are not those of the first day */
	for (double until = seconds() + 3; count_sockets() != 6 && seconds() < until;)
		usleep(1000);
	for (unsigned round = 1; round <= 3; round++) {
		for (unsigned i = 0; i < client_count; i++) /* stopped: nobody recovers yet */
			if (clients[i].pid)
				kill(clients[i].pid, SIGSTOP);
		kill_both();
		assert_true(wait_for_brokers(0, 2));
		assert_int_equal(count_sockets(), 5);
		send_to_all(); /* the sockets that are left are where they were */
		for (unsigned i = 0; i < client_count; i++)
			if (clients[i].pid)
				kill(clients[i].pid, SIGCONT);
		collect_all(true);
		wait_for_recoveries(round, 3);
		check_steering();
	}
	start_clients(3);
	check_steering();
}

static void both__killed_with_a_client(void **state)
{
	start_clients(8);
	kill_both();
	client_kill(&clients[0]);
	client_kill(&clients[2]);
	client_kill(&clients[5]);
	double begin = seconds();
	wait_for_recoveries(1, 3);
	print_message("recovered in %.0f ms\n", (seconds() - begin) * 1e3);
	check_steering();
	start_clients(4);
	check_steering();
}

static void both__killed_while_a_client_is_stopped(void **state)
{
	start_clients(4);
	kill(clients[1].pid, SIGSTOP);
	kill_both();
	for (unsigned i = 0; i < 4; i++) {
		if (i == 1)
			continue;
		do {
			assert_true(client_do(&clients[i], ORDER_COLLECT));
		} while (clients[i].last.recoveries != 1);
	}
	start_clients(1);
	kill(clients[1].pid, SIGCONT);
	do {
		assert_true(client_do(&clients[1], ORDER_COLLECT));
	} while (clients[1].last.recoveries != 1);
	check_steering();
}

/* Steering is right within a second of the last death: a datagram of a moment ago may have gone astray. */
static void wait_for_right_steering(void)
{
	for (double until = seconds() + 3;; usleep(20000)) {
		bool all = true;
		send_to_all();
		for (unsigned i = 0; i < client_count; i++) {
			if (!clients[i].pid)
				continue;
			assert_true(client_do(&clients[i], ORDER_COLLECT));
			all = all && clients[i].last.good == 2 * ROUNDS && clients[i].last.strays == 0;
		}
		if (all)
			break;
		assert_true(seconds() < until);
	}
	check_steering();
}

static void chaos__whoever_dies_the_rest_is_put_right(void **state)
{
	const char *given = getenv("BROKER_TEST_SEED"), *steps_given = getenv("BROKER_TEST_STEPS");
	unsigned seed = given ? (unsigned)atoi(given) : (unsigned)getpid();
	unsigned steps = steps_given ? (unsigned)atoi(steps_given) : 60;
	print_message("BROKER_TEST_SEED=%u\n", seed);
	srandom(seed);
	start_clients(12);
	for (unsigned step = 0; step < steps; step++) {
		pid_t parent, worker;
		unsigned victim = (unsigned)random() % 12;
		find_brokers(&parent, &worker);
		switch (random() % 5) {
		case 0:
			if (worker)
				kill(worker, SIGKILL);
			break;
		case 1:
			if (parent)
				kill(parent, SIGKILL);
			break;
		case 2:
			if (parent) {
				kill(worker, SIGSTOP);
				kill(parent, SIGKILL);
				kill(worker, SIGKILL);
			}
			break;
		default:
			client_kill(&clients[victim]);
			client_start(&clients[victim], 0);
			client_order(&clients[victim], &(struct order){ .kind = ORDER_SLOT });
			assert_true(client_wait(&clients[victim]));
			if (clients[victim].last.rc)
				print_error("step %u: %s\n", step, clients[victim].last.why);
			assert_int_equal(clients[victim].last.rc, 0);
		}
		usleep((useconds_t)random() % 4000);
		if (step % 8 == 7)
			wait_for_right_steering();
	}
	wait_for_right_steering();
	for (double until = seconds() + 3; count_sockets() != 13 && seconds() < until;)
		usleep(2000);
	assert_int_equal(count_sockets(), 13);
}

static void broker__leaves_when_nobody_needs_it(void **state)
{
	start_clients(2);
	client_kill(&clients[0]);
	client_kill(&clients[1]);
	usleep(300000);
	assert_true(wait_for_brokers(2, 0.1));
	assert_true(wait_for_brokers(0, 3));
	assert_int_equal(count_sockets(), 0);
}

static void broker__twenty_that_start_at_once_share_one(void **state)
{
	for (unsigned round = 0; round < 3; round++) {
		pid_t parent, worker;
		start_clients(20);
		assert_true(wait_for_brokers(2, 2));
		check_steering();
		assert_int_equal(find_brokers(&parent, &worker), 2);
		tear_down(NULL);
	}
}

static void broker__of_another_user_is_refused(void **state)
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

static void broker__of_root_serves_everybody(void **state)
{
	if (geteuid() != 0) {
		print_message("skipped: needs root to have two users\n");
		skip();
	}
	start_clients(1);
	client_start(&clients[client_count++], NOBODY);
	assert_true(client_do(&clients[1], ORDER_SLOT));
	assert_int_equal(clients[1].last.rc, 0);
	check_steering();
}

static void start__port_taken_says_by_whom(void **state)
{
	char why[256], us[64];
	struct vb_broker *broker;
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	int rc = vb_broker_connect(false, client_libexec, &broker, why, sizeof(why));
	close(fd);
	assert_int_equal(rc, -EADDRINUSE);
	snprintf(us, sizeof(us), "(pid %d)", getpid());
	/* In a user namespace we have capabilities that the broker has not, so it may not look into us. */
	if (!strstr(why, us))
		assert_non_null(strstr(why, "of this user"));
}

static void start__missing_program_is_named(void **state)
{
	char why[256];
	struct vb_broker *broker;
	assert_int_equal(vb_broker_connect(false, "/nonexistent", &broker, why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, "/nonexistent"));
}

static void start__program_that_cannot_run_is_named(void **state)
{
	char why[256], directory[] = "/tmp/broker-test-XXXXXX", path[64];
	struct vb_broker *broker;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/" VB_BROKER_PROGRAM, directory);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	int rc = vb_broker_connect(false, directory, &broker, why, sizeof(why));
	unlink(path);
	rmdir(directory);
	assert_int_equal(rc, -EACCES);
	assert_non_null(strstr(why, path));
}

/* ---- Bad clients ----------------------------------------------------------------------------------------------- */

static int connect_raw(void)
{
	struct sockaddr_un address;
	socklen_t length = vb_abstract_address(&address, VB_BROKER_NAME);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, length), 0);
	return fd;
}

/* The answer's error, 0 for anything else that was said, -1 when the connection was ended. */
static int answer_of(int fd)
{
	struct vb_message message;
	int passed;
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	assert_true(poll(&wait, 1, 5000) > 0);
	if (vb_message_receive(fd, &message, &passed))
		return -1;
	if (passed >= 0)
		close(passed);
	return message.kind == VB_MESSAGE_REFUSED ? message.error : 0;
}

static void bad_client__is_refused_and_leaks_nothing(void **state)
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
	assert_int_equal(vb_send_with_fds(fd, &steal, sizeof(steal), many, 4, 0), 0);
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
	assert_int_equal(count_descriptors(worker), before);
	assert_int_equal(count_descriptors(parent), parent_before);
	check_steering();
}

static void bad_client__that_never_reads_is_dropped(void **state)
{
	start_clients(1);
	int fd = connect_raw();
	const struct vb_message hello = { .kind = VB_MESSAGE_HELLO };
	double until = seconds() + 5;
	int rc = 0;
	while (seconds() < until && (rc = vb_message_send(fd, &hello, NULL)) != -EPIPE && rc != -ECONNRESET)
		;
	assert_true(rc == -EPIPE || rc == -ECONNRESET);
	close(fd);
	check_steering();
}

/* ---- Discovery ------------------------------------------------------------------------------------------------- */

static void discovery__own_host_is_known_and_nobody_is_nobody(void **state)
{
	start_clients(1);
	uint32_t buffer = clients[0].last.receive_buffer;
	struct order ask = { .kind = ORDER_DISCOVER, .sgid = vb_gid_from_ipv4(127, 0, 0, 1),
		.gid = vb_gid_from_ipv4(127, 0, 0, 1) };
	client_order(&clients[0], &ask);
	assert_true(client_wait(&clients[0]));
	assert_true(clients[0].last.is_verbena);
	assert_int_equal(clients[0].last.receive_buffer, buffer);
	ask.gid = vb_gid_from_ipv4(10, 99, 99, 99);
	double begin = seconds();
	client_order(&clients[0], &ask);
	assert_true(client_wait(&clients[0]));
	assert_false(clients[0].last.is_verbena);
	assert_true(seconds() - begin > 0.25 && seconds() - begin < 2);
	begin = seconds();
	client_order(&clients[0], &ask); /* remembered */
	assert_true(client_wait(&clients[0]));
	assert_false(clients[0].last.is_verbena);
	assert_true(seconds() - begin < 0.2);
}

static void mad__is_answered_at_its_own_length(void **state)
{
	char why[256];
	struct vb_broker *broker;
	struct vb_broker_notice notice;
	uint8_t mad[VB_MAD_LENGTH];
	struct vb_gid lo = vb_gid_from_ipv4(127, 0, 0, 1);
	static const uint32_t lengths[] = { 256, 257, 1024, 4096 };
	assert_int_equal(vb_broker_connect(false, client_libexec, &broker, why, sizeof(why)), 0);
	for (unsigned i = 0; i < 4; i++) {
		struct vb_discovery answer, question = { .transaction_id = 0x123456789abcull + i,
			.version = VB_DISCOVERY_VERSION };
		vb_discovery_encode(&question, mad);
		assert_int_equal(vb_broker_send_mad(broker, &lo, &lo, mad, lengths[i]), 0);
		for (double until = seconds() + 3; seconds() < until; usleep(1000)) {
			vb_broker_next_notice(broker, &notice);
			if (notice.kind == VB_BROKER_MAD)
				break;
		}
		assert_int_equal(notice.kind, VB_BROKER_MAD);
		assert_int_equal(notice.length, lengths[i]);
		assert_true(vb_discovery_decode(&answer, notice.mad));
		assert_true(answer.is_response && answer.transaction_id == question.transaction_id);
	}
	assert_int_equal(vb_broker_send_mad(broker, &lo, &lo, mad, 255), -EINVAL);
	assert_int_equal(vb_broker_send_mad(broker, &lo, &lo, mad, 4097), -EINVAL);
	vb_broker_disconnect(broker);
}

static void discovery__finds_verbena_over_the_wire(void **state)
{
	char command[1024];
	if (geteuid() != 0 || access("/proc/self/ns/net", R_OK) || system("ip link show lo >/dev/null 2>&1") ||
		system("nsenter --version >/dev/null 2>&1")) {
		print_message("skipped: needs root, ip and nsenter for a second host\n");
		skip();
	}
	client_start(&clients[client_count++], 0);
	client_start(&clients[client_count++], 0);
	assert_true(client_do(&clients[1], ORDER_MOVE_AWAY));
	assert_int_equal(clients[1].last.rc, 0);
	snprintf(command, sizeof(command),
		"set -e; ip link add vbt0 type veth peer name vbt1 netns %d; ip addr add 10.77.0.1/24 dev vbt0; "
		"ip addr add fd77::1/64 dev vbt0 nodad; ip link set vbt0 up; "
		"nsenter -t %d -n sh -ec 'ip link set lo up; ip addr add 10.77.0.2/24 dev vbt1; "
		"ip addr add fd77::2/64 dev vbt1 nodad; ip link set vbt1 up'; "
		"sleep 1.5", /* until the fresh link passes IPv6 */
		clients[1].pid, clients[1].pid);
	assert_int_equal(system(command), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(client_do(&clients[i], ORDER_SLOT));
		assert_int_equal(clients[i].last.rc, 0);
	}
	uint32_t buffer = clients[1].last.receive_buffer;
	struct order ask = { .kind = ORDER_DISCOVER, .sgid = vb_gid_from_ipv4(10, 77, 0, 1),
		.gid = vb_gid_from_ipv4(10, 77, 0, 2) };
	for (unsigned i = 0; i < 2; i++) {
		clients[0].last.is_verbena = false;
		client_order(&clients[0], &ask);
		assert_true(client_wait(&clients[0]));
		assert_true(clients[0].last.is_verbena);
		assert_int_equal(clients[0].last.receive_buffer, buffer);
		ask.sgid = (struct vb_gid){ { 0xfd, 0x77, [15] = 1 } };
		ask.gid = (struct vb_gid){ { 0xfd, 0x77, [15] = 2 } };
	}
	ask.sgid = vb_gid_from_ipv4(10, 77, 0, 1);
	ask.gid = vb_gid_from_ipv4(10, 77, 0, 3);
	client_order(&clients[0], &ask);
	assert_true(client_wait(&clients[0]));
	assert_false(clients[0].last.is_verbena);
	assert_int_equal(system("ip link del vbt0"), 0);
}

/* ---- Setting up ------------------------------------------------------------------------------------------------ */

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool is_written = fd >= 0 && write(fd, text, strlen(text)) > 0;
	if (fd >= 0)
		close(fd);
	return is_written;
}

/* A network namespace of our own with lo up; false where that is not allowed. */
static bool enter_namespace(void)
{
	char map[64];
	uid_t uid = geteuid();
	gid_t gid = getegid();
	if (uid == 0) {
		if (unshare(CLONE_NEWNET))
			return false;
	} else {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
			return false;
		write_file("/proc/self/setgroups", "deny");
		snprintf(map, sizeof(map), "%u %u 1", uid, uid);
		if (!write_file("/proc/self/uid_map", map))
			return false;
		snprintf(map, sizeof(map), "%u %u 1", gid, gid);
		write_file("/proc/self/gid_map", map);
	}
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK | IFF_MULTICAST };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	bool is_up = ioctl(fd, SIOCSIFFLAGS, &lo) == 0;
	close(fd);
	return is_up;
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(slots__each_process_gets_its_own_datagrams),
		TEST(slots__sixty_four_processes_at_once),
		TEST(slots__strays_reach_nobody),
		TEST(slots__multicast_reaches_only_those_who_joined),
		TEST(slots__the_last_one_taken_is_an_error_that_says_so),
		TEST(client__its_death_frees_the_slot_and_disturbs_nobody),
		TEST(slots__neighbours_come_and_go_without_counting_as_overflow),
		TEST(client__release_frees_the_slot),
		TEST(worker__killed_is_replaced_and_clients_go_on),
		TEST(worker__killed_together_with_clients),
		TEST(parent__killed_is_replaced_and_clients_go_on),
		TEST(both__killed_at_once_leave_the_slots_right),
		TEST(both__killed_with_a_client),
		TEST(both__killed_while_a_client_is_stopped),
		TEST(chaos__whoever_dies_the_rest_is_put_right),
		TEST(broker__leaves_when_nobody_needs_it),
		TEST(broker__twenty_that_start_at_once_share_one),
		TEST(broker__of_another_user_is_refused),
		TEST(broker__of_root_serves_everybody),
		TEST(start__port_taken_says_by_whom),
		TEST(start__missing_program_is_named),
		TEST(start__program_that_cannot_run_is_named),
		TEST(bad_client__is_refused_and_leaks_nothing),
		TEST(bad_client__that_never_reads_is_dropped),
		TEST(discovery__own_host_is_known_and_nobody_is_nobody),
		TEST(mad__is_answered_at_its_own_length),
		TEST(discovery__finds_verbena_over_the_wire),
	};
	static char directory[4096];
	if (argc < 2 || !realpath(argv[1], directory)) {
		fprintf(stderr, "usage: broker_test DIRECTORY_OF_BROKER [nobody] [PATTERN]\n");
		return 2;
	}
	client_libexec = directory;
	bool as_nobody = argc > 2 && strcmp(argv[2], "nobody") == 0;
	if (argc > 2 + as_nobody)
		cmocka_set_test_filter(argv[2 + as_nobody]);
	if (as_nobody && geteuid() != 0) {
		printf("SKIP: becoming nobody needs root\n");
		return 77;
	}
	if (!enter_namespace()) {
		printf("SKIP: no network namespace may be made here (%s)\n", strerror(errno));
		return 77;
	}
	if (as_nobody && (setgid(NOBODY) || setuid(NOBODY) || prctl(PR_SET_DUMPABLE, 1)))
		return 1;
	char program[4200];
	snprintf(program, sizeof(program), "%s/" VB_BROKER_PROGRAM, directory);
	if (access(program, X_OK)) {
		printf("SKIP: uid %u may not run %s\n", geteuid(), program);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
