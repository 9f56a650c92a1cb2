/* Reads links, and makes a network of them. */
#include "net/topology_edges.h"
#include <errno.h>
#include <stdlib.h>
#include "net/clos.h"
#include "net/grow.h"
#include "net/nic_ports.h"
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

/* ---- NICs with several ports ------------------------------------------------------------------------------------- */

/* Of an endpoint: all of its links. */
struct nic {
	uint32_t ports;
	uint64_t bits_per_second; /* of all */
	vb_time inside;           /* half of the shortest delay */
};

static void note_port(struct nic *nic, const struct edge *edge)
{
	if (nic->ports == 0 || edge->delay / 2 < nic->inside)
		nic->inside = edge->delay / 2;
	nic->ports++;
	nic->bits_per_second += edge->bits_per_second;
}

/* By endpoint; NULL and 0: none has several. -ENOMEM. Where not all have equally many, network_finish refuses it. */
static int find_nics(const struct edges *edges, struct nic **nics)
{
	struct nic *found = *nics = calloc((size_t)edges->endpoints + 1, sizeof(*found));
	bool have_ports = found && edges->endpoints > 0;
	if (!found)
		return -ENOMEM;
	for (uint32_t i = 0; i < edges->count; i++) {
		const struct edge *edge = &edges->all[i];
		if (edge->a < edges->endpoints)
			note_port(&found[edge->a], edge);
		if (edge->b < edges->endpoints)
			note_port(&found[edge->b], edge);
	}
	for (uint32_t i = 0; i < edges->endpoints; i++)
		have_ports &= found[i].ports == found[0].ports;
	if (have_ports && found[0].ports > 1 && found[0].ports <= NIC_PORTS_MOST)
		return 0;
	free(found);
	*nics = NULL;
	return 0;
}

/* Their first ports lead to the endpoints. */
static void add_nics(
	const struct edges *edges, const struct nic *nics, const struct topology *like, struct network *network)
{
	const struct switch_profile ports = nic_ports_profile(like);
	const uint32_t profile = network_add_profile(network, &ports), first = network->switch_count;
	for (uint32_t i = 0; i < edges->endpoints; i++)
		network_add_switch(network, profile, 0, NETWORK_NONE);
	network->nic_switch_count = edges->endpoints;
	for (uint32_t i = 0; i < edges->endpoints; i++)
		network_connect(network, i, network_switch_node(first + i), nics[i].bits_per_second, nics[i].inside);
}

/* ---- Building ---------------------------------------------------------------------------------------------------- */

/* Links of NICs with several ports are those of their switches, which come behind all others. */
static network_node node_of(const struct edges *edges, const struct nic *nics, uint32_t number)
{
	if (number >= edges->endpoints)
		return network_switch_node(number - edges->endpoints);
	return nics ? network_switch_node(edges->nodes - edges->endpoints + number) : number;
}

static void add_links(const struct edges *edges, const struct nic *nics, struct network *network)
{
	for (uint32_t i = 0; i < edges->count; i++) {
		const struct edge *edge = &edges->all[i];
		vb_time delay = edge->delay;
		if (nics && edge->a < edges->endpoints)
			delay -= nics[edge->a].inside;
		if (nics && edge->b < edges->endpoints)
			delay -= nics[edge->b].inside;
		const uint32_t link = network_connect(network, node_of(edges, nics, edge->a),
			node_of(edges, nics, edge->b), edge->bits_per_second, delay);
		if (edge->loss_ppm && link != NETWORK_NONE)
			network_set_fault(network, link, &(struct network_fault){ .loss_ppm = edge->loss_ppm });
	}
}

int edges_build(
	const struct edges *edges, const struct text *text, const struct topology *like, struct network *network)
{
	struct nic *nics;
	if (find_nics(edges, &nics))
		return -ENOMEM;
	uint32_t profile = network_add_profile(network, &like->profile), nic = network_add_nic(network, &like->nic);
	for (uint32_t i = 0; i < edges->endpoints; i++)
		network_add_endpoint(network, edges->a_machine ? i / edges->a_machine : i, nic);
	for (uint32_t i = edges->endpoints; i < edges->nodes; i++)
		network_add_switch(network, profile, 0, NETWORK_NONE);
	if (nics)
		add_nics(edges, nics, like, network);
	add_links(edges, nics, network);
	free(nics);
	char what[160] = "";
	int error = network_finish(network, what, sizeof(what));
	if (error == -EINVAL)
		why_not(text->why, text->why_size, "%s: %s", text->name, what);
	return error ? error : topology_find_pods(network);
}
