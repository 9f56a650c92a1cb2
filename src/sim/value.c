/* Values in the notation that people use. */
#include "sim/value.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/quantity.h"

static enum vb_quantity quantity_of(enum value_kind kind)
{
	switch (kind) {
	case VALUE_BYTES:
		return VB_QUANTITY_BYTES;
	case VALUE_TIME:
		return VB_QUANTITY_TIME;
	case VALUE_RATE:
		return VB_QUANTITY_RATE;
	case VALUE_SHARE:
		return VB_QUANTITY_SHARE;
	default:
		return VB_QUANTITY_COUNT;
	}
}

bool value_integer(enum value_kind kind, const char *text, uint64_t *value)
{
	return vb_quantity_read(quantity_of(kind), text, value);
}

bool value_real(const char *text, double *value)
{
	char *end;

	if (!isdigit((unsigned char)*text) || text[1] == 'x' || text[1] == 'X') /* no sign, "inf", "nan" or 0x10 */
		return false;
	double read = strtod(text, &end);
	while (*end == ' ')
		end++;
	if (*end == '%') {
		read /= 100;
		end++;
	}
	if (*end || !__builtin_isfinite(read))
		return false;
	*value = read;
	return true;
}

bool value_flag(const char *text, bool *value)
{
	uint32_t index;

	if (!value_word("no|yes|false|true|off|on", text, &index))
		return false;
	*value = index & 1;
	return true;
}

bool value_word(const char *words, const char *text, uint32_t *index)
{
	size_t length = strlen(text);

	for (uint32_t i = 0; *words; i++) {
		size_t word = strcspn(words, "|");
		if (word == length && memcmp(words, text, length) == 0) {
			*index = i;
			return true;
		}
		words += word + (words[word] == '|');
	}
	return false;
}

const char *value_form(enum value_kind kind)
{
	switch (kind) {
	case VALUE_TEXT:
		return "text";
	case VALUE_FLAG:
		return "yes or no";
	case VALUE_WORD:
	case VALUE_NAME:
		return "a word";
	case VALUE_REAL:
		return "a number: 0.3, 30%, 1e-9";
	default:
		return vb_quantity_form(quantity_of(kind));
	}
}

/* The largest unit of which the value is at least one; units ascend. */
static const char *scaled_text(double value, const char *const *units, unsigned count, char *text, size_t size)
{
	unsigned unit = 0;

	while (unit + 1 < count && value >= 999.9995) {
		value /= 1000;
		unit++;
	}
	snprintf(text, size, "%.*f%s%s",
		value == (double)(uint64_t)value ? 0
		: value < 10                     ? 3
		: value < 100                    ? 2
						 : 1,
		value, *units[unit] ? " " : "", units[unit]);
	return text;
}

const char *value_time_text(vb_time time, char *text, size_t size)
{
	static const char *const units[] = { "ps", "ns", "us", "ms", "s" };
	return scaled_text((double)time, units, 5, text, size);
}

const char *value_bytes_text(uint64_t bytes, char *text, size_t size)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB", "EB" };
	return scaled_text((double)bytes, units, 7, text, size);
}

const char *value_rate_text(uint64_t bits_per_second, char *text, size_t size)
{
	static const char *const units[] = { "b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s" };
	return scaled_text((double)bits_per_second, units, 5, text, size);
}

const char *value_count_text(double count, char *text, size_t size)
{
	static const char *const units[] = { "", "k", "M", "G", "T", "P", "E", "Z", "Y" };
	return scaled_text(count, units, sizeof(units) / sizeof(units[0]), text, size);
}
