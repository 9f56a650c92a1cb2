/* Values in the notation that people use: 400G, 1us, 32MB, 64 KiB, 1%. Integers are parsed as integers: a value that is
 * not a whole number of units (picoseconds, bytes, bits a second, millionths) is refused, not rounded. */
#ifndef SIM_VALUE_H
#define SIM_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/time.h"

enum value_kind {
	VALUE_TEXT,
	VALUE_FLAG,
	VALUE_WORD,  /* one of a few words: its index */
	VALUE_NAME,  /* one of a few words: the word itself */
	VALUE_COUNT, /* a plain number */
	VALUE_BYTES, /* may be a plain number */
	VALUE_TIME,  /* in picoseconds */
	VALUE_RATE,  /* in bits a second */
	VALUE_SHARE, /* in millionths */
	VALUE_REAL,  /* may be a percentage */
};

/* For COUNT, BYTES, TIME, RATE and SHARE. False: not such a value, or too large. */
bool value_integer(enum value_kind kind, const char *text, uint64_t *value);
bool value_real(const char *text, double *value);
bool value_flag(const char *text, bool *value);
/* Words are separated by '|'. */
bool value_word(const char *words, const char *text, uint32_t *index);

/* How such a value is written, for error messages. */
const char *value_form(enum value_kind kind);

/* For people: "1.234 us", "32 MB", "400 Gb/s". */
const char *value_time_text(vb_time time, char *text, size_t size);
const char *value_bytes_text(uint64_t bytes, char *text, size_t size);
const char *value_rate_text(uint64_t bits_per_second, char *text, size_t size);
/* 12345678: "12.3 M". */
const char *value_count_text(double count, char *text, size_t size);

#endif
