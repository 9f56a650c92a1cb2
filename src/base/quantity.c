/* Quantities as people write them. */
#include "base/quantity.h"

#include <stddef.h>
#include <string.h>
#include "base/time.h"

struct unit {
	const char *name; /* "": a plain number */
	uint64_t times;
};

static const struct unit count_units[] = { { "", 1 }, { NULL, 0 } };
static const struct unit bytes_units[] = { { "", 1 }, { "B", 1 }, { "kB", 1000 }, { "KB", 1000 }, { "MB", 1000 * 1000 },
	{ "GB", 1000 * 1000 * 1000 }, { "TB", UINT64_C(1000000000000) }, { "KiB", 1 << 10 }, { "MiB", 1 << 20 },
	{ "GiB", 1 << 30 }, { "TiB", UINT64_C(1) << 40 }, { "K", 1000 }, { "M", 1000 * 1000 },
	{ "G", 1000 * 1000 * 1000 }, { NULL, 0 } };
static const struct unit time_units[] = { { "ps", VB_PS }, { "ns", VB_NS }, { "us", VB_US }, { "\xc2\xb5s", VB_US },
	{ "ms", VB_MS }, { "s", VB_S }, { NULL, 0 } };
static const struct unit rate_units[] = { { "k", 1000 }, { "M", 1000 * 1000 }, { "G", 1000 * 1000 * 1000 },
	{ "T", UINT64_C(1000000000000) }, { NULL, 0 } };
static const struct unit share_units[] = { { "%", 10000 }, { "ppm", 1 }, { "", 1000000 }, { NULL, 0 } };

static const struct unit *units_of(enum vb_quantity kind)
{
	switch (kind) {
	case VB_QUANTITY_BYTES:
		return bytes_units;
	case VB_QUANTITY_TIME:
		return time_units;
	case VB_QUANTITY_RATE:
		return rate_units;
	case VB_QUANTITY_SHARE:
		return share_units;
	case VB_QUANTITY_COUNT:
	case VB_QUANTITY_GAIN:
		break;
	}
	return count_units;
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

static const struct unit *find_unit(enum vb_quantity kind, const char *name)
{
	size_t length = strlen(name);
	while (length && name[length - 1] == ' ')
		length--;
	if (kind == VB_QUANTITY_RATE)
		length = rate_name_length(name, length);
	for (const struct unit *unit = units_of(kind); unit->name; unit++)
		if (strlen(unit->name) == length && memcmp(unit->name, name, length) == 0)
			return unit;
	return NULL;
}

/* Digits, perhaps with a point between: digits / divisor. Returns the text behind them, or NULL. */
static const char *read_digits(const char *text, unsigned __int128 *digits, unsigned __int128 *divisor)
{
	enum { MOST = 25 };
	unsigned seen = 0;
	bool is_behind_point = false;

	*digits = 0;
	*divisor = 1;
	for (;; text++) {
		if (*text == '.' && !is_behind_point && seen) {
			is_behind_point = true;
			continue;
		}
		if (*text < '0' || *text > '9')
			break;
		if (++seen > MOST)
			return NULL;
		*digits = *digits * 10 + (unsigned)(*text - '0');
		if (is_behind_point)
			*divisor *= 10;
	}
	return seen && text[-1] != '.' ? text : NULL;
}

/* A number, or one over another: up to 1. */
static bool read_gain(const char *text, uint64_t *value)
{
	unsigned __int128 digits, divisor, below = 1, unused;
	const char *end = read_digits(text, &digits, &divisor);

	if (end && *end == '/') {
		end = read_digits(end + 1, &below, &unused);
		if (unused != 1)
			return false;
	}
	if (!end || *end || below == 0 || below > UINT32_MAX || digits > divisor * below)
		return false;
	if (divisor > (UINT64_C(1) << 62)) /* finer than any gain */
		return false;
	divisor *= below;
	*value = (uint64_t)((digits * VB_GAIN_ONE + divisor / 2) / divisor);
	return true;
}

bool vb_quantity_read(enum vb_quantity kind, const char *text, uint64_t *value)
{
	unsigned __int128 digits, divisor;

	if (kind == VB_QUANTITY_GAIN)
		return read_gain(text, value);
	const char *end = read_digits(text, &digits, &divisor);
	if (!end)
		return false;
	bool is_plain_zero = digits == 0 && *end == 0; /* 0 needs no unit */
	while (*end == ' ')
		end++;
	const struct unit *unit = find_unit(kind, end);
	if (is_plain_zero) {
		*value = 0;
		return true;
	}
	if (!unit)
		return false;
	digits *= unit->times; /* below 10^25 * 2^40, which fits */
	if (digits % divisor || digits / divisor > INT64_MAX)
		return false;
	*value = (uint64_t)(digits / divisor);
	return true;
}

const char *vb_quantity_form(enum vb_quantity kind)
{
	static const char *const forms[] = {
		[VB_QUANTITY_COUNT] = "a whole number",
		[VB_QUANTITY_BYTES] = "bytes: 4096, 500 kB, 2MB, 64KiB",
		[VB_QUANTITY_TIME] = "a time: 800ns, 1us, 2.5 ms, 1s",
		[VB_QUANTITY_RATE] = "a rate: 100G, 400Gb/s, 1.6T",
		[VB_QUANTITY_SHARE] = "a share: 1%, 0.01, 50ppm",
		[VB_QUANTITY_GAIN] = "a gain from 0 to 1: 0.0625, 1/256",
	};
	return forms[kind];
}
