/* See relay.h. */
#include "broker/relay.h"

#include <string.h>

void relay_init(struct relay *relay)
{
	memset(relay, 0, sizeof(*relay));
	relay->key = hash_key_new();
}

static unsigned set_of(const struct relay *relay, const struct vb_gid *peer, uint64_t number)
{
	return keyed_hash(&relay->key, peer, number) % RELAY_SETS;
}

static bool is_about(const struct relay_entry *entry, const struct vb_gid *peer, uint64_t number)
{
	return entry->client && entry->number == number && vb_gid_equal(&entry->peer, peer);
}

void relay_note(struct relay *relay, uint32_t client, const struct vb_gid *peer, uint64_t number)
{
	struct relay_entry *set = relay->entries[set_of(relay, peer, number)];
	unsigned last = 0; /* who makes room: what is known of this exchange, or the oldest */
	while (last < RELAY_WAYS - 1 && !is_about(&set[last], peer, number))
		last++;
	memmove(&set[1], &set[0], last * sizeof(set[0]));
	set[0] = (struct relay_entry){ .client = client + 1, .peer = *peer, .number = number };
}

uint32_t relay_find(const struct relay *relay, const struct vb_gid *peer, uint64_t number)
{
	const struct relay_entry *set = relay->entries[set_of(relay, peer, number)];
	for (unsigned i = 0; i < RELAY_WAYS; i++)
		if (is_about(&set[i], peer, number))
			return set[i].client - 1;
	return RELAY_NOBODY;
}

void relay_forget_client(struct relay *relay, uint32_t client)
{
	for (unsigned i = 0; i < RELAY_SETS; i++)
		for (unsigned way = 0; way < RELAY_WAYS; way++)
			if (relay->entries[i][way].client == client + 1)
				relay->entries[i][way].client = 0;
}
