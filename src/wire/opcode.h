/* The BTH opcodes, and one table with a row for each: which headers follow, to what kind of message the packet belongs,
 * and where in the message it stands. Lengths, offsets and the checks of requester and responder follow from the table.
 * Source: IBA vol. 1, 9.2 (opcodes) and annexes A17 (RoCEv2 CNP), A19 (FLUSH, ATOMIC WRITE). */
#ifndef VB_WIRE_OPCODE_H
#define VB_WIRE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

enum vb_service { VB_RC = 0x00, VB_UC = 0x20, VB_RD = 0x40, VB_UD = 0x60, VB_CNP_TRANSPORT = 0x80, VB_XRC = 0xA0 };

#define VB_OPERATION_MASK 0x1F

/* Operation: the low five bits. UC, UD and XRC number the operations that they have as RC does. */
enum {
	VB_SEND_FIRST = 0x00,
	VB_SEND_MIDDLE = 0x01,
	VB_SEND_LAST = 0x02,
	VB_SEND_LAST_IMM = 0x03,
	VB_SEND_ONLY = 0x04,
	VB_SEND_ONLY_IMM = 0x05,
	VB_WRITE_FIRST = 0x06,
	VB_WRITE_MIDDLE = 0x07,
	VB_WRITE_LAST = 0x08,
	VB_WRITE_LAST_IMM = 0x09,
	VB_WRITE_ONLY = 0x0A,
	VB_WRITE_ONLY_IMM = 0x0B,
	VB_READ_REQUEST = 0x0C,
	VB_READ_RESPONSE_FIRST = 0x0D,
	VB_READ_RESPONSE_MIDDLE = 0x0E,
	VB_READ_RESPONSE_LAST = 0x0F,
	VB_READ_RESPONSE_ONLY = 0x10,
	VB_ACKNOWLEDGE = 0x11,
	VB_ATOMIC_ACKNOWLEDGE = 0x12,
	VB_CMP_SWAP = 0x13,
	VB_FETCH_ADD = 0x14,
	VB_SEND_LAST_INV = 0x16,
	VB_SEND_ONLY_INV = 0x17,
	VB_FLUSH = 0x1C,
	VB_ATOMIC_WRITE = 0x1D,

	VB_UD_SEND_ONLY = VB_UD | VB_SEND_ONLY,
	VB_UD_SEND_ONLY_IMM = VB_UD | VB_SEND_ONLY_IMM,
	VB_CNP = 0x81,

	VB_MANUFACTURER = 0xE0, /* 0xC0 to 0xFF belong to manufacturers; ours begin here */
	VB_ECHO_REQUEST =
		0xE0, /* asks the peer to say that it has taken all packets that arrived before: roce/echo.c */
	VB_ECHO_REPLY = 0xE1,
	VB_HELLO = 0xE2,  /* the sender's QP recovers selectively, and asks whether this one does: roce/hello.c */
	VB_BITMAP = 0xE3, /* which packets have arrived before their turn: roce/hold.c */
	/* Failover, roce/failover.h: a question whether an address pair carries packets, its answer, and one of the
	 * sender's further addresses. */
	VB_PATH_PROBE = 0xE4,
	VB_PATH_ANSWER = 0xE5,
	VB_PATH_ADDRESS = 0xE6,
	VB_READ_LARGE = 0xE7, /* a READ request of RC, to be answered in large packets: roce/large.h */
};

enum vb_header {
	VB_END = 0, /* ends a row's list */
	VB_RETH,
	VB_AETH,
	VB_ATOMICETH,
	VB_ATOMICACKETH,
	VB_IMMDT,
	VB_IETH,
	VB_DETH,
	VB_XRCETH,
	VB_FETH,
	VB_CNP_RESERVED, /* sixteen zero bytes */
	VB_HELLOETH,     /* ours: what the sender holds at most (4 bytes), flags (1), zero (1), large MTU (2) */
	VB_BITMAPETH,    /* ours: told and expected PSN (1 + 3 bytes), named (4), executed ahead (2 + 2), 128 bits */
	VB_PATHETH,      /* ours: a secret of the connection (8 bytes), flags (1), a number (3) */
	VB_ADDRESSETH,   /* ours: a further address of the sender's, as a GID (16 bytes) */
	VB_HEADER_COUNT,
};

enum vb_message {
	VB_NO_MESSAGE, /* opcode does not exist */
	VB_MESSAGE_SEND,
	VB_MESSAGE_WRITE,
	VB_MESSAGE_READ,
	VB_MESSAGE_ATOMIC,
	VB_MESSAGE_FLUSH,
	VB_MESSAGE_ATOMIC_WRITE,
	VB_MESSAGE_READ_RESPONSE,
	VB_MESSAGE_ACK, /* ACK, NAK, RNR NAK and atomic ACK */
	VB_MESSAGE_CNP,
	VB_MESSAGE_ECHO,
	VB_MESSAGE_HELLO,
	VB_MESSAGE_BITMAP,
	VB_MESSAGE_PATH,
};

enum vb_place { VB_ONLY, VB_FIRST, VB_MIDDLE, VB_LAST };

enum vb_payload {
	VB_PAYLOAD_NONE,
	VB_PAYLOAD_FULL, /* exactly the path MTU */
	VB_PAYLOAD_LAST, /* 1 .. path MTU */
	VB_PAYLOAD_ONLY, /* 0 .. path MTU */
	VB_PAYLOAD_EIGHT,
};

#define VB_MAX_HEADERS 4 /* extension headers of one packet, with the VB_END */

struct vb_opcode {
	const char *name;                /* "rc.write_first"; NULL when the opcode does not exist */
	uint8_t headers[VB_MAX_HEADERS]; /* enum vb_header, after the BTH, in wire order */
	uint8_t message;                 /* enum vb_message */
	uint8_t place;                   /* enum vb_place */
	uint8_t payload;                 /* enum vb_payload */
	bool is_response;                /* travels from responder to requester */
	bool consumes_recv; /* needs a receive work request when it completes the message (SEND Only/Last, IMM) */
	bool has_imm, has_inv;
	uint8_t headers_length; /* bytes of BTH and extension headers */
};

/* All 256; rows without a name do not exist. */
extern const struct vb_opcode vb_opcodes[256];
extern const uint8_t vb_header_length[VB_HEADER_COUNT];

static inline bool vb_opcode_exists(uint8_t opcode)
{
	return vb_opcodes[opcode].message != VB_NO_MESSAGE;
}

#endif
