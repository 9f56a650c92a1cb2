/* See harness.h. */
#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "harness.h"
#include "host/protocol.h"

struct client_process clients[MAX_CLIENTS];
unsigned client_count;

double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- Looking at the system --------------------------------------------------------------------------------------- */

/* The broker's processes in this namespace. */
unsigned find_brokers(pid_t *parent, pid_t *worker)
{
	pid_t found[MAX_BROKERS];
	unsigned count = list_brokers(found);
	*parent = *worker = 0;
	for (unsigned i = 0; i < count; i++)
		for (unsigned j = 0; j < count; j++)
			if (parent_of(found[i]) == found[j]) {
				*worker = found[i];
				*parent = found[j];
			}
	return count;
}

bool wait_for_brokers(unsigned wanted, double limit)
{
	pid_t parent, worker;
	for (double until = seconds() + limit; seconds() < until; usleep(5000))
		if (find_brokers(&parent, &worker) == wanted)
			return true;
	return false;
}

void find_both(pid_t *parent, pid_t *worker)
{
	assert_true(wait_for_brokers(2, PATIENCE_S));
	find_brokers(parent, worker);
	assert_true(*parent && *worker);
}

/* Both are there, and neither is the one that was killed. */
void find_both_without(pid_t killed, pid_t *parent, pid_t *worker)
{
	for (double until = seconds() + PATIENCE_S; seconds() < until; usleep(2000))
		if (find_brokers(parent, worker) == 2 && *parent && *parent != killed && *worker != killed)
			return;
	fail_msg("no pair of broker processes without %d", killed);
}

/* None of the two may see the other die. */
void kill_both(void)
{
	pid_t parent, worker;
	find_both(&parent, &worker);
	kill(worker, SIGSTOP);
	kill(parent, SIGKILL);
	kill(worker, SIGKILL);
}

static unsigned sockets_of_all(pid_t unused)
{
	return count_sockets();
}

/* For good: the broker opens and closes some in between, when it makes its group anew. */
static bool settles_at(unsigned wanted, unsigned (*count)(pid_t pid), pid_t pid)
{
	enum { TIMES = 5 };
	unsigned times = 0;
	for (double until = seconds() + PATIENCE_S; times < TIMES && seconds() < until; usleep(2000))
		times = count(pid) == wanted ? times + 1 : 0;
	return times == TIMES;
}

void await_sockets(unsigned count)
{
	if (!settles_at(count, sockets_of_all, 0))
		fail_msg("%u sockets, not %u", count_sockets(), count);
}

unsigned count_descriptors(pid_t pid)
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

void await_descriptors(pid_t pid, unsigned count)
{
	if (settles_at(count, count_descriptors, pid))
		return;
	say_process(pid);
	fail_msg("process %d has %u descriptors, not %u", pid, count_descriptors(pid), count);
}

/* ---- Traffic ----------------------------------------------------------------------------------------------------- */

void send_bytes(int family, const char *to4, const uint8_t *bytes, size_t length)
{
	struct sockaddr_in four = {
		.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
	};
	struct sockaddr_in6 six = {
		.sin6_family = AF_INET6, .sin6_port = htons(PORT), .sin6_addr = IN6ADDR_LOOPBACK_INIT
	};
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

void send_to_qpn(int family, uint32_t qpn)
{
	const uint8_t bytes[64] = {
		[0] = 0x04, [5] = (uint8_t)(qpn >> 16), [6] = (uint8_t)(qpn >> 8), [7] = (uint8_t)qpn
	};
	send_bytes(family, NULL, bytes, sizeof(bytes));
}

void send_to_all(void)
{
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < client_count; i++)
			if (clients[i].pid) {
				send_to_qpn(AF_INET, (uint32_t)clients[i].last.slot << 16 | (round + 7));
				send_to_qpn(AF_INET6, (uint32_t)clients[i].last.slot << 16 | (round + 7));
			}
}

void collect(struct client_process *client, unsigned wanted)
{
	unsigned good = 0, merged = 0;
	for (double until = seconds() + PATIENCE_S;; usleep(200)) {
		assert_true(client_do(client, ORDER_COLLECT));
		assert_int_equal(client->last.strays, 0);
		good += client->last.good;
		merged += client->last.merged;
		if (good >= wanted || seconds() > until)
			break;
	}
	client->last.good = good;
	client->last.merged = merged;
	assert_int_equal(good, wanted);
}

void collect_all(bool is_right)
{
	for (unsigned i = 0; i < client_count; i++)
		if (clients[i].pid && is_right)
			collect(&clients[i], 2 * ROUNDS);
		else if (clients[i].pid)
			assert_true(client_do(&clients[i], ORDER_COLLECT));
}

void check_steering(void)
{
	send_to_all();
	collect_all(true);
}

/* ---- Clients ----------------------------------------------------------------------------------------------------- */

int connect_raw(void)
{
	struct sockaddr_un address;
	socklen_t length = vb_abstract_address(&address, VB_BROKER_NAME);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, length), 0);
	return fd;
}

int answer_of(int fd)
{
	struct vb_message message;
	int passed;
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	assert_true(poll(&wait, 1, PATIENCE_S * 1000) > 0);
	if (vb_message_receive(fd, &message, &passed))
		return -1;
	if (passed >= 0)
		close(passed);
	return message.kind == VB_MESSAGE_REFUSED ? message.error : 0;
}

void start_clients(unsigned count)
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

void start_clients_in_order(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		start_clients(1);
}

void wait_for_recoveries(unsigned wanted)
{
	double until = seconds() + PATIENCE_S;
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

int tear_down(void **state)
{
	for (unsigned i = 0; i < client_count; i++)
		client_kill(&clients[i]);
	client_count = 0;
	return clear_leftovers() ? 0 : -1;
}
