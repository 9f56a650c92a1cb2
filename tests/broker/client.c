/* See client.h. */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../unit/user_namespace.h"
#include "played_peers.h"
#include "host/client/broker.h"
#include "port/carried.h"

#ifndef SO_DETACH_REUSEPORT_BPF
#define SO_DETACH_REUSEPORT_BPF 68
#endif

const char *client_libexec;

struct state {
	struct vb_broker *broker;
	struct vb_slot slot;
	struct report report;
	atomic_uint recoveries;
	int answers[2]; /* a pipe of notices about peers */
};

static void hear(void *user, const struct vb_broker_notice *notice)
{
	struct state *state = user;
	if (notice->kind == VB_BROKER_BACK)
		atomic_fetch_add(&state->recoveries, 1);
	else if (notice->kind == VB_BROKER_PEER && write(state->answers[1], notice, sizeof(*notice)) < 0)
		abort();
	played_peers_hear(notice);
}

int client_connect(struct vb_broker **broker, char *why, size_t why_size)
{
	return vb_broker_connect(&(struct vb_broker_config){ .libexec = client_libexec }, broker, why, why_size);
}

static void take_slot(struct state *state, bool broker_any)
{
	struct report *report = &state->report;
	const struct vb_broker_config config = {
		.accepts_any = broker_any, .libexec = client_libexec, .hear = hear, .user = state
	};
	report->rc = 0;
	if (!state->broker)
		report->rc = vb_broker_connect(&config, &state->broker, report->why, sizeof(report->why));
	if (report->rc == 0)
		report->rc = vb_broker_get_slot(
			state->broker, 4194304, false, &state->slot, report->why, sizeof(report->why));
	const int on = 1;
	if (report->rc == 0 && !state->slot.is_carried)
		setsockopt(state->slot.fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on));
	if (report->rc == 0)
		vb_broker_open(state->broker, state->slot.number, true);
	report->slot = report->rc ? 0 : state->slot.number;
	report->is_carried = state->slot.is_carried;
	report->receive_buffer = state->slot.receive_buffer;
}

/* Bytes of each packet in what was read last: the kernel may have merged several. */
static size_t segment_of(struct msghdr *header, size_t length)
{
	int segment = 0;
	for (struct cmsghdr *control = CMSG_FIRSTHDR(header); control; control = CMSG_NXTHDR(header, control))
		if (control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_GRO)
			memcpy(&segment, CMSG_DATA(control), sizeof(segment));
	return segment > 0 ? (size_t)segment : length ? length : 1;
}

/* Bytes read, -1 when there is nothing. What a forwarder brings looks as if the kernel had brought it. */
static ssize_t receive(struct state *state, struct msghdr *header, struct vb_carried *carried)
{
	ssize_t got = recvmsg(state->slot.fd, header, MSG_DONTWAIT);
	if (!state->slot.is_carried || got <= 0)
		return state->slot.is_carried && got == 0 ? -1 : got; /* 0: the forwarder has died */
	header->msg_control = carried->control;
	header->msg_controllen = carried->control_length;
	return got - (ssize_t)sizeof(*carried);
}

static void collect(struct state *state)
{
	static uint8_t bytes[65536];
	static struct vb_carried carried;
	struct report *report = &state->report;
	report->good = report->strays = report->merged = 0;
	for (;;) {
		char control[64];
		struct iovec io[2] = { { &carried, sizeof(carried) }, { bytes, sizeof(bytes) } };
		struct msghdr header = { .msg_iov = state->slot.is_carried ? io : &io[1],
			.msg_iovlen = state->slot.is_carried ? 2 : 1,
			.msg_control = state->slot.is_carried ? NULL : control,
			.msg_controllen = state->slot.is_carried ? 0 : sizeof(control) };
		ssize_t got = receive(state, &header, &carried);
		if (got < 0)
			return;
		const size_t length = (size_t)got, segment = segment_of(&header, length);
		report->strays += length == 0;
		for (size_t at = 0; at < length; at += segment) {
			bool is_ours =
				length - at >= 12 && (bytes[at + 5] == state->slot.number || bytes[at + 5] == 0xFF);
			report->good += is_ours;
			report->strays += !is_ours;
			report->merged += segment < length;
		}
	}
}

static void discover(struct state *state, const struct order *order)
{
	struct vb_broker_notice answer;
	struct pollfd wait = { .fd = state->answers[0], .events = POLLIN };
	vb_broker_discover(state->broker, &order->sgid, &order->gid);
	bool is_answered = poll(&wait, 1, PATIENCE_S * 1000) > 0 &&
			   read(state->answers[0], &answer, sizeof(answer)) == sizeof(answer);
	state->report.rc = is_answered ? 0 : -EIO;
	state->report.is_verbena = answer.peer.is_verbena;
	state->report.receive_buffer = answer.peer.receive_buffer;
}

static void obey(struct state *state, const struct order *order)
{
	struct ip_mreqn group = { .imr_ifindex = 1 };
	const int on = 1;
	switch (order->kind) {
	case ORDER_SLOT:
		take_slot(state, order->broker_any);
		break;
	case ORDER_COLLECT:
		collect(state);
		break;
	case ORDER_RELEASE:
		vb_broker_release_slot(state->broker, &state->slot);
		close(state->slot.fd);
		break;
	case ORDER_JOIN:
		memcpy(&group.imr_multiaddr, order->gid.raw + 12, 4);
		if (state->slot.is_carried)
			state->report.rc = vb_broker_join(state->broker, &state->slot, &order->gid, 1, true);
		else
			state->report.rc =
				setsockopt(state->slot.fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof(group));
		break;
	case ORDER_MOVE_AWAY:
		state->report.rc = unshare(CLONE_NEWNET);
		break;
	case ORDER_DISCOVER:
		discover(state, order);
		break;
	case ORDER_DETACH:
		state->report.rc =
			setsockopt(state->slot.fd, SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, &on, sizeof(on)) ? -errno : 0;
		break;
	case ORDER_MEET:
		vb_broker_meet(state->broker, state->slot.number, &order->gid, order->slot);
		break;
	case ORDER_MET:
		played_peers_look(order->slot, &state->report);
		break;
	case ORDER_TELL:
		played_peers_tell(order->slot, &state->report);
		break;
	case ORDER_HEAR:
		played_peers_listen(order->slot, &state->report);
		break;
	case ORDER_BECOME:
		state->report.rc = setresuid(order->uid, order->uid, order->uid) ? -errno : 0;
		break;
	}
}

static _Noreturn void live(int orders)
{
	struct state state = { 0 };
	struct order order;
	if (pipe(state.answers))
		_exit(1);
	while (recv(orders, &order, sizeof(order), 0) == sizeof(order)) {
		obey(&state, &order);
		state.report.recoveries = atomic_load(&state.recoveries);
		if (send(orders, &state.report, sizeof(state.report), MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}

static void start(struct client_process *client, uid_t uid, bool has_namespace, uid_t outside)
{
	int ends[2];
	memset(client, 0, sizeof(*client));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		abort();
	client->pid = fork();
	if (client->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[0]);
		if (has_namespace ? !own_user_namespace(uid, outside) : uid && (setgid(uid) || setuid(uid)))
			_exit(1);
		live(ends[1]);
	}
	close(ends[1]);
	client->orders = ends[0];
}

void client_start(struct client_process *client, uid_t uid)
{
	start(client, uid, false, 0);
}

void client_start_in(struct client_process *client, uid_t inside, uid_t outside)
{
	start(client, inside, true, outside);
}

void client_order(struct client_process *client, const struct order *order)
{
	if (send(client->orders, order, sizeof(*order), MSG_NOSIGNAL) < 0)
		perror("order");
}

bool client_wait(struct client_process *client)
{
	struct pollfd wait = { .fd = client->orders, .events = POLLIN };
	return poll(&wait, 1, PATIENCE_S * 1000) > 0 &&
	       recv(client->orders, &client->last, sizeof(client->last), 0) == sizeof(client->last);
}

bool client_do(struct client_process *client, enum order_kind kind)
{
	client_order(client, &(struct order){ .kind = kind });
	return client_wait(client);
}

void client_kill(struct client_process *client)
{
	if (client->pid > 0) {
		kill(client->pid, SIGKILL);
		waitpid(client->pid, NULL, 0);
		close(client->orders);
	}
	client->pid = 0;
}
