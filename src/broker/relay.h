/* The client of each exchange with an address: by transaction, the client that waits for the answer to its own MAD; by
 * the requester's communication ID, the client that was passed a request, and whether it answered. Of fixed size: the
 * newest push out the oldest, and a forgotten requester asks again. */
#ifndef VB_BROKER_RELAY_H
#define VB_BROKER_RELAY_H

#include <stdbool.h>
#include <stdint.h>
#include "base/gid.h"
#include "broker/keyed_hash.h"

#define RELAY_SETS    8192
#define RELAY_WAYS    4
#define RELAY_NOBODY  UINT32_MAX
#define RELAY_REFUSED (UINT32_MAX - 1) /* no client's: the broker refused it */

struct relay {
	struct hash_key key;
	struct relay_entry {
		uint32_t client; /* plus one; 0: none */
		bool is_answered;
		struct vb_gid peer;
		uint64_t number;
		uint64_t transaction;      /* of a request, since its number may be reused */
	} entries[RELAY_SETS][RELAY_WAYS]; /* newest first */
};

void relay_init(struct relay *relay);
/* Notes client for the exchange with peer under this number, instead of an earlier client. */
void relay_note(struct relay *relay, uint32_t client, const struct vb_gid *peer, uint64_t number);
/* The client of the exchange, or RELAY_NOBODY, also for refused ones. */
uint32_t relay_find(const struct relay *relay, const struct vb_gid *peer, uint64_t number);
/* Requests: notes that one was passed to client (RELAY_REFUSED: to none), and that client answered it. */
void relay_note_request(
	struct relay *relay, uint32_t client, const struct vb_gid *peer, uint32_t id, uint64_t transaction);
void relay_note_answered(struct relay *relay, uint32_t client, const struct vb_gid *peer, uint32_t id);
/* The client that has this very request, RELAY_REFUSED, or RELAY_NOBODY. */
uint32_t relay_find_request(
	const struct relay *relay, const struct vb_gid *peer, uint32_t id, uint64_t transaction, bool *is_answered);
void relay_forget_client(struct relay *relay, uint32_t client);
/* Requests: the client is gone, and its requesters have been told. */
void relay_refuse_client(struct relay *relay, uint32_t client);

#endif
