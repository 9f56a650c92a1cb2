/* What a process may do to others through its broker, and what the network may. */
#include <errno.h>
#include <linux/capability.h>
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "harness.h"
#include "host/broker.h"
#include "host/protocol.h"
#include "wire/cm.h"
#include "wire/icrc.h"

static struct vb_gid loopback(void)
{
	return vb_gid_from_ipv4(127, 0, 0, 1);
}

/* Takes a slot; *socket is its receive socket. */
static uint8_t get_slot(int connection, int *socket)
{
	const struct vb_message get = { .kind = VB_MESSAGE_GET_SLOT, .request = 1, .receive_buffer = 65536 };
	struct vb_message slot;
	struct pollfd wait = { .fd = connection, .events = POLLIN };
	assert_int_equal(vb_message_send(connection, &get, NULL), 0);
	assert_true(poll(&wait, 1, 5000) > 0);
	assert_int_equal(vb_message_receive(connection, &slot, socket), 0);
	assert_int_equal(slot.kind, VB_MESSAGE_SLOT);
	return slot.slot;
}

/* What it says of a MAD within a moment; false: nothing. */
static bool hears_mad(int connection, struct vb_cm_message *cm)
{
	struct vb_message message;
	int fd;
	struct pollfd wait = { .fd = connection, .events = POLLIN };
	while (poll(&wait, 1, 200) > 0) {
		assert_int_equal(vb_message_receive(connection, &message, &fd), 0);
		if (message.kind == VB_MESSAGE_MAD)
			return vb_cm_decode(cm, message.mad);
	}
	return false;
}

static void post(int connection, const struct vb_cm_message *cm)
{
	struct vb_message message = {
		.kind = VB_MESSAGE_POST_MAD, .sgid = loopback(), .gid = loopback(), .length = VB_MAD_LENGTH
	};
	vb_cm_encode(cm, message.mad);
	assert_int_equal(vb_message_send(connection, &message, NULL), 0);
}

static void listen_at(int connection, uint16_t port)
{
	struct vb_message message = { .kind = VB_MESSAGE_BIND,
		.request = 2,
		.binding = { .number = port, .port_space = VB_CM_PS_TCP, .port = port } };
	assert_int_equal(vb_message_send(connection, &message, NULL), 0);
	assert_int_equal(answer_of(connection), 0);
	message.kind = VB_MESSAGE_LISTEN;
	assert_int_equal(vb_message_send(connection, &message, NULL), 0);
	assert_int_equal(answer_of(connection), 0);
}

void mad__of_anothers_connection_is_not_sent(void **state)
{
	start_clients(1); /* starts the broker */
	int sockets[2], connections[2] = { connect_raw(), connect_raw() };
	struct vb_cm_message cm;
	uint32_t ids[2];
	for (unsigned i = 0; i < 2; i++)
		ids[i] = (uint32_t)get_slot(connections[i], &sockets[i]) << 24 | 7;
	const struct vb_cm_message dreq = { .kind = VB_CM_DREQ, .local_id = ids[0], .remote_id = ids[0] + 1 };
	post(connections[1], &dreq);
	assert_false(hears_mad(connections[0], &cm));
	post(connections[0], &dreq);
	assert_true(hears_mad(connections[0], &cm));
	assert_int_equal(cm.kind, VB_CM_DREQ);
	struct vb_message send = {
		.kind = VB_MESSAGE_SEND_MAD, .request = 9, .sgid = loopback(), .gid = loopback(), .length = VB_MAD_LENGTH
	};
	vb_cm_encode(&dreq, send.mad);
	assert_int_equal(vb_message_send(connections[0], &send, NULL), 0);
	assert_int_equal(answer_of(connections[0]), EPERM);
	for (unsigned i = 0; i < 2; i++) {
		close(connections[i]);
		close(sockets[i]);
	}
}

/* The answer to a request that was passed to somebody else. */
void mad__in_anothers_stead_is_not_sent(void **state)
{
	start_clients(1);
	int sockets[3], connections[3];
	uint32_t ids[3];
	struct vb_cm_message cm;
	for (unsigned i = 0; i < 3; i++) {
		connections[i] = connect_raw();
		ids[i] = (uint32_t)get_slot(connections[i], &sockets[i]) << 24 | 7;
	}
	listen_at(connections[0], 7471);
	post(connections[1], &(struct vb_cm_message){ .kind = VB_CM_REQ, .local_id = ids[1],
		.req.service_id = vb_cm_service_id(VB_CM_PS_TCP, 7471) });
	assert_true(hears_mad(connections[0], &cm));
	assert_int_equal(cm.kind, VB_CM_REQ);
	const struct vb_cm_message rej = { .kind = VB_CM_REJ, .remote_id = ids[1], .rej.reason = VB_CM_REJ_CONSUMER };
	const struct vb_cm_message rep = { .kind = VB_CM_REP, .local_id = ids[2], .remote_id = ids[1] };
	post(connections[2], &rej);
	post(connections[2], &rep);
	assert_false(hears_mad(connections[1], &cm));
	post(connections[0], &rej);
	assert_true(hears_mad(connections[1], &cm));
	assert_int_equal(cm.kind, VB_CM_REJ);
	for (unsigned i = 0; i < 3; i++) {
		close(connections[i]);
		close(sockets[i]);
	}
}

/* ---- Room -------------------------------------------------------------------------------------------------------- */

static bool is_root(void)
{
	if (geteuid() == 0)
		return true;
	print_message("skipped: needs root to have several users\n");
	return false;
}

static int connect_as(uid_t uid)
{
	assert_int_equal(seteuid(uid), 0);
	int fd = connect_raw();
	assert_int_equal(seteuid(0), 0);
	return fd;
}

static int hello(int fd)
{
	const struct vb_message message = { .kind = VB_MESSAGE_HELLO };
	return vb_message_send(fd, &message, NULL);
}

/* The refusal that it holds; false: it says something else, or nothing within two seconds. */
static bool is_refused(int fd, struct vb_message *refusal)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	int passed;
	return poll(&wait, 1, 2000) > 0 && vb_message_receive(fd, refusal, &passed) == 0 &&
		refusal->kind == VB_MESSAGE_REFUSED;
}

static void assert_welcome(int fd)
{
	double begin = seconds();
	assert_int_equal(hello(fd), 0);
	assert_int_equal(answer_of(fd), 0);
	assert_true(seconds() - begin < 0.5);
}

void broker__of_a_user_serves_that_user_and_root(void **state)
{
	struct vb_message refusal;
	if (!is_root())
		skip();
	client_start(&clients[client_count++], NOBODY);
	assert_true(client_do(&clients[0], ORDER_SLOT));
	assert_int_equal(clients[0].last.rc, 0);
	int stranger = connect_as(1001), root = connect_raw();
	assert_int_equal(hello(stranger), 0);
	assert_true(is_refused(stranger, &refusal));
	assert_int_equal(refusal.error, EPERM);
	assert_non_null(strstr(refusal.why, "65534"));
	assert_non_null(strstr(refusal.why, "VERBENA_BROKER=any"));
	assert_welcome(root);
	close(stranger);
	close(root);
}

void broker__that_is_shared_serves_everybody(void **state)
{
	if (!is_root())
		skip();
	setenv("VERBENA_BROKER", "any", 1);
	client_start(&clients[client_count++], NOBODY);
	unsetenv("VERBENA_BROKER");
	assert_true(client_do(&clients[0], ORDER_SLOT));
	assert_int_equal(clients[0].last.rc, 0);
	int stranger = connect_as(1001);
	assert_welcome(stranger);
	close(stranger);
}

#define ALL_CONNECTIONS 512

/* Its own user's, so that no limit but their number is met. */
void silent__connections_make_room_for_a_newcomer(void **state)
{
	static int silent[ALL_CONNECTIONS];
	struct vb_message refusal;
	start_clients(1);
	for (unsigned i = 0; i < ALL_CONNECTIONS - 1; i++)
		silent[i] = connect_raw();
	int early = connect_raw();
	assert_int_equal(hello(early), 0);
	assert_true(is_refused(early, &refusal));
	assert_int_equal(refusal.error, EUSERS);
	assert_non_null(strstr(refusal.why, ": 512"));
	usleep(1100000);
	int newcomer = connect_raw();
	assert_welcome(newcomer);
	close(newcomer);
	close(early);
	for (unsigned i = 0; i < ALL_CONNECTIONS - 1; i++)
		close(silent[i]);
	check_steering();
}

void connections__of_one_user_leave_room_for_others(void **state)
{
	enum { TRIES = 400, MOST = 384 };
	static int greedy[TRIES];
	struct vb_message refusal;
	unsigned refused = 0;
	if (!is_root())
		skip();
	start_clients(1);
	for (unsigned i = 0; i < TRIES; i++) {
		greedy[i] = connect_as(1001);
		hello(greedy[i]);
		if (i < MOST)
			assert_int_equal(answer_of(greedy[i]), 0);
		else if (is_refused(greedy[i], &refusal))
			refused += refusal.error == EUSERS && strstr(refusal.why, "uid 1001: 384") != NULL;
	}
	assert_int_equal(refused, TRIES - MOST);
	int other = connect_as(1002), root = connect_raw();
	assert_welcome(other);
	assert_welcome(root);
	close(other);
	close(root);
	for (unsigned i = 0; i < TRIES; i++)
		close(greedy[i]);
}

void slots__of_one_user_leave_room_for_others(void **state)
{
	enum { MOST = 191 };
	int sockets[MOST], socket;
	const struct vb_message get = { .kind = VB_MESSAGE_GET_SLOT, .request = 3, .receive_buffer = 65536 };
	struct vb_message refusal;
	if (!is_root())
		skip();
	start_clients(1);
	int greedy = connect_as(1001), other = connect_as(1002);
	for (unsigned i = 0; i < MOST; i++) {
		const struct vb_message one = {
			.kind = VB_MESSAGE_GET_SLOT, .request = 100 + i, .receive_buffer = 65536
		};
		struct vb_message slot;
		struct pollfd wait = { .fd = greedy, .events = POLLIN };
		assert_int_equal(vb_message_send(greedy, &one, NULL), 0);
		assert_true(poll(&wait, 1, 5000) > 0);
		assert_int_equal(vb_message_receive(greedy, &slot, &sockets[i]), 0);
		assert_int_equal(slot.kind, VB_MESSAGE_SLOT);
	}
	assert_int_equal(vb_message_send(greedy, &get, NULL), 0);
	assert_true(is_refused(greedy, &refusal));
	assert_int_equal(refusal.error, EUSERS);
	assert_non_null(strstr(refusal.why, "uid 1001: 191"));
	get_slot(other, &socket);
	close(socket);
	close(other);
	close(greedy);
	for (unsigned i = 0; i < MOST; i++)
		close(sockets[i]);
}

static void ask_for_slot(int fd, uint32_t request)
{
	const struct vb_message get = { .kind = VB_MESSAGE_GET_SLOT, .request = request, .receive_buffer = 65536 };
	assert_int_equal(vb_message_send(fd, &get, NULL), 0);
}

/* A process whose courier was replaced just when it had enough does so. Another's slot is another matter. */
void slot__given_back_twice_is_no_breach(void **state)
{
	start_clients(1);
	int one = connect_raw(), socket;
	struct vb_message release = { .kind = VB_MESSAGE_RELEASE_SLOT };
	release.slot = get_slot(one, &socket);
	close(socket);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(vb_message_send(one, &release, NULL), 0);
	assert_welcome(one);
	release.slot = clients[0].last.slot;
	assert_int_equal(vb_message_send(one, &release, NULL), 0);
	assert_int_equal(answer_of(one), -1);
	close(one);
}

/* A slot of his costs two connections. */
void couriers__of_one_user_leave_room_for_others(void **state)
{
	enum { MOST = 384, ALONE = 380 };
	static int greedy[MOST];
	unsigned given = 0;
	if (!is_root())
		skip();
	start_clients(1);
	for (unsigned i = 0; i < ALONE; i++) {
		greedy[i] = connect_as(1001);
		assert_int_equal(hello(greedy[i]), 0);
		assert_int_equal(answer_of(greedy[i]), 0);
	}
	for (unsigned i = 0; i < 10; i++) {
		ask_for_slot(greedy[i], 1);
		given += answer_of(greedy[i]) == 0;
	}
	assert_int_equal(given, MOST - ALONE);
	int other = connect_as(1002);
	assert_welcome(other);
	close(other);
	for (unsigned i = 0; i < ALONE; i++)
		close(greedy[i]);
}

/* As processes of a pid namespace that the broker does not see into: here all are one. */
void processes__that_cannot_be_told_apart_have_a_courier_each(void **state)
{
	enum { COUNT = 4 };
	int connections[COUNT], channels[COUNT];
	uint8_t slots[COUNT];
	if (!is_root())
		skip();
	start_clients(1);
	for (unsigned i = 0; i < COUNT; i++) {
		connections[i] = connect_as(1001);
		ask_for_slot(connections[i], 1);
	}
	for (unsigned i = 0; i < COUNT; i++) {
		struct pollfd wait = { .fd = connections[i], .events = POLLIN };
		struct vb_message slot;
		assert_true(poll(&wait, 1, 5000) > 0);
		assert_int_equal(vb_message_receive(connections[i], &slot, &channels[i]), 0);
		assert_int_equal(slot.kind, VB_MESSAGE_SLOT);
		slots[i] = slot.slot;
	}
	for (unsigned i = 0; i < COUNT; i++) {
		struct pollfd wait = { .fd = channels[i], .events = POLLIN };
		send_to_qpn(AF_INET, (uint32_t)slots[i] << 16 | 1);
		assert_true(poll(&wait, 1, 2000) > 0);
	}
	for (unsigned i = 0; i < COUNT; i++) {
		close(connections[i]);
		close(channels[i]);
	}
}

static _Noreturn void come_and_go(uid_t uid)
{
	struct sockaddr_un address;
	socklen_t length = vb_abstract_address(&address, VB_BROKER_NAME);
	for (int rc = seteuid(uid); rc == 0;) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		rc = connect(fd, (struct sockaddr *)&address, length);
		close(fd);
	}
	_exit(1);
}

/* Who comes and goes as fast as he can. */
void newcomers__in_a_storm_do_not_hold_up_others(void **state)
{
	enum { STORMS = 12 };
	pid_t storms[STORMS];
	double longest = 0;
	if (!is_root())
		skip();
	start_clients(1);
	for (unsigned i = 0; i < STORMS; i++) {
		storms[i] = fork();
		if (storms[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			come_and_go(1001);
		}
	}
	usleep(300000);
	int quiet = connect_as(1002);
	for (unsigned i = 0; i < 20; i++, usleep(20000)) {
		double begin = seconds();
		if (hello(quiet) || answer_of(quiet))
			longest = 99;
		longest = seconds() - begin > longest ? seconds() - begin : longest;
	}
	for (unsigned i = 0; i < STORMS; i++) {
		kill(storms[i], SIGKILL);
		waitpid(storms[i], NULL, 0);
	}
	close(quiet);
	assert_true(longest < 1);
}

/* A connected socket with bytes that nobody reads: whoever closes it last waits for half a minute. */
static int make_lingering(int *listener)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(name);
	static const char bytes[65536];
	const struct linger linger = { .l_onoff = 1, .l_linger = 30 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	*listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(*listener, (struct sockaddr *)&name, length), 0);
	assert_int_equal(listen(*listener, 1), 0);
	assert_int_equal(getsockname(*listener, (struct sockaddr *)&name, &length), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&name, length), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	return fd;
}

/* With a message that is heard, and with those that are not any more. */
void descriptor__that_lingers_holds_up_nobody(void **state)
{
	enum { MESSAGES = 3 };
	const struct vb_message message = { .kind = VB_MESSAGE_HELLO };
	int listeners[MESSAGES];
	if (!is_root())
		skip();
	start_clients(1);
	int hostile = connect_as(1001);
	for (unsigned i = 0; i < MESSAGES; i++) {
		int fd = make_lingering(&listeners[i]);
		int rc = vb_message_send(hostile, &message, &fd);
		assert_true(rc == 0 || (i > 0 && (rc == -EPIPE || rc == -ECONNRESET))); /* it may be cut off already */
		close(fd);
	}
	for (unsigned i = 0; i < 10; i++, usleep(30000)) {
		int other = connect_as(1002);
		assert_welcome(other);
		close(other);
	}
	assert_int_equal(answer_of(hostile), -1);
	close(hostile);
	for (unsigned i = 0; i < MESSAGES; i++)
		close(listeners[i]);
}

/* ---- Privileges -------------------------------------------------------------------------------------------------- */

static int bind_port(int fd, uint32_t number, uint16_t port_space, uint16_t port)
{
	const struct vb_message message = { .kind = VB_MESSAGE_BIND,
		.request = 4,
		.binding = { .number = number, .port_space = port_space, .port = port } };
	assert_int_equal(vb_message_send(fd, &message, NULL), 0);
	return answer_of(fd);
}

/* A process of that user that connects, waits, and ends when link is closed; it may get a user namespace of its own. */
static int connect_from_process(uid_t uid, bool with_namespace, int *link)
{
	int ends[2], fd = -1;
	char byte;
	unsigned count;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	if (fork() == 0) {
		close(ends[0]);
		if (setgid(uid) || setuid(uid) || (with_namespace && unshare(CLONE_NEWUSER)))
			_exit(1);
		fd = connect_raw();
		vb_send_with_fds(ends[1], "", 1, &fd, 1, 0);
		_exit(recv(ends[1], &byte, 1, 0) != 0);
	}
	close(ends[1]);
	*link = ends[0];
	return vb_receive_with_fds(ends[0], &byte, 1, &fd, 1, &count, 0) ? -1 : fd;
}

void ports__below_1024_take_a_privilege(void **state)
{
	static const uint16_t spaces[] = { VB_CM_PS_TCP, VB_CM_PS_UDP, VB_CM_PS_IPOIB, VB_CM_PS_IB };
	int link;
	if (!is_root())
		skip();
	start_clients(1);
	int user = connect_from_process(1001, false, &link), root = connect_raw();
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(bind_port(root, i, spaces[i], 1023), 0);
		assert_int_equal(bind_port(user, i, spaces[i], 1022), EACCES);
		assert_int_equal(bind_port(user, 10 + i, spaces[i], 1024), 0);
		assert_int_equal(bind_port(user, 20 + i, spaces[i], 0), 0);
	}
	close(user);
	close(root);
	close(link);
}

/* Who makes a user namespace has all capabilities, in it. */
void ports__below_1024_are_not_for_root_of_another_namespace(void **state)
{
	int link;
	if (!is_root())
		skip();
	start_clients(1);
	int user = connect_from_process(1001, true, &link);
	if (user < 0) {
		print_message("skipped: no user namespace may be made here\n");
		skip();
	}
	assert_int_equal(bind_port(user, 1, VB_CM_PS_TCP, 1022), EACCES);
	close(user);
	close(link);
}

/* By a user's process that was given it, as a service is. */
void ports__below_1024_are_for_who_has_the_capability(void **state)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
	if (!is_root())
		skip();
	start_clients(1);
	assert_int_equal(seteuid(1001), 0);
	int user = connect_raw();
	assert_int_equal(bind_port(user, 1, VB_CM_PS_TCP, 1021), EACCES);
	assert_int_equal(syscall(SYS_capget, &header, sets), 0);
	sets[0].effective |= 1u << CAP_NET_BIND_SERVICE;
	assert_int_equal(syscall(SYS_capset, &header, sets), 0);
	assert_int_equal(bind_port(user, 1, VB_CM_PS_TCP, 1021), 0);
	assert_int_equal(seteuid(0), 0);
	close(user);
}

/* Who has connected, and left the connection to somebody else before it runs su, say. */
void ports__below_1024_are_not_for_who_runs_a_program_of_root(void **state)
{
	if (!is_root())
		skip();
	start_clients(1);
	int fd = connect_as(1001);
	assert_welcome(fd);
	assert_int_equal(bind_port(fd, 1, VB_CM_PS_TCP, 80), EACCES);
	close(fd);
}

static unsigned long long status_of(pid_t pid, const char *name)
{
	char path[64], line[256];
	unsigned long long value = ~0ull;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0)
			value = strtoull(line + strlen(name), NULL, 16);
	fclose(file);
	return value;
}

void broker__has_no_privileges_and_few_system_calls(void **state)
{
	pid_t both[2];
	start_clients(2);
	for (unsigned round = 0; round < 3; round++) { /* the first, and those who take a dead one's place */
		find_both(&both[0], &both[1]);
		usleep(50000);
		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(status_of(both[i], "CapEff:"), 0);
			assert_int_equal(status_of(both[i], "CapPrm:"), 0);
			assert_int_equal(status_of(both[i], "NoNewPrivs:"), 1);
			assert_int_equal(status_of(both[i], "Seccomp:"), IS_SANITIZED ? 0 : 2);
		}
		kill(both[round % 2], SIGKILL);
		find_both_without(both[round % 2], &both[0], &both[1]);
	}
	check_steering();
}

/* ---- Floods ------------------------------------------------------------------------------------------------------ */

static void send_req(int fd, uint16_t source_port, uint16_t port, uint32_t id)
{
	const struct vb_flow flow = { .src = loopback(), .dst = loopback(), .src_port = source_port, .dst_port = PORT };
	const struct vb_cm_message req = { .kind = VB_CM_REQ, .transaction_id = id, .local_id = id,
		.req.service_id = vb_cm_service_id(VB_CM_PS_TCP, port) };
	uint8_t mad[VB_MAD_LENGTH], packet[VB_MAD_PACKET_BYTES];
	vb_cm_encode(&req, mad);
	size_t length = vb_mad_packet(&flow, id, mad, sizeof(mad), packet);
	assert_int_equal(send(fd, packet, length, 0), length);
}

static int open_flood(uint16_t *source_port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
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

/* ---- An honest peer in a flood ------------------------------------------------------------------------------------ */

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
		post_to(connection, 1, 2, &(struct vb_cm_message){ .kind = VB_CM_REJ, .remote_id = cm.local_id,
			.transaction_id = cm.transaction_id, .rej.reason = VB_CM_REJ_CONSUMER });
	}
}

/* How long until the request is answered, which is repeated every second; milliseconds. */
static double ask_as_honest_peer(int connection, uint32_t id)
{
	double begin = seconds();
	while (seconds() < begin + 10) {
		struct vb_cm_message cm = { .kind = VB_CM_REQ, .local_id = id, .transaction_id = id,
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

/* On another host, with a broker of its own: says when it is there, asks when it is told, and tells how long it took. */
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
		"nsenter -t %d -n '%s/../chaos/flood' --kind %s --rate %s --seconds 6 --spoof-random 10.77.0.1 >/dev/null & "
		"sleep 1", peer, peer, peer, exe, kind, rate);
	assert_int_equal(system(command), 0);
	assert_int_equal(write(link[0], "g", 1), 1);
	assert_int_equal(recv(link[0], times, sizeof(times), MSG_WAITALL), sizeof(times));
	assert_int_equal(waitpid(peer, &status, 0), peer);
	kill(listener, SIGKILL);
	waitpid(listener, NULL, 0);
	close(link[0]);
	close(link[1]);
	assert_int_equal(system("ip link del vbt0 2>/dev/null || true"), 0);
	print_message("%s a second of kind %s: answered in %.1f ms (median), %.1f ms at most; %u others heard\n", rate, kind,
		times[HONEST_TRIES / 2], times[HONEST_TRIES - 1], *strangers);
	assert_true(times[HONEST_TRIES / 2] < (IS_SANITIZED ? 2500 : 100));
	assert_true(times[HONEST_TRIES - 1] < (IS_SANITIZED ? 10000 : 2500)); /* one may be lost where the machine is busy */
	assert_true(*strangers < 12000);	     /* of so many a second */
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
