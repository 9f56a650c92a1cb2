/* Files of lines and words, and errors as "name:line: what is wrong". The content is not trusted: a number has bounds,
 * and is exact or refused. */
#ifndef NET_TEXT_H
#define NET_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span {
	const char *at;
	size_t length;
};

struct text {
	const char *name;
	const char *at, *end; /* the text that is still unread */
	uint32_t line;        /* the line that was read last, from 1 */
	char *owned;
	char *why;
	unsigned why_size;
};

/* From bytes that stay borrowed until text_close, without the byte order mark that UTF-8 may begin with; text_open
 * reads a regular file: 0, -EINVAL and why, -ENOMEM. */
struct text text_of(const char *name, const char *bytes, size_t length, char *why, unsigned why_size);
int text_open(struct text *text, const char *path, char *why, unsigned why_size);
void text_close(struct text *text);
bool text_can_open(const char *path); /* there is such a file, and it may be read */

/* The next line that is not blank and does not begin with `comment` (0: no comments). False: there is none. */
bool text_next(struct text *text, char comment, struct span *line);

/* Whether the first line of a CSV has column names instead of data: 1 or 0; -EINVAL if the names differ from these
 * ("src,dst"). Case does not matter. */
int text_is_columns(const struct text *text, struct span line, const char *columns);

/* Writes an error about the line that was read last; -EINVAL. */
__attribute__((format(printf, 2, 3))) int text_wrong(const struct text *text, const char *format, ...);

/* Takes a word from the beginning of the line. Words are separated by blanks, and by `separator` unless it is 0. */
bool span_take(struct span *line, char separator, struct span *word);
bool span_is(struct span span, const char *word); /* case does not matter */

bool span_number(struct span span, uint64_t max, uint64_t *number);
/* A decimal fraction in units of 1/unit, exactly: "1.5" with unit 1000 is 1500, and so is "15e-1". */
bool span_decimal(struct span span, uint64_t unit, uint64_t max, uint64_t *count);
bool span_rate(struct span span, uint64_t *bits_per_second);  /* such as 100Gbps */
bool span_time(struct span span, uint64_t max, uint64_t *ps); /* such as 0.001ms */

/* For "%.*s". */
#define SPAN(span) (int)((span).length < 40 ? (span).length : 40), (span).at

#endif
