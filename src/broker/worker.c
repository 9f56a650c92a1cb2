/* See worker.h. One thread, one poll loop; every request is checked against the registry's entry for its sender. */
#include "broker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "base/invariant.h"
#include "broker/privilege.h"
#include "broker/process_state.h"
#include "broker/worker_state.h"

#define IDLE_MS         1000
#define FIRST_IDLE_MS   5000  /* before the first client connects */
#define SETTLE_MS       150   /* for the owners of surviving sockets to hand them over before new clients get slots */
#define SURVIVORS_MS    60000 /* for an owner that is stopped, for example, before its slot is given to others */
#define LINGER_MS       10    /* from the end of a connection until its process has closed its sockets too */
#define MESSAGES_A_TURN 16
#define RELEARN_MS      2000 /* for clients of a dead broker to announce their listeners again */

void worker_say(struct worker *worker, unsigned client, const struct vb_message *message, const int *fd)
{
	struct client_state *state = &worker->clients[client];
	uint64_t now = vb_clock_ms();
	assert(worker->registry->clients[client].is_used);
	assert(!fd || *fd >= 0);
	if (!state->leaves_at &&
		!backlog_say(&state->backlog, worker->registry->clients[client].connection, message, fd, now))
		state->leaves_at = now;
}

__attribute__((format(printf, 5, 6))) void worker_refuse(
	struct worker *worker, unsigned client, uint32_t request, int error, const char *format, ...)
{
	struct vb_message message = { .kind = VB_MESSAGE_REFUSED, .request = request, .error = error };
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(message.why, sizeof(message.why), format, arguments);
	va_end(arguments);
	worker_say(worker, client, &message, NULL);
}

/* ---- Clients ----------------------------------------------------------------------------------------------------- */

void worker_reset_client(struct client_state *state)
{
	backlog_discard(&state->backlog);
	if (state->channel >= 0)
		close(state->channel);
	*state = (struct client_state){ .channel = -1 };
	backlog_init(&state->backlog);
}

/* Frees the slots that the client owns, and those that it uses through forwarders. If it is a forwarder, the slot's
 * user gets another one, if it is still there. */
static void free_slots(struct worker *worker, unsigned number)
{
	for (unsigned slot = 1; slot < REGISTRY_SLOTS && !worker->is_orphaned; slot++) {
		const struct client_slot *one = &worker->registry->slots[slot];
		const int user = one->user;
		if (one->owner == (int)number) {
			worker_free_slot(worker, (uint8_t)slot);
			if (user >= 0 && user != (int)number && !worker->clients[user].leaves_at)
				worker_send_forwarder(worker, (unsigned)user, (uint8_t)slot);
		} else if (one->user == (int)number) {
			worker_end_forwarder(worker, (uint8_t)slot);
		}
	}
}

void worker_say_client(const struct worker *worker, unsigned number, const char *does)
{
	const struct client *client = &worker->registry->clients[number];
	unsigned count = 0;
	if (!worker->says_clients)
		return;
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++)
		count += i != number && worker->registry->clients[i].is_used;
	struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };
	if (poll(&room, 1, 0) > 0) /* never wait for its reader */
		fprintf(stderr, VB_BROKER_PROGRAM ": process %d of uid %u %s; %u others are connected\n",
			(int)client->pid, client->uid, does, count);
}

void worker_remove_client(struct worker *worker, unsigned number)
{
	assert(!worker->is_orphaned);
	worker_say_client(worker, number, "has left");
	free_slots(worker, number);
	if (worker->is_orphaned)
		return;
	discovery_forget_client(worker->discovery, number);
	exchanges_forget_client(worker->asking, number);
	exchanges_refuse_client(worker->asked, number);
	ports_forget_client(worker->ports, number);
	worker_bid_farewell(worker, number);
	worker_reap();
	const struct client *client = &worker->registry->clients[number];
	int connection = worker_trusts(worker, number) ? -1 : fcntl(client->connection, F_DUPFD_CLOEXEC, 0);
	if (registry_drop_client(worker->registry, worker->link, (int)number))
		worker->is_orphaned = true;
	if (connection >= 0)
		closer_take(&worker->closer, connection);
	worker_reset_client(&worker->clients[number]);
	worker->idle_at = vb_clock_ms() + IDLE_MS;
}

/* ---- Ports ------------------------------------------------------------------------------------------------------- */

/* A client that announces a binding again waits for no answer, and its request is 0. */
static void answer_binding(struct worker *worker, unsigned client, uint32_t request, int rc, uint16_t port)
{
	const struct vb_message message = { .kind = VB_MESSAGE_BOUND, .request = request, .binding.port = port };
	if (request == 0)
		return;
	if (rc == -EACCES)
		worker_refuse(worker, client, request, EACCES,
			"port %u is for root and who has CAP_NET_BIND_SERVICE "
			"(net.ipv4.ip_unprivileged_port_start)",
			port);
	else if (rc == -EADDRNOTAVAIL)
		worker_refuse(worker, client, request, EADDRNOTAVAIL,
			"port %u: another has it, and one of the two binds "
			"all addresses",
			port);
	else if (rc)
		worker_refuse(worker, client, request, -rc, "port %u: %s", port, strerror(-rc));
	else
		worker_say(worker, client, &message, NULL);
}

static bool is_of_user(const struct worker *worker, unsigned client, uid_t uid)
{
	return worker->registry->clients[client].is_used && worker->registry->clients[client].uid == uid;
}

/* 0, or the -errno with which the binding is refused. */
static int may_bind(const struct worker *worker, unsigned client, const struct port_binding *binding)
{
	const uid_t uid = worker->registry->clients[client].uid;
	unsigned taken = 0, holds = 0;
	/* As with kernel sockets, a child needs no privilege for a port that its parent was allowed to bind. */
	if (!privilege_may_bind(&worker->registry->clients[client], binding->port) &&
		!ports_has_family(worker->ports, binding))
		return -EACCES;
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++) {
		taken += ports_count(worker->ports, i);
		holds += is_of_user(worker, i, uid) ? ports_count(worker->ports, i) : 0;
	}
	assert(taken <= PORTS_MAX);
	return limits_may_take(&worker->limits, uid, holds, taken, PORTS_MAX) ? 0 : -ENOBUFS;
}

static void bind_port(struct worker *worker, unsigned client, const struct vb_message *message)
{
	struct port_binding binding = { .client = client,
		.number = message->binding.number,
		.port_space = message->binding.port_space,
		.port = message->binding.port,
		.address = message->gid,
		.is_shared = message->binding.is_shared,
		.is_ipv6_only = message->binding.is_ipv6_only,
		.family = message->binding.family };
	int rc = may_bind(worker, client, &binding);
	if (rc == 0)
		rc = ports_bind(worker->ports, &binding);
	if (rc == 0 && privilege_is_needed(binding.port))
		ports_remember_family(worker->ports, &binding);
	answer_binding(worker, client, message->request, rc, binding.port);
}

/* ---- What they ask for ------------------------------------------------------------------------------------------- */

/* True if its user may have another slot; else the client is told which users have them. slots.c reports that all are
 * taken. */
static bool may_have_slot(struct worker *worker, unsigned client, const struct vb_message *message)
{
	const uint32_t request = message->request;
	const uid_t uid = worker->registry->clients[client].uid;
	struct holders holders = { 0 }, connected;
	unsigned taken = 0, holds = 0;
	char names[100];
	for (unsigned slot = 1; slot < REGISTRY_SLOTS; slot++) {
		const struct client_slot *one = &worker->registry->slots[slot];
		if (one->owner < 0)
			continue;
		if (one->owner == (int)client && one->request == request)
			return true; /* it asked again, and has the slot already */
		const uid_t holder = one->is_carried ? one->user_uid : worker->registry->clients[one->owner].uid;
		taken++;
		holds += holder == uid;
		holders_add(&holders, holder);
	}
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++)
		if (i != client && (worker->clients[i].wants_slot || worker->clients[i].channel >= 0) &&
			is_of_user(worker, i, uid)) {
			holds++;
			holders_add(&holders, uid);
		}
	assert(taken <= VB_SLOT_MAX);
	if (message->is_further && 2 * taken >= VB_SLOT_MAX) {
		worker_refuse(worker, client, request, EUSERS,
			"half of the %d slots of UDP port 4791 are taken, and the rest is for "
			"processes that have none",
			VB_SLOT_MAX);
		return false;
	}
	if (taken < VB_SLOT_MAX && !worker_trusts(worker, client) && !worker_may_connect(worker, uid, &connected)) {
		holders_name(&connected, names, sizeof(names));
		worker_refuse(worker, client, request, EUSERS,
			"no connection to the broker is free for a forwarder of uid "
			"%u (%u in all; %s); end some RDMA processes",
			uid, REGISTRY_CLIENTS, names);
		return false;
	}
	if (taken == VB_SLOT_MAX || limits_may_take(&worker->limits, uid, holds, taken, VB_SLOT_MAX))
		return true;
	holders_name(&holders, names, sizeof(names));
	worker_refuse(worker, client, request, EUSERS,
		"no slot of UDP port 4791 is free for uid %u (%u in all; %s); end "
		"some RDMA processes",
		uid, VB_SLOT_MAX, names);
	return false;
}

static void discover(struct worker *worker, unsigned client, const struct vb_message *message)
{
	const uid_t uid = worker->registry->clients[client].uid;
	unsigned taken = 0, holds = 0;
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++) {
		taken += discovery_questions(worker->discovery, i);
		holds += is_of_user(worker, i, uid) ? discovery_questions(worker->discovery, i) : 0;
	}
	assert(taken <= DISCOVERY_QUESTIONS);
	discovery_ask(worker->discovery, vb_clock_ms(), client, &message->sgid, &message->gid,
		limits_may_take(&worker->limits, uid, holds, taken, DISCOVERY_QUESTIONS));
}

/* False: the message breaks the protocol. */
static bool obey(struct worker *worker, unsigned client, const struct vb_message *message, int *fd)
{
	struct client_state *state = &worker->clients[client];
	const struct vb_message welcome = { .kind = VB_MESSAGE_WELCOME };
	bool is_good = true;
	state->has_spoken = true;
	switch (message->kind) {
	case VB_MESSAGE_HELLO:
		worker_say(worker, client, &welcome, NULL);
		return true;
	case VB_MESSAGE_GET_SLOT:
		if (!may_have_slot(worker, client, message))
			return true;
		state->wants_slot = true;
		state->request = message->request;
		state->receive_buffer = message->receive_buffer;
		return true;
	case VB_MESSAGE_RELEASE_SLOT:
		return worker_release_slot(worker, client, message->slot);
	case VB_MESSAGE_ADOPT:
		if (worker_adopt_slot(worker, client, message, *fd))
			*fd = -1;
		return true;
	case VB_MESSAGE_CARRY:
		if (worker_hear_forwarder(worker, client, message, *fd, &is_good))
			*fd = -1;
		return is_good;
	case VB_MESSAGE_JOIN:
	case VB_MESSAGE_LEAVE:
		worker_join_group(worker, client, message);
		return true;
	case VB_MESSAGE_DISCOVER:
		discover(worker, client, message);
		return true;
	case VB_MESSAGE_MEET:
		worker_meet(worker, client, message);
		return true;
	case VB_MESSAGE_OPEN:
		worker_open(worker, client, message);
		return true;
	case VB_MESSAGE_PART:
		worker_let_part(worker, client, message);
		return true;
	case VB_MESSAGE_SEND_MAD:
		worker_send_mad(worker, client, message);
		return true;
	case VB_MESSAGE_POST_MAD:
		worker_post_mad(worker, client, message);
		return true;
	case VB_MESSAGE_BIND:
		bind_port(worker, client, message);
		return true;
	case VB_MESSAGE_LISTEN:
		answer_binding(worker, client, message->request,
			ports_listen(worker->ports, client, message->binding.number, message->binding.is_accepting),
			message->binding.port);
		worker_serve_early(worker, vb_clock_ms());
		return true;
	case VB_MESSAGE_UNBIND:
		ports_unbind(worker->ports, client, message->binding.number);
		return true;
	default:
		return false;
	}
}

/* The kernel names a message's sender, and that decides whether its descriptors are taken. An untrusted sender has none
 * that we want, and may send some that are dangerous to close. A message that was not peeked at is not received. */
static int receive(struct worker *worker, unsigned client, struct vb_message *message, int *fd)
{
	const struct client *process = &worker->registry->clients[client];
	bool has_descriptors;
	struct ucred sender;
	*fd = -1;
	int rc = closer_look(process->connection, &has_descriptors, &sender);
	if (rc)
		return rc;
	if (sender.uid != VB_USER_UNKNOWN)
		worker->clients[client].speaker = vb_user_of(&worker->users, sender.uid, process->pidfd);
	if (has_descriptors && !worker_trusts(worker, client))
		return -EPROTO;
	return vb_message_receive(process->connection, message, fd);
}

/* Reads one message; true: there may be more. */
static bool hear(struct worker *worker, unsigned client)
{
	assert(worker->registry->clients[client].is_used);
	for (unsigned i = 0; i < MESSAGES_A_TURN && !worker->is_orphaned; i++) {
		struct vb_message message;
		int fd;
		int rc = receive(worker, client, &message, &fd);
		if (rc == -EAGAIN)
			return false;
		bool is_good = rc == 0 && !backlog_is_blocked(&worker->clients[client].backlog, vb_clock_ms()) &&
			       obey(worker, client, &message, &fd);
		if (fd >= 0)
			close(fd);
		if (!is_good) {
			if (!worker->clients[client].leaves_at)
				worker->clients[client].leaves_at = vb_clock_ms() + LINGER_MS;
			return false;
		}
	}
	return !worker->is_orphaned;
}

/* The client's process is dead, even if another process holds the connection. Its last messages are still handled: a
 * program that refuses a connection and exits has refused it. Its MADs for this host are read from our socket first,
 * since that may change when a slot is freed. */
static void outlive(struct worker *worker, unsigned client)
{
	while (!worker->clients[client].leaves_at && hear(worker, client))
		;
	if (!worker->is_orphaned)
		worker_receive_mads(worker);
	if (!worker->is_orphaned && worker->registry->clients[client].is_used)
		worker_remove_client(worker, client);
}

static void on_answer(void *user, unsigned client, const struct vb_gid *gid, const struct discovery_facts *facts)
{
	struct worker *worker = user;
	uint8_t peer_is =
		(facts->is_verbena ? VB_PEER_IS_VERBENA : 0) | (facts->takes_hellos ? VB_PEER_TAKES_HELLOS : 0);
	const struct vb_message message = {
		.kind = VB_MESSAGE_PEER, .gid = *gid, .peer_is = peer_is, .receive_buffer = facts->receive_buffer
	};
	if (client < REGISTRY_CLIENTS && worker->registry->clients[client].is_used)
		worker_say(worker, client, &message, NULL);
}

static enum vb_process_state on_question_of_process(void *user, uint32_t qpn)
{
	const struct worker *worker = user;
	int client = worker->registry->slots[qpn >> 16 & 0xFF].user;
	if (client < 0) /* a new broker does not know all bindings yet */
		return worker_is_before(worker->knows_ports_at) ? VB_PROCESS_NOT_TOLD : VB_PROCESS_GONE;
	return process_state(worker->registry->clients[client].pid);
}

/* ---- The loop ---------------------------------------------------------------------------------------------------- */

enum watched { LINK, LISTENER, OWN, SENDERS, FIRST_CLIENT = SENDERS + 2 };

static bool has_mads(const struct worker *worker)
{
	return qp1_has_more(worker->qp1) || traffic_is_waiting(worker->traffic);
}

static int earlier(int timeout, uint64_t at, uint64_t now)
{
	int left = at > now ? (int)(at - now) : 0;
	return timeout < 0 || left < timeout ? left : timeout;
}

static int next_timeout(struct worker *worker, uint64_t now)
{
	int timeout = discovery_advance(worker->discovery, now);
	if (has_mads(worker))
		timeout = 0;
	if (worker->early.count && worker->early.held[0].until <= now)
		worker_serve_early(worker, now);
	if (worker->early.count)
		timeout = earlier(timeout, worker->early.held[0].until, now);
	const bool has_clients = registry_has_clients(worker->registry);
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++)
		if (worker->clients[i].leaves_at)
			timeout = earlier(timeout, worker->clients[i].leaves_at, now);
	if (worker->parting_count)
		timeout = earlier(timeout, worker->parting[0].until, now);
	if (!has_clients && !worker->stays)
		timeout = earlier(timeout, worker->idle_at, now);
	if (!worker->is_settled)
		timeout = earlier(timeout, worker->settle_at, now);
	else if (worker->must_repair)
		timeout = earlier(timeout, worker->repair_at, now);
	else if ((group_unknown_slots(&worker->group) && has_clients) || worker->is_mixed)
		timeout = earlier(timeout, worker->check_at, now);
	return timeout;
}

/* Fills polls; owner[i] is the client for polls[i]. */
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
		owner[count] = (uint16_t)i;
		polls[count++] = (struct pollfd){ .fd = worker->clients[i].channel }; /* POLLHUP alone */
	}
	assert(count <= FIRST_CLIENT + 3 * REGISTRY_CLIENTS);
	return count;
}

static void serve(struct worker *worker, const struct pollfd *polls, const uint16_t *owner, unsigned count)
{
	if (polls[OWN].revents || has_mads(worker))
		worker_receive_mads(worker);
	if (polls[SENDERS].revents | polls[SENDERS + 1].revents)
		worker_pass_failures(worker);
	for (unsigned i = FIRST_CLIENT; i < count && !worker->is_orphaned; i++) {
		const struct client *client = &worker->registry->clients[owner[i]];
		if (!polls[i].revents || !client->is_used)
			continue;
		if (polls[i].fd == client->pidfd)
			outlive(worker, owner[i]);
		else if (polls[i].revents & POLLOUT)
			backlog_flush(&worker->clients[owner[i]].backlog, client->connection, vb_clock_ms());
		if (client->is_used && polls[i].fd == client->connection && polls[i].revents & ~POLLOUT)
			hear(worker, owner[i]);
		if (client->is_used && polls[i].fd == worker->clients[owner[i]].channel)
			worker_miss_forwarder(worker, owner[i]);
	}
	uint64_t now = vb_clock_ms();
	worker_part(worker, now);
	for (unsigned i = 0; i < REGISTRY_CLIENTS && !worker->is_orphaned; i++)
		if (worker->registry->clients[i].is_used && worker->clients[i].leaves_at &&
			worker->clients[i].leaves_at <= now)
			worker_remove_client(worker, i);
	if (polls[LISTENER].revents && !worker->is_orphaned)
		worker_accept_clients(worker);
	if (!worker->is_orphaned)
		worker_keep_group(worker);
}

static enum worker_end loop(struct worker *worker)
{
	static struct pollfd polls[FIRST_CLIENT + 3 * REGISTRY_CLIENTS];
	static uint16_t owner[FIRST_CLIENT + 3 * REGISTRY_CLIENTS];
	while (!worker->is_orphaned) {
		uint64_t now = vb_clock_ms();
		int timeout = next_timeout(worker, now);
		unsigned count = watch(worker, polls, owner);
		if (vb_clock_poll(polls, count, timeout) < 0 && errno != EINTR)
			return WORKER_FAILED;
		if (polls[LINK].revents & (POLLHUP | POLLERR))
			return WORKER_ORPHANED;
		serve(worker, polls, owner, count);
		if (!worker->stays && !worker->is_orphaned && !worker_is_before(worker->idle_at) &&
			!registry_has_clients(worker->registry)) {
			worker_accept_clients(worker);
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

/* Takes over the clients and slots in the registry, from before this worker. */
static void resume(struct worker *worker)
{
	const struct vb_message restarted = { .kind = VB_MESSAGE_RESTARTED };
	for (unsigned slot = 1; slot < REGISTRY_SLOTS; slot++) {
		const struct client_slot *one = &worker->registry->slots[slot];
		assert(one->user < 0 || one->owner >= 0);
		if (one->owner < 0 && one->fd >= 0)
			group_adopt_vacant(&worker->group, (uint8_t)slot, one->fd);
		else if (one->owner >= 0 && group_adopt(&worker->group, (uint8_t)slot, one->fd))
			worker->group.fd[slot] = one->fd; /* kept: repair finds its index */
	}
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++) {
		if (!worker->registry->clients[i].is_used)
			continue;
		worker->clients[i].since = vb_clock_ms();
		worker_say(worker, i, &restarted, NULL);
	}
	for (unsigned slot = 1; slot < REGISTRY_SLOTS; slot++) {
		const struct client_slot *one = &worker->registry->slots[slot];
		bool has_user = one->user >= 0 && worker->registry->clients[one->user].is_used;
		if (one->is_carried && !has_user && one->owner >= 0)
			worker_end_forwarder(worker, (uint8_t)slot);
	}
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
	worker->closer.link = -1;
	if (getrandom(&worker->last_forwarder, sizeof(worker->last_forwarder), 0) < 0)
		worker->last_forwarder = 0;
	worker->stays = options->stays;
	worker->says_clients = options->says_clients;
	worker->trusted = &options->trusted;
	worker->limits = (struct limits){ .own = geteuid(), .is_shared = options->is_shared };
	worker->users = vb_users_read();
	setsockopt(registry->listener, SOL_SOCKET, SO_PASSCRED, &(int){ 1 },
		sizeof(int)); /* accepted sockets inherit it */
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++) {
		backlog_init(&worker->clients[i].backlog);
		worker->clients[i].channel = -1;
		worker->clients[i].speaker = registry->clients[i].uid;
	}
	if (group_open(&worker->group, why, sizeof(why))) {
		report(options->report, why);
		return WORKER_FAILED;
	}
	privilege_drop(); /* after the port's holder has been reported, which needs other users' /proc */
	worker->qp1 = qp1_create();
	worker->discovery = discovery_create(worker->qp1, on_answer, on_question_of_process, worker);
	worker->ports = ports_create();
	worker->orphans = orphans_create();
	worker->sources = sources_create();
	worker->traffic = traffic_create();
	worker->asking = malloc(sizeof(*worker->asking));
	worker->asked = malloc(sizeof(*worker->asked));
	if (!worker->qp1 || !worker->discovery || !worker->ports || !worker->orphans || !worker->sources ||
		!worker->traffic || !worker->asking || !worker->asked) {
		report(options->report, "out of memory");
		return WORKER_FAILED;
	}
	exchanges_init(worker->asking);
	exchanges_init(worker->asked);
	worker_note_slots(worker);
	uint64_t now = vb_clock_ms();
	worker->settle_at = now + SETTLE_MS;
	worker->knows_ports_at = options->is_first && group_unknown_slots(&worker->group) == 0 ? now : now + RELEARN_MS;
	worker->idle_at = now + (options->is_first ? FIRST_IDLE_MS : IDLE_MS);
	worker->is_settled = group_unknown_slots(&worker->group) == 0;
	worker->survivors_until = now + SURVIVORS_MS;
	if (!options->is_first)
		resume(worker);
	if (group_unknown_slots(&worker->group))
		group_find_survivors(&worker->group, worker->survives);
	report(options->report, VB_BROKER_READY);

	enum worker_end end = loop(worker);
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++)
		backlog_discard(&worker->clients[i].backlog);
	discovery_destroy(worker->discovery);
	ports_destroy(worker->ports);
	orphans_destroy(worker->orphans);
	sources_destroy(worker->sources);
	traffic_destroy(worker->traffic);
	free(worker->asking);
	free(worker->asked);
	qp1_destroy(worker->qp1);
	closer_dismiss(&worker->closer);
	close(worker->group.own);
	close(worker->group.probe);
	close(worker->group.fence);
	free(worker);
	return end;
}
