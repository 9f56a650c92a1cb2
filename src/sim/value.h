/* Values as people write them: 400G, 1us, 32MB, 64 KiB, 1%. Integers are read as integers: what is no whole number of
 * the unit (picoseconds, bytes, bits a second, parts in a million) is refused, and not rounded. */
#ifndef SIM_VALUE_H
#define SIM_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/time.h"

enum value_kind {
	VALUE_TEXT,
	VALUE_FLAG,
	VALUE_WORD,  /* one of a few: its number */
	VALUE_NAME,  /* one of a few: itself */
	VALUE_COUNT, /* a plain number */
	VALUE_BYTES, /* a plain number too */
	VALUE_TIME,  /* picoseconds */
	VALUE_RATE,  /* bits a second */
	VALUE_SHARE, /* parts in a million */
	VALUE_REAL,  /* percent too */
};

/* Of COUNT, BYTES, TIME, RATE and SHARE. False: it is none, or too large. */
bool value_integer(enum value_kind kind, const char *text, uint64_t *value);
bool value_real(const char *text, double *value);
bool value_flag(const char *text, bool *value);
/* Words are parted by '|'. */
bool value_word(const char *words, const char *text, uint32_t *index);

/* How such a value is written, for who wrote it otherwise. */
const char *value_form(enum value_kind kind);

/* As people read them: "1.234 us", "32 MB", "400 Gb/s". */
const char *value_time_text(vb_time time, char *text, size_t size);
const char *value_bytes_text(uint64_t bytes, char *text, size_t size);
const char *value_rate_text(uint64_t bits_per_second, char *text, size_t size);
/* 12345678: "12.3 M". */
const char *value_count_text(double count, char *text, size_t size);

#endif
