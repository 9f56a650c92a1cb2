/* A request as it is executed: what a packet or a descriptor asks of memory and receives here, without anything that
 * is the carrier's own. A message in parts is one request for each part. */
#ifndef VB_CORE_REQUEST_H
#define VB_CORE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include "wire/opcode.h"

struct vb_request {
	const struct vb_opcode *row; /* its message, and the place of the part in it; of any transport */
	const uint8_t *payload;      /* NULL: there are no bytes, or they are in their place already */
	uint32_t payload_length;
	bool is_solicited;
	bool is_swap;  /* of an atomic; else it adds */
	uint32_t rkey; /* what follows: in the request that begins its message */
	uint64_t va;
	uint32_t length;     /* of the memory asked for: all of the message, not the part alone */
	uint32_t imm_or_inv; /* if the row has one */
	uint32_t flush;      /* of a FLUSH: its type and level, as in a FETH */
	uint64_t swap_add, compare;
};

static inline bool vb_begins_message(const struct vb_opcode *row)
{
	return row->place == VB_FIRST || row->place == VB_ONLY;
}

static inline bool vb_ends_message(const struct vb_opcode *row)
{
	return row->place == VB_LAST || row->place == VB_ONLY;
}

static inline bool vb_is_answered_by_a_response(const struct vb_opcode *row)
{
	return row->message == VB_MESSAGE_READ || row->message == VB_MESSAGE_ATOMIC ||
	       row->message == VB_MESSAGE_ATOMIC_WRITE || row->message == VB_MESSAGE_FLUSH;
}

#endif
