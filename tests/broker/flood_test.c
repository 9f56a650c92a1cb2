/* What the network may do: floods of forged requests, with live listeners and honest peers in them. */
#include <errno.h>
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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "harness.h"
#include "raw.h"
#include "wire/icrc.h"

static void send_req(int fd, uint16_t source_port, uint16_t port, uint32_t id)
{
	const struct vb_flow flow = { .src = loopback(), .dst = loopback(), .src_port = source_port, .dst_port = PORT };
	const struct vb_cm_message req = { .kind = VB_CM_REQ,
		.transaction_id = id,
		.local_id = id,
		.req.service_id = vb_cm_service_id(VB_CM_PS_TCP, port) };
	uint8_t mad[VB_MAD_LENGTH], packet[VB_MAD_PACKET_BYTES];
	vb_cm_encode(&req, mad);
	size_t length = vb_mad_packet(&flow, id, mad, sizeof(mad), packet);
	assert_int_equal(send(fd, packet, length, 0), length);
}

static int open_flood(uint16_t *source_port)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
	};
	struct sockaddr_in us;
	socklen_t length = sizeof(us);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), probe = IP_PMTUDISC_PROBE;
	setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe));
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&us, &length), 0);
	*source_port = ntohs(us.sin_port);
	return fd;
}

/* More requests than its socket holds, and more questions than there is room for their answers. */
void flood__leaves_a_listener_that_does_not_read_its_connection(void **state)
{
	enum { QUESTIONS = 400 };
	start_clients(1);
	int connection = connect_raw(), fd;
	uint16_t source_port;
	unsigned answers = 0;
	listen_at(connection, 7472);
	int flood = open_flood(&source_port);
	for (uint32_t i = 1; i <= 3000; i++) {
		send_req(flood, source_port, 7472, i);
		if (i % 50 == 0)
			usleep(2000);
	}
	for (unsigned i = 0; i < QUESTIONS;) {
		int rc = hello(connection);
		assert_true(rc == 0 || rc == -EAGAIN);
		if (rc)
			usleep(1000);
		else
			i++;
	}
	usleep(200000);
	struct vb_message message;
	struct pollfd wait = { .fd = connection, .events = POLLIN };
	while (poll(&wait, 1, 500) > 0) {
		assert_int_equal(vb_message_receive(connection, &message, &fd), 0);
		answers += message.kind == VB_MESSAGE_WELCOME;
	}
	assert_int_equal(answers, QUESTIONS);
	close(flood);
	close(connection);
}

/* ---- An honest peer in a flood ----------------------------------------------------------------------------------- */

#define HONEST_TRIES 20

static struct vb_gid host(uint8_t number)
{
	return vb_gid_from_ipv4(10, 77, 0, number);
}

static void post_to(int connection, uint8_t from, uint8_t to, const struct vb_cm_message *cm)
{
	struct vb_message message = {
		.kind = VB_MESSAGE_POST_MAD, .sgid = host(from), .gid = host(to), .length = VB_MAD_LENGTH
	};
	vb_cm_encode(cm, message.mad);
	while (vb_message_send(connection, &message, NULL) == -EAGAIN)
		usleep(1000);
}

/* Rejects the honest peer's requests, and counts the others'. */
static pid_t start_listener(volatile unsigned *strangers)
{
	pid_t pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int connection = connect_raw(), fd;
	listen_at(connection, 7471);
	for (struct vb_message message;;) {
		struct pollfd wait = { .fd = connection, .events = POLLIN };
		struct vb_cm_message cm;
		struct vb_gid honest = host(2);
		poll(&wait, 1, -1);
		if (vb_message_receive(connection, &message, &fd))
			_exit(1);
		if (message.kind != VB_MESSAGE_MAD || !vb_cm_decode(&cm, message.mad) || cm.kind != VB_CM_REQ)
			continue;
		if (!vb_gid_equal(&message.gid, &honest)) {
			++*strangers;
			continue;
		}
		post_to(connection, 1, 2,
			&(struct vb_cm_message){ .kind = VB_CM_REJ,
				.remote_id = cm.local_id,
				.transaction_id = cm.transaction_id,
				.rej.reason = VB_CM_REJ_CONSUMER });
	}
}

/* How long until the request is answered, which is repeated every second; milliseconds. */
static double ask_as_honest_peer(int connection, uint32_t id)
{
	double begin = seconds();
	while (seconds() < begin + 10) {
		struct vb_cm_message cm = { .kind = VB_CM_REQ,
			.local_id = id,
			.transaction_id = id,
			.req.service_id = vb_cm_service_id(VB_CM_PS_TCP, 7471) };
		struct pollfd wait = { .fd = connection, .events = POLLIN };
		struct vb_message message;
		int fd;
		post_to(connection, 2, 1, &cm);
		if (poll(&wait, 1, 1000) > 0 && vb_message_receive(connection, &message, &fd) == 0 &&
			message.kind == VB_MESSAGE_MAD && vb_cm_decode(&cm, message.mad) && cm.kind == VB_CM_REJ)
			break;
	}
	return (seconds() - begin) * 1e3;
}

static int compare_times(const void *a, const void *b)
{
	double difference = *(const double *)a - *(const double *)b;
	return (difference > 0) - (difference < 0);
}

/* On another host, with a broker of its own: says when it is there, asks when it is told, and tells how long it
 * took. */
static pid_t start_honest_peer(int link[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link), 0);
	pid_t pid = fork();
	if (pid)
		return pid;
	char byte = 0, why[256];
	struct vb_broker *broker;
	double times[HONEST_TRIES];
	int socket;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNET) || write(link[1], &byte, 1) != 1 || read(link[1], &byte, 1) != 1 ||
		client_connect(&broker, why, sizeof(why)))
		_exit(1);
	int connection = connect_raw();
	uint32_t id = (uint32_t)get_slot(connection, &socket) << 24;
	for (unsigned i = 0; i < HONEST_TRIES; i++, usleep(50000))
		times[i] = ask_as_honest_peer(connection, id + 1 + i);
	qsort(times, HONEST_TRIES, sizeof(times[0]), compare_times);
	_exit(write(link[1], times, sizeof(times)) != sizeof(times));
}

static void check_honest_peer(const char *kind, const char *rate)
{
	char command[1500], exe[1000] = "";
	int link[2], status;
	double times[HONEST_TRIES];
	if (!is_root() || system("nsenter --version >/dev/null 2>&1 && ip link show lo >/dev/null 2>&1"))
		skip();
	start_clients(1);
	unsigned *strangers = mmap(NULL, sizeof(*strangers), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(strangers, MAP_FAILED);
	pid_t listener = start_listener(strangers), peer = start_honest_peer(link);
	char byte;
	assert_int_equal(read(link[0], &byte, 1), 1);
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	*strrchr(exe, '/') = 0;
	snprintf(command, sizeof(command),
		"set -e; ip link add vbt0 type veth peer name vbt1 netns %d; ip addr add 10.77.0.1/24 dev vbt0; "
		"ip link set vbt0 up; nsenter -t %d -n sh -ec 'ip link set lo up; ip addr add 10.77.0.2/24 dev vbt1; "
		"ip link set vbt1 up'; sleep 0.5; "
		"nsenter -t %d -n '%s/../chaos/flood' --kind %s --rate %s --seconds 6 --spoof-random 10.77.0.1 "
		">/dev/null & "
		"sleep 1",
		peer, peer, peer, exe, kind, rate);
	assert_int_equal(system(command), 0);
	assert_int_equal(write(link[0], "g", 1), 1);
	assert_int_equal(recv(link[0], times, sizeof(times), MSG_WAITALL), sizeof(times));
	assert_int_equal(waitpid(peer, &status, 0), peer);
	kill(listener, SIGKILL);
	waitpid(listener, NULL, 0);
	close(link[0]);
	close(link[1]);
	assert_int_equal(system("ip link del vbt0 2>/dev/null || true"), 0);
	print_message("%s a second of kind %s: answered in %.1f ms (median), %.1f ms at most; %u others heard\n", rate,
		kind, times[HONEST_TRIES / 2], times[HONEST_TRIES - 1], *strangers);
	assert_true(times[HONEST_TRIES / 2] < (IS_SANITIZED ? 2500 : 100));
	assert_true(times[HONEST_TRIES - 1] <
		    (IS_SANITIZED ? 10000 : 2500)); /* one may be lost where the machine is busy */
	assert_true(*strangers < 12000);            /* of so many a second */
	munmap(strangers, sizeof(*strangers));
}

void flood__of_requests_does_not_hinder_an_honest_peer(void **state)
{
	const char *rate = getenv("BROKER_TEST_FLOOD");
	check_honest_peer("req", rate ? rate : "35000");
}

void flood__of_questions_does_not_hinder_an_honest_peer(void **state)
{
	const char *rate = getenv("BROKER_TEST_FLOOD");
	check_honest_peer("discovery", rate ? rate : "51000");
}
