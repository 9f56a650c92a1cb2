/* Which client an exchange with an address is: who waits for the answer to a MAD of its own, by its transaction, and
 * who was passed a request, by the asker's communication ID, and whether it is answered. Of fixed size; the newest
 * push out the oldest, and whoever is forgotten asks again. */
#ifndef VB_BROKER_RELAY_H
#define VB_BROKER_RELAY_H

#include <stdbool.h>
#include <stdint.h>
#include "base/gid.h"
#include "broker/keyed_hash.h"

#define RELAY_SETS    8192
#define RELAY_WAYS    4
#define RELAY_NOBODY  UINT32_MAX
#define RELAY_REFUSED (UINT32_MAX - 1) /* nobody's: the broker has refused it */

struct relay {
	struct hash_key key;
	struct relay_entry {
		uint32_t client; /* and one: 0 is nobody */
		bool is_answered;
		struct vb_gid peer;
		uint64_t number;
		uint64_t transaction;      /* of a request: its number may come back */
	} entries[RELAY_SETS][RELAY_WAYS]; /* the newest first */
};

void relay_init(struct relay *relay);
/* client has to do with peer under this number; whoever had before has no more. */
void relay_note(struct relay *relay, uint32_t client, const struct vb_gid *peer, uint64_t number);
/* Whose it is, or RELAY_NOBODY, also of what was refused. */
uint32_t relay_find(const struct relay *relay, const struct vb_gid *peer, uint64_t number);
/* Requests: client was passed one, or RELAY_REFUSED says that nobody was; and has answered it. */
void relay_note_request(
	struct relay *relay, uint32_t client, const struct vb_gid *peer, uint32_t id, uint64_t transaction);
void relay_note_answered(struct relay *relay, uint32_t client, const struct vb_gid *peer, uint32_t id);
/* Who has this very request, RELAY_REFUSED, or RELAY_NOBODY. */
uint32_t relay_find_request(
	const struct relay *relay, const struct vb_gid *peer, uint32_t id, uint64_t transaction, bool *is_answered);
void relay_forget_client(struct relay *relay, uint32_t client);
/* Of requests: the client is gone, and who asked it has been told. */
void relay_refuse_client(struct relay *relay, uint32_t client);

#endif
