/* Reads links, and makes a network of them. */
#include "net/topology_edges.h"
#include <errno.h>
#include "net/clos.h"
#include "net/grow.h"
#include "net/topology_pods.h"
#include "net/why.h"

int edges_add(struct edges *edges, const struct text *text, const struct edge *edge)
{
	if (edge->bits_per_second == 0)
		return text_wrong(text, "a link without a rate");
	if (edges->count == CLOS_MOST_LINKS)
		return text_wrong(text, "more than %d links", CLOS_MOST_LINKS);
	if (!grow_by_one(&edges->all, &edges->room, edges->count, sizeof(*edges->all)))
		return -ENOMEM;
	if (edge->a == edge->b)
		return text_wrong(text, "a link from node %u to itself", edge->a);
	edges->all[edges->count] = *edge;
	edges->all[edges->count++].line = text->line;
	return 0;
}

bool edges_take_node(struct span *line, char separator, uint32_t nodes, uint32_t *node)
{
	struct span word;
	uint64_t number;
	if (!span_take(line, separator, &word) || !span_number(word, (uint64_t)nodes - 1, &number))
		return false;
	*node = (uint32_t)number;
	return true;
}

int edges_read_link(struct edges *edges, const struct text *text, struct span line)
{
	struct edge edge = { 0 };
	struct span rate, delay, loss = { .at = "0", .length = 1 };
	uint64_t ps = 0, ppm;
	if (!edges_take_node(&line, 0, edges->nodes, &edge.a) || !edges_take_node(&line, 0, edges->nodes, &edge.b) ||
		!span_take(&line, 0, &rate) || !span_take(&line, 0, &delay))
		return text_wrong(text, "expected \"node node rate delay loss\" with nodes below %u", edges->nodes);
	span_take(&line, 0, &loss);
	if (!span_rate(rate, &edge.bits_per_second))
		return text_wrong(text, "%.*s is no rate as 100Gbps", SPAN(rate));
	if (!span_time(delay, EDGES_MOST_DELAY, &ps))
		return text_wrong(text, "%.*s is no delay as 0.001ms or 1us", SPAN(delay));
	if (!span_decimal(loss, 1000000, 1000000, &ppm) || line.length)
		return text_wrong(
			text, "%.*s is no share of lost packets from 0 to 1, of whole millionths", SPAN(loss));
	edge.delay = (vb_time)ps;
	edge.loss_ppm = (uint32_t)ppm;
	return edges_add(edges, text, &edge);
}

static network_node node_of(const struct edges *edges, uint32_t number)
{
	return number < edges->endpoints ? number : network_switch_node(number - edges->endpoints);
}

int edges_build(
	const struct edges *edges, const struct text *text, const struct topology *like, struct network *network)
{
	uint32_t profile = network_add_profile(network, &like->profile), nic = network_add_nic(network, &like->nic);
	for (uint32_t i = 0; i < edges->endpoints; i++)
		network_add_endpoint(network, edges->a_machine ? i / edges->a_machine : i, nic);
	for (uint32_t i = edges->endpoints; i < edges->nodes; i++)
		network_add_switch(network, profile, 0, NETWORK_NONE);
	for (uint32_t i = 0; i < edges->count; i++) {
		const struct edge *edge = &edges->all[i];
		uint32_t link = network_connect(
			network, node_of(edges, edge->a), node_of(edges, edge->b), edge->bits_per_second, edge->delay);
		if (edge->loss_ppm && link != NETWORK_NONE)
			network_set_fault(network, link, &(struct network_fault){ .loss_ppm = edge->loss_ppm });
	}
	char what[160] = "";
	int error = network_finish(network, what, sizeof(what));
	if (error == -EINVAL)
		why_not(text->why, text->why_size, "%s: %s", text->name, what);
	return error ? error : topology_find_pods(network);
}
