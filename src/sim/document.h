/* A scenario file as a flat list: "network.switch.buffer" is "32MB", with its position in the file. Files are YAML:
 * maps, lists and plain values; a list of plain values is one value, with commas. Settings of the command line are in
 * the same list, at line 0. Files may be hostile: size, depth and count are bounded; anchors, aliases, tags and
 * repeated keys are refused. */
#ifndef SIM_DOCUMENT_H
#define SIM_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>

#define DOCUMENT_MAX_BYTES (1u << 20)

struct document_mark {
	unsigned line, column; /* from 1; line 0: from the command line */
};

struct document_entry {
	char *path, *value;
	struct document_mark key_at, value_at;
	bool is_unnumbered; /* scenario_set: the command line left out the number of the list's element */
};

struct document {
	struct document_entry *entries;
	unsigned count, room;
};

/* An error, and its position. */
struct document_error {
	struct document_mark at;
	char text[400];
};

/* -EINVAL and the error; -ENOMEM. Free the document in every case. */
int document_read(struct document *document, const char *text, size_t length, struct document_error *error);
const struct document_entry *document_find(const struct document *document, const char *path); /* NULL: not there */
/* Replaces the value if there is one; the key keeps its position. A list is written as in a file: [1, 2]. -EINVAL and
 * the error, -ENOMEM. */
int document_set(struct document *document, const char *path, const char *value, struct document_error *error);
void document_free(struct document *document);

__attribute__((format(printf, 3, 4))) int document_refuse(
	struct document_error *error, struct document_mark at, const char *format, ...);

#endif
