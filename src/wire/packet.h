/* A parsed packet, on which the engine works. Bytes are the codec's (vb_packet_encode_headers, vb_packet_decode).
 * Numbers are in host order, but for imm. Source: RoCEv2 wire format, IBA vol. 1, 9.2 to 9.3. */
#ifndef VB_WIRE_PACKET_H
#define VB_WIRE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/gid.h"
#include "wire/opcode.h"

#define VB_UDP_PORT         4791
#define VB_BTH_LENGTH       12
#define VB_ICRC_LENGTH      4
#define VB_MAX_HEADER_BYTES 56 /* BTH and extension headers of any packet; the longest is XRC atomic, 12 + 4 + 28 */
#define VB_MAX_MTU          4096
#define VB_LARGE_MTU        8448 /* between two ends that have agreed on it: roce/large.h */
#define VB_LARGE_HEADERS    12   /* the longest headers of such a packet, RETH and ImmDt, less those of a hello */
#define VB_MAX_PAYLOAD      (VB_LARGE_MTU + VB_LARGE_HEADERS)                         /* of any packet: of a hello */
#define VB_MAX_PACKET_BYTES (VB_MAX_HEADER_BYTES + VB_LARGE_MTU + 3 + VB_ICRC_LENGTH) /* of a UDP payload */
#define VB_PSN_MASK         0xFFFFFFu
#define VB_QPN_MASK         0xFFFFFFu
#define VB_SRQN_MASK        0xFFFFFFu
#define VB_QPN_GSI          1u
#define VB_QPN_MULTICAST    0xFFFFFFu
#define VB_PKEY_DEFAULT     0xFFFFu
#define VB_QKEY_GSI         0x80010000u

/* AETH syndromes, IBA vol. 1, 9.7.5.2. */
enum {
	VB_AETH_TYPE_MASK = 0xE0, /* the top bit is reserved, and no known type has it set */
	VB_AETH_ACK = 0x00,       /* low five bits: credit code, 31 = no end-to-end flow control */
	VB_AETH_RNR = 0x20,       /* low five bits: timer code */
	VB_AETH_NAK = 0x60,       /* low five bits: reason */
	VB_AETH_CODE_MASK = 0x1F,
	VB_AETH_NO_CREDITS = 0x1F,
	VB_NAK_PSN_SEQUENCE = 0x60,
	VB_NAK_INVALID_REQUEST = 0x61,
	VB_NAK_REMOTE_ACCESS = 0x62,
	VB_NAK_REMOTE_OPERATION = 0x63,
	VB_NAK_INVALID_RD = 0x64,
};

/* The number in a FETH: type and level of a FLUSH. Annex A19.4.1. */
enum {
	VB_FETH_TYPE_MASK = 0xF,
	VB_FETH_LEVEL_SHIFT = 4,
	VB_FETH_LEVEL_MASK = 3,
};

/* Of a hello. */
enum {
	VB_HELLO_ANSWERS = 1,     /* it answers one, and is not answered */
	VB_HELLO_TAKES_PATHS = 2, /* its sender fails over, if both ends do: roce/failover.h */
	VB_HELLO_HEARD_LARGE = 4, /* a large one has come: roce/large.h */
};

/* Of a path's packets. */
enum {
	VB_PATH_ANSWERS = 1,   /* ADDRESS: it answers one, and is not answered */
	VB_PATH_IS_USED = 2,   /* PROBE: its sender's packets go here from now on */
	VB_PATH_IS_PROVED = 4, /* ANSWER: its sender takes packets from here */
};

#define VB_BITMAP_PSNS 128 /* of one bitmap */

/* Told by a bitmap beside its bits: of the packet that it names, and why packets are missing. */
enum vb_told {
	VB_TOLD_TRIMMED = 1,  /* it came without its payload, which a switch had cut off; else it came twice */
	VB_TOLD_OVERFLOW = 2, /* the receive buffer was full since the bitmap before */
};

/* One cache line. Extension headers that no opcode has together share their place: only the fields of the headers in
 * the opcode's row are valid. */
struct vb_packet {
	uint8_t opcode;
	bool solicited : 1, migreq : 1, ackreq : 1, fecn : 1, becn : 1;
	uint16_t pkey;
	uint32_t dest_qpn; /* 24 bits */
	uint32_t psn;      /* 24 bits */

	/* Payload without pad. Decoded: borrows from the bytes given to vb_packet_decode. Outgoing: NULL, the length
	 * alone; the bytes lie in the scatter list that travels with the packet. */
	uint32_t payload_length;
	const uint8_t *payload;

	/* The holder's own: facts that a fabric keeps of a packet on its way, such as timestamps. The engine hands it
	 * back in the ack or NAK that answers the packet, and 0 in all other packets. Not on the wire. */
	uint64_t holder;

	union {
		struct {
			uint64_t va;       /* RETH, AtomicETH */
			uint32_t rkey;     /* RETH, AtomicETH */
			uint32_t xrc_srqn; /* XRCETH */
		};
		struct {
			union {
				uint64_t atomic_result; /* AtomicAckETH */
				struct {
					uint32_t expected_psn; /* BITMAPETH: 24 bits; what is before it is acknowledged
								*/
					/* BITMAPETH: 24 bits, of the packet that is named; above them how often one
					 * came twice, modulo 256 */
					uint32_t named;
				};
			};
			uint32_t msn;     /* AETH, 24 bits */
			uint8_t syndrome; /* AETH */
			uint8_t told;     /* BITMAPETH: a mask of enum vb_told */
			/* BITMAPETH: from the expected PSN on so many were executed, or more if it is the largest
			 * number: READs that are still being answered, and what came behind them */
			uint16_t executed_ahead;
		};
		struct {
			uint32_t qkey;    /* DETH */
			uint32_t src_qpn; /* DETH */
		};
		struct {
			uint32_t hold_bytes; /* HELLOETH */
			uint16_t large_mtu;  /* HELLOETH: payload of the largest packet it takes; 0: the path's MTU */
			uint8_t hello;       /* HELLOETH: VB_HELLO_ flags, and bits that nobody has given a meaning */
		};
		struct {
			uint64_t secret;      /* PATHETH: told by the receiver; ADDRESS: the sender's */
			uint32_t path_number; /* PATHETH: 24 bits; an answer repeats its probe's */
			uint8_t path_flags;   /* PATHETH: VB_PATH_ flags, and bits without a meaning */
		};
	};
	union {
		struct {
			uint32_t dma_length; /* RETH */
			uint32_t imm;        /* ImmDt as its four wire bytes lie in memory (network order), opaque */
			uint32_t inv_rkey;   /* IETH */
			uint32_t flush;      /* FETH, as the 32-bit number */
		};
		struct {
			uint64_t swap_add; /* AtomicETH */
			uint64_t compare;  /* AtomicETH */
		};
		uint64_t bits[VB_BITMAP_PSNS / 64]; /* BITMAPETH: bit i % 64 of i / 64 is the PSN of the BTH plus i */
		struct vb_gid address;              /* ADDRESSETH */
	};
};

_Static_assert(sizeof(struct vb_packet) == 64, "a fabric keeps millions of them");

static inline const struct vb_opcode *vb_packet_row(const struct vb_packet *packet)
{
	return &vb_opcodes[packet->opcode];
}

/* Payload, but for a hello's, which only makes it long: it asks what the way carries. */
static inline uint32_t vb_packet_data_length(const struct vb_packet *packet)
{
	return packet->opcode == VB_HELLO ? 0 : packet->payload_length;
}

/* a - b modulo 2^24, as a signed number. IBA vol. 1, 9.7.2. */
static inline int32_t vb_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t vb_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & VB_PSN_MASK;
}

/* Zero bytes after the payload. */
static inline uint32_t vb_pad(uint32_t payload_length)
{
	return -payload_length & 3;
}

/* Bytes of the UDP payload that this packet becomes: headers, payload, pad, ICRC. */
static inline uint32_t vb_packet_wire_length(const struct vb_packet *packet)
{
	return vb_packet_row(packet)->headers_length + packet->payload_length + vb_pad(packet->payload_length) +
	       VB_ICRC_LENGTH;
}

/* Reasons why bytes are no packet; the ICRC is checked apart. */
enum vb_decode_error {
	VB_DECODE_OK = 0,
	VB_DECODE_SHORT,     /* less than BTH and ICRC, or less than the opcode's headers, pad and ICRC */
	VB_DECODE_UNALIGNED, /* UDP payload length is not a multiple of 4 */
	VB_DECODE_LONG,      /* more than any packet can be */
	VB_DECODE_VERSION,   /* transport header version is not 0 */
	VB_DECODE_OPCODE,    /* no such opcode */
	VB_DECODE_PAYLOAD,   /* payload where the opcode allows none, or not eight bytes for ATOMIC WRITE */
};

/* Parse a UDP payload of length bytes, ICRC included but not verified (see icrc.h). Never reads outside bytes.
 * On error the packet is undefined. packet->payload borrows from bytes. packet->holder is left alone. */
enum vb_decode_error vb_packet_decode(struct vb_packet *packet, const uint8_t *bytes, size_t length);

/* Write BTH and extension headers to out (room for VB_MAX_HEADER_BYTES); returns their length. Payload, pad and ICRC
 * are the caller's. PadCnt follows from payload_length. Reserved bits are written 0. */
size_t vb_packet_encode_headers(const struct vb_packet *packet, uint8_t *out);

/* DestQP of a UDP payload without decoding it; length must be at least VB_BTH_LENGTH. */
static inline uint32_t vb_peek_dest_qpn(const uint8_t *bytes)
{
	return (uint32_t)bytes[5] << 16 | (uint32_t)bytes[6] << 8 | bytes[7];
}

#endif
