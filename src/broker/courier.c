/* See courier.h. One thread. The socket's receive buffer is the only queue: while the channel is full, nothing is read.
 * */
#include "broker/courier.h"

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

#define NAME             "verbena-courier"
#define DATAGRAMS        16
#define DATAGRAM_BYTES   65536
#define CHANNEL_BUFFER   (4 << 20) /* asked for; the kernel gives what wmem_max allows */
#define CONNECT_AGAIN_MS 20        /* doubled each time, up to */
#define CONNECT_MAX_MS   500
#define REPLACEMENT_MS   50 /* so that a user who kills couriers cannot cause a storm of new ones */
#define REFUSED_AGAIN_MS 1000
#define GIVE_UP_MS       100

struct courier {
	struct courier_task task;
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

static void read_datagrams(struct courier *courier)
{
	assert(courier->socket >= 0);
	assert(courier->next == courier->count);
	courier->next = courier->count = 0;
	for (unsigned i = 0; i < DATAGRAMS; i++) {
		struct vb_carried *header = &courier->headers[i];
		courier->iov[i][1] = (struct iovec){ courier->bytes[i], DATAGRAM_BYTES };
		courier->messages[i].msg_hdr = (struct msghdr){ .msg_name = &header->name,
			.msg_namelen = sizeof(header->name),
			.msg_control = header->control,
			.msg_controllen = sizeof(header->control),
			.msg_iov = &courier->iov[i][1],
			.msg_iovlen = 1 };
	}
	int count = recvmmsg(courier->socket, courier->messages, DATAGRAMS, MSG_DONTWAIT, NULL);
	courier->count = count > 0 ? (unsigned)count : 0; /* a datagram socket's errors are transient */
	for (unsigned i = 0; i < courier->count; i++) {
		struct mmsghdr *message = &courier->messages[i];
		courier->headers[i].name_length = message->msg_hdr.msg_namelen;
		courier->headers[i].control_length = (uint32_t)message->msg_hdr.msg_controllen;
		courier->iov[i][0] = (struct iovec){ &courier->headers[i], sizeof(courier->headers[i]) };
		courier->iov[i][1].iov_len = message->msg_len;
		message->msg_hdr = (struct msghdr){ .msg_iov = courier->iov[i], .msg_iovlen = 2 };
	}
}

/* Forwards datagrams as far as the channel has room. A message that the channel cannot take at all is lost, as on a
 * wire. */
static void pass_on(struct courier *courier)
{
	courier->is_channel_full = false;
	while (courier->next < courier->count) {
		int sent = sendmmsg(courier->channel, courier->messages + courier->next, courier->count - courier->next,
			MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent > 0) {
			courier->next += (unsigned)sent;
		} else if (errno == EPIPE || errno == ECONNRESET) {
			_exit(0);
		} else if (errno == EAGAIN) {
			courier->is_channel_full = true;
			return;
		} else if (errno != EINTR) {
			courier->next++;
		}
	}
	assert(courier->next == courier->count);
}

static void carry(struct courier *courier)
{
	do {
		read_datagrams(courier);
		pass_on(courier);
	} while (courier->count == DATAGRAMS && !courier->is_channel_full);
}

/* ---- The broker -------------------------------------------------------------------------------------------------- */

/* Tells a new broker which process we serve, and gives it our socket once we have one. */
static void introduce(struct courier *courier)
{
	const struct vb_message hello = { .kind = VB_MESSAGE_HELLO };
	const struct vb_message carry = { .kind = VB_MESSAGE_CARRY,
		.request = 1,
		.slot = courier->slot ? courier->slot : courier->task.slot,
		.carry = { .pid = (uint32_t)courier->task.pid,
			.uid = courier->task.uid,
			.receive_buffer = courier->task.receive_buffer,
			.number = courier->task.number } };

	assert(courier->broker >= 0);
	vb_message_send(courier->broker, &hello, NULL);
	vb_message_send(courier->broker, &carry, courier->socket >= 0 ? &courier->socket : NULL);
}

/* A broker of another user has no right to our socket. */
static void connect_to_broker(struct courier *courier)
{
	assert(courier->broker < 0);
	const struct vb_users users = vb_users_read();
	struct sockaddr_un address;
	socklen_t length = vb_abstract_address(&address, VB_BROKER_NAME);

	courier->connect_at_ms = vb_clock_ms() + courier->pause_ms;
	courier->pause_ms = courier->pause_ms < CONNECT_MAX_MS ? courier->pause_ms * 2 : CONNECT_MAX_MS;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (connect(fd, (struct sockaddr *)&address, length) || vb_user_of_peer(&users, fd, NULL) != geteuid()) {
		close(fd);
		return;
	}
	courier->broker = fd;
	introduce(courier);
}

static void lose_broker(struct courier *courier, int64_t wait_ms)
{
	assert(courier->broker >= 0);
	if (courier->socket < 0) { /* the broker sees it and informs our process; delayed, for it may try again */
		vb_clock_sleep(GIVE_UP_MS * VB_CLOCK_MS);
		_exit(0);
	}
	close(courier->broker);
	courier->broker = -1;
	courier->connect_at_ms = vb_clock_ms() + wait_ms;
	courier->pause_ms = CONNECT_AGAIN_MS;
}

static void heed(struct courier *courier, const struct vb_message *message, int fd)
{
	switch (message->kind) {
	case VB_MESSAGE_SLOT:
		if (courier->socket >= 0 || fd < 0)
			break;
		courier->socket = dup(fd);
		courier->slot = message->slot;
		vb_prepare_receive_socket(courier->socket);
		break;
	case VB_MESSAGE_RESTARTED:
		if (courier->socket < 0)
			introduce(courier);
		break;
	case VB_MESSAGE_REFUSED:
		lose_broker(courier, REFUSED_AGAIN_MS);
		break;
	default:
		break;
	}
}

static void listen_to_broker(struct courier *courier)
{
	while (courier->broker >= 0) {
		struct vb_message message;
		int fd;
		int rc = vb_message_receive(courier->broker, &message, &fd);
		if (rc == -EAGAIN)
			return;
		if (rc == 0)
			heed(courier, &message, fd);
		else
			lose_broker(courier, CONNECT_AGAIN_MS);
		if (fd >= 0)
			close(fd);
	}
}

/* ---- Life -------------------------------------------------------------------------------------------------------- */

static int time_to_connect(const struct courier *courier)
{
	int64_t left = courier->connect_at_ms - vb_clock_ms();
	return courier->broker >= 0 ? -1 : left > 0 ? (int)left : 0;
}

static _Noreturn void live(struct courier *courier)
{
	enum { CHANNEL, SOCKET, BROKER, ALL };
	for (;;) {
		if (time_to_connect(courier) == 0)
			connect_to_broker(courier);
		struct pollfd waits[ALL] = {
			[CHANNEL] = { .fd = courier->channel, .events = courier->is_channel_full ? POLLOUT : 0 },
			[SOCKET] = { .fd = courier->is_channel_full ? -1 : courier->socket, .events = POLLIN },
			[BROKER] = { .fd = courier->broker, .events = POLLIN },
		};
		if (vb_clock_poll(waits, ALL, time_to_connect(courier)) < 0)
			continue;
		if (waits[CHANNEL].revents & (POLLHUP | POLLERR))
			_exit(0);
		if (waits[BROKER].revents)
			listen_to_broker(courier);
		if (waits[CHANNEL].revents & POLLOUT)
			pass_on(courier);
		if (waits[SOCKET].revents && courier->socket >= 0)
			carry(courier);
	}
}

static _Noreturn void become(const struct courier_task *task, int channel)
{
	int place = child_begin(NAME, channel);
	struct courier *courier = calloc(1, sizeof(*courier));
	if (!courier)
		_exit(1);
	courier->task = *task;
	courier->channel = place;
	courier->broker = courier->socket = -1;
	courier->pause_ms = CONNECT_AGAIN_MS;
	courier->connect_at_ms = task->slot ? vb_clock_ms() + REPLACEMENT_MS : 0;
	live(courier);
}

int courier_start(const struct courier_task *task)
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
