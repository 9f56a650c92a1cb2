/* See registry.h. A change is one packet, with its descriptors; the parent answers each with one byte. */
#include "broker/registry.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "base/invariant.h"
#include "host/protocol.h"

enum change_kind { ADD_CLIENT, DROP_CLIENT, ADD_SLOT, DROP_SLOT, SET_USER };

struct change {
	enum change_kind kind;
	int number;
	uint8_t last_slot;
	uint64_t before; /* digest of the worker's registry, which the parent's must equal */
	struct client client;
	struct client_slot slot;
};

void registry_init(struct registry *registry, int listener)
{
	memset(registry, 0, sizeof(*registry));
	registry->listener = listener;
	for (unsigned i = 0; i < REGISTRY_SLOTS; i++)
		registry->slots[i].owner = registry->slots[i].user = registry->slots[i].fd = -1;
}

bool registry_has_clients(const struct registry *registry)
{
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++)
		if (registry->clients[i].is_used)
			return true;
	return false;
}

/* Digest of all that both must agree on. Descriptors have other numbers in each process, and only the worker keeps a
 * slot owner's last request. */
static uint64_t digest(const struct registry *registry)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++) {
		const struct client *client = &registry->clients[i];
		if (client->is_used)
			sum = sum * 0x9E3779B97F4A7C15u + i + ((uint64_t)client->uid << 32 | (uint32_t)client->pid);
	}
	for (unsigned i = 0; i < REGISTRY_SLOTS; i++) {
		const struct client_slot *slot = &registry->slots[i];
		if (slot->fd >= 0)
			sum = sum * 0x9E3779B97F4A7C15u + i + ((uint64_t)slot->receive_buffer << 16) +
			      (uint32_t)slot->owner;
	}
	return sum;
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void apply(struct registry *registry, const struct change *change)
{
	assert(change->number >= 0 && change->number < REGISTRY_CLIENTS);
	struct client *client = &registry->clients[change->number];
	struct client_slot *slot = &registry->slots[change->number & (REGISTRY_SLOTS - 1)];
	switch (change->kind) {
	case ADD_CLIENT:
		assert(!client->is_used);
		*client = change->client;
		client->is_used = true;
		break;
	case DROP_CLIENT:
		assert(client->is_used);
		close_if_open(client->connection);
		close_if_open(client->pidfd);
		memset(client, 0, sizeof(*client));
		break;
	case ADD_SLOT:
		assert(slot->fd < 0);
		*slot = change->slot;
		registry->last_slot = change->last_slot;
		break;
	case DROP_SLOT:
		*slot = (struct client_slot){ .owner = -1, .user = -1, .fd = -1 };
		break;
	case SET_USER:
		assert(slot->owner >= 0);
		slot->user = change->slot.user;
		break;
	}
}

static int tell(struct registry *registry, int link, struct change *change, const int *fds, unsigned count)
{
	char confirmed;
	ssize_t got;
	change->before = digest(registry);
	int rc = vb_pass_send(link, change, sizeof(*change), fds, count, 0);
	if (rc)
		return rc;
	do
		got = recv(link, &confirmed, 1, 0);
	while (got < 0 && errno == EINTR);
	if (got != 1)
		return -EPIPE;
	apply(registry, change);
	return 0;
}

int registry_add_client(struct registry *registry, int link, int number, const struct client *client)
{
	assert(client->connection >= 0);
	struct change change = { .kind = ADD_CLIENT, .number = number, .client = *client };
	int fds[2] = { client->connection, client->pidfd };
	return tell(registry, link, &change, fds, client->pidfd >= 0 ? 2 : 1);
}

int registry_drop_client(struct registry *registry, int link, int number)
{
	struct change change = { .kind = DROP_CLIENT, .number = number };
	return tell(registry, link, &change, NULL, 0);
}

int registry_add_slot(struct registry *registry, int link, uint8_t number, const struct client_slot *slot)
{
	assert(slot->fd >= 0);
	assert(slot->user < 0 || slot->owner >= 0);
	struct change change = { .kind = ADD_SLOT, .number = number, .last_slot = registry->last_slot, .slot = *slot };
	return tell(registry, link, &change, &slot->fd, 1);
}

int registry_drop_slot(struct registry *registry, int link, uint8_t number)
{
	struct change change = { .kind = DROP_SLOT, .number = number };
	return tell(registry, link, &change, NULL, 0);
}

int registry_set_user(struct registry *registry, int link, uint8_t number, int user)
{
	struct change change = { .kind = SET_USER, .number = number, .slot.user = user };
	return tell(registry, link, &change, NULL, 0);
}

bool registry_repeat(struct registry *registry, int link)
{
	struct change change;
	int fds[2];
	unsigned count;
	if (vb_pass_receive(link, &change, sizeof(change), fds, 2, &count, 0))
		return false;
	assert(change.before == digest(registry));
	if (change.kind == ADD_CLIENT) {
		change.client.connection = count > 0 ? fds[0] : -1;
		change.client.pidfd = count > 1 ? fds[1] : -1;
	} else if (change.kind == ADD_SLOT) {
		change.slot.fd = count > 0 ? fds[0] : -1;
	} else if (change.kind == DROP_SLOT) {
		close_if_open(registry->slots[change.number].fd);
	}
	apply(registry, &change);
	const char confirmed = 1;
	return send(link, &confirmed, 1, MSG_NOSIGNAL) == 1;
}
