/* Slots: a process's share of UDP 4791, given, taken back, and adopted by a worker that has replaced another. The group
 * of sockets is put in order before a new client gets one. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/invariant.h"
#include "broker/worker_state.h"

#define CHECK_MS 1000 /* interval of checks of the steering, if it must be checked */

void worker_note_slots(struct worker *worker)
{
	uint32_t least = worker->group.default_buffer;
	uid_t any = (uid_t)-1;
	worker->is_mixed = false;
	for (unsigned slot = 1; slot < REGISTRY_SLOTS; slot++) {
		const struct client_slot *one = &worker->registry->slots[slot];
		if (one->owner < 0)
			continue;
		assert(worker->registry->clients[one->owner].is_used);
		const uid_t uid = worker->registry->clients[one->owner].uid;
		worker->is_mixed = worker->is_mixed || (any != (uid_t)-1 && uid != any);
		any = uid;
		least = one->receive_buffer < least ? one->receive_buffer : least;
	}
	discovery_set_receive_buffer(worker->discovery, least);
}

/* The parent closes its copy of slot's socket. False: the parent is gone. */
static bool drop_at_parent(struct worker *worker, uint8_t slot)
{
	assert(slot != 0);
	worker_forget_introductions(worker, slot);
	if (registry_drop_slot(worker->registry, worker->link, slot))
		worker->is_orphaned = true;
	return !worker->is_orphaned;
}

/* The parent also holds the sockets that keep places, so that the worker's death moves no other. */
static void share_vacant(struct worker *worker)
{
	const struct group *group = &worker->group;
	for (unsigned slot = 1; slot < REGISTRY_SLOTS; slot++) {
		const struct client_slot vacant = { .owner = -1, .user = -1, .fd = group->fd[slot] };
		if (!group->is_vacant[slot] || worker->registry->slots[slot].fd >= 0)
			continue;
		assert(worker->registry->slots[slot].owner < 0);
		if (registry_add_slot(worker->registry, worker->link, (uint8_t)slot, &vacant)) {
			worker->registry->slots[slot] = vacant; /* we become the parent now, and need it */
			worker->is_orphaned = true;
		}
	}
}

static void remove_from_group(struct worker *worker, uint8_t slot)
{
	struct group *group = &worker->group;
	assert(worker->is_settled && !worker->must_repair);
	worker->must_repair = !group_remove(group, slot);
	for (uint8_t last;
		!worker->must_repair && (last = group_last_is_vacant(group)) && drop_at_parent(worker, last);)
		worker->must_repair = !group_remove(group, last);
	share_vacant(worker);
}

void worker_free_slot(struct worker *worker, uint8_t slot)
{
	assert(worker->registry->slots[slot].owner >= 0);
	assert(!worker->group.is_vacant[slot]);
	if (!drop_at_parent(worker, slot))
		return;
	worker->is_adopting[slot] = false;
	if (worker->is_settled && !worker->must_repair) {
		remove_from_group(worker, slot);
	} else {
		assert(worker->group.fd[slot] >= 0);
		close(worker->group.fd[slot]);
		worker->group.fd[slot] = worker->group.index[slot] = -1;
		worker->must_repair = true;
	}
	worker_note_slots(worker);
}

bool worker_release_slot(struct worker *worker, unsigned client, uint8_t slot)
{
	const struct client_slot *one = &worker->registry->slots[slot];
	struct client_state *state = &worker->clients[client];
	if (slot && state->channel >= 0 && state->forwarder_request == 0 && state->forwarder_slot == slot) {
		/* Its forwarder saw the channel closed before we were told, and is being replaced. */
		close(state->channel);
		state->channel = -1;
		return true;
	}
	if (slot == 0 || slot > VB_SLOT_MAX || (one->user >= 0 && one->user != (int)client))
		return false;
	/* Given back already, for example by a process that got it twice after its forwarder's death. */
	if (one->user < 0)
		return true;
	if (one->is_carried)
		worker_end_forwarder(worker, slot);
	else
		worker_free_slot(worker, slot);
	return true;
}

static void hand_over(struct worker *worker, unsigned client, uint8_t slot)
{
	const struct client_slot *one = &worker->registry->slots[slot];
	const struct vb_message message = {
		.kind = VB_MESSAGE_SLOT, .request = one->request, .slot = slot, .receive_buffer = one->receive_buffer
	};
	assert(one->owner == (int)client);
	worker_say(worker, client, &message, &one->fd);
	if (one->is_carried)
		worker_hand_over_channel(worker, slot);
}

/* Round robin, so that a dead owner's slot stays unused for long and late packets to it meet no new owner. 0: all are
 * taken. */
static uint8_t choose_slot(const struct worker *worker, uint8_t wanted)
{
	assert(wanted <= VB_SLOT_MAX);
	bool keeps_survivors = worker_is_before(worker->survivors_until) && group_unknown_slots(&worker->group);
	if (wanted)
		return worker->group.fd[wanted] < 0 || worker->group.is_vacant[wanted] ? wanted : 0;
	for (unsigned i = 1; i <= VB_SLOT_MAX; i++) {
		unsigned slot = (worker->registry->last_slot + i - 1) % VB_SLOT_MAX + 1;
		if (keeps_survivors && worker->survives[slot])
			continue;
		if (worker->group.fd[slot] < 0 || worker->group.is_vacant[slot])
			return (uint8_t)slot;
	}
	return 0;
}

static void give_slot(struct worker *worker, unsigned client)
{
	struct client_state *state = &worker->clients[client];
	state->wants_slot = false;
	if (!worker_trusts(worker, client)) {
		worker_send_forwarder(worker, client, 0);
		return;
	}
	for (unsigned slot = 1; slot < REGISTRY_SLOTS; slot++) {
		if (worker->registry->slots[slot].owner == (int)client &&
			worker->registry->slots[slot].request == state->request) {
			hand_over(worker, client, (uint8_t)slot);
			return;
		}
	}
	uint8_t slot = choose_slot(worker, state->carries.slot);
	if (!slot) {
		worker_refuse(worker, client, state->request, EUSERS,
			"all %d slots of UDP port 4791 are taken in this network namespace; end some RDMA processes",
			VB_SLOT_MAX);
		return;
	}
	assert(worker->registry->slots[slot].owner < 0);
	struct client_slot one = { .owner = (int)client, .user = (int)client, .request = state->request };
	if (state->carries.is_forwarder && !worker_find_user(worker, client, &one))
		return;
	uint8_t place = group_vacant_place(&worker->group, slot);
	if (place && !drop_at_parent(worker, place))
		return;
	int rc = group_add(&worker->group, slot, state->receive_buffer, &one.receive_buffer);
	if (rc) {
		worker->must_repair = true;
		share_vacant(worker);
		worker_refuse(worker, client, state->request, -rc, "no socket on UDP port 4791: %s%s", strerror(-rc),
			rc == -EMFILE ? " in the broker, which has the limit (ulimit -n) of the program that started it"
				      : "");
		return;
	}
	one.fd = worker->group.fd[slot];
	worker->registry->last_slot = slot;
	if (registry_add_slot(worker->registry, worker->link, slot, &one)) {
		close(one.fd); /* the client will be told of the restart, and ask again */
		worker->is_orphaned = true;
		return;
	}
	worker_note_slots(worker);
	hand_over(worker, client, slot);
}

bool worker_adopt_slot(struct worker *worker, unsigned client, const struct vb_message *message, int fd)
{
	struct registry *registry = worker->registry;
	if (!worker_trusts(worker, client)) {
		worker_adopt_carried(worker, client, message);
		return false;
	}
	if (fd < 0) {
		worker_refuse(worker, client, message->request, EINVAL, "a slot is adopted with its socket");
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
		worker_refuse(worker, client, message->request, -rc,
			rc == -EEXIST ? "slot %u is another's by now" : "not a socket of slot %u", message->slot);
		return false;
	}
	struct client_slot one = { .owner = (int)client,
		.user = (int)client,
		.fd = fd,
		.request = message->request,
		.receive_buffer = group_receive_buffer(fd) };
	if (worker->clients[client].carries.is_forwarder)
		worker_name_user(worker, client, &one);
	if (registry_add_slot(registry, worker->link, message->slot, &one)) {
		worker->is_orphaned = true;
		return false;
	}
	assert(!worker->is_adopting[message->slot]);
	worker->is_adopting[message->slot] = true;
	worker->must_repair = true;
	return true;
}

static void answer_adopters(struct worker *worker)
{
	for (unsigned slot = 1; slot < REGISTRY_SLOTS; slot++) {
		if (!worker->is_adopting[slot])
			continue;
		worker->is_adopting[slot] = false;
		const struct client_slot *one = &worker->registry->slots[slot];
		const struct vb_message message = { .kind = VB_MESSAGE_ADOPTED,
			.request = one->request,
			.slot = (uint8_t)slot,
			.receive_buffer = one->receive_buffer };
		assert(one->owner >= 0);
		worker_say(worker, (unsigned)one->owner, &message, NULL);
	}
	worker_note_slots(worker);
}

/* A process with a socket changed the group. A broker in the foreground names the users that have sockets. */
static void say_meddled(const struct worker *worker)
{
	struct holders holders = { 0 };
	char names[100];
	for (unsigned slot = 1; slot < REGISTRY_SLOTS; slot++) {
		int owner = worker->registry->slots[slot].owner;
		if (owner >= 0)
			holders_add(&holders, worker->registry->clients[owner].uid);
	}
	holders_name(&holders, names, sizeof(names));
	if (worker->stays)
		fprintf(stderr,
			VB_BROKER_PROGRAM ": a process that has a socket of UDP port 4791 has changed who receives "
					  "what; put right. Sockets are held by %s\n",
			names);
}

/* Checks the group while it has unknown sockets, or while several users have sockets of it. */
static void check_group(struct worker *worker, uint64_t now)
{
	assert(worker->is_settled);
	worker->check_at = now + CHECK_MS;
	worker->must_repair = !group_verify(&worker->group, 0);
	if (worker->must_repair && group_unknown_slots(&worker->group) == 0)
		say_meddled(worker);
}

/* Puts the group in order when all survivors are known or their time is up, then serves the clients that waited for
 * that. */
void worker_keep_group(struct worker *worker)
{
	assert(!worker->is_orphaned);
	uint64_t now = vb_clock_ms();
	if (!worker->is_settled && (group_unknown_slots(&worker->group) == 0 || now >= worker->settle_at))
		worker->is_settled = worker->must_repair = true;
	if (!worker->is_settled)
		return;
	if (worker->must_repair && now >= worker->repair_at) {
		int rc = group_repair(&worker->group);
		worker->must_repair = rc != 0;
		worker->repair_at = rc ? now + CHECK_MS : 0;
		worker->check_at = now + CHECK_MS;
		if (rc)
			for (unsigned i = 0; i < REGISTRY_CLIENTS; i++)
				if (worker->clients[i].wants_slot) {
					worker->clients[i].wants_slot = false;
					worker_refuse(worker, i, worker->clients[i].request, -rc,
						rc == -ENETDOWN
							? "the broker, after a crash, needs the loopback interface: "
							  "ip link set lo up"
							: "cannot put UDP port 4791 in order: %s",
						strerror(-rc));
				}
	}
	if (worker->must_repair)
		return;
	answer_adopters(worker);
	for (unsigned i = 0; i < REGISTRY_CLIENTS && !worker->is_orphaned; i++)
		if (worker->clients[i].wants_slot && !worker->clients[i].leaves_at)
			give_slot(worker, i);
	if ((group_unknown_slots(&worker->group) || worker->is_mixed) && now >= worker->check_at)
		check_group(worker, now);
}
