/* The opcode table. Every row is written once; RC, UC and XRC share the rows that they have in common, and an XRC
 * request is the RC request with an XRCETH before its other headers. headers_length is summed by the compiler from the
 * row's own list, so the two cannot disagree.
 * Not here: what the bytes of a header mean (codec.c). Source: IBA vol. 1, 9.2; annexes A14 (XRC), A17, A19. */
#include <stddef.h>
#include "wire/opcode.h"
#include "wire/packet.h"

#define LENGTH_OF(header)                                                                                              \
	((header) == VB_RETH            ? 16                                                                           \
		: (header) == VB_AETH         ? 4                                                                      \
		: (header) == VB_ATOMICETH    ? 28                                                                     \
		: (header) == VB_ATOMICACKETH ? 8                                                                      \
		: (header) == VB_IMMDT        ? 4                                                                      \
		: (header) == VB_IETH         ? 4                                                                      \
		: (header) == VB_DETH         ? 8                                                                      \
		: (header) == VB_XRCETH       ? 4                                                                      \
		: (header) == VB_FETH         ? 4                                                                      \
		: (header) == VB_CNP_RESERVED ? 16                                                                     \
					      : 0)

/* clang-format off */

const uint8_t vb_header_length[VB_HEADER_COUNT] = {
	[VB_RETH]	  = LENGTH_OF(VB_RETH),
	[VB_AETH]	  = LENGTH_OF(VB_AETH),
	[VB_ATOMICETH]	  = LENGTH_OF(VB_ATOMICETH),
	[VB_ATOMICACKETH] = LENGTH_OF(VB_ATOMICACKETH),
	[VB_IMMDT]	  = LENGTH_OF(VB_IMMDT),
	[VB_IETH]	  = LENGTH_OF(VB_IETH),
	[VB_DETH]	  = LENGTH_OF(VB_DETH),
	[VB_XRCETH]	  = LENGTH_OF(VB_XRCETH),
	[VB_FETH]	  = LENGTH_OF(VB_FETH),
	[VB_CNP_RESERVED] = LENGTH_OF(VB_CNP_RESERVED),
};

/* The headers after the BTH: a request of RC or UC, a request of XRC, and a response (which never has an XRCETH). */
#define PLAIN(a, b)	   .headers = { a, b }, \
			   .headers_length = VB_BTH_LENGTH + LENGTH_OF(a) + LENGTH_OF(b)
#define AFTER_XRCETH(a, b) .headers = { VB_XRCETH, a, b }, \
			   .headers_length = VB_BTH_LENGTH + LENGTH_OF(VB_XRCETH) + LENGTH_OF(a) + LENGTH_OF(b)
#define NONE VB_END

#define KIND(m, p, l)	.message = VB_MESSAGE_##m, .place = VB_##p, .payload = VB_PAYLOAD_##l
#define TAKES_RECV	.consumes_recv = true
#define IMM		.has_imm = true
#define INV		.has_inv = true
#define RESPONSE	.is_response = true

#define SENDS_AND_WRITES(t, prefix, HEADERS)											\
	[t | VB_SEND_FIRST]	= { prefix ".send_first",     HEADERS(NONE, NONE),	 KIND(SEND, FIRST, FULL) },		\
	[t | VB_SEND_MIDDLE]	= { prefix ".send_middle",    HEADERS(NONE, NONE),	 KIND(SEND, MIDDLE, FULL) },		\
	[t | VB_SEND_LAST]	= { prefix ".send_last",      HEADERS(NONE, NONE),	 KIND(SEND, LAST, LAST), TAKES_RECV },	\
	[t | VB_SEND_LAST_IMM]	= { prefix ".send_last_imm",  HEADERS(VB_IMMDT, NONE),	 KIND(SEND, LAST, LAST), TAKES_RECV, IMM }, \
	[t | VB_SEND_ONLY]	= { prefix ".send_only",      HEADERS(NONE, NONE),	 KIND(SEND, ONLY, ONLY), TAKES_RECV },	\
	[t | VB_SEND_ONLY_IMM]	= { prefix ".send_only_imm",  HEADERS(VB_IMMDT, NONE),	 KIND(SEND, ONLY, ONLY), TAKES_RECV, IMM }, \
	[t | VB_WRITE_FIRST]	= { prefix ".write_first",    HEADERS(VB_RETH, NONE),	 KIND(WRITE, FIRST, FULL) },		\
	[t | VB_WRITE_MIDDLE]	= { prefix ".write_middle",   HEADERS(NONE, NONE),	 KIND(WRITE, MIDDLE, FULL) },		\
	[t | VB_WRITE_LAST]	= { prefix ".write_last",     HEADERS(NONE, NONE),	 KIND(WRITE, LAST, LAST) },		\
	[t | VB_WRITE_LAST_IMM]	= { prefix ".write_last_imm", HEADERS(VB_IMMDT, NONE),	 KIND(WRITE, LAST, LAST), TAKES_RECV, IMM }, \
	[t | VB_WRITE_ONLY]	= { prefix ".write_only",     HEADERS(VB_RETH, NONE),	 KIND(WRITE, ONLY, ONLY) },		\
	[t | VB_WRITE_ONLY_IMM]	= { prefix ".write_only_imm", HEADERS(VB_RETH, VB_IMMDT), KIND(WRITE, ONLY, ONLY), TAKES_RECV, IMM }

#define READS_ATOMICS_AND_INVALIDATES(t, prefix, HEADERS)									\
	[t | VB_READ_REQUEST]	= { prefix ".read_request",   HEADERS(VB_RETH, NONE),	   KIND(READ, ONLY, NONE) },		\
	[t | VB_CMP_SWAP]	= { prefix ".cmp_swap",	      HEADERS(VB_ATOMICETH, NONE), KIND(ATOMIC, ONLY, NONE) },		\
	[t | VB_FETCH_ADD]	= { prefix ".fetch_add",      HEADERS(VB_ATOMICETH, NONE), KIND(ATOMIC, ONLY, NONE) },		\
	[t | VB_SEND_LAST_INV]	= { prefix ".send_last_inv",  HEADERS(VB_IETH, NONE),	   KIND(SEND, LAST, LAST), TAKES_RECV, INV }, \
	[t | VB_SEND_ONLY_INV]	= { prefix ".send_only_inv",  HEADERS(VB_IETH, NONE),	   KIND(SEND, ONLY, ONLY), TAKES_RECV, INV }

#define RESPONSES(t, prefix)													\
	[t | VB_READ_RESPONSE_FIRST]  = { prefix ".read_response_first",  PLAIN(VB_AETH, NONE), KIND(READ_RESPONSE, FIRST, FULL), RESPONSE },  \
	[t | VB_READ_RESPONSE_MIDDLE] = { prefix ".read_response_middle", PLAIN(NONE, NONE),	KIND(READ_RESPONSE, MIDDLE, FULL), RESPONSE }, \
	[t | VB_READ_RESPONSE_LAST]   = { prefix ".read_response_last",	  PLAIN(VB_AETH, NONE), KIND(READ_RESPONSE, LAST, LAST), RESPONSE },   \
	[t | VB_READ_RESPONSE_ONLY]   = { prefix ".read_response_only",	  PLAIN(VB_AETH, NONE), KIND(READ_RESPONSE, ONLY, ONLY), RESPONSE },   \
	[t | VB_ACKNOWLEDGE]	      = { prefix ".ack",		  PLAIN(VB_AETH, NONE), KIND(ACK, ONLY, NONE), RESPONSE },	\
	[t | VB_ATOMIC_ACKNOWLEDGE]   = { prefix ".atomic_ack", PLAIN(VB_AETH, VB_ATOMICACKETH), KIND(ACK, ONLY, NONE), RESPONSE }

const struct vb_opcode vb_opcodes[256] = {
	SENDS_AND_WRITES(VB_RC, "rc", PLAIN),
	READS_ATOMICS_AND_INVALIDATES(VB_RC, "rc", PLAIN),
	RESPONSES(VB_RC, "rc"),
	[VB_RC | VB_FLUSH]	  = { "rc.flush",	 PLAIN(VB_FETH, VB_RETH),  KIND(FLUSH, ONLY, NONE) },
	[VB_RC | VB_ATOMIC_WRITE] = { "rc.atomic_write", PLAIN(VB_RETH, NONE),	   KIND(ATOMIC_WRITE, ONLY, EIGHT) },

	SENDS_AND_WRITES(VB_UC, "uc", PLAIN),

	[VB_UD_SEND_ONLY]	  = { "ud.send_only",	  PLAIN(VB_DETH, NONE),	    KIND(SEND, ONLY, ONLY), TAKES_RECV },
	[VB_UD_SEND_ONLY_IMM]	  = { "ud.send_only_imm", PLAIN(VB_DETH, VB_IMMDT), KIND(SEND, ONLY, ONLY), TAKES_RECV, IMM },

	[VB_CNP]		  = { "cnp",		  PLAIN(VB_CNP_RESERVED, NONE), KIND(CNP, ONLY, NONE) },

	SENDS_AND_WRITES(VB_XRC, "xrc", AFTER_XRCETH),
	READS_ATOMICS_AND_INVALIDATES(VB_XRC, "xrc", AFTER_XRCETH),
	RESPONSES(VB_XRC, "xrc"),
};

/* clang-format on */
