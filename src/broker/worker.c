/* See worker.h. One thread, one poll loop; every request is checked against what the registry says of its sender. */
#include "broker/worker.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "broker/backlog.h"
#include "broker/discovery.h"
#include "broker/early.h"
#include "broker/group.h"
#include "broker/orphans.h"
#include "broker/ports.h"
#include "broker/qp1.h"
#include "broker/relay.h"
#include "broker/route.h"
#include "host/protocol.h"

#define IDLE_MS	       1000
#define FIRST_IDLE_MS  5000 /* before the first client has come */
#define SETTLE_MS      150  /* for the owners of surviving sockets to hand them over, before others get slots */
#define CHECK_MS       1000 /* how often the steering is checked while unknown sockets are in the group */
#define LINGER_MS      10   /* from the end of a connection until its process has closed its sockets too */
#define MESSAGES_A_TURN 16
#define MADS_A_TURN	 64
#define RELEARN_MS     2000 /* for the processes of a broker that died to say again where they listen */

_Static_assert(DISCOVERY_CLIENTS >= REGISTRY_CLIENTS, "discovery counts clients as the registry does");

struct client_state {
	uint64_t leaves_at; /* connection is gone; 0: it is not */
	bool wants_slot;
	uint32_t request, receive_buffer;
	struct backlog backlog;
};

struct worker {
	struct registry *registry;
	int link;
	bool stays, is_orphaned;
	struct group group;
	struct qp1 *qp1;
	struct discovery *discovery;
	struct relay relay;
	struct ports *ports;
	struct orphans *orphans;
	struct early early;
	uint64_t knows_ports_at; /* until then a listener may not have told a new worker of itself */
	struct client_state clients[REGISTRY_CLIENTS];
	bool is_adopting[REGISTRY_SLOTS]; /* the owner waits to hear that steering is right */
	bool is_settled;		  /* surviving sockets are known, or their time is up */
	bool must_repair;
	uint64_t settle_at, repair_at, check_at, idle_at;
};

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void say(struct worker *worker, unsigned client, const struct vb_message *message, const int *fd)
{
	/* A client that does not read its answers is dropped, as one that went away. */
	if (vb_message_send(worker->registry->clients[client].connection, message, fd) &&
		!worker->clients[client].leaves_at)
		worker->clients[client].leaves_at = now_ms();
}

__attribute__((format(printf, 5, 6)))
static void refuse(struct worker *worker, unsigned client, uint32_t request, int error, const char *format, ...)
{
	struct vb_message message = { .kind = VB_MESSAGE_REFUSED, .request = request, .error = error };
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(message.why, sizeof(message.why), format, arguments);
	va_end(arguments);
	say(worker, client, &message, NULL);
}

static void update_receive_buffer(struct worker *worker)
{
	uint32_t least = worker->group.default_buffer;
	for (unsigned slot = 1; slot < REGISTRY_SLOTS; slot++) {
		const struct client_slot *one = &worker->registry->slots[slot];
		if (one->owner >= 0 && one->receive_buffer < least)
			least = one->receive_buffer;
	}
	discovery_set_receive_buffer(worker->discovery, least);
}

/* ---- Slots ----------------------------------------------------------------------------------------------------- */

static void free_slot(struct worker *worker, uint8_t slot)
{
	if (registry_drop_slot(worker->registry, worker->link, slot)) {
		worker->is_orphaned = true;
		return;
	}
	worker->is_adopting[slot] = false;
	if (worker->is_settled && !worker->must_repair) {
		group_remove(&worker->group, slot);
	} else {
		close(worker->group.fd[slot]);
		worker->group.fd[slot] = worker->group.index[slot] = -1;
		worker->must_repair = true;
	}
	update_receive_buffer(worker);
}

static void hand_over(struct worker *worker, unsigned client, uint8_t slot)
{
	const struct client_slot *one = &worker->registry->slots[slot];
	const struct vb_message message = { .kind = VB_MESSAGE_SLOT, .request = one->request, .slot = slot,
		.receive_buffer = one->receive_buffer };
	say(worker, client, &message, &one->fd);
}

/* Round robin, so that a packet to a dead owner's QPN meets nobody for long. 0: all are taken. */
static uint8_t choose_slot(const struct worker *worker)
{
	for (unsigned i = 1; i <= VB_SLOT_MAX; i++) {
		unsigned slot = (worker->registry->last_slot + i - 1) % VB_SLOT_MAX + 1;
		if (worker->registry->slots[slot].owner < 0 && worker->group.fd[slot] < 0)
			return (uint8_t)slot;
	}
	return 0;
}

static void give_slot(struct worker *worker, unsigned client)
{
	struct client_state *state = &worker->clients[client];
	state->wants_slot = false;
	for (unsigned slot = 1; slot < REGISTRY_SLOTS; slot++) {
		if (worker->registry->slots[slot].owner == (int)client &&
			worker->registry->slots[slot].request == state->request) {
			hand_over(worker, client, (uint8_t)slot);
			return;
		}
	}
	uint8_t slot = choose_slot(worker);
	if (!slot) {
		refuse(worker, client, state->request, EUSERS,
			"all %d slots of UDP port 4791 are taken in this network namespace; end some RDMA processes",
			VB_SLOT_MAX);
		return;
	}
	struct client_slot one = { .owner = (int)client, .request = state->request };
	int rc = group_add(&worker->group, slot, state->receive_buffer, &one.receive_buffer);
	if (rc) {
		refuse(worker, client, state->request, -rc, "no socket on UDP port 4791: %s", strerror(-rc));
		return;
	}
	one.fd = worker->group.fd[slot];
	worker->registry->last_slot = slot;
	if (registry_add_slot(worker->registry, worker->link, slot, &one)) {
		close(one.fd); /* the client will be told that we restarted, and ask again */
		worker->is_orphaned = true;
		return;
	}
	update_receive_buffer(worker);
	hand_over(worker, client, slot);
}

/* True when fd has become the group's. */
static bool adopt(struct worker *worker, unsigned client, const struct vb_message *message, int fd)
{
	struct registry *registry = worker->registry;
	if (fd < 0) {
		refuse(worker, client, message->request, EINVAL, "a slot is adopted with its socket");
		return false;
	}
	int rc = group_adopt(&worker->group, message->slot, fd);
	if (rc == -EEXIST && registry->slots[message->slot].owner == (int)client &&
		group_is_same_socket(&worker->group, message->slot, fd)) {
		worker->is_adopting[message->slot] = true;
		registry->slots[message->slot].request = message->request;
		return false;
	}
	if (rc) {
		refuse(worker, client, message->request, -rc, rc == -EEXIST ? "slot %u is another's by now"
			: "not a socket of slot %u", message->slot);
		return false;
	}
	const struct client_slot one = { .owner = (int)client, .fd = fd, .request = message->request,
		.receive_buffer = group_receive_buffer(fd) };
	if (registry_add_slot(registry, worker->link, message->slot, &one)) {
		worker->is_orphaned = true;
		return false;
	}
	worker->is_adopting[message->slot] = true;
	worker->must_repair = true;
	return true;
}

/* Sockets are in the group whose owners have not come yet. Their slots are not known, but as slots are handed out in
 * turn, they lie near those that are: go on in the middle of the largest gap. */
static void avoid_strangers(struct worker *worker)
{
	unsigned best = 0, best_start = 0, run = 0;
	for (unsigned i = 0; i < 2 * VB_SLOT_MAX; i++) {
		run = worker->group.fd[i % VB_SLOT_MAX + 1] < 0 ? run + 1 : 0;
		if (run > best && run <= VB_SLOT_MAX) {
			best = run;
			best_start = i + 1 - run;
		}
	}
	if (best < VB_SLOT_MAX)
		worker->registry->last_slot = (uint8_t)((best_start + best / 2) % VB_SLOT_MAX + 1);
}

static void answer_adopters(struct worker *worker)
{
	for (unsigned slot = 1; slot < REGISTRY_SLOTS; slot++) {
		if (!worker->is_adopting[slot])
			continue;
		worker->is_adopting[slot] = false;
		const struct client_slot *one = &worker->registry->slots[slot];
		const struct vb_message message = { .kind = VB_MESSAGE_ADOPTED, .request = one->request,
			.slot = (uint8_t)slot, .receive_buffer = one->receive_buffer };
		say(worker, (unsigned)one->owner, &message, NULL);
	}
	update_receive_buffer(worker);
}

/* Puts the group in order when it is known or its time has come, then serves those who waited for that. */
static void keep_group(struct worker *worker)
{
	uint64_t now = now_ms();
	bool is_due = false;
	if (!worker->is_settled && (group_strangers(&worker->group) == 0 || now >= worker->settle_at))
		worker->is_settled = worker->must_repair = is_due = true;
	if (!worker->is_settled)
		return;
	if (is_due && group_strangers(&worker->group))
		avoid_strangers(worker);
	if (worker->must_repair && now >= worker->repair_at) {
		int rc = group_repair(&worker->group);
		worker->must_repair = rc != 0;
		worker->repair_at = rc ? now + CHECK_MS : 0;
		worker->check_at = now + CHECK_MS;
		if (rc)
			for (unsigned i = 0; i < REGISTRY_CLIENTS; i++)
				if (worker->clients[i].wants_slot) {
					worker->clients[i].wants_slot = false;
					refuse(worker, i, worker->clients[i].request, -rc, rc == -ENETDOWN
						? "the broker, after a crash, needs the loopback interface: "
						  "ip link set lo up" : "cannot put UDP port 4791 in order: %s",
						strerror(-rc));
				}
	}
	if (worker->must_repair)
		return;
	answer_adopters(worker);
	for (unsigned i = 0; i < REGISTRY_CLIENTS && !worker->is_orphaned; i++)
		if (worker->clients[i].wants_slot && !worker->clients[i].leaves_at)
			give_slot(worker, i);
	if (group_strangers(&worker->group) && now >= worker->check_at) {
		worker->check_at = now + CHECK_MS;
		worker->must_repair = !group_verify(&worker->group, 0);
	}
}

/* ---- Clients --------------------------------------------------------------------------------------------------- */

static void reset(struct client_state *state)
{
	backlog_discard(&state->backlog);
	*state = (struct client_state){ 0 };
	backlog_init(&state->backlog);
}

static void accept_clients(struct worker *worker)
{
	for (;;) {
		struct client client = { .connection = accept4(worker->registry->listener, NULL, NULL,
			SOCK_CLOEXEC | SOCK_NONBLOCK), .pidfd = -1 };
		if (client.connection < 0)
			return;
		struct ucred peer = { 0 };
		socklen_t length = sizeof(peer);
		int number = -1;
		for (int i = 0; i < REGISTRY_CLIENTS && number < 0; i++)
			if (!worker->registry->clients[i].is_used)
				number = i;
		if (number < 0 || getsockopt(client.connection, SOL_SOCKET, SO_PEERCRED, &peer, &length)) {
			close(client.connection);
			continue;
		}
		client.pid = peer.pid;
		client.uid = peer.uid;
		if (peer.pid > 0)
			client.pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
		if (registry_add_client(worker->registry, worker->link, number, &client)) {
			close(client.connection); /* it connects again, and another worker hears it */
			if (client.pidfd >= 0)
				close(client.pidfd);
			worker->is_orphaned = true;
			return;
		}
		reset(&worker->clients[number]);
	}
}

/* Its process is gone: its peers are told, once; who misses it finds out by asking. */
static void bid_farewell(struct worker *worker, unsigned number)
{
	struct vb_gid from, to;
	uint8_t mad[VB_MAD_LENGTH];
	while (orphans_next_farewell(worker->orphans, number, &from, &to, mad))
		qp1_send(worker->qp1, &from, &to, discovery_scope(&from, &to), mad, VB_MAD_LENGTH);
}

static void remove_client(struct worker *worker, unsigned number)
{
	for (unsigned slot = 1; slot < REGISTRY_SLOTS && !worker->is_orphaned; slot++)
		if (worker->registry->slots[slot].owner == (int)number)
			free_slot(worker, (uint8_t)slot);
	if (worker->is_orphaned)
		return;
	discovery_forget_client(worker->discovery, number);
	relay_forget_client(&worker->relay, number);
	ports_forget_client(worker->ports, number);
	bid_farewell(worker, number);
	if (registry_drop_client(worker->registry, worker->link, (int)number))
		worker->is_orphaned = true;
	reset(&worker->clients[number]);
	worker->idle_at = now_ms() + IDLE_MS;
}

static void send_mad(struct worker *worker, unsigned client, const struct vb_message *message)
{
	const struct vb_message sent = { .kind = VB_MESSAGE_SENT, .request = message->request };
	int rc = qp1_send(worker->qp1, &message->sgid, &message->gid, discovery_scope(&message->sgid, &message->gid),
		message->mad, message->length);
	if (rc) {
		refuse(worker, client, message->request, -rc, "cannot send a MAD: %s", strerror(-rc));
		return;
	}
	relay_note(&worker->relay, client, &message->gid, message->mad);
	say(worker, client, &sent, NULL);
}

static void pass_mad(struct worker *worker, unsigned client, const struct qp1_mad *mad)
{
	struct vb_message message = { .kind = VB_MESSAGE_MAD, .gid = mad->from, .sgid = mad->to, .scope = mad->scope,
		.length = mad->length };
	memcpy(message.mad, mad->bytes, VB_MAD_LENGTH);
	backlog_send(&worker->clients[client].backlog, worker->registry->clients[client].connection, &message);
}

/* To whom it is for, or the refusal back to where it came from. */
static void follow(struct worker *worker, const struct qp1_mad *mad, const struct route *route)
{
	if (route->verdict == ROUTE_TO_CLIENT) {
		orphans_note_received(worker->orphans, route->client, mad);
		pass_mad(worker, route->client, mad);
	} else if (route->verdict == ROUTE_TO_NOBODY) {
		qp1_send(worker->qp1, &mad->to, &mad->from, mad->scope, route->answer, VB_MAD_LENGTH);
	}
}

static void pass_cm_mad(struct worker *worker, const struct qp1_mad *mad)
{
	struct route route = route_cm(worker->ports, worker->registry, mad);
	if (route.verdict == ROUTE_TO_NOBODY &&
		(now_ms() < worker->knows_ports_at || early_hold(&worker->early, mad, now_ms())))
		return;
	follow(worker, mad, &route);
}

/* Requests that waited for somebody to listen: now somebody does, or they have waited long enough. */
static void serve_early(struct worker *worker, uint64_t now)
{
	const struct qp1_mad *mad;
	bool is_due;
	for (unsigned i = 0; (mad = early_look(&worker->early, i, now, &is_due));) {
		struct route route = route_cm(worker->ports, worker->registry, mad);
		if (route.verdict == ROUTE_TO_NOBODY && !is_due) {
			i++;
			continue;
		}
		follow(worker, mad, &route);
		early_forget(&worker->early, i);
	}
}

static void receive_mads(struct worker *worker)
{
	struct qp1_mad mad;
	const struct group *group = &worker->group;
	for (unsigned i = 0; i < MADS_A_TURN && qp1_receive(worker->qp1, group->own, group->family, &mad); i++) {
		if (discovery_receive(worker->discovery, now_ms(), &mad))
			continue;
		uint32_t client = relay_find(&worker->relay, &mad);
		if (route_is_cm(&mad))
			pass_cm_mad(worker, &mad);
		else if (client != RELAY_NOBODY)
			pass_mad(worker, client, &mad);
	}
}

/* Told once, as a MAD is: who misses it waits for an answer in vain, and gives up later. */
static void pass_failures(struct worker *worker)
{
	struct qp1_failure failure;
	for (unsigned i = 0; i < MADS_A_TURN && qp1_next_failure(worker->qp1, &failure); i++) {
		int client = route_failure(worker->registry, &failure);
		struct vb_message message = { .kind = VB_MESSAGE_FAILED, .gid = failure.to, .error = failure.error };
		if (client < 0)
			continue;
		memcpy(message.mad, failure.bytes, VB_MAD_LENGTH);
		backlog_send(&worker->clients[client].backlog, worker->registry->clients[client].connection, &message);
	}
}

/* ---- Ports ------------------------------------------------------------------------------------------------------ */

static void answer_binding(struct worker *worker, unsigned client, uint32_t request, int rc, uint16_t port)
{
	const struct vb_message message = { .kind = VB_MESSAGE_BOUND, .request = request, .binding.port = port };
	if (rc)
		refuse(worker, client, request, -rc, "port %u: %s", port, strerror(-rc));
	else
		say(worker, client, &message, NULL);
}

static void bind_port(struct worker *worker, unsigned client, const struct vb_message *message)
{
	struct port_binding binding = { .client = client, .number = message->binding.number,
		.port_space = message->binding.port_space, .port = message->binding.port, .address = message->gid,
		.is_shared = message->binding.is_shared, .is_ipv6_only = message->binding.is_ipv6_only };
	int rc = ports_bind(worker->ports, &binding);
	answer_binding(worker, client, message->request, rc, binding.port);
}

/* False: what it said breaks the protocol. */
static bool obey(struct worker *worker, unsigned client, const struct vb_message *message, int *fd)
{
	struct client_state *state = &worker->clients[client];
	const struct vb_message welcome = { .kind = VB_MESSAGE_WELCOME };
	switch (message->kind) {
	case VB_MESSAGE_HELLO:
		say(worker, client, &welcome, NULL);
		return true;
	case VB_MESSAGE_GET_SLOT:
		state->wants_slot = true;
		state->request = message->request;
		state->receive_buffer = message->receive_buffer;
		return true;
	case VB_MESSAGE_RELEASE_SLOT:
		if (message->slot == 0 || message->slot > VB_SLOT_MAX ||
			worker->registry->slots[message->slot].owner != (int)client)
			return false;
		free_slot(worker, message->slot);
		return true;
	case VB_MESSAGE_ADOPT:
		if (adopt(worker, client, message, *fd))
			*fd = -1;
		return true;
	case VB_MESSAGE_DISCOVER:
		discovery_ask(worker->discovery, now_ms(), client, &message->sgid, &message->gid);
		return true;
	case VB_MESSAGE_SEND_MAD:
		send_mad(worker, client, message);
		return true;
	case VB_MESSAGE_POST_MAD:
		orphans_note_sent(worker->orphans, client, &message->sgid, &message->gid, message->mad);
		qp1_send(worker->qp1, &message->sgid, &message->gid, discovery_scope(&message->sgid, &message->gid),
			message->mad, message->length);
		return true;
	case VB_MESSAGE_BIND:
		bind_port(worker, client, message);
		return true;
	case VB_MESSAGE_LISTEN:
		answer_binding(worker, client, message->request,
			ports_listen(worker->ports, client, message->binding.number), message->binding.port);
		serve_early(worker, now_ms());
		return true;
	case VB_MESSAGE_UNBIND:
		ports_unbind(worker->ports, client, message->binding.number);
		return true;
	default:
		return false;
	}
}

static void hear(struct worker *worker, unsigned client)
{
	for (unsigned i = 0; i < MESSAGES_A_TURN && !worker->is_orphaned; i++) {
		struct vb_message message;
		int fd;
		int rc = vb_message_receive(worker->registry->clients[client].connection, &message, &fd);
		if (rc == -EAGAIN)
			return;
		bool is_good = rc == 0 && obey(worker, client, &message, &fd);
		if (fd >= 0)
			close(fd);
		if (!is_good) {
			if (!worker->clients[client].leaves_at)
				worker->clients[client].leaves_at = now_ms() + LINGER_MS;
			return;
		}
	}
}

static void on_answer(void *user, unsigned client, const struct vb_gid *gid, bool is_verbena, uint32_t receive_buffer)
{
	struct worker *worker = user;
	const struct vb_message message = { .kind = VB_MESSAGE_PEER, .gid = *gid, .is_verbena = is_verbena,
		.receive_buffer = receive_buffer };
	if (client < REGISTRY_CLIENTS && worker->registry->clients[client].is_used)
		say(worker, client, &message, NULL);
}

/* ---- The loop -------------------------------------------------------------------------------------------------- */

enum watched { LINK, LISTENER, OWN, SENDERS, FIRST_CLIENT = SENDERS + 2 };

static int earlier(int timeout, uint64_t at, uint64_t now)
{
	int left = at > now ? (int)(at - now) : 0;
	return timeout < 0 || left < timeout ? left : timeout;
}

static int next_timeout(struct worker *worker, uint64_t now)
{
	int timeout = discovery_advance(worker->discovery, now);
	serve_early(worker, now);
	if (worker->early.count)
		timeout = earlier(timeout, worker->early.held[0].until, now);
	const bool has_clients = registry_has_clients(worker->registry);
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++)
		if (worker->clients[i].leaves_at)
			timeout = earlier(timeout, worker->clients[i].leaves_at, now);
	if (!has_clients && !worker->stays)
		timeout = earlier(timeout, worker->idle_at, now);
	if (!worker->is_settled)
		timeout = earlier(timeout, worker->settle_at, now);
	else if (worker->must_repair)
		timeout = earlier(timeout, worker->repair_at, now);
	else if (group_strangers(&worker->group) && has_clients)
		timeout = earlier(timeout, worker->check_at, now);
	return timeout;
}

/* Fills polls; owner[i] is the client of polls[i]. */
static unsigned watch(const struct worker *worker, struct pollfd *polls, uint16_t *owner)
{
	unsigned count = FIRST_CLIENT;
	polls[LINK] = (struct pollfd){ .fd = worker->link, .events = POLLIN };
	polls[LISTENER] = (struct pollfd){ .fd = worker->registry->listener, .events = POLLIN };
	polls[OWN] = (struct pollfd){ .fd = worker->group.own, .events = POLLIN };
	int senders[2];
	qp1_sockets(worker->qp1, senders);
	for (unsigned i = 0; i < 2; i++)
		polls[SENDERS + i] = (struct pollfd){ .fd = senders[i] }; /* POLLERR alone */
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++) {
		const struct client *client = &worker->registry->clients[i];
		if (!client->is_used)
			continue;
		owner[count] = (uint16_t)i; /* a poll ignores -1 */
		polls[count++] = (struct pollfd){ .fd = client->pidfd, .events = POLLIN };
		owner[count] = (uint16_t)i;
		bool has_backlog = backlog_is_waiting(&worker->clients[i].backlog);
		polls[count++] = (struct pollfd){ .fd = worker->clients[i].leaves_at ? -1 : client->connection,
			.events = has_backlog ? POLLIN | POLLOUT : POLLIN };
	}
	return count;
}

static void serve(struct worker *worker, const struct pollfd *polls, const uint16_t *owner, unsigned count)
{
	if (polls[OWN].revents)
		receive_mads(worker);
	if (polls[SENDERS].revents | polls[SENDERS + 1].revents)
		pass_failures(worker);
	for (unsigned i = FIRST_CLIENT; i < count && !worker->is_orphaned; i++) {
		const struct client *client = &worker->registry->clients[owner[i]];
		if (!polls[i].revents || !client->is_used)
			continue;
		if (polls[i].fd == client->pidfd)
			remove_client(worker, owner[i]); /* its process is dead, whoever else may hold the connection */
		else if (polls[i].revents & POLLOUT)
			backlog_flush(&worker->clients[owner[i]].backlog, client->connection);
		if (client->is_used && polls[i].fd == client->connection && polls[i].revents & ~POLLOUT)
			hear(worker, owner[i]);
	}
	uint64_t now = now_ms();
	for (unsigned i = 0; i < REGISTRY_CLIENTS && !worker->is_orphaned; i++)
		if (worker->registry->clients[i].is_used && worker->clients[i].leaves_at &&
			worker->clients[i].leaves_at <= now)
			remove_client(worker, i);
	if (polls[LISTENER].revents && !worker->is_orphaned)
		accept_clients(worker);
	if (!worker->is_orphaned)
		keep_group(worker);
}

static enum worker_end loop(struct worker *worker)
{
	static struct pollfd polls[FIRST_CLIENT + 2 * REGISTRY_CLIENTS];
	static uint16_t owner[FIRST_CLIENT + 2 * REGISTRY_CLIENTS];
	while (!worker->is_orphaned) {
		uint64_t now = now_ms();
		int timeout = next_timeout(worker, now);
		unsigned count = watch(worker, polls, owner);
		if (poll(polls, count, timeout) < 0 && errno != EINTR)
			return WORKER_FAILED;
		if (polls[LINK].revents & (POLLHUP | POLLERR))
			return WORKER_ORPHANED;
		serve(worker, polls, owner, count);
		if (!worker->stays && !worker->is_orphaned && now_ms() >= worker->idle_at &&
			!registry_has_clients(worker->registry)) {
			accept_clients(worker);
			if (!registry_has_clients(worker->registry))
				return WORKER_LEAVES;
		}
	}
	return WORKER_ORPHANED;
}

static void report(int fd, const char *text)
{
	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		return;
	close(fd);
}

/* Takes over what the registry says was there before this worker. */
static void resume(struct worker *worker)
{
	const struct vb_message restarted = { .kind = VB_MESSAGE_RESTARTED };
	for (unsigned slot = 1; slot < REGISTRY_SLOTS; slot++) {
		const struct client_slot *one = &worker->registry->slots[slot];
		if (one->owner >= 0 && group_adopt(&worker->group, (uint8_t)slot, one->fd))
			worker->group.fd[slot] = one->fd; /* ours: repair will find it or not */
	}
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++)
		if (worker->registry->clients[i].is_used)
			say(worker, i, &restarted, NULL);
	worker->must_repair = true;
}

enum worker_end worker_run(struct registry *registry, int link, const struct worker_options *options)
{
	char why[VB_BROKER_WHY_SIZE] = "";
	struct worker *worker = calloc(1, sizeof(*worker));
	if (!worker)
		return WORKER_FAILED;
	worker->registry = registry;
	worker->link = link;
	worker->stays = options->stays;
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++)
		backlog_init(&worker->clients[i].backlog);
	if (group_open(&worker->group, why, sizeof(why))) {
		report(options->report, why);
		return WORKER_FAILED;
	}
	worker->qp1 = qp1_create();
	worker->discovery = discovery_create(worker->qp1, on_answer, worker);
	worker->ports = ports_create();
	worker->orphans = orphans_create();
	if (!worker->qp1 || !worker->discovery || !worker->ports || !worker->orphans) {
		report(options->report, "out of memory");
		return WORKER_FAILED;
	}
	update_receive_buffer(worker);
	uint64_t now = now_ms();
	worker->settle_at = now + SETTLE_MS;
	worker->knows_ports_at = options->is_first && group_strangers(&worker->group) == 0 ? now : now + RELEARN_MS;
	worker->idle_at = now + (options->is_first ? FIRST_IDLE_MS : IDLE_MS);
	worker->is_settled = group_strangers(&worker->group) == 0;
	if (!options->is_first)
		resume(worker);
	report(options->report, VB_BROKER_READY);

	enum worker_end end = loop(worker);
	discovery_destroy(worker->discovery);
	ports_destroy(worker->ports);
	orphans_destroy(worker->orphans);
	qp1_destroy(worker->qp1);
	close(worker->group.own);
	close(worker->group.probe);
	close(worker->group.fence);
	free(worker);
	return end;
}
