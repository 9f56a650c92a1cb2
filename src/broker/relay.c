/* See relay.h. */
#include "broker/relay.h"

#include <string.h>
#include "base/invariant.h"

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

static const struct relay_entry *find(const struct relay *relay, const struct vb_gid *peer, uint64_t number)
{
	const struct relay_entry *set = relay->entries[set_of(relay, peer, number)];
	for (unsigned i = 0; i < RELAY_WAYS; i++)
		if (is_about(&set[i], peer, number))
			return &set[i];
	return NULL;
}

/* Makes entry the newest of its set. */
static void put(struct relay *relay, const struct relay_entry *entry)
{
	struct relay_entry *set = relay->entries[set_of(relay, &entry->peer, entry->number)];
	unsigned last = 0; /* the entry to replace: this exchange's own, or the oldest */
	while (last < RELAY_WAYS - 1 && !is_about(&set[last], &entry->peer, entry->number))
		last++;
	memmove(&set[1], &set[0], last * sizeof(set[0]));
	set[0] = *entry;
}

void relay_note(struct relay *relay, uint32_t client, const struct vb_gid *peer, uint64_t number)
{
	assert(client < RELAY_REFUSED);
	put(relay, &(struct relay_entry){ .client = client + 1, .peer = *peer, .number = number });
}

uint32_t relay_find(const struct relay *relay, const struct vb_gid *peer, uint64_t number)
{
	const struct relay_entry *entry = find(relay, peer, number);
	assert(!entry || entry->client != 0);
	return entry && entry->client != RELAY_REFUSED + 1 ? entry->client - 1 : RELAY_NOBODY;
}

/* ---- Requests --------------------------------------------------------------------------------------------------- */

void relay_note_request(
	struct relay *relay, uint32_t client, const struct vb_gid *peer, uint32_t id, uint64_t transaction)
{
	bool is_answered = client == RELAY_REFUSED;
	if (!is_answered && relay_find_request(relay, peer, id, transaction, &is_answered) != client)
		is_answered = false;
	assert(client != RELAY_NOBODY || !is_answered);
	put(relay, &(struct relay_entry){ .client = client + 1,
			   .peer = *peer,
			   .number = id,
			   .transaction = transaction,
			   .is_answered = is_answered });
}

void relay_note_answered(struct relay *relay, uint32_t client, const struct vb_gid *peer, uint32_t id)
{
	assert(client < RELAY_REFUSED);
	const struct relay_entry *entry = find(relay, peer, id);
	if (!entry || entry->client != client + 1)
		return;
	struct relay_entry answered = *entry;
	answered.is_answered = true;
	put(relay, &answered);
}

uint32_t relay_find_request(
	const struct relay *relay, const struct vb_gid *peer, uint32_t id, uint64_t transaction, bool *is_answered)
{
	const struct relay_entry *entry = find(relay, peer, id);
	if (!entry || entry->transaction != transaction)
		return RELAY_NOBODY;
	*is_answered = entry->is_answered;
	return entry->client - 1;
}

/* Entries hold a client's number plus one. */
static void replace_all(struct relay *relay, uint32_t client, uint32_t by)
{
	assert(client < RELAY_REFUSED); /* entries that are free keep 0 */
	for (unsigned i = 0; i < RELAY_SETS; i++)
		for (unsigned way = 0; way < RELAY_WAYS; way++)
			if (relay->entries[i][way].client == client + 1)
				relay->entries[i][way].client = by;
}

void relay_forget_client(struct relay *relay, uint32_t client)
{
	replace_all(relay, client, 0);
}

void relay_refuse_client(struct relay *relay, uint32_t client)
{
	replace_all(relay, client, RELAY_REFUSED + 1);
}
