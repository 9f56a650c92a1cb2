/* The client of each exchange with an address: by transaction, the client that waits for the answer to its own MAD; by
 * the requester's communication ID, the client that was passed a request, and whether it answered. Of fixed size: the
 * newest push out the oldest, and a forgotten requester asks again. */
#ifndef VB_BROKER_EXCHANGES_H
#define VB_BROKER_EXCHANGES_H

#include <stdbool.h>
#include <stdint.h>
#include "base/gid.h"
#include "broker/keyed_hash.h"

#define EXCHANGES_SETS    8192
#define EXCHANGES_WAYS    4
#define EXCHANGES_NOBODY  UINT32_MAX
#define EXCHANGES_REFUSED (UINT32_MAX - 1) /* no client's: the broker refused it */

struct exchanges {
	struct hash_key key;
	struct exchanges_entry {
		uint32_t client; /* plus one; 0: none */
		bool is_answered;
		struct vb_gid peer;
		uint64_t number;
		uint64_t transaction;              /* of a request, since its number may be reused */
	} entries[EXCHANGES_SETS][EXCHANGES_WAYS]; /* newest first */
};

void exchanges_init(struct exchanges *exchanges);
/* Notes client for the exchange with peer under this number, instead of an earlier client. */
void exchanges_note(struct exchanges *exchanges, uint32_t client, const struct vb_gid *peer, uint64_t number);
/* The client of the exchange, or EXCHANGES_NOBODY, also for refused ones. */
uint32_t exchanges_find(const struct exchanges *exchanges, const struct vb_gid *peer, uint64_t number);
/* Requests: notes that one was passed to client (EXCHANGES_REFUSED: to none), and that client answered it. */
void exchanges_note_request(
	struct exchanges *exchanges, uint32_t client, const struct vb_gid *peer, uint32_t id, uint64_t transaction);
void exchanges_note_answered(struct exchanges *exchanges, uint32_t client, const struct vb_gid *peer, uint32_t id);
/* The client that has this very request, EXCHANGES_REFUSED, or EXCHANGES_NOBODY. */
uint32_t exchanges_find_request(const struct exchanges *exchanges, const struct vb_gid *peer, uint32_t id,
	uint64_t transaction, bool *is_answered);
void exchanges_forget_client(struct exchanges *exchanges, uint32_t client);
/* Requests: the client is gone, and its requesters have been told. */
void exchanges_refuse_client(struct exchanges *exchanges, uint32_t client);

#endif
