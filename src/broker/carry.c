/* Processes that may not have a socket of the group, and the forwarders that receive for them. A forwarder is a client
 * that sends CARRY. It owns the slot; the process that it serves uses the slot. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/invariant.h"
#include "broker/forwarder.h"
#include "broker/worker_state.h"
#include "port/receive_socket.h"

/* ---- Starting and ending ----------------------------------------------------------------------------------------- */

void worker_send_forwarder(struct worker *worker, unsigned client, uint8_t slot)
{
	struct client_state *state = &worker->clients[client];
	const struct client *process = &worker->registry->clients[client];
	const uint32_t request = slot ? 0 : state->request;
	const struct forwarder_task task = { .slot = slot,
		.pid = process->pid,
		.uid = process->uid,
		.number = ++worker->last_forwarder,
		.receive_buffer = state->receive_buffer };
	assert(process->is_used);
	if (state->channel >= 0) { /* one was started and has not connected yet */
		if (state->forwarder_request != request)
			worker_refuse(worker, client, state->request, EBUSY, "one slot at a time");
		return;
	}
	state->channel = forwarder_start(&task);
	state->forwarder_number = task.number;
	state->forwarder_request = request;
	state->forwarder_slot = slot;
	if (state->channel >= 0)
		return;
	worker_refuse(worker, client, state->request, -state->channel, "cannot start a forwarder: %s",
		strerror(-state->channel));
	state->channel = -1;
}

void worker_miss_forwarder(struct worker *worker, unsigned client)
{
	struct client_state *state = &worker->clients[client];
	assert(state->channel >= 0);
	close(state->channel);
	state->channel = -1;
	worker_reap();
	if (state->forwarder_request == 0)
		worker_send_forwarder(worker, client, state->forwarder_slot);
	else
		worker_refuse(worker, client, state->forwarder_request, EUSERS,
			"the broker has no place for a forwarder; end some RDMA processes");
}

void worker_end_forwarder(struct worker *worker, uint8_t slot)
{
	const struct client *forwarder = &worker->registry->clients[worker->registry->slots[slot].owner];
	assert(worker->registry->slots[slot].is_carried);
	if (registry_set_user(worker->registry, worker->link, slot, -1)) {
		worker->is_orphaned = true;
		return;
	}
	assert(forwarder->is_used);
	bool is_killed =
		forwarder->pidfd >= 0 && syscall(SYS_pidfd_send_signal, forwarder->pidfd, SIGKILL, NULL, 0) == 0;
	if (!is_killed && forwarder->pid > 0)
		kill(forwarder->pid, SIGKILL);
}

void worker_reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* ---- For whom ---------------------------------------------------------------------------------------------------- */

/* The client for which this worker started the forwarder; -1: that client no longer waits for it. */
static int find_waiting(const struct worker *worker, uint32_t number)
{
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++)
		if (worker->registry->clients[i].is_used && worker->clients[i].channel >= 0 &&
			worker->clients[i].forwarder_number == number && !worker->clients[i].leaves_at)
			return (int)i;
	return -1;
}

/* The same if an earlier worker started it. -1: the client has not connected yet, or cannot be recognised, since all
 * processes of a pid namespace that we do not see into have one number. */
static int find_client(const struct worker *worker, const struct carries *carries)
{
	if (carries->pid <= 0)
		return -1;
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++) {
		const struct client *client = &worker->registry->clients[i];
		if (client->is_used && client->pid == carries->pid && client->uid == carries->uid &&
			!worker->clients[i].leaves_at && !worker->clients[i].carries.is_forwarder)
			return (int)i;
	}
	return -1;
}

void worker_name_user(struct worker *worker, unsigned forwarder, struct client_slot *slot)
{
	const struct carries *carries = &worker->clients[forwarder].carries;
	assert(carries->is_forwarder);
	slot->is_carried = true;
	slot->user_pid = carries->pid;
	slot->user_uid = carries->uid;
	slot->user = find_client(worker, carries);
}

bool worker_find_user(struct worker *worker, unsigned forwarder, struct client_slot *slot)
{
	const struct client_state *state = &worker->clients[forwarder];
	assert(state->carries.is_forwarder);
	slot->user = find_waiting(worker, state->carries.number);
	if (slot->user < 0) {
		worker_refuse(worker, forwarder, state->request, ESRCH, "nobody waits for it");
		return false;
	}
	slot->is_carried = true;
	slot->user_pid = worker->registry->clients[slot->user].pid;
	slot->user_uid = worker->registry->clients[slot->user].uid;
	return true;
}

void worker_hand_over_channel(struct worker *worker, uint8_t slot)
{
	const struct client_slot *one = &worker->registry->slots[slot];
	assert(one->is_carried);
	if (one->user < 0 || worker->clients[one->user].channel < 0)
		return;
	struct client_state *user = &worker->clients[one->user];
	const struct vb_message message = { .kind = VB_MESSAGE_SLOT,
		.request = user->forwarder_request,
		.slot = slot,
		.receive_buffer = one->receive_buffer,
		.is_carried = true };
	worker_say(worker, (unsigned)one->user, &message, &user->channel);
	close(user->channel);
	user->channel = -1;
}

/* ---- What they say ----------------------------------------------------------------------------------------------- */

bool worker_hear_forwarder(
	struct worker *worker, unsigned client, const struct vb_message *message, int fd, bool *is_good)
{
	struct client_state *state = &worker->clients[client];
	*is_good = worker_user_of(worker, client) == geteuid() && message->slot <= VB_SLOT_MAX;
	if (!*is_good)
		return false;
	state->carries = (struct carries){ .is_forwarder = true,
		.slot = message->slot,
		.pid = (pid_t)message->carry.pid,
		.uid = message->carry.uid,
		.number = message->carry.number };
	if (fd >= 0)
		return worker_adopt_slot(worker, client, message, fd);
	state->wants_slot = true;
	state->request = message->request;
	state->receive_buffer = message->carry.receive_buffer;
	return false;
}

void worker_adopt_carried(struct worker *worker, unsigned client, const struct vb_message *message)
{
	const struct client *process = &worker->registry->clients[client];
	const struct client_slot *one = &worker->registry->slots[message->slot];
	const struct vb_message adopted = {
		.kind = VB_MESSAGE_ADOPTED, .request = message->request, .slot = message->slot
	};
	bool is_his = one->is_carried && one->user_pid == process->pid && one->user_uid == process->uid;
	if (!is_his) {
		bool is_early = worker_is_before(worker->knows_ports_at);
		worker_refuse(worker, client, message->request, is_early ? EAGAIN : ESTALE,
			"slot %u has no forwarder any more", message->slot);
		return;
	}
	if (one->user != (int)client)
		worker_forget_introductions(worker, message->slot);
	if (registry_set_user(worker->registry, worker->link, message->slot, (int)client))
		worker->is_orphaned = true;
	else
		worker_say(worker, client, &adopted, NULL);
}

void worker_join_group(struct worker *worker, unsigned client, const struct vb_message *message)
{
	const struct client_slot *one = &worker->registry->slots[message->slot];
	const struct vb_message joined = { .kind = VB_MESSAGE_JOINED, .request = message->request };
	int error = EINVAL;
	if (one->is_carried && one->user == (int)client && vb_gid_is_multicast(&message->gid))
		error = -vb_change_membership(one->fd, &message->gid, message->scope, message->kind == VB_MESSAGE_JOIN);
	if (error)
		worker_refuse(worker, client, message->request, error, "multicast group: %s", strerror(error));
	else
		worker_say(worker, client, &joined, NULL);
}
