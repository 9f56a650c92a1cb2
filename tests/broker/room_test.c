/* Who gets in, and how much: no user, however hostile, takes the room of all. */
#include <errno.h>
#include <netinet/in.h>
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
		assert_true(poll(&wait, 1, PATIENCE_S * 1000) > 0);
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

/* A process whose forwarder was replaced just when it had enough does so. Another's slot is another matter. */
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
void forwarders__of_one_user_leave_room_for_others(void **state)
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
void processes__that_cannot_be_told_apart_have_a_forwarder_each(void **state)
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
		assert_true(poll(&wait, 1, PATIENCE_S * 1000) > 0);
		assert_int_equal(vb_message_receive(connections[i], &slot, &channels[i]), 0);
		assert_int_equal(slot.kind, VB_MESSAGE_SLOT);
		slots[i] = slot.slot;
	}
	for (unsigned i = 0; i < COUNT; i++) {
		struct pollfd wait = { .fd = channels[i], .events = POLLIN };
		send_to_qpn(AF_INET, (uint32_t)slots[i] << 16 | 1);
		assert_true(poll(&wait, 1, PATIENCE_S * 1000) > 0);
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
