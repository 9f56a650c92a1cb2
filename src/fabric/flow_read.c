/* Flows from files: which format it is, and HPCC's two.
 *
 * As CSV: src,dst,bytes,start_ns on each line, under a line that says so. The original text: how many there are, then
 * "src dst pg dport bytes start_s" of each; pg is the traffic class. */
#include <string.h>
#include "fabric/flow_text.h"
#include "fabric/profile.h"
#include "fabric/why.h"
#include "fabric/workloads.h"

int flow_list_add_read(struct flow_list *list, const struct text *text, const struct flow *flow, uint32_t endpoints)
{
	if (flow->src >= endpoints || flow->dst >= endpoints)
		return text_wrong(text, "endpoint %u, yet the network's are 0 to %u",
			flow->src < endpoints ? flow->dst : flow->src, endpoints - 1);
	if (flow->src == flow->dst)
		return text_wrong(text, "a flow from endpoint %u to itself", flow->src);
	if (flow->bytes == 0)
		return text_wrong(text, "a flow of no bytes");
	return flow_list_add(list, flow);
}

/* The next word as a number of 32 bits. */
static bool take_u32(struct span *line, char separator, uint32_t max, uint32_t *number)
{
	struct span word;
	uint64_t wide;
	if (!span_take(line, separator, &word) || !span_number(word, max, &wide))
		return false;
	*number = (uint32_t)wide;
	return true;
}

static bool take_decimal(struct span *line, char separator, uint64_t unit, uint64_t max, uint64_t *count)
{
	struct span word;
	return span_take(line, separator, &word) && span_decimal(word, unit, max, count);
}

static int read_csv(struct flow_list *list, struct text *text, uint32_t endpoints)
{
	struct span line;
	for (bool is_first = true; text_next(text, '#', &line); is_first = false) {
		if (is_first && memchr("0123456789", *line.at, 10) == NULL)
			continue; /* what the columns are called */
		struct flow flow = { .after = FLOW_NONE };
		uint64_t start;
		if (!take_u32(&line, ',', UINT32_MAX, &flow.src) || !take_u32(&line, ',', UINT32_MAX, &flow.dst) ||
			!take_decimal(&line, ',', 1, FLOW_MOST_BYTES, &flow.bytes) ||
			!take_decimal(&line, ',', VB_NS, VB_HORIZON, &start) || line.length)
			return text_wrong(text, "expected src,dst,bytes,start in ns");
		flow.start = (vb_time)start;
		int error = flow_list_add_read(list, text, &flow, endpoints);
		if (error)
			return error;
	}
	return 0;
}

static int read_hpcc(struct flow_list *list, struct text *text, uint32_t endpoints)
{
	struct span line;
	uint32_t count, seen = 0;
	text_next(text, '#', &line);
	if (!take_u32(&line, 0, UINT32_MAX, &count) || line.length)
		return text_wrong(text, "expected the number of flows, or \"src,dst,bytes,start\"");
	for (; text_next(text, '#', &line); seen++) {
		struct flow flow = { .after = FLOW_NONE };
		uint64_t start;
		uint32_t class, port;
		if (!take_u32(&line, 0, UINT32_MAX, &flow.src) || !take_u32(&line, 0, UINT32_MAX, &flow.dst) ||
			!take_u32(&line, 0, FABRIC_CLASSES - 1, &class) || !take_u32(&line, 0, UINT16_MAX, &port) ||
			!take_decimal(&line, 0, 1, FLOW_MOST_BYTES, &flow.bytes) ||
			!take_decimal(&line, 0, VB_S, VB_HORIZON, &start) || line.length)
			return text_wrong(text, "expected \"src dst class port bytes start\", the start in s");
		flow.start = (vb_time)start;
		flow.traffic_class = (uint8_t) class;
		int error = flow_list_add_read(list, text, &flow, endpoints);
		if (error)
			return error;
	}
	return seen == count ? 0 : text_wrong(text, "%u flows, yet the first line says %u", seen, count);
}

/* By its first line: one with commas is CSV, one that begins with a number and has no arrow HPCC's. */
int flow_list_read_text(struct flow_list *list, struct text *text, uint32_t endpoints)
{
	struct text ahead = *text;
	struct span line;
	uint32_t before = list->count;
	if (!text_next(&ahead, '#', &line))
		return why_not(text->why, text->why_size, "%s: an empty file", text->name);
	bool is_number = *line.at >= '0' && *line.at <= '9';
	int error = memchr(line.at, ',', line.length)                 ? read_csv(list, text, endpoints)
		    : is_number && !memchr(line.at, '>', line.length) ? read_hpcc(list, text, endpoints)
								      : flow_list_read_htsim(list, text, endpoints);
	if (error)
		list->count = before;
	return error;
}

int flow_list_read(struct flow_list *list, const char *path, uint32_t endpoints, char *why, unsigned why_size)
{
	struct text text;
	int error = text_open(&text, path, why, why_size);
	if (error)
		return error;
	error = flow_list_read_text(list, &text, endpoints);
	text_close(&text);
	return error;
}
