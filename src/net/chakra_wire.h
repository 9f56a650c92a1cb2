/* A file of a Chakra execution trace: protobuf messages, each with its length before it as a varint. The first is a
 * GlobalMetadata, the others are Nodes (mlcommons/chakra, schema/protobuf/et_def.proto). Numbers and field numbers are
 * those of https://protobuf.dev/programming-guides/encoding. The content is not trusted: an error says the byte, the
 * message from 1, and the last node that was whole. */
#ifndef NET_CHAKRA_WIRE_H
#define NET_CHAKRA_WIRE_H

#include "net/text.h"

struct chakra_error {
	const uint8_t *at;
	const char *what;
};

/* Bytes of a message that are still unread. */
struct wire {
	const uint8_t *at, *end;
	struct chakra_error *error; /* filled in by whoever finds one */
};

enum chakra_type {
	CHAKRA_INVALID,
	CHAKRA_METADATA,
	CHAKRA_MEMORY_LOAD,
	CHAKRA_MEMORY_STORE,
	CHAKRA_COMPUTE,
	CHAKRA_SEND,
	CHAKRA_RECEIVE,
	CHAKRA_COLLECTIVE,
	CHAKRA_TYPES,
};

enum chakra_attribute {
	CHAKRA_IS_CPU_OP,
	CHAKRA_COMM_TYPE,
	CHAKRA_COMM_SIZE,
	CHAKRA_COMM_SRC,
	CHAKRA_COMM_DST,
	CHAKRA_COMM_TAG,
	CHAKRA_COMM_PRIORITY,
	CHAKRA_PG_NAME,
	CHAKRA_INVOLVED_DIM,
	CHAKRA_NUM_OPS,
	CHAKRA_ATTRIBUTES,
};
extern const char *const chakra_attribute_names[CHAKRA_ATTRIBUTES];

/* Writers differ in which integer kind they use, so all of them are one here. */
struct chakra_value {
	enum {
		CHAKRA_ABSENT,
		CHAKRA_INTEGER,
		CHAKRA_TEXT,
		CHAKRA_BOOLS,
		CHAKRA_OTHER,
	} kind;
	bool is_negative;
	uint64_t number; /* an integer's amount; of bools, whether one is false */
	struct span text;
};

struct chakra_node {
	uint64_t id, type, duration_us;
	struct span name, input_values;
	struct chakra_value values[CHAKRA_ATTRIBUTES];
	struct wire whole;
};

struct chakra_file {
	struct text text; /* the file, unpacked */
	bool is_packed;   /* by gzip: bytes are counted in what it unpacks to */
	const uint8_t *at;
	uint64_t message; /* that was read last, from 1 */
	uint64_t last;    /* the id of the last node that was whole */
	struct chakra_error error;
};

/* Opens the file and reads its first message. 0, -EINVAL and why, -ENOMEM. */
int chakra_open(struct chakra_file *file, const char *path, char *why, unsigned why_size);
void chakra_close(struct chakra_file *file);

/* The next node, whose spans lie in the file. 1; 0: that was all; -EINVAL and why. */
int chakra_next(struct chakra_file *file, struct chakra_node *node);
/* Where the next message begins. */
static inline size_t chakra_byte(const struct chakra_file *file)
{
	return (size_t)(file->at - (const uint8_t *)file->text.owned);
}
/* A node that chakra_next has read, whose message's length is at this byte. */
void chakra_read_again(struct chakra_file *file, size_t at, struct chakra_node *node);

/* What a node that was read waits for: true, and the other's id. */
struct chakra_waits {
	struct wire whole, packed;
	bool is_data; /* a data dependency; else a control dependency */
};
struct chakra_waits chakra_waits_of(const struct chakra_node *node);
bool chakra_next_wait(struct chakra_waits *waits, uint64_t *id);

/* Whether these bytes begin as a trace does. */
bool chakra_is(const char *bytes, size_t length);

#endif
