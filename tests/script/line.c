/* One line of a script: an optional time, then words and key=value options. Asking for a token marks it used, so that a
 * misspelt one is an error and not silently nothing. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "script.h"

void fail(const struct line *line, const char *format, ...)
{
	va_list arguments;
	fprintf(stderr, "%s:%d: %s\n    ", line->file, line->number, line->text);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\n");
	exit(1);
}

const char *show_time(vb_time time)
{
	static char buffers[8][40];
	static unsigned next;
	char *out = buffers[next++ % 8];
	if (time % VB_MS == 0 && time != 0)
		snprintf(out, sizeof(buffers[0]), "%lldms", (long long)(time / VB_MS));
	else
		snprintf(out, sizeof(buffers[0]), "%.6gus", (double)time / (double)VB_US);
	return out;
}

vb_time parse_time(struct line *line, const char *text, char **end)
{
	double value = strtod(text, end);
	if (*end == text)
		fail(line, "'%s' is not a time", text);
	static const struct {
		const char *unit;
		vb_time span;
	} units[] = { { "ns", VB_NS }, { "us", VB_US }, { "ms", VB_MS }, { "s", VB_S }, { "d", 86400 * VB_S } };
	for (unsigned i = 0; i < 5; i++) {
		size_t n = strlen(units[i].unit);
		if (strncmp(*end, units[i].unit, n) == 0) {
			*end += n;
			return (vb_time)(value * (double)units[i].span + 0.5);
		}
	}
	if (value == 0)
		return 0;
	fail(line, "'%s' needs a unit: ns, us, ms, s or d", text);
}

static char *parse_line_time(struct line *line, char *at)
{
	char *end;
	line->has_time = true;
	line->earliest = line->latest = parse_time(line, at + 1, &end);
	if (strncmp(end, "..", 2) == 0)
		line->latest = parse_time(line, end + 2, &end);
	return end;
}

void line_parse(struct line *line, const char *text)
{
	line->token_count = 0;
	line->has_time = false;
	line->earliest = line->latest = 0;
	snprintf(line->text, sizeof(line->text), "%s", text);
	line->text[strcspn(line->text, "\r\n")] = 0;
	snprintf(line->buffer, sizeof(line->buffer), "%s", line->text);
	line->buffer[strcspn(line->buffer, "#")] = 0;
	char *at = line->buffer;
	at += strspn(at, " \t");
	if (*at == '+')
		at = parse_line_time(line, at);
	for (char *token = strtok(at, " \t"); token; token = strtok(NULL, " \t")) {
		if (line->token_count == MAX_TOKENS)
			fail(line, "too many words");
		char *equals = strchr(token, '=');
		if (equals)
			*equals++ = 0;
		line->tokens[line->token_count++] = (struct token){ .key = token, .value = equals };
	}
}

const char *line_word(struct line *line)
{
	for (int i = 0; i < line->token_count; i++) {
		struct token *token = &line->tokens[i];
		if (!token->value && !token->is_used) {
			token->is_used = true;
			return token->key;
		}
	}
	return NULL;
}

bool line_flag(struct line *line, const char *word)
{
	for (int i = 0; i < line->token_count; i++) {
		struct token *token = &line->tokens[i];
		if (!token->value && strcmp(token->key, word) == 0) {
			token->is_used = true;
			return true;
		}
	}
	return false;
}

bool line_has(const struct line *line, const char *key)
{
	for (int i = 0; i < line->token_count; i++)
		if (line->tokens[i].value && strcmp(line->tokens[i].key, key) == 0)
			return true;
	return false;
}

const char *line_text(struct line *line, const char *key)
{
	for (int i = 0; i < line->token_count; i++) {
		struct token *token = &line->tokens[i];
		if (token->value && strcmp(token->key, key) == 0) {
			token->is_used = true;
			return token->value;
		}
	}
	return NULL;
}

uint64_t parse_number(struct line *line, const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 0);
	if (end != text && strcmp(end, "K") == 0)
		return value << 10;
	if (end != text && strcmp(end, "M") == 0)
		return value << 20;
	if (end == text || *end)
		fail(line, "'%s' is not a number", text);
	return value;
}

uint64_t line_number(struct line *line, const char *key, uint64_t fallback)
{
	const char *text = line_text(line, key);
	return text ? parse_number(line, text) : fallback;
}

vb_time line_time(struct line *line, const char *key, vb_time fallback)
{
	const char *text = line_text(line, key);
	char *end;
	return text ? parse_time(line, text, &end) : fallback;
}

void line_end(struct line *line)
{
	for (int i = 0; i < line->token_count; i++)
		if (!line->tokens[i].is_used)
			fail(line, "'%s' means nothing here", line->tokens[i].key);
}
