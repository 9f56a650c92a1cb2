/* Flows from files: finds out which format it is, and reads HPCC's two.
 *
 * CSV has src,dst,bytes,start_ns on each line, below a line with these names. HPCC's original text has the number of
 * flows, then "src dst pg dport bytes start_s" for each; pg is the traffic class. Flows need not be sorted by start. */
#include <string.h>
#include "net/flow_text.h"
#include "net/profile.h"
#include "net/why.h"
#include "net/workloads.h"

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

/* The next word, as a number of 32 bits. */
static int take_u32(
	const struct text *text, struct span *line, char separator, uint32_t max, const char *what, uint32_t *number)
{
	struct span word = { .at = "", .length = 0 };
	uint64_t wide;
	if (!span_take(line, separator, &word) || !span_number(word, max, &wide))
		return text_wrong(text, "'%.*s' is no %s", SPAN(word), what);
	*number = (uint32_t)wide;
	return 0;
}

static int take_bytes(const struct text *text, struct span *line, char separator, uint64_t *bytes)
{
	struct span word = { .at = "", .length = 0 };
	if (!span_take(line, separator, &word) || !span_number(word, FLOW_MOST_BYTES, bytes))
		return text_wrong(text, "'%.*s' is no number of bytes up to 2^44", SPAN(word));
	return 0;
}

/* unit: the file's unit of time, in ps. */
static int take_start(const struct text *text, struct span *line, char separator, vb_time unit, vb_time *start)
{
	struct span word = { .at = "", .length = 0 };
	uint64_t ps;
	if (!span_take(line, separator, &word) || !span_decimal(word, (uint64_t)unit, VB_HORIZON, &ps))
		return text_wrong(text, "'%.*s' is no start in %s, of whole ps up to %d h", SPAN(word),
			unit == VB_S ? "s" : "ns", (int)(VB_HORIZON / (3600 * VB_S)));
	*start = (vb_time)ps;
	return 0;
}

static int read_csv_flow(const struct text *text, struct span line, struct flow *flow)
{
	int error = take_u32(text, &line, ',', UINT32_MAX, "source", &flow->src);
	if (!error)
		error = take_u32(text, &line, ',', UINT32_MAX, "destination", &flow->dst);
	if (!error)
		error = take_bytes(text, &line, ',', &flow->bytes);
	if (!error)
		error = take_start(text, &line, ',', VB_NS, &flow->start);
	return error || !line.length ? error : text_wrong(text, "expected src,dst,bytes,start in ns, and no more");
}

static int read_csv(struct flow_list *list, struct text *text, uint32_t endpoints)
{
	struct span line;
	for (bool is_first = true; text_next(text, '#', &line); is_first = false) {
		int is_columns = is_first ? text_is_columns(text, line, "src,dst,bytes,start_ns") : 0;
		if (is_columns > 0)
			continue;
		struct flow flow = { 0 };
		int error = is_columns ? is_columns : read_csv_flow(text, line, &flow);
		if (!error)
			error = flow_list_add_read(list, text, &flow, endpoints);
		if (error)
			return error;
	}
	return 0;
}

static int read_hpcc_flow(const struct text *text, struct span line, struct flow *flow)
{
	uint32_t class = 0, port;
	int error = take_u32(text, &line, 0, UINT32_MAX, "source", &flow->src);
	if (!error)
		error = take_u32(text, &line, 0, UINT32_MAX, "destination", &flow->dst);
	if (!error)
		error = take_u32(text, &line, 0, FABRIC_CLASSES - 1, "traffic class from 0 to 7", &class);
	if (!error)
		error = take_u32(text, &line, 0, UINT16_MAX, "port", &port);
	if (!error)
		error = take_bytes(text, &line, 0, &flow->bytes);
	if (!error)
		error = take_start(text, &line, 0, VB_S, &flow->start);
	if (!error)
		flow->traffic_class = (uint8_t) class;
	return error || !line.length ? error
				     : text_wrong(text, "expected \"src dst class port bytes start\", and no more");
}

/* Reads as many flows as the first line says. Text after them is ignored, as HPCC's own reader ignores it: files have
 * an explanation of the format there. */
static int read_hpcc(struct flow_list *list, struct text *text, uint32_t endpoints)
{
	struct span line, word;
	uint64_t count;
	text_next(text, '#', &line);
	if (!span_take(&line, 0, &word) || !span_number(word, UINT32_MAX, &count) || line.length)
		return text_wrong(text, "expected the number of flows, or \"src,dst,bytes,start\"");
	for (uint64_t seen = 0; seen < count; seen++) {
		struct flow flow = { 0 };
		if (!text_next(text, '#', &line))
			return text_wrong(
				text, "%u flows, yet the first line says %u", (unsigned)seen, (unsigned)count);
		int error = read_hpcc_flow(text, line, &flow);
		if (!error)
			error = flow_list_add_read(list, text, &flow, endpoints);
		if (error)
			return error;
	}
	return 0;
}

/* By the first line: with commas it is CSV; HPCC's text begins with a number and has no arrow. */
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
		flow_list_cut(list, before);
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
