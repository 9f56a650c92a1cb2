/* Reading text. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "net/text.h"
#include "net/why.h"

#define READ_MOST ((size_t)1 << 34) /* traces of jobs have GBs */

enum { READ_FIRST = 1 << 16 };

struct text text_of(const char *name, const char *bytes, size_t length, char *why, unsigned why_size)
{
	size_t mark = length >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
	return (struct text){
		.name = name, .at = bytes + mark, .end = bytes + length, .why = why, .why_size = why_size
	};
}

/* Reads to the end of the file, which has about this size; -EFBIG: it is larger than allowed. */
static int read_all(FILE *file, size_t size, char **bytes, size_t *length)
{
	for (size_t room = size < READ_FIRST ? READ_FIRST : size + 1; room <= READ_MOST; room *= 2) {
		char *larger = realloc(*bytes, room);
		if (!larger)
			return -ENOMEM;
		*bytes = larger;
		*length += fread(*bytes + *length, 1, room - *length, file);
		if (ferror(file))
			return errno ? -errno : -EIO;
		if (*length < room)
			return 0;
	}
	return -EFBIG;
}

/* Waits for nobody: the file may be a pipe that nobody writes to. */
static int open_file(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* Why it cannot be read, as errno, with ESPIPE for a pipe or a device; or it is a regular file, which has an end, and
 * *size. */
static int check_file(int descriptor, size_t *size)
{
	struct stat is;
	if (fstat(descriptor, &is))
		return errno;
	if (S_ISDIR(is.st_mode))
		return EISDIR;
	if (!S_ISREG(is.st_mode))
		return ESPIPE;
	*size = (size_t)is.st_size;
	return is.st_size < 0 || *size > READ_MOST ? EFBIG : 0;
}

/* NULL: as errno says. */
static FILE *open_regular(const char *path, size_t *size)
{
	const int descriptor = open_file(path);
	const int error = descriptor < 0 ? errno : check_file(descriptor, size);
	FILE *file = error ? NULL : fdopen(descriptor, "rb");
	if (!file && descriptor >= 0)
		close(descriptor);
	if (error)
		errno = error;
	return file;
}

int text_open(struct text *text, const char *path, char *why, unsigned why_size)
{
	char *bytes = NULL;
	size_t size = 0, length = 0;
	FILE *file = open_regular(path, &size);
	if (!file && errno == ESPIPE)
		return why_not(why, why_size, "%s: it is a pipe or a device: a file with an end is wanted", path);
	if (!file)
		return why_not(why, why_size, "%s: %m", path);
	errno = 0;
	int error = read_all(file, size, &bytes, &length);
	fclose(file);
	if (error) {
		free(bytes);
		if (error == -ENOMEM)
			return error;
		errno = -error;
		return why_not(why, why_size, "%s: %m", path);
	}
	*text = text_of(path, bytes, length, why, why_size);
	text->owned = bytes;
	return 0;
}

bool text_can_open(const char *path)
{
	const int descriptor = open_file(path);
	if (descriptor >= 0)
		close(descriptor);
	return descriptor >= 0;
}

void text_close(struct text *text)
{
	free(text->owned);
	text->owned = NULL;
}

int text_wrong(const struct text *text, const char *format, ...)
{
	char what[200];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	for (char *c = what; *c; c++) /* the text may go to a terminal */
		if ((unsigned char)*c < ' ' || *c == 0x7F)
			*c = '?';
	return why_not(text->why, text->why_size, "%s:%u: %s", text->name, text->line, what);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct span *line)
{
	while (line->length && is_blank(*line->at)) {
		line->at++;
		line->length--;
	}
}

bool text_next(struct text *text, char comment, struct span *line)
{
	while (text->at < text->end) {
		const char *end = memchr(text->at, '\n', (size_t)(text->end - text->at));
		*line = (struct span){ .at = text->at, .length = (size_t)((end ? end : text->end) - text->at) };
		text->at = end ? end + 1 : text->end;
		text->line++;
		skip_blanks(line);
		if (line->length && (!comment || *line->at != comment))
			return true;
	}
	return false;
}

bool span_take(struct span *line, char separator, struct span *word)
{
	skip_blanks(line);
	if (!line->length)
		return false;
	*word = (struct span){ .at = line->at };
	while (line->length && !is_blank(*line->at) && (!separator || *line->at != separator)) {
		line->at++;
		line->length--;
		word->length++;
	}
	skip_blanks(line);
	if (separator && line->length && *line->at == separator) {
		line->at++;
		line->length--;
	}
	return true;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool span_are(struct span one, struct span other)
{
	if (one.length != other.length)
		return false;
	for (size_t i = 0; i < one.length; i++)
		if (lower(one.at[i]) != lower(other.at[i]))
			return false;
	return true;
}

bool span_is(struct span span, const char *word)
{
	return span_are(span, (struct span){ .at = word, .length = strlen(word) });
}

int text_is_columns(const struct text *text, struct span line, const char *columns)
{
	if (!(*line.at >= 'a' && *line.at <= 'z') && !(*line.at >= 'A' && *line.at <= 'Z'))
		return 0;
	struct span expected = { .at = columns, .length = strlen(columns) }, rest = line, one, other;
	while (span_take(&expected, ',', &one) && span_take(&rest, ',', &other) && span_are(one, other))
		if (!expected.length && !rest.length)
			return 1;
	return text_wrong(text, "the columns are %.*s, expected %s", SPAN(line), columns);
}

bool span_number(struct span span, uint64_t max, uint64_t *number)
{
	return span_decimal(span, 1, max, number);
}

/* Removes an exponent such as "e-6" from the end. An exponent with more digits would leave every number but 0 out of
 * bounds. */
static bool take_exponent(struct span *span, int *exponent)
{
	enum { MOST = 18 };
	size_t at = 0;
	while (at < span->length && lower(span->at[at]) != 'e')
		at++;
	*exponent = 0;
	if (at == span->length)
		return true;
	const char *digit = span->at + at + 1, *end = span->at + span->length;
	bool is_below = digit < end && *digit == '-';
	digit += is_below || (digit < end && *digit == '+');
	if (digit == end)
		return false;
	for (; digit < end; digit++) {
		if (*digit < '0' || *digit > '9')
			return false;
		*exponent = *exponent * 10 + (*digit - '0');
		if (*exponent > MOST)
			return false;
	}
	*exponent = is_below ? -*exponent : *exponent;
	span->length = at;
	return true;
}

bool span_decimal(struct span span, uint64_t unit, uint64_t max, uint64_t *count)
{
	unsigned __int128 value = 0; /* in units of unit / divisor */
	uint64_t divisor = 1;
	int exponent;
	if (!take_exponent(&span, &exponent))
		return false;
	bool has_digit = false, is_behind = false;
	for (size_t i = 0; i < span.length; i++) {
		char c = span.at[i];
		if (c == '.' && !is_behind) {
			is_behind = true;
			continue;
		}
		if (c < '0' || c > '9')
			return false;
		has_digit = true;
		if (is_behind && divisor >= 1000000000000000000u) {
			if (c != '0')
				return false;
			continue;
		}
		value = value * 10 + (unsigned)(c - '0');
		divisor *= is_behind ? 10 : 1;
		if (value > UINT64_MAX)
			return false;
	}
	value *= unit; /* both factors are below 2^64 */
	for (; exponent > 0; exponent--) {
		if (value > ~(unsigned __int128)0 / 10)
			return false;
		value *= 10;
	}
	for (; exponent < 0; exponent++) {
		if (value % 10)
			return false;
		value /= 10;
	}
	if (!has_digit || value % divisor || value / divisor > max)
		return false;
	*count = (uint64_t)(value / divisor);
	return true;
}

struct unit {
	const char *name;
	uint64_t of;
};

/* The unit at the end of the text, which is removed. The longest unit comes first. */
static const struct unit *take_unit(struct span *span, const struct unit *units)
{
	for (const struct unit *unit = units; unit->name; unit++) {
		size_t length = strlen(unit->name);
		if (span->length <= length)
			continue;
		struct span end = { .at = span->at + span->length - length, .length = length };
		if (!span_is(end, unit->name))
			continue;
		span->length -= length;
		return unit;
	}
	return NULL;
}

bool span_rate(struct span span, uint64_t *bits_per_second)
{
	static const struct unit units[] = { { "Tbps", 1000000000000 }, { "Gbps", 1000000000 }, { "Mbps", 1000000 },
		{ "Kbps", 1000 }, { "bps", 1 }, { 0 } };
	const struct unit *unit = take_unit(&span, units);
	return unit && span_decimal(span, unit->of, INT64_MAX, bits_per_second);
}

bool span_time(struct span span, uint64_t max, uint64_t *ps)
{
	static const struct unit units[] = { { "ps", 1 }, { "ns", 1000 }, { "us", 1000000 }, { "ms", 1000000000 },
		{ "s", 1000000000000 }, { 0 } };
	const struct unit *unit = take_unit(&span, units);
	return unit && span_decimal(span, unit->of, max, ps);
}
