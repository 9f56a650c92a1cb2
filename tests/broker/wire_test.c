/* What goes over the wire: discovery and other MADs, and steering where the kernel merges datagrams. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "harness.h"
#include "host/client/broker.h"
#include "wire/mad.h"

void discovery__own_host_is_known_and_nobody_is_nobody(void **state)
{
	start_clients(2);
	uint32_t buffer = clients[0].last.receive_buffer;
	struct order ask = {
		.kind = ORDER_DISCOVER, .sgid = vb_gid_from_ipv4(127, 0, 0, 1), .gid = vb_gid_from_ipv4(127, 0, 0, 1)
	};
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
	client_order(&clients[1], &ask); /* remembered */
	assert_true(client_wait(&clients[1]));
	assert_int_equal(clients[1].last.rc, 0);
	assert_false(clients[1].last.is_verbena);
	assert_true(seconds() - begin < 0.28);
}

static void pass_on(void *to, const struct vb_broker_notice *notice)
{
	if (write(*(const int *)to, notice, sizeof(*notice)) < 0)
		abort();
}

void mad__is_answered_at_its_own_length(void **state)
{
	char why[256];
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	struct vb_broker *broker;
	const struct vb_broker_config config = { .libexec = client_libexec, .hear = pass_on, .user = &ends[1] };
	struct vb_broker_notice notice;
	uint8_t mad[VB_MAD_LENGTH];
	struct vb_gid lo = vb_gid_from_ipv4(127, 0, 0, 1);
	static const uint32_t lengths[] = { 256, 257, 1024, 4096 };
	assert_int_equal(vb_broker_connect(&config, &broker, why, sizeof(why)), 0);
	for (unsigned i = 0; i < 4; i++) {
		struct vb_discovery answer,
			question = { .transaction_id = 0x123456789abcull + i, .version = VB_DISCOVERY_VERSION };
		vb_discovery_encode(&question, mad);
		assert_int_equal(vb_broker_send_mad(broker, &lo, &lo, mad, lengths[i]), 0);
		struct pollfd wait = { .fd = ends[0], .events = POLLIN };
		assert_int_equal(poll(&wait, 1, PATIENCE_S * 1000), 1);
		assert_int_equal(read(ends[0], &notice, sizeof(notice)), sizeof(notice));
		assert_int_equal(notice.kind, VB_BROKER_MAD);
		assert_int_equal(notice.length, lengths[i]);
		assert_true(vb_discovery_decode(&answer, notice.mad));
		assert_true(answer.is_response && answer.transaction_id == question.transaction_id);
	}
	assert_int_equal(vb_broker_send_mad(broker, &lo, &lo, mad, 255), -EINVAL);
	assert_int_equal(vb_broker_send_mad(broker, &lo, &lo, mad, 4097), -EINVAL);
	vb_broker_disconnect(broker);
	close(ends[0]);
	close(ends[1]);
}

void discovery__finds_verbena_over_the_wire(void **state)
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
	struct order ask = {
		.kind = ORDER_DISCOVER, .sgid = vb_gid_from_ipv4(10, 77, 0, 1), .gid = vb_gid_from_ipv4(10, 77, 0, 2)
	};
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

/* ---- Merging ----------------------------------------------------------------------------------------------------- */

#define BURSTS       200
#define BURST        16
#define PACKET_BYTES 1056

/* Equal datagrams, turn about to two slots, in bursts that meet in the receiver's NAPI; a slot has a source port of its
 * own, as the port sends. Each burst is sent when it is asked for: the link holds a few and drops the rest. */
static void send_alternating(int family, const uint8_t slots[2], int link)
{
	struct sockaddr_in four = {
		.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(0x0a4d0001)
	};
	struct sockaddr_in6 six = {
		.sin6_family = AF_INET6, .sin6_port = htons(PORT), .sin6_addr.s6_addr = { 0xfd, 0x77, [15] = 1 }
	};
	static uint8_t bytes[2][PACKET_BYTES];
	int fds[2];
	for (unsigned i = 0; i < 2; i++) {
		bytes[i][0] = 0x07;
		bytes[i][5] = slots[i];
		fds[i] = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (connect(fds[i], family == AF_INET ? (struct sockaddr *)&four : (struct sockaddr *)&six,
			    family == AF_INET ? sizeof(four) : sizeof(six)))
			_exit(1);
	}
	char byte;
	for (unsigned burst = 0; burst < BURSTS && read(link, &byte, 1) == 1; burst++)
		for (unsigned i = 0; i < BURST; i++)
			if (send(fds[i % 2], bytes[i % 2], PACKET_BYTES, 0) < 0)
				_exit(1);
}

/* A process on another host: says when it is there, and sends when it is told. */
static pid_t start_sender(int link[2], const uint8_t slots[2])
{
	char byte = 0;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNET) || write(link[1], &byte, 1) != 1 || read(link[1], &byte, 1) != 1)
			_exit(1);
		send_alternating(AF_INET, slots, link[1]);
		send_alternating(AF_INET6, slots, link[1]);
		_exit(0);
	}
	assert_int_equal(read(link[0], &byte, 1), 1);
	return pid;
}

/* Two clients behind so many that have left. */
static void check_merging(unsigned local_peers)
{
	char command[1500];
	int link[2], status = 0;
	if (geteuid() != 0 || system("ethtool --version >/dev/null 2>&1 && nsenter --version >/dev/null 2>&1 && "
				     "ip link show lo >/dev/null 2>&1")) {
		print_message("skipped: needs root, ip, nsenter and ethtool for a link that merges\n");
		skip();
	}
	start_clients_in_order(local_peers + 2);
	for (unsigned i = 0; i < local_peers; i++)
		client_kill(&clients[i]);
	struct client_process *two = &clients[local_peers];
	const uint8_t slots[2] = { two[0].last.slot, two[1].last.slot };
	pid_t sender = start_sender(link, slots);
	snprintf(command, sizeof(command),
		"set -e; ip link add vbt0 type veth peer name vbt1 netns %d; ip addr add 10.77.0.1/24 dev vbt0; "
		"ip addr add fd77::1/64 dev vbt0 nodad; ethtool -K vbt0 gro on; ip link set vbt0 up; "
		"unshare -m sh -ec 'mount -t sysfs s /sys; cd /sys/class/net/vbt0; echo 1 >threaded; "
		"echo 200000 >gro_flush_timeout; echo 10 >napi_defer_hard_irqs'; "
		"nsenter -t %d -n sh -ec 'ip addr add 10.77.0.2/24 dev vbt1; ip addr add fd77::2/64 dev vbt1 nodad; "
		"ethtool -K vbt1 tso off gso off; ip link set vbt1 up'; sleep 1.5",
		sender, sender);
	assert_int_equal(system(command), 0);
	assert_int_equal(write(link[0], "g", 1), 1);
	unsigned merged[2] = { 0 };
	for (unsigned burst = 0; burst < 2 * BURSTS; burst++) {
		assert_int_equal(write(link[0], "g", 1), 1);
		for (unsigned i = 0; i < 2; i++) {
			collect(&two[i], BURST / 2);
			merged[i] += two[i].last.merged;
		}
	}
	assert_int_equal(waitpid(sender, &status, 0), sender);
	assert_int_equal(status, 0);
	print_message("%u of %u packets came merged\n", merged[0] + merged[1], 2 * BURSTS * BURST);
	assert_true(merged[0] > 0 && merged[1] > 0);
	close(link[0]);
	close(link[1]);
}

void steering__stays_right_when_the_kernel_merges(void **state)
{
	check_merging(0);
}

/* The kernel asks any socket of the group whether datagrams may be merged, those that keep a place too. */
void steering__places_that_are_kept_do_not_stop_merging(void **state)
{
	check_merging(14);
}
