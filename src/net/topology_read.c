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
#include "net/grow.h"
#include "net/topology_pods.h"
#include "net/topology_text.h"
#include "net/why.h"

struct edge {
	uint32_t a, b;
	uint64_t bits_per_second;
	vb_time delay;
	uint32_t loss_ppm;
	uint32_t line; /* of the file */
};

struct graph {
	struct edge *edges;
	uint32_t count, room;
	uint32_t nodes, endpoints;
};

#define MOST_DELAY ((uint64_t)VB_HORIZON)

static int add_edge(struct graph *graph, const struct text *text, const struct edge *edge)
{
	if (edge->bits_per_second == 0)
		return text_wrong(text, "a link without a rate");
	if (graph->count == CLOS_MOST_LINKS)
		return text_wrong(text, "more than %d links", CLOS_MOST_LINKS);
	if (!grow_by_one(&graph->edges, &graph->room, graph->count, sizeof(*graph->edges)))
		return -ENOMEM;
	if (edge->a == edge->b)
		return text_wrong(text, "a link from node %u to itself", edge->a);
	graph->edges[graph->count] = *edge;
	graph->edges[graph->count++].line = text->line;
	return 0;
}

static bool take_node(struct span *line, char separator, uint32_t nodes, uint32_t *node)
{
	struct span word;
	uint64_t number;
	if (!span_take(line, separator, &word) || !span_number(word, (uint64_t)nodes - 1, &number))
		return false;
	*node = (uint32_t)number;
	return true;
}

/* ---- CSV --------------------------------------------------------------------------------------------------------- */

static int read_csv_line(const struct text *text, struct span line, struct graph *graph)
{
	struct edge edge = { 0 };
	struct span gbps, delay;
	uint64_t ps = 0;
	if (!take_node(&line, ',', CLOS_MOST_NODES, &edge.a) || !take_node(&line, ',', CLOS_MOST_NODES, &edge.b) ||
		!span_take(&line, ',', &gbps) || !span_take(&line, ',', &delay) || line.length)
		return text_wrong(text, "expected node,node,Gb/s,ns with nodes below %d", CLOS_MOST_NODES);
	if (!span_decimal(gbps, 1000000000, INT64_MAX, &edge.bits_per_second))
		return text_wrong(text, "%.*s is no rate in Gb/s", SPAN(gbps));
	if (!span_decimal(delay, VB_NS, MOST_DELAY, &ps))
		return text_wrong(text, "%.*s is no delay in ns", SPAN(delay));
	edge.delay = (vb_time)ps;
	uint32_t last = edge.a > edge.b ? edge.a : edge.b;
	if (graph->nodes <= last)
		graph->nodes = last + 1;
	return add_edge(graph, text, &edge);
}

/* Endpoints are the nodes before the first with more than one link. */
static int count_endpoints(const struct text *text, struct graph *graph)
{
	uint32_t *degrees = calloc((size_t)graph->nodes + 1, sizeof(*degrees));
	if (!degrees)
		return -ENOMEM;
	for (uint32_t i = 0; i < graph->count; i++) {
		degrees[graph->edges[i].a]++;
		degrees[graph->edges[i].b]++;
	}
	while (degrees[graph->endpoints] == 1)
		graph->endpoints++;
	uint32_t lonely = graph->endpoints;
	while (lonely < graph->nodes && degrees[lonely] > 0)
		lonely++;
	free(degrees);
	if (lonely < graph->nodes)
		return why_not(text->why, text->why_size, "%s: node %u has no link", text->name, lonely);
	return 0;
}

static int read_csv(struct text *text, struct graph *graph)
{
	struct span line;
	for (bool is_first = true; text_next(text, '#', &line); is_first = false) {
		int is_columns = is_first ? text_is_columns(text, line, "node_a,node_b,gbps,delay_ns") : 0;
		if (is_columns > 0)
			continue;
		int error = is_columns ? is_columns : read_csv_line(text, line, graph);
		if (error)
			return error;
	}
	return count_endpoints(text, graph);
}

/* ---- HPCC's text ------------------------------------------------------------------------------------------------- */

static int read_switches(struct text *text, struct graph *graph, uint32_t count)
{
	bool *seen = calloc(graph->nodes, sizeof(*seen));
	int error = seen ? 0 : -ENOMEM;
	struct span line = { 0 };
	for (uint32_t i = 0; i < count && !error; i++) {
		uint32_t node;
		if (!line.length && !text_next(text, '#', &line))
			error = text_wrong(text, "%u of %u switches are wanting", count - i, count);
		else if (!take_node(&line, 0, graph->nodes, &node) || node < graph->endpoints)
			error = text_wrong(text,
				"switches have the highest numbers, %u to %u, as endpoints are counted from 0",
				graph->endpoints, graph->nodes - 1);
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

static int read_hpcc_link(const struct text *text, struct span line, struct graph *graph)
{
	struct edge edge = { 0 };
	struct span rate, delay, loss = { .at = "0", .length = 1 };
	uint64_t ps = 0, ppm;
	if (!take_node(&line, 0, graph->nodes, &edge.a) || !take_node(&line, 0, graph->nodes, &edge.b) ||
		!span_take(&line, 0, &rate) || !span_take(&line, 0, &delay))
		return text_wrong(text, "expected \"node node rate delay loss\" with nodes below %u", graph->nodes);
	span_take(&line, 0, &loss);
	if (!span_rate(rate, &edge.bits_per_second))
		return text_wrong(text, "%.*s is no rate as 100Gbps", SPAN(rate));
	if (!span_time(delay, MOST_DELAY, &ps))
		return text_wrong(text, "%.*s is no delay as 0.001ms or 1us", SPAN(delay));
	if (!span_decimal(loss, 1000000, 1000000, &ppm) || line.length)
		return text_wrong(
			text, "%.*s is no share of lost packets from 0 to 1, of whole millionths", SPAN(loss));
	edge.delay = (vb_time)ps;
	edge.loss_ppm = (uint32_t)ppm;
	return add_edge(graph, text, &edge);
}

/* Each endpoint has one link, as in the CSV. */
static int check_endpoints(struct text *text, const struct graph *graph)
{
	bool *seen = calloc((size_t)graph->endpoints + 1, sizeof(*seen));
	int error = seen ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < graph->count && !error; i++) {
		const uint32_t ends[2] = { graph->edges[i].a, graph->edges[i].b };
		for (int j = 0; j < 2 && !error; j++) {
			if (ends[j] >= graph->endpoints)
				continue;
			text->line = graph->edges[i].line;
			if (seen[ends[j]])
				error = text_wrong(text, "another link of endpoint %u, which may have one", ends[j]);
			seen[ends[j]] = true;
		}
	}
	free(seen);
	return error;
}

static int read_hpcc(struct text *text, struct graph *graph)
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
	graph->nodes = (uint32_t)counts[0];
	graph->endpoints = (uint32_t)(counts[0] - counts[1]);
	int error = read_switches(text, graph, (uint32_t)counts[1]);
	while (!error && graph->count < counts[2]) /* HPCC's own reader ignores what follows, too */
		error = text_next(text, '#', &line) ? read_hpcc_link(text, line, graph)
						    : text_wrong(text, "%u links, yet the first line says %u",
							      graph->count, (uint32_t)counts[2]);
	return error ? error : check_endpoints(text, graph);
}

/* ---- All --------------------------------------------------------------------------------------------------------- */

static network_node node_of(const struct graph *graph, uint32_t number)
{
	return number < graph->endpoints ? number : network_switch_node(number - graph->endpoints);
}

static int build(
	const struct graph *graph, const struct text *text, const struct topology *like, struct network *network)
{
	uint32_t profile = network_add_profile(network, &like->profile), nic = network_add_nic(network, &like->nic);
	for (uint32_t i = 0; i < graph->endpoints; i++)
		network_add_endpoint(network, i, nic);
	for (uint32_t i = graph->endpoints; i < graph->nodes; i++)
		network_add_switch(network, profile, 0, NETWORK_NONE);
	for (uint32_t i = 0; i < graph->count; i++) {
		const struct edge *edge = &graph->edges[i];
		uint32_t link = network_connect(
			network, node_of(graph, edge->a), node_of(graph, edge->b), edge->bits_per_second, edge->delay);
		if (edge->loss_ppm && link != NETWORK_NONE)
			network_set_fault(network, link, &(struct network_fault){ .loss_ppm = edge->loss_ppm });
	}
	char what[160] = "";
	int error = network_finish(network, what, sizeof(what));
	if (error == -EINVAL)
		why_not(text->why, text->why_size, "%s: %s", text->name, what);
	return error ? error : topology_find_pods(network);
}

static int read_graph(struct text *text, bool is_csv, const struct topology *like, struct network *network)
{
	struct graph graph = { 0 };
	int error = is_csv ? read_csv(text, &graph) : read_hpcc(text, &graph);
	if (!error)
		error = build(&graph, text, like, network);
	free(graph.edges);
	return error;
}

/* By the first line: with commas it is CSV; HPCC's text begins with a number. */
int topology_read_text(struct text *text, const struct topology *like, struct network *network)
{
	struct text ahead = *text;
	struct span line;
	if (!text_next(&ahead, '#', &line))
		return why_not(text->why, text->why_size, "%s: an empty file", text->name);
	bool is_csv = memchr(line.at, ',', line.length), is_number = *line.at >= '0' && *line.at <= '9';
	int error = is_csv || is_number ? read_graph(text, is_csv, like, network)
					: topology_read_htsim(text, like, network);
	if (error)
		network_free(network);
	return error;
}

int topology_read(const char *path, const struct topology *like, struct network *network, char *why, unsigned why_size)
{
	struct text text;
	int error = text_open(&text, path, why, why_size);
	if (error)
		return error;
	error = topology_read_text(&text, like, network);
	text_close(&text);
	return error;
}
