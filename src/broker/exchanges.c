/* See exchanges.h. */
#include "broker/exchanges.h"

#include <string.h>
#include "base/invariant.h"

void exchanges_init(struct exchanges *exchanges)
{
	memset(exchanges, 0, sizeof(*exchanges));
	exchanges->key = hash_key_new();
}

static unsigned set_of(const struct exchanges *exchanges, const struct vb_gid *peer, uint64_t number)
{
	return keyed_hash(&exchanges->key, peer, number) % EXCHANGES_SETS;
}

static bool is_about(const struct exchanges_entry *entry, const struct vb_gid *peer, uint64_t number)
{
	return entry->client && entry->number == number && vb_gid_equal(&entry->peer, peer);
}

static const struct exchanges_entry *find(const struct exchanges *exchanges, const struct vb_gid *peer, uint64_t number)
{
	const struct exchanges_entry *set = exchanges->entries[set_of(exchanges, peer, number)];
	for (unsigned i = 0; i < EXCHANGES_WAYS; i++)
		if (is_about(&set[i], peer, number))
			return &set[i];
	return NULL;
}

/* Makes entry the newest of its set. */
static void put(struct exchanges *exchanges, const struct exchanges_entry *entry)
{
	struct exchanges_entry *set = exchanges->entries[set_of(exchanges, &entry->peer, entry->number)];
	unsigned last = 0; /* the entry to replace: this exchange's own, or the oldest */
	while (last < EXCHANGES_WAYS - 1 && !is_about(&set[last], &entry->peer, entry->number))
		last++;
	memmove(&set[1], &set[0], last * sizeof(set[0]));
	set[0] = *entry;
}

void exchanges_note(struct exchanges *exchanges, uint32_t client, const struct vb_gid *peer, uint64_t number)
{
	assert(client < EXCHANGES_REFUSED);
	put(exchanges, &(struct exchanges_entry){ .client = client + 1, .peer = *peer, .number = number });
}

uint32_t exchanges_find(const struct exchanges *exchanges, const struct vb_gid *peer, uint64_t number)
{
	const struct exchanges_entry *entry = find(exchanges, peer, number);
	assert(!entry || entry->client != 0);
	return entry && entry->client != EXCHANGES_REFUSED + 1 ? entry->client - 1 : EXCHANGES_NOBODY;
}

/* ---- Requests ---------------------------------------------------------------------------------------------------- */

void exchanges_note_request(
	struct exchanges *exchanges, uint32_t client, const struct vb_gid *peer, uint32_t id, uint64_t transaction)
{
	bool is_answered = client == EXCHANGES_REFUSED;
	if (!is_answered && exchanges_find_request(exchanges, peer, id, transaction, &is_answered) != client)
		is_answered = false;
	assert(client != EXCHANGES_NOBODY || !is_answered);
	put(exchanges, &(struct exchanges_entry){ .client = client + 1,
			       .peer = *peer,
			       .number = id,
			       .transaction = transaction,
			       .is_answered = is_answered });
}

void exchanges_note_answered(struct exchanges *exchanges, uint32_t client, const struct vb_gid *peer, uint32_t id)
{
	assert(client < EXCHANGES_REFUSED);
	const struct exchanges_entry *entry = find(exchanges, peer, id);
	if (!entry || entry->client != client + 1)
		return;
	struct exchanges_entry answered = *entry;
	answered.is_answered = true;
	put(exchanges, &answered);
}

uint32_t exchanges_find_request(const struct exchanges *exchanges, const struct vb_gid *peer, uint32_t id,
	uint64_t transaction, bool *is_answered)
{
	const struct exchanges_entry *entry = find(exchanges, peer, id);
	if (!entry || entry->transaction != transaction)
		return EXCHANGES_NOBODY;
	*is_answered = entry->is_answered;
	return entry->client - 1;
}

/* Entries hold a client's number plus one. */
static void replace_all(struct exchanges *exchanges, uint32_t client, uint32_t by)
{
	assert(client < EXCHANGES_REFUSED); /* entries that are free keep 0 */
	for (unsigned i = 0; i < EXCHANGES_SETS; i++)
		for (unsigned way = 0; way < EXCHANGES_WAYS; way++)
			if (exchanges->entries[i][way].client == client + 1)
				exchanges->entries[i][way].client = by;
}

void exchanges_forget_client(struct exchanges *exchanges, uint32_t client)
{
	replace_all(exchanges, client, 0);
}

void exchanges_refuse_client(struct exchanges *exchanges, uint32_t client)
{
	replace_all(exchanges, client, EXCHANGES_REFUSED + 1);
}
