/* Writes Chakra traces for tests: protobuf messages with their length before them, into files PREFIX.RANK.et of a
 * directory of the test's own. */
#ifndef VB_TESTS_UNIT_NET_TRACE_WRITING_H
#define VB_TESTS_UNIT_NET_TRACE_WRITING_H

#include <unistd.h>
#include "../unit.h"

enum { INVALID, METADATA, MEM_LOAD, MEM_STORE, COMP, SEND, RECV, COLL }; /* NodeType */
enum { ALL_REDUCE, REDUCE, ALL_GATHER, GATHER, SCATTER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER, RS_BLOCK, BARRIER };
enum { CTRL_DEPS = 4, DATA_DEPS = 5 };                                                          /* Node's fields */
enum { INT32 = 7, INT64 = 9, UINT32 = 11, UINT64 = 13, SINT64 = 17, BOOL = 27, BOOLS, STRING }; /* AttributeProto's */

struct bytes {
	uint8_t at[1 << 16];
	size_t length;
};

static struct bytes trace, node;
static char directory[] = "/tmp/vb-trace-XXXXXX", prefix[sizeof(directory) + 2];
static uint32_t ranks_written;

static inline void put(struct bytes *to, const void *from, size_t length)
{
	assert_true(length <= sizeof(to->at) - to->length);
	memcpy(to->at + to->length, from, length);
	to->length += length;
}

static inline void put_varint(struct bytes *to, uint64_t value)
{
	for (; value > 0x7F; value >>= 7)
		put(to, &(uint8_t){ (uint8_t)(value | 0x80) }, 1);
	put(to, &(uint8_t){ (uint8_t)value }, 1);
}

static inline void put_number(struct bytes *to, uint32_t field, uint64_t value)
{
	put_varint(to, field << 3);
	put_varint(to, value);
}

static inline void put_bytes(struct bytes *to, uint32_t field, const void *from, size_t length)
{
	put_varint(to, field << 3 | 2);
	put_varint(to, length);
	put(to, from, length);
}

static inline void put_text(struct bytes *to, uint32_t field, const char *text)
{
	put_bytes(to, field, text, strlen(text));
}

static inline void put_message(const struct bytes *message)
{
	put_varint(&trace, message->length);
	put(&trace, message->at, message->length);
}

static inline void begin_trace(void)
{
	trace.length = 0;
	put(&trace,
		"\x07\x0A\x05"
		"0.0.4",
		8);
}

/* proto3 does not write what is 0. */
static inline void begin_node(uint64_t id, const char *name, uint32_t type)
{
	node.length = 0;
	if (id)
		put_number(&node, 1, id);
	if (*name)
		put_text(&node, 2, name);
	if (type)
		put_number(&node, 3, type);
}

static inline void put_attribute(const char *name, uint32_t kind, uint64_t value)
{
	static struct bytes attribute;
	attribute.length = 0;
	put_text(&attribute, 1, name);
	put_number(&attribute, kind, value);
	put_bytes(&node, 10, attribute.at, attribute.length);
}

static inline void put_attribute_of(const char *name, uint32_t kind, const void *from, size_t length)
{
	static struct bytes attribute;
	attribute.length = 0;
	put_text(&attribute, 1, name);
	put_bytes(&attribute, kind, from, length);
	put_bytes(&node, 10, attribute.at, attribute.length);
}

static inline void end_node(void)
{
	put_message(&node);
}

/* A node that waits for one other; NOTHING: for none. */
#define NOTHING UINT64_MAX
static inline void begin_node_after(uint64_t id, const char *name, uint32_t type, uint64_t other)
{
	begin_node(id, name, type);
	if (other != NOTHING) {
		static struct bytes packed;
		packed.length = 0;
		put_varint(&packed, other);
		put_bytes(&node, DATA_DEPS, packed.at, packed.length);
	}
}

static inline void put_collective(uint32_t type, uint64_t bytes)
{
	put_attribute("comm_type", INT64, type);
	put_attribute("comm_size", INT64, bytes);
}

static inline void add_collective(uint64_t id, uint32_t type, uint64_t bytes)
{
	begin_node(id, "c", COLL);
	put_collective(type, bytes);
	end_node();
}

static inline void add_message(uint64_t id, uint32_t type, uint32_t peer, uint64_t bytes)
{
	begin_node(id, "m", type);
	put_attribute(type == SEND ? "comm_dst" : "comm_src", INT32, peer);
	put_attribute("comm_size", UINT64, bytes);
	end_node();
}

static inline void write_file(const char *path, const void *from, size_t length)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(from, 1, length, file), length);
	assert_int_equal(fclose(file), 0);
}

static inline const char *path_of(uint32_t rank)
{
	static char path[100];
	snprintf(path, sizeof(path), "%s.%u.et", prefix, rank);
	return path;
}

static inline void end_trace(uint32_t rank)
{
	write_file(path_of(rank), trace.at, trace.length);
	ranks_written = rank >= ranks_written ? rank + 1 : ranks_written;
}

static inline void remove_traces(void)
{
	for (; ranks_written > 0; ranks_written--)
		unlink(path_of(ranks_written - 1));
}

static inline int make_directory(void **state)
{
	if (!mkdtemp(directory))
		return -1;
	snprintf(prefix, sizeof(prefix), "%s/t", directory);
	return 0;
}

static inline int remove_directory(void **state)
{
	return rmdir(directory);
}

#endif
