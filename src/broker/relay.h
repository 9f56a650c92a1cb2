/* Which client an exchange with an address is: who waits for the answer to a MAD of its own, by its transaction, and who
 * was passed a request, by the asker's communication ID. Of fixed size; the newest push out the oldest, and whoever is
 * forgotten asks again. */
#ifndef VB_BROKER_RELAY_H
#define VB_BROKER_RELAY_H

#include <stdint.h>
#include "base/gid.h"
#include "broker/keyed_hash.h"

#define RELAY_SETS   8192
#define RELAY_WAYS   4
#define RELAY_NOBODY UINT32_MAX

struct relay {
	struct hash_key key;
	struct relay_entry {
		uint32_t client; /* and one: 0 is nobody */
		struct vb_gid peer;
		uint64_t number;
	} entries[RELAY_SETS][RELAY_WAYS]; /* the newest first */
};

void relay_init(struct relay *relay);
/* client has to do with peer under this number; whoever had before has no more. */
void relay_note(struct relay *relay, uint32_t client, const struct vb_gid *peer, uint64_t number);
/* Whose it is, or RELAY_NOBODY. */
uint32_t relay_find(const struct relay *relay, const struct vb_gid *peer, uint64_t number);
void relay_forget_client(struct relay *relay, uint32_t client);

#endif
