/* Values as people write them. */
#include "sim/value.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	const char *name; /* "": a plain number */
	uint64_t times;
};

static const struct unit count_units[] = { { "", 1 }, { NULL, 0 } };
static const struct unit bytes_units[] = { { "", 1 }, { "B", 1 }, { "kB", 1000 }, { "KB", 1000 }, { "MB", 1000 * 1000 },
	{ "GB", 1000 * 1000 * 1000 }, { "TB", UINT64_C(1000000000000) }, { "KiB", 1 << 10 }, { "MiB", 1 << 20 },
	{ "GiB", 1 << 30 }, { "TiB", UINT64_C(1) << 40 }, { "K", 1000 }, { "M", 1000 * 1000 }, { "G", 1000 * 1000 * 1000 },
	{ NULL, 0 } };
static const struct unit time_units[] = { { "ps", VB_PS }, { "ns", VB_NS }, { "us", VB_US }, { "\xc2\xb5s", VB_US },
	{ "ms", VB_MS }, { "s", VB_S }, { NULL, 0 } };
static const struct unit rate_units[] = { { "k", 1000 }, { "M", 1000 * 1000 }, { "G", 1000 * 1000 * 1000 },
	{ "T", UINT64_C(1000000000000) }, { NULL, 0 } };
static const struct unit share_units[] = { { "%", 10000 }, { "ppm", 1 }, { "", 1000000 }, { NULL, 0 } };

static const struct unit *units_of(enum value_kind kind)
{
	switch (kind) {
	case VALUE_BYTES:
		return bytes_units;
	case VALUE_TIME:
		return time_units;
	case VALUE_RATE:
		return rate_units;
	case VALUE_SHARE:
		return share_units;
	default:
		return count_units;
	}
}

/* "Gb/s", "Gbps" and "Gbit/s" are "G". */
static size_t rate_name_length(const char *name, size_t length)
{
	static const char *const ends[] = { "b/s", "bps", "bit/s" };
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t end = strlen(ends[i]);
		if (length > end && memcmp(name + length - end, ends[i], end) == 0)
			return length - end;
	}
	return length;
}

static const struct unit *find_unit(enum value_kind kind, const char *name)
{
	size_t length = strlen(name);
	while (length && name[length - 1] == ' ')
		length--;
	if (kind == VALUE_RATE)
		length = rate_name_length(name, length);
	for (const struct unit *unit = units_of(kind); unit->name; unit++)
		if (strlen(unit->name) == length && memcmp(unit->name, name, length) == 0)
			return unit;
	return NULL;
}

/* Digits, perhaps with a point between: digits / 10^places. Returns what is behind them, or NULL. */
static const char *read_digits(const char *text, unsigned __int128 *digits, unsigned *places)
{
	enum { MOST = 25 };
	unsigned seen = 0;
	bool is_behind_point = false;

	*digits = 0;
	*places = 0;
	for (;; text++) {
		if (*text == '.' && !is_behind_point && seen) {
			is_behind_point = true;
			continue;
		}
		if (!isdigit((unsigned char)*text))
			break;
		if (++seen > MOST)
			return NULL;
		*digits = *digits * 10 + (unsigned)(*text - '0');
		*places += is_behind_point;
	}
	return seen && text[-1] != '.' ? text : NULL;
}

bool value_integer(enum value_kind kind, const char *text, uint64_t *value)
{
	unsigned __int128 digits, divisor = 1;
	unsigned places;
	const char *end = read_digits(text, &digits, &places);

	if (!end)
		return false;
	bool is_plain_zero = digits == 0 && *end == 0; /* nothing needs no unit */
	while (*end == ' ')
		end++;
	const struct unit *unit = find_unit(kind, end);
	if (is_plain_zero) {
		*value = 0;
		return true;
	}
	if (!unit)
		return false;
	while (places--)
		divisor *= 10;
	digits *= unit->times; /* below 10^25 * 2^40: it has room */
	if (digits % divisor || digits / divisor > INT64_MAX)
		return false;
	*value = (uint64_t)(digits / divisor);
	return true;
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
	static const char *const forms[] = {
		[VALUE_TEXT] = "text",
		[VALUE_FLAG] = "yes or no",
		[VALUE_WORD] = "a word",
		[VALUE_NAME] = "a word",
		[VALUE_COUNT] = "a whole number",
		[VALUE_BYTES] = "bytes: 4096, 500 kB, 2MB, 64KiB",
		[VALUE_TIME] = "a time: 800ns, 1us, 2.5 ms, 1s",
		[VALUE_RATE] = "a rate: 100G, 400Gb/s, 1.6T",
		[VALUE_SHARE] = "a share: 1%, 0.01, 50ppm",
		[VALUE_REAL] = "a number: 0.3, 30%, 1e-9",
	};
	return forms[kind];
}

/* The largest unit of which it is one at least; units rise. */
static const char *scaled_text(double value, const char *const *units, unsigned count, char *text, size_t size)
{
	unsigned unit = 0;

	while (unit + 1 < count && value >= 999.9995) {
		value /= 1000;
		unit++;
	}
	snprintf(text, size, "%.*f%s%s", value == (double)(uint64_t)value ? 0 : value < 10 ? 3 : value < 100 ? 2 : 1, value,
		*units[unit] ? " " : "", units[unit]);
	return text;
}

const char *value_time_text(vb_time time, char *text, size_t size)
{
	static const char *const units[] = { "ps", "ns", "us", "ms", "s" };
	return scaled_text((double)time, units, 5, text, size);
}

const char *value_bytes_text(uint64_t bytes, char *text, size_t size)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
	return scaled_text((double)bytes, units, 5, text, size);
}

const char *value_rate_text(uint64_t bits_per_second, char *text, size_t size)
{
	static const char *const units[] = { "b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s" };
	return scaled_text((double)bits_per_second, units, 5, text, size);
}

const char *value_count_text(double count, char *text, size_t size)
{
	static const char *const units[] = { "", "k", "M", "G", "T" };
	return scaled_text(count, units, 5, text, size);
}
