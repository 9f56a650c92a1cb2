/* Reads a scenario file as a flat list, from libyaml's events. */
#include "sim/document.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>
#include "base/utf8.h"

enum { MAX_DEPTH = 8, MAX_ENTRIES = 4096, MAX_PATH_BYTES = 160, MAX_VALUE_BYTES = 4000 };

struct reader {
	yaml_parser_t parser;
	yaml_event_t event; /* the current one */
	struct document *document;
	struct document_error *error;
	char path[MAX_PATH_BYTES];
	struct document_mark key_at;
	unsigned depth;
};

int document_refuse(struct document_error *error, struct document_mark at, const char *format, ...)
{
	va_list arguments;

	error->at = at;
	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static int add(struct document *document, const char *path, const char *value, struct document_mark key_at,
	struct document_mark value_at)
{
	if (document->count == document->room) {
		unsigned room = document->room ? 2 * document->room : 64;
		struct document_entry *grown = realloc(document->entries, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		document->entries = grown;
		document->room = room;
	}
	struct document_entry *entry = &document->entries[document->count];
	*entry = (struct document_entry){ strdup(path), strdup(value), key_at, value_at, false };
	if (!entry->path || !entry->value) {
		free(entry->path);
		free(entry->value);
		return -ENOMEM;
	}
	document->count++;
	return 0;
}

static struct document_entry *find(const struct document *document, const char *path)
{
	for (unsigned i = 0; i < document->count; i++)
		if (strcmp(document->entries[i].path, path) == 0)
			return &document->entries[i];
	return NULL;
}

const struct document_entry *document_find(const struct document *document, const char *path)
{
	return find(document, path);
}

static int put(struct document *document, const char *path, const char *value)
{
	struct document_entry *entry = find(document, path);

	if (!entry)
		return add(document, path, value, (struct document_mark){ 0 }, (struct document_mark){ 0 });
	char *copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	free(entry->value);
	entry->value = copy;
	entry->value_at = (struct document_mark){ 0 };
	return 0;
}

void document_free(struct document *document)
{
	for (unsigned i = 0; i < document->count; i++) {
		free(document->entries[i].path);
		free(document->entries[i].value);
	}
	free(document->entries);
	*document = (struct document){ 0 };
}

static struct document_mark mark_of(const yaml_mark_t *mark)
{
	return (struct document_mark){ (unsigned)mark->line + 1, (unsigned)mark->column + 1 };
}

static struct document_mark here(const struct reader *reader)
{
	return mark_of(&reader->event.start_mark);
}

/* Goes on to the next event. */
static int next(struct reader *reader)
{
	yaml_parser_t *parser = &reader->parser;

	yaml_event_delete(&reader->event);
	if (yaml_parser_parse(parser, &reader->event))
		return 0;
	memset(&reader->event, 0, sizeof(reader->event));
	if (parser->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	struct document_mark at = mark_of(&parser->problem_mark);
	if (parser->error == YAML_READER_ERROR) /* this error counts bytes, not lines */
		at = mark_of(&parser->mark);
	return document_refuse(
		reader->error, at, "this is not YAML: %s", parser->problem ? parser->problem : "unreadable");
}

/* Aliases let a small file become a large one, and no scenario needs them. */
static int refuse_references(struct reader *reader)
{
	const yaml_event_t *event = &reader->event;
	const yaml_char_t *anchor = NULL, *tag = NULL;

	if (event->type == YAML_ALIAS_EVENT)
		return document_refuse(
			reader->error, here(reader), "aliases (*name) are not supported: repeat the value");
	if (event->type == YAML_SCALAR_EVENT) {
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
	} else if (event->type == YAML_SEQUENCE_START_EVENT) {
		anchor = event->data.sequence_start.anchor;
		tag = event->data.sequence_start.tag;
	} else if (event->type == YAML_MAPPING_START_EVENT) {
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
	}
	if (anchor)
		return document_refuse(reader->error, here(reader), "anchors (&name) are not supported: leave it out");
	if (tag)
		return document_refuse(reader->error, here(reader), "tags (!name) are not supported: leave it out");
	return 0;
}

/* The text of the current scalar: bounded, and without bytes that end or hide it. */
static int scalar_text(struct reader *reader, const char **text)
{
	size_t length = reader->event.data.scalar.length;

	*text = (const char *)reader->event.data.scalar.value;
	if (length > MAX_VALUE_BYTES)
		return document_refuse(
			reader->error, here(reader), "this is too long: %d bytes at most", MAX_VALUE_BYTES);
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)(*text)[i] < ' ')
			return document_refuse(reader->error, here(reader), "a value is one line of text");
	return 0;
}

static int add_entry(struct reader *reader, const char *value, struct document_mark at)
{
	if (reader->document->count == MAX_ENTRIES)
		return document_refuse(reader->error, at, "there are more than %d values", MAX_ENTRIES);
	if (find(reader->document, reader->path))
		return document_refuse(reader->error, reader->key_at, "%s is given twice", reader->path);
	return add(reader->document, reader->path, value, reader->key_at, at);
}

static int read_node(struct reader *reader);

/* Appends a name to the path. */
static int enter(struct reader *reader, const char *name)
{
	size_t length = strlen(reader->path);

	if (length + strlen(name) + 2 > MAX_PATH_BYTES)
		return document_refuse(reader->error, here(reader), "this key is too long");
	snprintf(reader->path + length, MAX_PATH_BYTES - length, "%s%s", length ? "." : "", name);
	return 0;
}

/* An empty mapping, such as "capture:", counts as absent. */
static int read_mapping(struct reader *reader)
{
	size_t length = strlen(reader->path);
	unsigned count = 0;
	int error = 0;

	while (!error && !(error = next(reader)) && reader->event.type != YAML_MAPPING_END_EVENT) {
		const char *name = NULL;
		count++;
		error = refuse_references(reader);
		if (!error && reader->event.type != YAML_SCALAR_EVENT)
			error = document_refuse(reader->error, here(reader), "a key is a word");
		if (!error)
			error = scalar_text(reader, &name);
		if (!error && (!*name || strchr(name, '.')))
			error = document_refuse(reader->error, here(reader),
				"'%.*s' is no key: keys are words without dots", vb_utf8_fitting(name, 40), name);
		if (!error)
			error = enter(reader, name);
		reader->key_at = here(reader);
		if (!error)
			error = next(reader);
		if (!error)
			error = read_node(reader);
		reader->path[length] = 0;
	}
	return error || count || !length ? error : add_entry(reader, "", here(reader));
}

/* A list of plain values becomes one value, with commas; maps in a list are numbered. */
static int read_sequence(struct reader *reader)
{
	struct document_mark at = here(reader);
	size_t length = strlen(reader->path), used = 0;
	char joined[MAX_VALUE_BYTES + 1] = "", number[16];
	unsigned plain = 0, nested = 0;
	int error = 0;

	while (!error && !(error = next(reader)) && reader->event.type != YAML_SEQUENCE_END_EVENT) {
		error = refuse_references(reader);
		bool is_plain = reader->event.type == YAML_SCALAR_EVENT;
		if (!error && (is_plain ? nested : plain))
			error = document_refuse(reader->error, here(reader), "a list has values, or maps, not both");
		if (!error && is_plain) {
			const char *text;
			error = scalar_text(reader, &text);
			if (!error && used + strlen(text) + 2 > sizeof(joined))
				error = document_refuse(reader->error, here(reader), "this list is too long");
			if (!error)
				used += (size_t)snprintf(
					joined + used, sizeof(joined) - used, "%s%s", plain++ ? "," : "", text);
		} else if (!error) {
			snprintf(number, sizeof(number), "%u", nested++);
			reader->key_at = here(reader);
			error = enter(reader, number);
			if (!error)
				error = read_node(reader);
			reader->path[length] = 0;
		}
	}
	return error || nested ? error : add_entry(reader, joined, at);
}

static int read_node(struct reader *reader)
{
	const char *text;
	int error = refuse_references(reader);

	if (error)
		return error;
	if (reader->event.type == YAML_SCALAR_EVENT) {
		error = scalar_text(reader, &text);
		return error ? error : add_entry(reader, text, here(reader));
	}
	if (reader->depth == MAX_DEPTH)
		return document_refuse(reader->error, here(reader), "this is nested too deeply");
	reader->depth++;
	error = reader->event.type == YAML_MAPPING_START_EVENT ? read_mapping(reader) : read_sequence(reader);
	reader->depth--;
	return error;
}

static int read_stream(struct reader *reader)
{
	int error = next(reader); /* the stream begins */

	if (!error)
		error = next(reader);
	if (!error && reader->event.type == YAML_STREAM_END_EVENT)
		return document_refuse(reader->error, (struct document_mark){ 1, 1 }, "the file is empty");
	if (!error)
		error = next(reader); /* its root */
	if (!error && reader->event.type != YAML_MAPPING_START_EVENT)
		return document_refuse(reader->error, here(reader), "a scenario is a map: network, workload, ...");
	if (!error)
		error = read_node(reader);
	if (!error)
		error = next(reader); /* the document ends */
	if (!error)
		error = next(reader);
	if (!error && reader->event.type != YAML_STREAM_END_EVENT)
		return document_refuse(
			reader->error, here(reader), "a file has one scenario: there is another document");
	return error;
}

int document_read(struct document *document, const char *text, size_t length, struct document_error *error)
{
	struct reader reader = { .document = document, .error = error };

	if (length > DOCUMENT_MAX_BYTES)
		return document_refuse(
			error, (struct document_mark){ 1, 1 }, "a scenario has at most %u bytes", DOCUMENT_MAX_BYTES);
	if (!yaml_parser_initialize(&reader.parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, length);
	int rc = read_stream(&reader);
	yaml_event_delete(&reader.event);
	yaml_parser_delete(&reader.parser);
	return rc;
}

/* What document_read makes of a list: one value, with commas. */
static int read_list(struct document *list, const char *path, const char *value, struct document_error *error)
{
	static const char key[] = "list: ";
	struct document_error its = { 0 };
	const size_t length = strlen(key) + strlen(value);
	char *text = malloc(length + 1);
	if (!text)
		return -ENOMEM;
	snprintf(text, length + 1, "%s%s", key, value);
	const int rc = document_read(list, text, length, &its);
	free(text);
	if (rc == -EINVAL)
		return document_refuse(error, (struct document_mark){ 0 }, "%s: %s", path, its.text);
	if (!rc && (list->count != 1 || strcmp(list->entries[0].path, "list") != 0))
		return document_refuse(error, (struct document_mark){ 0 },
			"%s: this is no list of values: write it as [8-15, 0, 2]", path);
	return rc;
}

int document_set(struct document *document, const char *path, const char *value, struct document_error *error)
{
	struct document list = { 0 };
	if (*value != '[')
		return put(document, path, value);
	int rc = read_list(&list, path, value, error);
	if (!rc)
		rc = put(document, path, list.entries[0].value);
	document_free(&list);
	return rc;
}
