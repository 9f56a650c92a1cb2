/* See relay.h. */
#include "broker/relay.h"

void relay_note(struct relay *relay, uint32_t client, const struct vb_gid *peer, const uint8_t mad[VB_MAD_LENGTH])
{
	struct vb_mad_header header;
	vb_mad_header_decode(&header, mad);
	for (unsigned i = 0; i < RELAY_ENTRIES; i++) {
		const struct relay_entry *entry = &relay->entries[i];
		if (entry->is_used && entry->client == client && entry->transaction_id == header.transaction_id &&
			vb_gid_equal(&entry->peer, peer))
			return;
	}
	relay->entries[relay->next++ % RELAY_ENTRIES] = (struct relay_entry){ .is_used = true, .client = client,
		.peer = *peer, .transaction_id = header.transaction_id };
}

uint32_t relay_find(const struct relay *relay, const struct qp1_mad *mad)
{
	struct vb_mad_header header;
	vb_mad_header_decode(&header, mad->bytes);
	for (unsigned i = 0; i < RELAY_ENTRIES; i++) {
		const struct relay_entry *entry = &relay->entries[i];
		if (entry->is_used && entry->transaction_id == header.transaction_id &&
			vb_gid_equal(&entry->peer, &mad->from))
			return entry->client;
	}
	return RELAY_NOBODY;
}

void relay_forget_client(struct relay *relay, uint32_t client)
{
	for (unsigned i = 0; i < RELAY_ENTRIES; i++)
		if (relay->entries[i].client == client)
			relay->entries[i].is_used = false;
}
