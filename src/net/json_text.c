/* See json_text.h. */
#include "net/json_text.h"
#include <string.h>

enum { DEEPEST = 64 };

static void pass_blanks(struct json *json)
{
	while (json->at < json->end &&
		(*json->at == ' ' || *json->at == '\t' || *json->at == '\n' || *json->at == '\r'))
		json->at++;
}

static bool is_next(struct json *json, char c)
{
	pass_blanks(json);
	return json->at < json->end && *json->at == c;
}

bool json_is_end(struct json *json)
{
	pass_blanks(json);
	return json->at == json->end;
}

bool json_take(struct json *json, char c)
{
	const bool is = is_next(json, c);
	json->at += is;
	return is;
}

bool json_take_string(struct json *json, struct span *string)
{
	if (!is_next(json, '"'))
		return false;
	for (const char *c = json->at + 1; c < json->end && (unsigned char)*c >= ' '; c++) {
		if (*c == '"') {
			*string = (struct span){ json->at + 1, (size_t)(c - json->at - 1) };
			json->at = c + 1;
			return true;
		}
		if (*c == '\\' && ++c == json->end)
			return false;
	}
	return false;
}

static bool is_of_number(char c)
{
	return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

static struct span number_at(struct json *json)
{
	struct span number = { .at = json->at };
	pass_blanks(json);
	number.at = json->at;
	while (json->at + number.length < json->end && is_of_number(json->at[number.length]))
		number.length++;
	return number;
}

bool json_take_number(struct json *json, uint64_t max, uint64_t *number)
{
	const struct span span = number_at(json);
	if (!span_number(span, max, number))
		return false;
	json->at += span.length;
	return true;
}

static bool pass_word(struct json *json)
{
	static const char *const words[] = { "true", "false", "null" };
	const size_t left = (size_t)(json->end - json->at);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const size_t length = strlen(words[i]);
		if (left >= length && memcmp(json->at, words[i], length) == 0) {
			json->at += length;
			return true;
		}
	}
	return false;
}

/* A value that has no others in it. */
static bool pass_plain(struct json *json)
{
	struct span string;
	if (json_take_string(json, &string))
		return true;
	const struct span number = number_at(json);
	json->at += number.length;
	return number.length > 0 || pass_word(json);
}

/* Behind the brace or comma of an object comes a key. */
static bool pass_key(struct json *json)
{
	struct span key;
	return json_take_string(json, &key) && json_take(json, ':');
}

bool json_pass(struct json *json)
{
	char ends[DEEPEST]; /* the bracket that ends each value that has begun */
	unsigned depth = 0;
	do {
		if (depth < DEEPEST && (is_next(json, '{') || is_next(json, '['))) {
			const char end = ends[depth++] = *json->at++ == '{' ? '}' : ']';
			if (!is_next(json, end)) {
				if (end == '}' && !pass_key(json))
					return false;
				continue;
			}
		} else if (!pass_plain(json))
			return false;
		while (depth > 0 && json_take(json, ends[depth - 1]))
			depth--;
		if (depth > 0 && (!json_take(json, ',') || (ends[depth - 1] == '}' && !pass_key(json))))
			return false;
	} while (depth > 0);
	return true;
}
