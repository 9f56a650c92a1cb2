/* The kinds of send work requests: one row holds all that depends on it. */
#ifndef VB_CORE_WR_KINDS_H
#define VB_CORE_WR_KINDS_H

#include <stdbool.h>
#include <stdint.h>
#include "core/objects.h"

/* The event that finishes a request, on a reliable connection. */
enum vb_finished_by {
	VB_BY_ACK,    /* any acknowledgement at or behind it */
	VB_BY_ITSELF, /* it is not sent. Those behind it have a response of their own: */
	VB_BY_READ,   /* the responses that bring its bytes */
	VB_BY_VALUE,  /* the response that brings what an atomic found */
	VB_BY_NOTHING /* a response like that to a READ of nothing. Annex A19 */
};

struct vb_wr_kind {
	uint16_t types;       /* bit n: QPs of enum vb_qp_type n take it. IBA vol. 1, table 38 */
	uint8_t message;      /* enum vb_message */
	uint8_t wc_opcode;    /* enum vb_wc_opcode */
	uint8_t counted;      /* bit n: its completions count as enum vb_counted n */
	uint8_t finished_by;  /* enum vb_finished_by */
	bool has_payload;     /* its bytes travel with it */
	bool has_eight_bytes; /* neither more nor less */
	bool takes_receive;   /* of the peer's */
	struct {              /* operations of its packets: of one alone, of the first of several, and so on */
		uint8_t only, first, middle, last;
	} forms;
};

#define VB_WR_KINDS 16

extern const struct vb_wr_kind vb_wr_kinds[VB_WR_KINDS]; /* by enum vb_wr_opcode */

static inline bool vb_wr_is_allowed(enum vb_qp_type type, enum vb_wr_opcode opcode)
{
	return (unsigned)opcode < VB_WR_KINDS && (vb_wr_kinds[opcode].types >> type & 1);
}

#endif
