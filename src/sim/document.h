/* A scenario file as a flat list: "network.switch.buffer" is "32MB", and where that stands. YAML is what it is written
 * in: maps, lists and plain values; a list of plain values is one value, with commas. What is set on a command line
 * stands in the same list, at no line.
 * Hostile files: bounded in size, depth and number; no anchors, aliases or tags, no key twice. */
#ifndef SIM_DOCUMENT_H
#define SIM_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>

#define DOCUMENT_MAX_BYTES (1u << 20)

struct document_mark {
	unsigned line, column; /* from 1; line 0: of the command line */
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

/* What is wrong, and where. */
struct document_error {
	struct document_mark at;
	char text[400];
};

/* -EINVAL and what is wrong; -ENOMEM. Free it whatever the answer. */
int document_read(struct document *document, const char *text, size_t length, struct document_error *error);
const struct document_entry *document_find(const struct document *document, const char *path); /* NULL: there is none */
/* Instead of the value that is there, if any is: the key keeps its place. -ENOMEM. */
int document_set(struct document *document, const char *path, const char *value);
void document_free(struct document *document);

__attribute__((format(printf, 3, 4))) int document_refuse(
	struct document_error *error, struct document_mark at, const char *format, ...);

#endif
