/* Files of lines and words, and what is wrong with them: "name:line: what". Nothing in them is believed: a number has
 * its bounds, and is exact or refused. */
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
	const char *at, *end; /* what is still to be read */
	uint32_t line;        /* that was read last, from 1 */
	char *owned;
	char *why;
	unsigned why_size;
};

/* Of bytes that are borrowed until it is closed, without the byte order mark that UTF-8 may begin with; text_open
 * reads a
 * file: 0, -EINVAL and why, -ENOMEM. */
struct text text_of(const char *name, const char *bytes, size_t length, char *why, unsigned why_size);
int text_open(struct text *text, const char *path, char *why, unsigned why_size);
void text_close(struct text *text);

/* The next line that is not blank and, unless it is 0, does not begin with `comment`. False: there is none. */
bool text_next(struct text *text, char comment, struct span *line);

/* Of the first line of a CSV: whether it says what the columns are, and not yet what is in them. 1, 0; -EINVAL where it
 * says other columns than these ("src,dst"), whatever the case. */
int text_is_columns(const struct text *text, struct span line, const char *columns);

/* What is wrong in the line read last; -EINVAL. */
__attribute__((format(printf, 2, 3))) int text_wrong(const struct text *text, const char *format, ...);

/* Takes a word off the line. Words are apart by blanks, and by `separator` where that is not 0. */
bool span_take(struct span *line, char separator, struct span *word);
bool span_is(struct span span, const char *word); /* whatever the case */

bool span_number(struct span span, uint64_t max, uint64_t *number);
/* A decimal fraction as a count of 1/unit, exactly: "1.5" of unit 1000 is 1500, and so is "15e-1". */
bool span_decimal(struct span span, uint64_t unit, uint64_t max, uint64_t *count);
bool span_rate(struct span span, uint64_t *bits_per_second);  /* 100Gbps */
bool span_time(struct span span, uint64_t max, uint64_t *ps); /* 0.001ms */

/* For "%.*s". */
#define SPAN(span) (int)((span).length < 40 ? (span).length : 40), (span).at

#endif
