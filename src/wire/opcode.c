/* The opcode table. Every row is written once; RC, UC and XRC share the rows that they have in common, and an XRC
 * request is the RC request with an XRCETH before its other headers. headers_length is summed by the compiler from the
 * row's own list, so the two cannot disagree.
 * Not here: what the bytes of a header mean (codec.c). Source: IBA vol. 1, 9.2; annexes A14 (XRC), A17, A19. */
#include <stddef.h>
#include "wire/opcode.h"
#include "wire/packet.h"

#define LENGTH_OF(header)                                                                                              \
	((header) == VB_RETH                  ? 16                                                                     \
		: (header) == VB_AETH         ? 4                                                                      \
		: (header) == VB_ATOMICETH    ? 28                                                                     \
		: (header) == VB_ATOMICACKETH ? 8                                                                      \
		: (header) == VB_IMMDT        ? 4                                                                      \
		: (header) == VB_IETH         ? 4                                                                      \
		: (header) == VB_DETH         ? 8                                                                      \
		: (header) == VB_XRCETH       ? 4                                                                      \
		: (header) == VB_FETH         ? 4                                                                      \
		: (header) == VB_CNP_RESERVED ? 16                                                                     \
		: (header) == VB_HELLOETH     ? 8                                                                      \
		: (header) == VB_BITMAPETH    ? 28                                                                     \
		: (header) == VB_PATHETH      ? 12                                                                     \
		: (header) == VB_ADDRESSETH   ? 16                                                                     \
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
	[VB_HELLOETH]	  = LENGTH_OF(VB_HELLOETH),
	[VB_BITMAPETH]	  = LENGTH_OF(VB_BITMAPETH),
	[VB_PATHETH]	  = LENGTH_OF(VB_PATHETH),
	[VB_ADDRESSETH]	  = LENGTH_OF(VB_ADDRESSETH),
};

/* The headers after the BTH, of all but the requests of XRC, and of those. */
#define PLAIN(a, b) \
	.headers = { VB_##a, VB_##b }, .headers_length = VB_BTH_LENGTH + LENGTH_OF(VB_##a) + LENGTH_OF(VB_##b)
#define AFTER_XRCETH(a, b) \
	.headers = { VB_XRCETH, VB_##a, VB_##b }, \
	.headers_length = VB_BTH_LENGTH + LENGTH_OF(VB_XRCETH) + LENGTH_OF(VB_##a) + LENGTH_OF(VB_##b)

#define KIND(a, b, c)	.message = VB_MESSAGE_##a, .place = VB_##b, .payload = VB_PAYLOAD_##c
#define RECV		.consumes_recv = true
#define RECV_IMM	.consumes_recv = true, .has_imm = true
#define RECV_INV	.consumes_recv = true, .has_inv = true
#define READ_REPLY(b, c) KIND(READ_RESPONSE, b, c), .is_response = true
#define ACK		KIND(ACK, ONLY, NONE), .is_response = true

/* t is the transport, p its name; HEADERS is one of the two above. */
#define SENDS_AND_WRITES(t, p, HEADERS) \
	[t | VB_SEND_FIRST]     = { p ".send_first",     HEADERS(END, END),    KIND(SEND, FIRST, FULL) },           \
	[t | VB_SEND_MIDDLE]    = { p ".send_middle",    HEADERS(END, END),    KIND(SEND, MIDDLE, FULL) },          \
	[t | VB_SEND_LAST]      = { p ".send_last",      HEADERS(END, END),    KIND(SEND, LAST, LAST), RECV },      \
	[t | VB_SEND_LAST_IMM]  = { p ".send_last_imm",  HEADERS(IMMDT, END),  KIND(SEND, LAST, LAST), RECV_IMM },  \
	[t | VB_SEND_ONLY]      = { p ".send_only",      HEADERS(END, END),    KIND(SEND, ONLY, ONLY), RECV },      \
	[t | VB_SEND_ONLY_IMM]  = { p ".send_only_imm",  HEADERS(IMMDT, END),  KIND(SEND, ONLY, ONLY), RECV_IMM },  \
	[t | VB_WRITE_FIRST]    = { p ".write_first",    HEADERS(RETH, END),   KIND(WRITE, FIRST, FULL) },          \
	[t | VB_WRITE_MIDDLE]   = { p ".write_middle",   HEADERS(END, END),    KIND(WRITE, MIDDLE, FULL) },         \
	[t | VB_WRITE_LAST]     = { p ".write_last",     HEADERS(END, END),    KIND(WRITE, LAST, LAST) },           \
	[t | VB_WRITE_LAST_IMM] = { p ".write_last_imm", HEADERS(IMMDT, END),  KIND(WRITE, LAST, LAST), RECV_IMM }, \
	[t | VB_WRITE_ONLY]     = { p ".write_only",     HEADERS(RETH, END),   KIND(WRITE, ONLY, ONLY) },           \
	[t | VB_WRITE_ONLY_IMM] = { p ".write_only_imm", HEADERS(RETH, IMMDT), KIND(WRITE, ONLY, ONLY), RECV_IMM }

#define READS_ATOMICS_AND_INVALIDATES(t, p, HEADERS) \
	[t | VB_READ_REQUEST]  = { p ".read_request",  HEADERS(RETH, END),      KIND(READ, ONLY, NONE) },           \
	[t | VB_CMP_SWAP]      = { p ".cmp_swap",      HEADERS(ATOMICETH, END), KIND(ATOMIC, ONLY, NONE) },         \
	[t | VB_FETCH_ADD]     = { p ".fetch_add",     HEADERS(ATOMICETH, END), KIND(ATOMIC, ONLY, NONE) },         \
	[t | VB_SEND_LAST_INV] = { p ".send_last_inv", HEADERS(IETH, END),      KIND(SEND, LAST, LAST), RECV_INV }, \
	[t | VB_SEND_ONLY_INV] = { p ".send_only_inv", HEADERS(IETH, END),      KIND(SEND, ONLY, ONLY), RECV_INV }

/* XRC's responses carry no XRCETH either. */
#define RESPONSES(t, p) \
	[t | VB_READ_RESPONSE_FIRST]  = { p ".read_response_first",  PLAIN(AETH, END), READ_REPLY(FIRST, FULL) },  \
	[t | VB_READ_RESPONSE_MIDDLE] = { p ".read_response_middle", PLAIN(END, END),  READ_REPLY(MIDDLE, FULL) }, \
	[t | VB_READ_RESPONSE_LAST]   = { p ".read_response_last",   PLAIN(AETH, END), READ_REPLY(LAST, LAST) },   \
	[t | VB_READ_RESPONSE_ONLY]   = { p ".read_response_only",   PLAIN(AETH, END), READ_REPLY(ONLY, ONLY) }, \
	[t | VB_ACKNOWLEDGE]        = { p ".ack",        PLAIN(AETH, END),          ACK }, \
	[t | VB_ATOMIC_ACKNOWLEDGE] = { p ".atomic_ack", PLAIN(AETH, ATOMICACKETH), ACK }

const struct vb_opcode vb_opcodes[256] = {
	SENDS_AND_WRITES(VB_RC, "rc", PLAIN),
	READS_ATOMICS_AND_INVALIDATES(VB_RC, "rc", PLAIN),
	RESPONSES(VB_RC, "rc"),
	[VB_RC | VB_FLUSH]        = { "rc.flush",        PLAIN(FETH, RETH), KIND(FLUSH, ONLY, NONE) },
	[VB_RC | VB_ATOMIC_WRITE] = { "rc.atomic_write", PLAIN(RETH, END),  KIND(ATOMIC_WRITE, ONLY, EIGHT) },

	SENDS_AND_WRITES(VB_UC, "uc", PLAIN),

	[VB_UD_SEND_ONLY]     = { "ud.send_only",     PLAIN(DETH, END),   KIND(SEND, ONLY, ONLY), RECV },
	[VB_UD_SEND_ONLY_IMM] = { "ud.send_only_imm", PLAIN(DETH, IMMDT), KIND(SEND, ONLY, ONLY), RECV_IMM },

	[VB_CNP] = { "cnp", PLAIN(CNP_RESERVED, END), KIND(CNP, ONLY, NONE) },

	SENDS_AND_WRITES(VB_XRC, "xrc", AFTER_XRCETH),
	READS_ATOMICS_AND_INVALIDATES(VB_XRC, "xrc", AFTER_XRCETH),
	RESPONSES(VB_XRC, "xrc"),

	/* Manufacturer opcodes, sent between Verbena peers only. */
	[VB_ECHO_REQUEST] = { "vb.echo_request", PLAIN(DETH, END), KIND(ECHO, ONLY, NONE) },
	[VB_ECHO_REPLY]   = { "vb.echo_reply",   PLAIN(END, END),  KIND(ECHO, ONLY, NONE), .is_response = true },
	[VB_HELLO]        = { "vb.hello",        PLAIN(HELLOETH, END),   KIND(HELLO, ONLY, ONLY) },
	[VB_BITMAP]       = { "vb.bitmap",     PLAIN(AETH, BITMAPETH), KIND(BITMAP, ONLY, NONE), .is_response = true },
	[VB_PATH_PROBE]   = { "vb.path_probe",   PLAIN(PATHETH, END),    KIND(PATH, ONLY, NONE) },
	[VB_PATH_ANSWER]  = { "vb.path_answer",  PLAIN(PATHETH, END),    KIND(PATH, ONLY, NONE), .is_response = true },
	[VB_PATH_ADDRESS] = { "vb.path_address", PLAIN(PATHETH, ADDRESSETH), KIND(PATH, ONLY, NONE) },
	[VB_READ_LARGE]   = { "vb.read_large",   PLAIN(RETH, END),       KIND(READ, ONLY, NONE) },
};

/* clang-format on */
