/* See forwarder.h. One thread. The socket's receive buffer is the only queue: a full channel stops the reading. */
#include "broker/forwarder.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "base/invariant.h"
#include "broker/child.h"
#include "host/protocol.h"
#include "os/clock.h"
#include "os/user.h"
#include "port/carried.h"
#include "port/receive_socket.h"

#define NAME             "verbena-forward"
#define DATAGRAMS        16
#define DATAGRAM_BYTES   65536
#define CHANNEL_BUFFER   (4 << 20) /* asked for; the kernel gives what wmem_max allows */
#define CONNECT_AGAIN_MS 20        /* doubled each time, up to */
#define CONNECT_MAX_MS   500
#define REPLACEMENT_MS   50 /* so that a user who kills forwarders cannot cause a storm of new ones */
#define REFUSED_AGAIN_MS 1000
#define GIVE_UP_MS       100

struct forwarder {
	struct forwarder_task task;
	int channel, broker, socket; /* -1: there is none */
	uint8_t slot;
	int64_t connect_at_ms, pause_ms;
	bool is_channel_full;
	unsigned count, next; /* datagrams read, and the first not yet forwarded */
	struct mmsghdr messages[DATAGRAMS];
	struct iovec iov[DATAGRAMS][2];
	struct vb_carried headers[DATAGRAMS];
	uint8_t bytes[DATAGRAMS][DATAGRAM_BYTES];
};

/* ---- Carrying ---------------------------------------------------------------------------------------------------- */

static void read_datagrams(struct forwarder *forwarder)
{
	assert(forwarder->socket >= 0);
	assert(forwarder->next == forwarder->count);
	forwarder->next = forwarder->count = 0;
	for (unsigned i = 0; i < DATAGRAMS; i++) {
		struct vb_carried *header = &forwarder->headers[i];
		forwarder->iov[i][1] = (struct iovec){ forwarder->bytes[i], DATAGRAM_BYTES };
		forwarder->messages[i].msg_hdr = (struct msghdr){ .msg_name = &header->name,
			.msg_namelen = sizeof(header->name),
			.msg_control = header->control,
			.msg_controllen = sizeof(header->control),
			.msg_iov = &forwarder->iov[i][1],
			.msg_iovlen = 1 };
	}
	int count = recvmmsg(forwarder->socket, forwarder->messages, DATAGRAMS, MSG_DONTWAIT, NULL);
	forwarder->count = count > 0 ? (unsigned)count : 0; /* a datagram socket's errors are transient */
	for (unsigned i = 0; i < forwarder->count; i++) {
		struct mmsghdr *message = &forwarder->messages[i];
		forwarder->headers[i].name_length = message->msg_hdr.msg_namelen;
		forwarder->headers[i].control_length = (uint32_t)message->msg_hdr.msg_controllen;
		forwarder->iov[i][0] = (struct iovec){ &forwarder->headers[i], sizeof(forwarder->headers[i]) };
		forwarder->iov[i][1].iov_len = message->msg_len;
		message->msg_hdr = (struct msghdr){ .msg_iov = forwarder->iov[i], .msg_iovlen = 2 };
	}
}

/* Forwards datagrams as far as the channel has room. A message that the channel cannot take at all is lost, as on a
 * wire. */
static void pass_on(struct forwarder *forwarder)
{
	forwarder->is_channel_full = false;
	while (forwarder->next < forwarder->count) {
		int sent = sendmmsg(forwarder->channel, forwarder->messages + forwarder->next,
			forwarder->count - forwarder->next, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent > 0) {
			forwarder->next += (unsigned)sent;
		} else if (errno == EPIPE || errno == ECONNRESET) {
			_exit(0);
		} else if (errno == EAGAIN) {
			forwarder->is_channel_full = true;
			return;
		} else if (errno != EINTR) {
			forwarder->next++;
		}
	}
	assert(forwarder->next == forwarder->count);
}

static void carry(struct forwarder *forwarder)
{
	do {
		read_datagrams(forwarder);
		pass_on(forwarder);
	} while (forwarder->count == DATAGRAMS && !forwarder->is_channel_full);
}

/* ---- The broker -------------------------------------------------------------------------------------------------- */

/* Tells a new broker which process we serve, and gives it our socket once we have one. */
static void introduce(struct forwarder *forwarder)
{
	const struct vb_message hello = { .kind = VB_MESSAGE_HELLO };
	const struct vb_message carry = { .kind = VB_MESSAGE_CARRY,
		.request = 1,
		.slot = forwarder->slot ? forwarder->slot : forwarder->task.slot,
		.carry = { .pid = (uint32_t)forwarder->task.pid,
			.uid = forwarder->task.uid,
			.receive_buffer = forwarder->task.receive_buffer,
			.number = forwarder->task.number } };

	assert(forwarder->broker >= 0);
	vb_message_send(forwarder->broker, &hello, NULL);
	vb_message_send(forwarder->broker, &carry, forwarder->socket >= 0 ? &forwarder->socket : NULL);
}

/* A broker of another user has no right to our socket. */
static void connect_to_broker(struct forwarder *forwarder)
{
	assert(forwarder->broker < 0);
	const struct vb_users users = vb_users_read();
	struct sockaddr_un address;
	socklen_t length = vb_abstract_address(&address, VB_BROKER_NAME);

	forwarder->connect_at_ms = vb_clock_ms() + forwarder->pause_ms;
	forwarder->pause_ms = forwarder->pause_ms < CONNECT_MAX_MS ? forwarder->pause_ms * 2 : CONNECT_MAX_MS;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (connect(fd, (struct sockaddr *)&address, length) || vb_user_of_peer(&users, fd, NULL) != geteuid()) {
		close(fd);
		return;
	}
	forwarder->broker = fd;
	introduce(forwarder);
}

static void lose_broker(struct forwarder *forwarder, int64_t wait_ms)
{
	assert(forwarder->broker >= 0);
	if (forwarder->socket < 0) { /* the broker sees it and informs our process; delayed, for it may try again */
		vb_clock_sleep(GIVE_UP_MS * VB_CLOCK_MS);
		_exit(0);
	}
	close(forwarder->broker);
	forwarder->broker = -1;
	forwarder->connect_at_ms = vb_clock_ms() + wait_ms;
	forwarder->pause_ms = CONNECT_AGAIN_MS;
}

static void heed(struct forwarder *forwarder, const struct vb_message *message, int fd)
{
	switch (message->kind) {
	case VB_MESSAGE_SLOT:
		if (forwarder->socket >= 0 || fd < 0)
			break;
		forwarder->socket = dup(fd);
		forwarder->slot = message->slot;
		vb_prepare_receive_socket(forwarder->socket);
		break;
	case VB_MESSAGE_RESTARTED:
		if (forwarder->socket < 0)
			introduce(forwarder);
		break;
	case VB_MESSAGE_REFUSED:
		lose_broker(forwarder, REFUSED_AGAIN_MS);
		break;
	default:
		break;
	}
}

static void listen_to_broker(struct forwarder *forwarder)
{
	while (forwarder->broker >= 0) {
		struct vb_message message;
		int fd;
		int rc = vb_message_receive(forwarder->broker, &message, &fd);
		if (rc == -EAGAIN)
			return;
		if (rc == 0)
			heed(forwarder, &message, fd);
		else
			lose_broker(forwarder, CONNECT_AGAIN_MS);
		if (fd >= 0)
			close(fd);
	}
}

/* ---- Life -------------------------------------------------------------------------------------------------------- */

static int time_to_connect(const struct forwarder *forwarder)
{
	int64_t left = forwarder->connect_at_ms - vb_clock_ms();
	return forwarder->broker >= 0 ? -1 : left > 0 ? (int)left : 0;
}

static _Noreturn void live(struct forwarder *forwarder)
{
	enum { CHANNEL, SOCKET, BROKER, ALL };
	for (;;) {
		if (time_to_connect(forwarder) == 0)
			connect_to_broker(forwarder);
		struct pollfd waits[ALL] = {
			[CHANNEL] = { .fd = forwarder->channel, .events = forwarder->is_channel_full ? POLLOUT : 0 },
			[SOCKET] = { .fd = forwarder->is_channel_full ? -1 : forwarder->socket, .events = POLLIN },
			[BROKER] = { .fd = forwarder->broker, .events = POLLIN },
		};
		if (vb_clock_poll(waits, ALL, time_to_connect(forwarder)) < 0)
			continue;
		if (waits[CHANNEL].revents & (POLLHUP | POLLERR))
			_exit(0);
		if (waits[BROKER].revents)
			listen_to_broker(forwarder);
		if (waits[CHANNEL].revents & POLLOUT)
			pass_on(forwarder);
		if (waits[SOCKET].revents && forwarder->socket >= 0)
			carry(forwarder);
	}
}

static _Noreturn void become(const struct forwarder_task *task, int channel)
{
	int place = child_begin(NAME, channel);
	struct forwarder *forwarder = calloc(1, sizeof(*forwarder));
	if (!forwarder)
		_exit(1);
	forwarder->task = *task;
	forwarder->channel = place;
	forwarder->broker = forwarder->socket = -1;
	forwarder->pause_ms = CONNECT_AGAIN_MS;
	forwarder->connect_at_ms = task->slot ? vb_clock_ms() + REPLACEMENT_MS : 0;
	live(forwarder);
}

int forwarder_start(const struct forwarder_task *task)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
		return -errno;
	vb_set_option(ends[1], SOL_SOCKET, SO_SNDBUF, CHANNEL_BUFFER);
	pid_t pid = fork();
	if (pid == 0)
		become(task, ends[1]);
	int error = errno;
	close(ends[1]);
	if (pid > 0)
		return ends[0];
	close(ends[0]);
	return -error;
}
