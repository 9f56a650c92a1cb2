/* See inference_requests.h. */
#include "net/inference_requests.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include "base/random.h"
#include "net/chance.h"
#include "net/grow.h"
#include "net/json_text.h"

enum { MOST_TOKENS = 100000000 };

/* A run ends by then. */
#define MOST_TIME ((vb_time)40 * 86400 * VB_S)
#define DAY_PS    ((vb_time)86400 * VB_S)

/* As a line has it; the time from a beginning of the file's own. */
struct line {
	__int128 time;
	uint64_t input, output;
};

/* ---- CSV --------------------------------------------------------------------------------------------------------- */

/* Days since the first of March of year 0 (Gregorian). */
static int64_t days_of(uint64_t year, uint64_t month, uint64_t day)
{
	const uint64_t y = month > 2 ? year : year - 1, m = (month + 9) % 12;
	return (int64_t)(365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1);
}

/* A part up to a character, which is passed; 0: all that is left. */
static bool take_part(struct span *from, char until, uint64_t most, uint64_t unit, uint64_t *number)
{
	size_t length = 0;
	while (length < from->length && from->at[length] != until)
		length++;
	const bool has_end = until == 0 || length < from->length;
	const struct span part = { from->at, length };
	from->at += length + (until != 0 && has_end);
	from->length -= length + (until != 0 && has_end);
	return has_end && (unit > 1 ? span_decimal(part, unit, most, number) : span_number(part, most, number));
}

/* 2023-11-16 18:15:46.6805900 */
static bool take_time(struct span date, struct span clock, __int128 *time)
{
	uint64_t year, month, day, hour, minute, ps;
	if (!take_part(&date, '-', 9999, 1, &year) || !take_part(&date, '-', 12, 1, &month) ||
		!take_part(&date, 0, 31, 1, &day) || !take_part(&clock, ':', 23, 1, &hour) ||
		!take_part(&clock, ':', 59, 1, &minute) || !take_part(&clock, 0, 61 * VB_S, VB_S, &ps))
		return false;
	if (!year || !month || !day)
		return false;
	*time = (__int128)days_of(year, month, day) * DAY_PS + (__int128)(hour * 3600 + minute * 60) * VB_S + ps;
	return true;
}

static bool read_csv(struct span text, struct line *line)
{
	struct span date, clock, input, output, rest;
	if (!span_take(&text, ',', &date) || !span_take(&text, ',', &clock) || !span_take(&text, ',', &input) ||
		!span_take(&text, ',', &output) || span_take(&text, ',', &rest))
		return false;
	return take_time(date, clock, &line->time) && span_number(input, MOST_TOKENS, &line->input) &&
	       span_number(output, MOST_TOKENS, &line->output);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static bool read_member(struct json *json, struct line *line, unsigned *seen)
{
	struct span name;
	uint64_t ms;
	if (!json_take_string(json, &name) || !json_take(json, ':'))
		return false;
	if (span_is(name, "timestamp")) {
		*seen |= 1;
		if (!json_take_number(json, MOST_TIME / VB_MS, &ms))
			return false;
		line->time = (__int128)ms * VB_MS;
		return true;
	}
	if (span_is(name, "input_length")) {
		*seen |= 2;
		return json_take_number(json, MOST_TOKENS, &line->input);
	}
	if (span_is(name, "output_length")) {
		*seen |= 4;
		return json_take_number(json, MOST_TOKENS, &line->output);
	}
	return json_pass(json);
}

static bool read_json(struct span text, struct line *line)
{
	struct json json = { text.at, text.at + text.length };
	unsigned seen = 0;
	if (!json_take(&json, '{'))
		return false;
	do
		if (!read_member(&json, line, &seen))
			return false;
	while (json_take(&json, ','));
	return seen == 7 && json_take(&json, '}') && json_is_end(&json);
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

static int add(struct inference_requests *requests, const struct inference_request *request)
{
	if (!grow_by_one(&requests->list, &requests->room, requests->count, sizeof(*requests->list)))
		return -ENOMEM;
	requests->list[requests->count++] = *request;
	return 0;
}

static int add_line(
	struct inference_requests *requests, const struct text *text, const struct line *line, __int128 first)
{
	const __int128 at = line->time - first;
	const vb_time before = requests->count ? requests->list[requests->count - 1].arrival : 0;
	if (at < before)
		return text_wrong(text, "this request comes before the one above; sort them by time");
	if (at > MOST_TIME)
		return text_wrong(text, "more than 40 days after the first request");
	if (!line->input)
		return text_wrong(text, "a request without tokens; leave it out");
	return add(requests, &(struct inference_request){ .arrival = (vb_time)at,
				     .input = (uint32_t)line->input,
				     .output = line->output ? (uint32_t)line->output : 1 });
}

int inference_requests_read_text(struct inference_requests *requests, struct text *text, uint32_t most)
{
	struct span line;
	__int128 first = 0;
	*requests = (struct inference_requests){ 0 };
	int rc = 0;
	for (bool is_first = true; !rc && (!most || requests->count < most) && text_next(text, '#', &line);
		is_first = false) {
		struct line is = { 0 };
		const bool is_json = *line.at == '{';
		if (is_first && !is_json && text_is_columns(text, line, "TIMESTAMP,ContextTokens,GeneratedTokens") == 1)
			continue;
		if (!(is_json ? read_json : read_csv)(line, &is))
			return text_wrong(text,
				"no request; write TIMESTAMP,ContextTokens,GeneratedTokens, such as 2023-11-16 "
				"18:15:46.68,374,44, or {\"timestamp\": ms, \"input_length\": ..., \"output_length\": "
				"...}");
		if (!requests->count)
			first = is.time;
		rc = add_line(requests, text, &is, first);
	}
	return !rc && !requests->count ? text_wrong(text, "the file has no requests") : rc;
}

int inference_requests_read(
	struct inference_requests *requests, const char *path, uint32_t most, char *why, unsigned why_size)
{
	struct text text;
	*requests = (struct inference_requests){ 0 };
	int rc = text_open(&text, path, why, why_size);
	if (rc)
		return rc;
	rc = inference_requests_read_text(requests, &text, most);
	text_close(&text);
	return rc;
}

int inference_requests_make(struct inference_requests *requests, uint32_t count, vb_time gap, uint32_t input,
	uint32_t output, uint64_t seed)
{
	struct vb_random random;
	vb_time at = 0;
	int rc = 0;
	vb_random_seed(&random, seed);
	*requests = (struct inference_requests){ 0 };
	for (uint32_t i = 0; !rc && i < count; i++) {
		rc = add(requests, &(struct inference_request){ .arrival = at, .input = input, .output = output });
		at += (vb_time)((unsigned __int128)gap * chance_exponential(vb_random_u64(&random)) >> 32);
	}
	return rc;
}

void inference_requests_free(struct inference_requests *requests)
{
	free(requests->list);
	*requests = (struct inference_requests){ 0 };
}
