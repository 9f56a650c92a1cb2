/* Clients' own MADs: which client waits for which transaction with which address. The last 256 are remembered. */
#ifndef VB_BROKER_RELAY_H
#define VB_BROKER_RELAY_H

#include <stdint.h>
#include "broker/qp1.h"

#define RELAY_ENTRIES 256
#define RELAY_NOBODY  UINT32_MAX

struct relay {
	unsigned next;
	struct relay_entry {
		bool is_used;
		uint32_t client;
		struct vb_gid peer;
		uint64_t transaction_id;
	} entries[RELAY_ENTRIES];
};

/* client sends mad to peer. */
void relay_note(struct relay *relay, uint32_t client, const struct vb_gid *peer, const uint8_t mad[VB_MAD_LENGTH]);
/* Whose it is, or RELAY_NOBODY. */
uint32_t relay_find(const struct relay *relay, const struct qp1_mad *mad);
void relay_forget_client(struct relay *relay, uint32_t client);

#endif
