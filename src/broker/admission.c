/* Admission: new clients are accepted, or refused with the reason. No client waits in silence: if there is no room, a
 * useless connection is closed, or the new client is told which users hold the places.
 *
 * A refused connection is kept for a moment with the refusal in it, so that its process comes to read it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/invariant.h"
#include "broker/privilege.h"
#include "broker/worker_state.h"

#define SILENT_MS      1000  /* after which a connection that sent nothing may be closed to make room */
#define USELESS_MS     30000 /* the same for one that has neither slot nor port */
#define PARTING_MS     1000
#define ACCEPTS_A_TURN 32 /* so that a burst of new clients does not keep others waiting */

/* ---- Room -------------------------------------------------------------------------------------------------------- */

static bool has_slot(const struct worker *worker, unsigned client)
{
	for (unsigned slot = 1; slot < REGISTRY_SLOTS; slot++)
		if (worker->registry->slots[slot].owner == (int)client ||
			worker->registry->slots[slot].user == (int)client)
			return true;
	return worker->clients[client].channel >= 0; /* its slot is on its way */
}

static bool is_useless(const struct worker *worker, unsigned client, uint64_t now)
{
	const struct client_state *state = &worker->clients[client];
	uint64_t patience = state->has_spoken ? USELESS_MS : SILENT_MS;
	return now >= state->since + patience && !state->wants_slot && ports_count(worker->ports, client) == 0 &&
	       !has_slot(worker, client);
}

/* The oldest connection without slot or port; only uid's unless any_uid is set; -1: none. */
static int find_useless(const struct worker *worker, uid_t uid, bool any_uid, uint64_t now)
{
	int found = -1;
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++) {
		const struct client *client = &worker->registry->clients[i];
		if (client->is_used && (any_uid || client->uid == uid) &&
			(found < 0 || worker->clients[i].since < worker->clients[found].since) &&
			is_useless(worker, i, now))
			found = (int)i;
	}
	return found;
}

static void turn_out(struct worker *worker, unsigned client)
{
	worker_refuse(worker, client, 0, ETIMEDOUT, "the connection served nothing, and another process needed it");
	worker_remove_client(worker, client);
}

/* True if a forwarder for this client will connect, for which a place must stay free. */
static bool awaits_forwarder(const struct worker *worker, unsigned client)
{
	const struct client_state *state = &worker->clients[client];
	return state->channel >= 0 || (state->wants_slot && !worker_trusts(worker, client));
}

/* A forwarder's connection counts for the user whom it serves. */
static unsigned count_clients(const struct worker *worker, uid_t uid, unsigned *of_uid, struct holders *holders)
{
	const struct registry *registry = worker->registry;
	uid_t behind[REGISTRY_CLIENTS];
	const bool takes_what_is_free = uid == 0 || uid == worker->limits.own;
	unsigned count = 0;
	*of_uid = 0;
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++)
		behind[i] = registry->clients[i].uid;
	for (unsigned slot = 1; slot < REGISTRY_SLOTS; slot++)
		if (registry->slots[slot].is_carried && registry->slots[slot].owner >= 0)
			behind[registry->slots[slot].owner] = registry->slots[slot].user_uid;
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++) {
		if (!registry->clients[i].is_used)
			continue;
		const unsigned counts = !takes_what_is_free && awaits_forwarder(worker, i) ? 2 : 1;
		for (unsigned k = 0; k < counts; k++)
			holders_add(holders, behind[i]);
		count += counts;
		*of_uid += behind[i] == uid ? counts : 0;
	}
	assert(*of_uid <= count);
	return count;
}

bool worker_may_connect(const struct worker *worker, uid_t uid, struct holders *holders)
{
	unsigned of_uid;
	*holders = (struct holders){ 0 };
	unsigned count = count_clients(worker, uid, &of_uid, holders);
	return limits_may_take(&worker->limits, uid, of_uid, count, REGISTRY_CLIENTS);
}

/* A place in the registry; others may be closed for it. -1 with the reason in refusal. */
static int make_room(struct worker *worker, uid_t uid, struct vb_message *refusal)
{
	struct holders holders;
	char names[100];
	uint64_t now = vb_clock_ms();
	for (bool any_uid = false; !worker_may_connect(worker, uid, &holders);) {
		int useless = find_useless(worker, uid, any_uid, now);
		if (useless >= 0)
			turn_out(worker, (unsigned)useless);
		if (worker->is_orphaned)
			return -1;
		if (useless < 0 && any_uid) {
			holders_name(&holders, names, sizeof(names));
			refusal->error = EUSERS;
			snprintf(refusal->why, sizeof(refusal->why),
				"no connection to the broker is free for uid %u (%u in all; %s); end some RDMA "
				"processes",
				uid, REGISTRY_CLIENTS, names);
			return -1;
		}
		any_uid = any_uid || useless < 0;
	}
	for (int i = 0; i < REGISTRY_CLIENTS; i++)
		if (!worker->registry->clients[i].is_used)
			return i;
	return -1;
}

/* ---- Parting ----------------------------------------------------------------------------------------------------- */

/* Closes refused connections whose process has ended or whose time is over. */
void worker_part(struct worker *worker, uint64_t now)
{
	for (unsigned i = 0; i < worker->parting_count;) {
		if (worker->parting[i].until > now) {
			i++;
			continue;
		}
		assert(worker->parting[i].connection >= 0);
		closer_take(&worker->closer, worker->parting[i].connection);
		worker->parting[i] = worker->parting[--worker->parting_count];
	}
}

static void turn_away(struct worker *worker, int connection, const struct vb_message *refusal)
{
	vb_message_send(connection, refusal, NULL);
	if (worker->parting_count == PARTING_MAX) {
		closer_take(&worker->closer, worker->parting[0].connection);
		worker->parting[0] = worker->parting[--worker->parting_count];
	}
	assert(worker->parting_count < PARTING_MAX);
	worker->parting[worker->parting_count++] =
		(struct parting){ .connection = connection, .until = vb_clock_ms() + PARTING_MS };
}

/* ---- Newcomers --------------------------------------------------------------------------------------------------- */

/* Finds the process at the other end of the connection, and its user. False: neither can be found out. */
static bool identify(const struct worker *worker, struct client *client)
{
	assert(client->connection >= 0);
	const int yes = 1;
	struct ucred peer;
	socklen_t length = sizeof(peer);
	setsockopt(client->connection, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes));
	if (getsockopt(client->connection, SOL_SOCKET, SO_PEERCRED, &peer, &length))
		return false;
	client->pid = peer.pid;
	client->pidfd = vb_peer_pidfd(client->connection, peer.pid);
	client->uid = vb_user_of(&worker->users, peer.uid, client->pidfd);
	return true;
}

/* A place for a process of uid; -1 with the reason in refusal. */
static int admit(struct worker *worker, uid_t uid, struct vb_message *refusal)
{
	if (limits_serves(&worker->limits, uid))
		return make_room(worker, uid, refusal);
	refusal->error = EPERM;
	snprintf(refusal->why, sizeof(refusal->why),
		"the broker of uid %u serves that user and root only; have it started with VERBENA_BROKER=any or "
		"--share, "
		"or have root run: verbena broker",
		worker->limits.own);
	return -1;
}

void worker_accept_clients(struct worker *worker)
{
	for (unsigned i = 0; i < ACCEPTS_A_TURN && !worker->is_orphaned; i++) {
		struct client client = { .connection = accept4(
						 worker->registry->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK),
			.pidfd = -1 };
		struct vb_message refusal = { .kind = VB_MESSAGE_REFUSED };
		if (client.connection < 0)
			return;
		if (!identify(worker, &client)) {
			close(client.connection);
			continue;
		}
		int number = admit(worker, client.uid, &refusal);
		if (number < 0) {
			if (client.pidfd >= 0)
				close(client.pidfd);
			turn_away(worker, client.connection, &refusal);
			continue;
		}
		client.may_bind_any = privilege_may_bind_any(&client);
		if (registry_add_client(worker->registry, worker->link, number, &client)) {
			close(client.connection); /* it connects again, to another worker */
			if (client.pidfd >= 0)
				close(client.pidfd);
			worker->is_orphaned = true;
			return;
		}
		assert(!worker->clients[number].leaves_at);
		worker_reset_client(&worker->clients[number]);
		worker->clients[number].since = vb_clock_ms();
		worker->clients[number].speaker = client.uid;
		worker_say_client(worker, (unsigned)number, "has come");
	}
}
