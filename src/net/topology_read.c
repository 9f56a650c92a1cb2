/* Networks from files: finds out which format it is, and reads HPCC's two.
 *
 * CSV has node_a,node_b,gbps,delay_ns on each line, below a line with these names. HPCC's original text has the numbers
 * of nodes, switches and links, then the switches, then each link as "a b 100Gbps 0.001ms 0"; the last number, which
 * may be missing, is the share of packets that are lost on the link. In both formats endpoints have the lowest numbers,
 * by which flow lists name them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "net/clos.h"
#include "net/topology_edges.h"
#include "net/topology_text.h"
#include "net/why.h"

/* ---- CSV --------------------------------------------------------------------------------------------------------- */

static int read_csv_line(const struct text *text, struct span line, struct edges *edges)
{
	struct edge edge = { 0 };
	struct span gbps, delay;
	uint64_t ps = 0;
	if (!edges_take_node(&line, ',', CLOS_MOST_NODES, &edge.a) ||
		!edges_take_node(&line, ',', CLOS_MOST_NODES, &edge.b) || !span_take(&line, ',', &gbps) ||
		!span_take(&line, ',', &delay) || line.length)
		return text_wrong(text, "expected node,node,Gb/s,ns with nodes below %d", CLOS_MOST_NODES);
	if (!span_decimal(gbps, 1000000000, INT64_MAX, &edge.bits_per_second))
		return text_wrong(text, "%.*s is no rate in Gb/s", SPAN(gbps));
	if (!span_decimal(delay, VB_NS, EDGES_MOST_DELAY, &ps))
		return text_wrong(text, "%.*s is no delay in ns", SPAN(delay));
	edge.delay = (vb_time)ps;
	uint32_t last = edge.a > edge.b ? edge.a : edge.b;
	if (edges->nodes <= last)
		edges->nodes = last + 1;
	return edges_add(edges, text, &edge);
}

/* Endpoints are the nodes before the first with more than one link. */
static int count_endpoints(const struct text *text, struct edges *edges)
{
	uint32_t *degrees = calloc((size_t)edges->nodes + 1, sizeof(*degrees));
	if (!degrees)
		return -ENOMEM;
	for (uint32_t i = 0; i < edges->count; i++) {
		degrees[edges->all[i].a]++;
		degrees[edges->all[i].b]++;
	}
	while (degrees[edges->endpoints] == 1)
		edges->endpoints++;
	uint32_t lonely = edges->endpoints;
	while (lonely < edges->nodes && degrees[lonely] > 0)
		lonely++;
	free(degrees);
	if (lonely < edges->nodes)
		return why_not(text->why, text->why_size, "%s: node %u has no link", text->name, lonely);
	return 0;
}

static int read_csv(struct text *text, struct edges *edges)
{
	struct span line;
	for (bool is_first = true; text_next(text, '#', &line); is_first = false) {
		int is_columns = is_first ? text_is_columns(text, line, "node_a,node_b,gbps,delay_ns") : 0;
		if (is_columns > 0)
			continue;
		int error = is_columns ? is_columns : read_csv_line(text, line, edges);
		if (error)
			return error;
	}
	return count_endpoints(text, edges);
}

/* ---- HPCC's text ------------------------------------------------------------------------------------------------- */

static int read_switches(struct text *text, struct edges *edges, uint32_t count)
{
	bool *seen = calloc(edges->nodes, sizeof(*seen));
	int error = seen ? 0 : -ENOMEM;
	struct span line = { 0 };
	for (uint32_t i = 0; i < count && !error; i++) {
		uint32_t node;
		if (!line.length && !text_next(text, '#', &line))
			error = text_wrong(text, "%u of %u switches are wanting", count - i, count);
		else if (!edges_take_node(&line, 0, edges->nodes, &node) || node < edges->endpoints)
			error = text_wrong(text,
				"switches have the highest numbers, %u to %u, as endpoints are counted from 0",
				edges->endpoints, edges->nodes - 1);
		else if (seen[node])
			error = text_wrong(text, "switch %u twice", node);
		else
			seen[node] = true;
	}
	free(seen);
	if (!error && line.length)
		error = text_wrong(text, "more switches than the %u of the first line", count);
	return error;
}

/* Each endpoint has one link, as in the CSV. */
static int check_endpoints(struct text *text, const struct edges *edges)
{
	bool *seen = calloc((size_t)edges->endpoints + 1, sizeof(*seen));
	int error = seen ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < edges->count && !error; i++) {
		const uint32_t ends[2] = { edges->all[i].a, edges->all[i].b };
		for (int j = 0; j < 2 && !error; j++) {
			if (ends[j] >= edges->endpoints)
				continue;
			text->line = edges->all[i].line;
			if (seen[ends[j]])
				error = text_wrong(text, "another link of endpoint %u, which may have one", ends[j]);
			seen[ends[j]] = true;
		}
	}
	free(seen);
	return error;
}

static int read_hpcc(struct text *text, struct edges *edges)
{
	struct span line, word;
	uint64_t counts[3]; /* nodes, switches, links */
	text_next(text, '#', &line);
	for (int i = 0; i < 3; i++)
		if (!span_take(&line, 0, &word) ||
			!span_number(word, i < 2 ? CLOS_MOST_NODES : CLOS_MOST_LINKS, &counts[i]))
			return text_wrong(text, "expected the numbers of nodes, switches and links");
	if (line.length || counts[0] == 0 || counts[1] > counts[0])
		return text_wrong(text, "expected the numbers of nodes, switches and links");
	edges->nodes = (uint32_t)counts[0];
	edges->endpoints = (uint32_t)(counts[0] - counts[1]);
	int error = read_switches(text, edges, (uint32_t)counts[1]);
	while (!error && edges->count < counts[2]) /* HPCC's own reader ignores what follows, too */
		error = text_next(text, '#', &line) ? edges_read_link(edges, text, line)
						    : text_wrong(text, "%u links, yet the first line says %u",
							      edges->count, (uint32_t)counts[2]);
	return error ? error : check_endpoints(text, edges);
}

/* ---- All --------------------------------------------------------------------------------------------------------- */

static int read_graph(struct text *text, bool is_csv, const struct topology *like, struct network *network)
{
	struct edges edges = { 0 };
	int error = is_csv ? read_csv(text, &edges) : read_hpcc(text, &edges);
	if (!error)
		error = edges_build(&edges, text, like, network);
	free(edges.all);
	return error;
}

static uint32_t words_of(struct span line)
{
	struct span word;
	uint32_t words = 0;
	while (span_take(&line, 0, &word))
		words++;
	return words;
}

/* By the first line: with commas it is CSV; HPCC's text begins with three numbers, SimAI's with more. */
int topology_read_text(struct text *text, const struct topology *like, struct network *network, struct hosts *hosts)
{
	*hosts = (struct hosts){ 0 };
	struct text ahead = *text;
	struct span line;
	if (!text_next(&ahead, '#', &line))
		return why_not(text->why, text->why_size, "%s: an empty file", text->name);
	bool is_csv = memchr(line.at, ',', line.length), is_number = *line.at >= '0' && *line.at <= '9';
	bool is_simai = is_number && !is_csv && words_of(line) > 3;
	int error = is_simai              ? topology_read_simai(text, like, network, hosts)
		    : is_csv || is_number ? read_graph(text, is_csv, like, network)
					  : topology_read_htsim(text, like, network);
	if (error)
		network_free(network);
	return error;
}

int topology_read(const char *path, const struct topology *like, struct network *network, struct hosts *hosts,
	char *why, unsigned why_size)
{
	struct text text;
	int error = text_open(&text, path, why, why_size);
	if (error)
		return error;
	error = topology_read_text(&text, like, network, hosts);
	text_close(&text);
	return error;
}
