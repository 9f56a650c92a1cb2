/* See chakra_wire.h. */
#include "net/chakra_wire.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/invariant.h"
#include "net/unpack.h"
#include "net/why.h"

const char *const chakra_attribute_names[CHAKRA_ATTRIBUTES] = {
	[CHAKRA_IS_CPU_OP] = "is_cpu_op",
	[CHAKRA_COMM_TYPE] = "comm_type",
	[CHAKRA_COMM_SIZE] = "comm_size",
	[CHAKRA_COMM_SRC] = "comm_src",
	[CHAKRA_COMM_DST] = "comm_dst",
	[CHAKRA_COMM_TAG] = "comm_tag",
	[CHAKRA_COMM_PRIORITY] = "comm_priority",
	[CHAKRA_PG_NAME] = "pg_name",
	[CHAKRA_INVOLVED_DIM] = "involved_dim",
	[CHAKRA_NUM_OPS] = "num_ops",
};

/* ---- Protobuf's encoding ----------------------------------------------------------------------------------------- */

enum wire_type { VARINT = 0, EIGHT_BYTES = 1, BYTES = 2, FOUR_BYTES = 5 };

struct field {
	uint32_t number;
	enum wire_type type;
	uint64_t value;    /* but of BYTES */
	struct wire bytes; /* of BYTES */
};

static bool fail(const struct wire *wire, const char *what)
{
	*wire->error = (struct chakra_error){ wire->at, what };
	return false;
}

static bool take_varint(struct wire *wire, uint64_t *value)
{
	enum { MOST = 10 };
	*value = 0;
	for (unsigned i = 0; i < MOST; i++) {
		if (wire->at + i == wire->end)
			return fail(wire, "a number is cut off");
		const uint8_t byte = wire->at[i];
		if (i == MOST - 1 && byte > 1)
			break;
		*value |= (uint64_t)(byte & 0x7F) << 7 * i;
		if (byte < 0x80) {
			wire->at += i + 1;
			return true;
		}
	}
	return fail(wire, "a number of more than 64 bits");
}

static bool take_fixed(struct wire *wire, unsigned length, uint64_t *value)
{
	if ((size_t)(wire->end - wire->at) < length)
		return fail(wire, "a number is cut off");
	*value = 0;
	for (unsigned i = 0; i < length; i++)
		*value |= (uint64_t)wire->at[i] << 8 * i;
	wire->at += length;
	return true;
}

static bool take_bytes(struct wire *wire, struct wire *bytes)
{
	const uint8_t *begin = wire->at;
	uint64_t length;
	if (!take_varint(wire, &length))
		return false;
	if (length > (size_t)(wire->end - wire->at)) {
		wire->at = begin;
		return fail(wire, "a field is longer than what it is in");
	}
	*bytes = (struct wire){ wire->at, wire->at + length, wire->error };
	wire->at += length;
	return true;
}

static bool take_field(struct wire *wire, struct field *field)
{
	const uint8_t *begin = wire->at;
	uint64_t key;
	if (!take_varint(wire, &key))
		return false;
	field->value = 0;
	field->number = (uint32_t)(key >> 3);
	field->type = key & 7;
	if (key > UINT32_MAX || field->number == 0) {
		wire->at = begin;
		return fail(wire, "there is no such field number");
	}
	switch (field->type) {
	case VARINT:
		return take_varint(wire, &field->value);
	case EIGHT_BYTES:
		return take_fixed(wire, 8, &field->value);
	case FOUR_BYTES:
		return take_fixed(wire, 4, &field->value);
	case BYTES:
		return take_bytes(wire, &field->bytes);
	}
	wire->at = begin;
	return fail(wire, "an unknown wire type");
}

static struct span span_of(const struct wire *bytes)
{
	return (struct span){ (const char *)bytes->at, (size_t)(bytes->end - bytes->at) };
}

/* A known field that has not the wire type it should have. */
static bool is_of(const struct wire *wire, const struct field *field, enum wire_type type)
{
	return field->type == type || fail(wire, "a field is of another wire type than in the schema");
}

static bool take_text(const struct wire *wire, const struct field *field, struct span *text)
{
	if (!is_of(wire, field, BYTES))
		return false;
	*text = span_of(&field->bytes);
	return true;
}

static bool take_number(const struct wire *wire, const struct field *field, uint64_t *number)
{
	if (!is_of(wire, field, VARINT))
		return false;
	*number = field->value;
	return true;
}

/* ---- Attributes -------------------------------------------------------------------------------------------------- */

static struct chakra_value integer(int64_t value)
{
	return (struct chakra_value){ .kind = CHAKRA_INTEGER,
		.is_negative = value < 0,
		.number = value < 0 ? -(uint64_t)value : (uint64_t)value };
}

static struct chakra_value amount(uint64_t value)
{
	return (struct chakra_value){ .kind = CHAKRA_INTEGER, .number = value };
}

static int64_t from_zigzag(uint64_t value)
{
	return (int64_t)(value >> 1 ^ -(value & 1));
}

/* Of BoolList: whether one is false. They may be packed or not. */
static bool read_bools(struct wire list, struct chakra_value *value)
{
	struct field field;
	uint64_t one;
	*value = (struct chakra_value){ .kind = CHAKRA_BOOLS };
	while (list.at < list.end) {
		if (!take_field(&list, &field))
			return false;
		if (field.number == 1 && field.type == VARINT)
			value->number |= field.value == 0;
		if (field.number != 1 || field.type != BYTES)
			continue;
		while (field.bytes.at < field.bytes.end) {
			if (!take_varint(&field.bytes, &one))
				return false;
			value->number |= one == 0;
		}
	}
	return true;
}

/* The fields of AttributeProto.value that are a number or a text; lists of them have the even numbers. */
static bool read_value(const struct wire *wire, const struct field *field, struct chakra_value *value)
{
	static const struct {
		uint8_t number;
		enum wire_type type;
	} plain[] = { { 7, VARINT }, { 9, VARINT }, { 11, VARINT }, { 13, VARINT }, { 15, VARINT }, { 17, VARINT },
		{ 19, FOUR_BYTES }, { 21, EIGHT_BYTES }, { 23, FOUR_BYTES }, { 25, EIGHT_BYTES }, { 27, VARINT },
		{ 28, BYTES }, { 29, BYTES }, { 31, BYTES } };
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (plain[i].number == field->number && !is_of(wire, field, plain[i].type))
			return false;
	switch (field->number) {
	case 7:  /* int32 */
	case 23: /* sfixed32 */
		*value = integer((int32_t)field->value);
		return true;
	case 9:  /* int64 */
	case 25: /* sfixed64 */
		*value = integer((int64_t)field->value);
		return true;
	case 11: /* uint32 */
		*value = amount((uint32_t)field->value);
		return true;
	case 13: /* uint64 */
	case 19: /* fixed32 */
	case 21: /* fixed64 */
		*value = amount(field->value);
		return true;
	case 15: /* sint32 */
	case 17: /* sint64 */
		*value = integer(from_zigzag(field->value));
		return true;
	case 27: /* bool */
		*value = amount(field->value != 0);
		return true;
	case 28: /* bool_list */
		return read_bools(field->bytes, value);
	case 29: /* string */
	case 31: /* bytes */
		*value = (struct chakra_value){ .kind = CHAKRA_TEXT, .text = span_of(&field->bytes) };
		return true;
	default:
		*value = (struct chakra_value){ .kind = CHAKRA_OTHER };
		return true;
	}
}

static bool read_attribute(struct wire wire, struct chakra_value *values)
{
	struct span name = { 0 }, doc;
	struct chakra_value value = { .kind = CHAKRA_OTHER };
	struct field field;
	while (wire.at < wire.end) {
		if (!take_field(&wire, &field))
			return false;
		const bool is_fine = field.number == 1   ? take_text(&wire, &field, &name)
				     : field.number == 2 ? take_text(&wire, &field, &doc)
							 : read_value(&wire, &field, &value);
		if (!is_fine)
			return false;
	}
	for (unsigned i = 0; values && i < CHAKRA_ATTRIBUTES; i++)
		if (name.length == strlen(chakra_attribute_names[i]) &&
			memcmp(name.at, chakra_attribute_names[i], name.length) == 0)
			values[i] = value;
	return true;
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

/* Dependencies may be packed or not. */
static bool pass_dependencies(const struct wire *wire, const struct field *field)
{
	struct wire packed = field->bytes;
	uint64_t id;
	if (field->type == VARINT)
		return true;
	if (!is_of(wire, field, BYTES))
		return false;
	while (packed.at < packed.end)
		if (!take_varint(&packed, &id))
			return false;
	return true;
}

static bool read_inputs(const struct wire *wire, const struct field *field, struct span *values)
{
	if (!is_of(wire, field, BYTES))
		return false;
	struct wire inputs = field->bytes;
	struct field of_it;
	while (inputs.at < inputs.end)
		if (!take_field(&inputs, &of_it) || (of_it.number == 1 && !take_text(&inputs, &of_it, values)))
			return false;
	return true;
}

static bool read_node_field(const struct wire *wire, const struct field *field, struct chakra_node *node)
{
	switch (field->number) {
	case 1:
		return take_number(wire, field, &node->id);
	case 2:
		return take_text(wire, field, &node->name);
	case 3:
		return take_number(wire, field, &node->type);
	case 4: /* ctrl_deps */
	case 5: /* data_deps */
		return pass_dependencies(wire, field);
	case 7:
		return take_number(wire, field, &node->duration_us);
	case 8:
		return read_inputs(wire, field, &node->input_values);
	case 10:
		return is_of(wire, field, BYTES) && read_attribute(field->bytes, node->values);
	default: /* among them start_time_micros, outputs */
		return true;
	}
}

static bool read_node(struct wire wire, struct chakra_node *node)
{
	struct field field;
	*node = (struct chakra_node){ .whole = wire };
	while (wire.at < wire.end)
		if (!take_field(&wire, &field) || !read_node_field(&wire, &field, node))
			return false;
	return true;
}

/* GlobalMetadata has a version and attributes, and nothing else: so a node in its place is seen. */
static bool read_metadata(struct wire wire)
{
	struct span version;
	struct field field;
	while (wire.at < wire.end) {
		if (!take_field(&wire, &field))
			return false;
		if (field.number > 2)
			return fail(&wire, "a field that GlobalMetadata has not");
		const bool is_fine = field.number == 1
					     ? take_text(&wire, &field, &version)
					     : is_of(&wire, &field, BYTES) && read_attribute(field.bytes, NULL);
		if (!is_fine)
			return false;
	}
	return true;
}

bool chakra_is(const char *bytes, size_t length)
{
	struct chakra_error error;
	struct wire whole = { (const uint8_t *)bytes, (const uint8_t *)bytes + length, &error }, first;
	return length > 0 && take_bytes(&whole, &first) && read_metadata(first);
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

static const uint8_t *beginning(const struct chakra_file *file)
{
	return (const uint8_t *)file->text.owned;
}

static const uint8_t *end(const struct chakra_file *file)
{
	return (const uint8_t *)file->text.end;
}

static int refuse(const struct chakra_file *file)
{
	char last[60] = "no node is whole before it";
	if (file->message > 2)
		snprintf(last, sizeof(last), "the last whole node before it is %" PRIu64, file->last);
	return why_not(file->text.why, file->text.why_size, "%s: byte %zu of %zu%s, message %" PRIu64 ": %s (%s)",
		file->text.name, (size_t)(file->error.at - beginning(file)), (size_t)(end(file) - beginning(file)),
		file->is_packed ? " unpacked" : "", file->message, file->error.what, last);
}

static bool next_message(struct chakra_file *file, struct wire *message)
{
	struct wire rest = { file->at, end(file), &file->error };
	uint64_t length;
	file->message++;
	if (!take_varint(&rest, &length))
		return false;
	if (length > (size_t)(rest.end - rest.at)) {
		rest.at = file->at;
		return fail(&rest, "the file ends early, within this message");
	}
	*message = (struct wire){ rest.at, rest.at + length, &file->error };
	file->at = rest.at + length;
	return true;
}

static int read_first(struct chakra_file *file)
{
	struct wire message;
	if (file->at == end(file))
		return why_not(file->text.why, file->text.why_size, "%s: it is empty", file->text.name);
	if (!next_message(file, &message))
		return refuse(file);
	if (read_metadata(message))
		return 0;
	return why_not(file->text.why, file->text.why_size,
		"%s: byte %zu, message 1: no GlobalMetadata, which a Chakra trace begins with (a file from before "
		"2024?)",
		file->text.name, (size_t)(file->error.at - beginning(file)));
}

int chakra_open(struct chakra_file *file, const char *path, char *why, unsigned why_size)
{
	*file = (struct chakra_file){ 0 };
	int error = text_open(&file->text, path, why, why_size);
	if (error)
		return error;
	error = text_unpack(&file->text, &file->is_packed);
	file->at = beginning(file); /* not text.at, which may lie behind what looks like a byte order mark */
	if (!error)
		error = read_first(file);
	if (error)
		chakra_close(file);
	return error;
}

void chakra_close(struct chakra_file *file)
{
	text_close(&file->text);
}

int chakra_next(struct chakra_file *file, struct chakra_node *node)
{
	struct wire message;
	if (file->at == end(file))
		return 0;
	if (!next_message(file, &message) || !read_node(message, node))
		return refuse(file);
	file->last = node->id;
	return 1;
}

void chakra_read_again(struct chakra_file *file, size_t at, struct chakra_node *node)
{
	struct wire rest = { beginning(file) + at, end(file), &file->error }, message;
	const bool is_fine = take_bytes(&rest, &message) && read_node(message, node);
	assert(is_fine);
	(void)is_fine;
}

/* ---- Dependencies ------------------------------------------------------------------------------------------------ */

struct chakra_waits chakra_waits_of(const struct chakra_node *node)
{
	return (struct chakra_waits){ .whole = node->whole };
}

bool chakra_next_wait(struct chakra_waits *waits, uint64_t *id)
{
	struct field field;
	while (waits->packed.at == waits->packed.end) {
		if (waits->whole.at == waits->whole.end || !take_field(&waits->whole, &field))
			return false;
		if (field.number != 4 && field.number != 5)
			continue;
		waits->is_data = field.number == 5;
		*id = field.value;
		if (field.type == VARINT)
			return true;
		waits->packed = field.bytes;
	}
	return take_varint(&waits->packed, id);
}
