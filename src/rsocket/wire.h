/* The messages between two rsockets, and the arithmetic of their rings. Pure: no I/O, no locks, host order inside.
 *
 * Each side has a receive ring in registered memory. The peer fills it with RDMA WRITEs, whose immediate data tells how
 * many bytes came. A half of the ring that was read is granted again: its address is written into the peer's table of
 * targets. The same message tells how many messages the peer may send in all, because each takes a receive work
 * request.
 *
 * The rings, the addresses of the tables and the first credits are exchanged in the private data of the connection.
 * These formats are those of librdmacm's rsockets, version 1, over devices with immediate data. */
#ifndef VB_RSOCKET_WIRE_H
#define VB_RSOCKET_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	VB_RS_VERSION = 1,
	VB_RS_HELLO_LENGTH = 40,
	VB_RS_TARGETS = 2,      /* entries of our table of targets */
	VB_RS_TARGETS_MAX = 64, /* of a peer's */
	VB_RS_REGION_LENGTH = 16,
	VB_RS_MAPPING_LENGTH = 24,
	VB_RS_MAPPINGS_MAX = 127 << 8, /* by the 8 bits in the hello */
};

/* ---- Private data ------------------------------------------------------------------------------------------------ */

struct vb_rs_region {
	uint64_t addr;
	uint32_t key;
	uint32_t length;
};

struct vb_rs_hello {
	bool is_big_endian; /* the byte order in which its tables are to be written */
	bool has_mappings;  /* a table of mappings is behind the targets */
	uint16_t credits;
	uint32_t mappings;
	struct vb_rs_region targets; /* length: how many entries */
	struct vb_rs_region data;    /* the first grant */
};

void vb_rs_hello_encode(const struct vb_rs_hello *hello, uint8_t to[VB_RS_HELLO_LENGTH]);
/* 0, or -EPROTO if it is not an rsocket's. Bytes behind the hello are ignored. */
int vb_rs_hello_decode(struct vb_rs_hello *hello, const void *from, size_t length);

/* The least number that the hello can tell and that is no less than `count`. */
uint32_t vb_rs_mappings_round(uint32_t count);

/* An entry of a table, in the peer's byte order. */
void vb_rs_region_encode(const struct vb_rs_region *region, bool is_big_endian, uint8_t to[VB_RS_REGION_LENGTH]);
void vb_rs_mapping_encode(
	uint64_t offset, const struct vb_rs_region *region, bool is_big_endian, uint8_t to[VB_RS_MAPPING_LENGTH]);

/* ---- Immediate data ---------------------------------------------------------------------------------------------- */

/* The upper three bits. */
enum vb_rs_op {
	VB_RS_DATA = 0,    /* value: number of bytes */
	VB_RS_WRITE = 2,   /* never sent: names a WRITE without immediate in our work requests */
	VB_RS_CREDITS = 4, /* value: how many messages may be sent in all, modulo 2^16; with a target or without */
	VB_RS_MAPPING = 6, /* value: the entry of the table of mappings that was written */
	VB_RS_CONTROL = 7,
};

enum vb_rs_control {
	VB_RS_DISCONNECT,
	VB_RS_KEEPALIVE,
	VB_RS_SHUTDOWN, /* no more data comes */
};

static inline uint32_t vb_rs_message(enum vb_rs_op op, uint32_t value)
{
	return (uint32_t)op << 29 | (value & 0x1FFFFFFF);
}

static inline enum vb_rs_op vb_rs_message_op(uint32_t message)
{
	return (enum vb_rs_op)(message >> 29);
}

static inline uint32_t vb_rs_message_value(uint32_t message)
{
	return message & 0x1FFFFFFF;
}

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

/* Our ring of bytes to send, which go in order, and the targets that the peer granted. */
struct vb_rs_sender {
	uint32_t size, put_at, free;
	uint16_t sequence, limit; /* messages sent, and how many may be sent in all */
	uint32_t target_index;    /* the target in use */
	struct vb_rs_region target[VB_RS_TARGETS];
};

void vb_rs_sender_init(struct vb_rs_sender *sender, uint32_t size, const struct vb_rs_hello *peer);
/* How many bytes may go as one message now: no more than lie together in both rings. 0 while our ring has little room
 * but will have more, or else messages would be cut ever smaller. */
uint32_t vb_rs_sender_room(const struct vb_rs_sender *sender);
/* Takes length <= room, and returns where it goes. An inline message takes no bytes of our ring. */
struct vb_rs_region vb_rs_sender_take(struct vb_rs_sender *sender, uint32_t length, bool is_inline);
/* The same of our ring alone, for bytes that go to an address of the program's choice. */
uint32_t vb_rs_sender_ring_room(const struct vb_rs_sender *sender);
void vb_rs_sender_ring_take(struct vb_rs_sender *sender, uint32_t length);
/* So many bytes of the ring were sent. */
void vb_rs_sender_free(struct vb_rs_sender *sender, uint32_t length);
/* The peer granted another target; false: that is an error, for both targets are still in use. */
bool vb_rs_sender_grant(struct vb_rs_sender *sender, const struct vb_rs_region *target);

/* ---- Receiving --------------------------------------------------------------------------------------------------- */

struct vb_rs_receiver {
	uint32_t size;     /* even */
	uint32_t read_at;  /* the first byte that is not read */
	uint32_t ready;    /* bytes to read */
	uint32_t granted;  /* bytes that the peer may still write */
	uint32_t read;     /* and not granted again */
	uint32_t grant_at; /* the half that is granted next */
	uint16_t messages; /* received */
	uint16_t told;     /* received when the peer was last sent credits */
	uint16_t queue;    /* receive work requests */
};

void vb_rs_receiver_init(struct vb_rs_receiver *receiver, uint32_t size, uint16_t queue);
/* A message with so many bytes came; false: more than were granted. */
bool vb_rs_receiver_arrive(struct vb_rs_receiver *receiver, uint32_t length);
/* How many bytes lie together at read_at. */
uint32_t vb_rs_receiver_together(const struct vb_rs_receiver *receiver);
void vb_rs_receiver_consume(struct vb_rs_receiver *receiver, uint32_t length);
/* Whether it is time to send credits; how many, and whether the message grants a half, which begins at *at. */
bool vb_rs_receiver_credits_due(const struct vb_rs_receiver *receiver);
uint16_t vb_rs_receiver_take_credits(struct vb_rs_receiver *receiver, bool *has_half, uint32_t *at);

#endif
