/* SimAI's networks: GPUs in servers, the NVSwitches that join the GPUs of a server, and a network of switches.
 *
 * The first line has the numbers of nodes, of a server's GPUs, of NVSwitches, of switches and of links, then the GPUs'
 * type, which is not used. The second names the NVSwitches, then the switches. Links follow as in HPCC's text. GPUs
 * have the lowest numbers, server by server. Links to NVSwitches are not the network's: they make the scale-up domain,
 * whose ports are all alike here. A GPU's other links are the
 * ports of its NIC, equally many of each. */
#include <errno.h>
#include <stdlib.h>
#include "net/clos.h"
#include "net/nic_ports.h"
#include "net/topology_edges.h"
#include "net/topology_text.h"
#include "net/why.h"

enum count { NODES, GPUS_A_SERVER, NVSWITCHES, SWITCHES, LINKS, COUNTS };

enum kind { GPU, NVSWITCH, SWITCH };

struct node {
	enum kind kind;
	uint32_t server;   /* of an NVSwitch; NETWORK_NONE: it has no link yet */
	uint32_t ports;    /* of a GPU's NIC: its links to switches */
	uint32_t nvlink;   /* of a GPU: the line of its last link to an NVSwitch; 0: it has none */
	uint64_t scale_up; /* bits per second of all its links to NVSwitches */
	vb_time delay;     /* of one of them */
};

struct servers {
	uint32_t count[COUNTS];
	uint32_t gpus; /* of all servers */
	struct node *nodes;
	uint32_t *switches; /* by node: which of the network's edges.nodes it is */
	struct edges edges;
};

/* About the file as a whole. */
#define WRONG(text, format, ...)                                                                                       \
	why_not((text)->why, (text)->why_size, "%s: " format, (text)->name __VA_OPT__(, ) __VA_ARGS__)

/* ---- The first two lines ----------------------------------------------------------------------------------------- */

static int check_counts(const struct text *text, struct servers *servers)
{
	const uint32_t *count = servers->count;
	uint64_t switches = (uint64_t)count[NVSWITCHES] + count[SWITCHES];
	if (switches >= count[NODES])
		return text_wrong(text, "%u nodes, and %u NVSwitches and %u switches among them: no GPUs", count[NODES],
			count[NVSWITCHES], count[SWITCHES]);
	servers->gpus = count[NODES] - (uint32_t)switches;
	if (count[GPUS_A_SERVER] == 0 || count[GPUS_A_SERVER] > HOSTS_MOST_GPUS)
		return text_wrong(
			text, "servers of %u GPUs: from 1 to %d are supported", count[GPUS_A_SERVER], HOSTS_MOST_GPUS);
	if (servers->gpus % count[GPUS_A_SERVER])
		return text_wrong(text, "%u nodes less %u NVSwitches and %u switches are %u GPUs: no servers of %u",
			count[NODES], count[NVSWITCHES], count[SWITCHES], servers->gpus, count[GPUS_A_SERVER]);
	if (count[NVSWITCHES] == 0 && count[GPUS_A_SERVER] > 1)
		return text_wrong(text, "servers of %u GPUs without an NVSwitch", count[GPUS_A_SERVER]);
	if (count[NVSWITCHES] % (servers->gpus / count[GPUS_A_SERVER]))
		return text_wrong(text, "%u servers cannot have equally many of %u NVSwitches",
			servers->gpus / count[GPUS_A_SERVER], count[NVSWITCHES]);
	return 0;
}

static int read_counts(const struct text *text, struct span line, struct servers *servers)
{
	static const uint64_t most[COUNTS] = { CLOS_MOST_NODES, CLOS_MOST_NODES, CLOS_MOST_NODES, CLOS_MOST_NODES,
		CLOS_MOST_LINKS };
	struct span word;
	uint64_t number = 0;
	bool is_good = true;
	for (int i = 0; i < COUNTS && is_good; i++) {
		is_good = span_take(&line, 0, &word) && span_number(word, most[i], &number);
		servers->count[i] = (uint32_t)number;
	}
	if (!is_good || !span_take(&line, 0, &word) || line.length)
		return text_wrong(text,
			"expected the numbers of nodes, GPUs a server, NVSwitches, switches and links, then the GPUs' "
			"type");
	return check_counts(text, servers);
}

static int read_switch(const struct text *text, struct span *line, uint32_t number, struct servers *servers)
{
	struct span word;
	uint64_t node;
	span_take(line, 0, &word);
	if (!span_number(word, servers->count[NODES] - 1, &node) || node < servers->gpus)
		return text_wrong(text, "%.*s is no switch: they have the highest numbers, %u to %u, above the GPUs'",
			SPAN(word), servers->gpus, servers->count[NODES] - 1);
	if (servers->nodes[node].kind != GPU)
		return text_wrong(text, "switch %u twice", (uint32_t)node);
	servers->nodes[node] = (struct node){ .kind = number < servers->count[NVSWITCHES] ? NVSWITCH : SWITCH,
		.server = NETWORK_NONE };
	return 0;
}

static int read_switches(struct text *text, struct servers *servers)
{
	const uint32_t wanted = servers->count[NVSWITCHES] + servers->count[SWITCHES];
	struct span line, word;
	if (!text_next(text, '#', &line))
		return text_wrong(text, "the line of switches is wanting");
	uint32_t count = 0;
	for (struct span rest = line; span_take(&rest, 0, &word);)
		count++;
	if (count != wanted)
		return text_wrong(text, "%u switches, yet the first line says %u NVSwitches and %u switches", count,
			servers->count[NVSWITCHES], servers->count[SWITCHES]);
	servers->nodes = calloc(servers->count[NODES], sizeof(*servers->nodes));
	servers->switches = calloc(servers->count[NODES], sizeof(*servers->switches));
	int error = servers->nodes && servers->switches ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < count && !error; i++)
		error = read_switch(text, &line, i, servers);
	return error;
}

/* ---- Links ------------------------------------------------------------------------------------------------------- */

static int add_nvlink(const struct text *text, struct servers *servers, const struct edge *edge)
{
	const bool is_first = servers->nodes[edge->a].kind == GPU;
	const uint32_t gpu = is_first ? edge->a : edge->b, other = is_first ? edge->b : edge->a;
	const uint32_t server = gpu / servers->count[GPUS_A_SERVER];
	struct node *node = &servers->nodes[gpu], *nvswitch = &servers->nodes[other];
	if (node->kind != GPU)
		return text_wrong(text, "a link from switch %u to switch %u: NVSwitches join GPUs alone", gpu, other);
	if (nvswitch->server != NETWORK_NONE && nvswitch->server != server)
		return text_wrong(text, "NVSwitch %u joins GPUs of servers %u and %u", other, nvswitch->server, server);
	if (node->nvlink && node->delay != edge->delay)
		return text_wrong(text, "GPU %u has links to NVSwitches with unlike delays", gpu);
	if (edge->loss_ppm)
		return text_wrong(text, "GPU %u loses packets to its NVSwitch, which is not supported", gpu);
	if (edge->bits_per_second > HOSTS_MOST_SCALE_UP - node->scale_up)
		return text_wrong(text, "GPU %u has more than 1000 Tb/s to NVSwitches", gpu);
	nvswitch->server = server;
	node->nvlink = text->line;
	node->delay = edge->delay;
	node->scale_up += edge->bits_per_second;
	return 0;
}

static void note_port(struct servers *servers, uint32_t number)
{
	if (servers->nodes[number].kind == GPU)
		servers->nodes[number].ports++;
}

/* The link that was read last stays if it is the network's. */
static int sort_link(const struct text *text, struct servers *servers)
{
	const struct edge *edge = &servers->edges.all[servers->edges.count - 1];
	enum kind a = servers->nodes[edge->a].kind, b = servers->nodes[edge->b].kind;
	if (a == GPU && b == GPU)
		return text_wrong(
			text, "a link from GPU %u to GPU %u: both have links to switches alone", edge->a, edge->b);
	if (a == NVSWITCH || b == NVSWITCH) {
		servers->edges.count--;
		return add_nvlink(text, servers, edge);
	}
	note_port(servers, edge->a);
	note_port(servers, edge->b);
	return 0;
}

static int read_links(struct text *text, struct servers *servers)
{
	const uint32_t wanted = servers->count[LINKS];
	struct span line;
	int error = 0;
	servers->edges.nodes = servers->count[NODES];
	for (uint32_t i = 0; i < wanted && !error; i++) {
		if (!text_next(text, '#', &line))
			return text_wrong(text, "%u links, yet the first line says %u", i, wanted);
		error = edges_read_link(&servers->edges, text, line);
		if (!error)
			error = sort_link(text, servers);
	}
	if (!error && text_next(text, '#', &line))
		error = text_wrong(text, "more than the %u links that the first line says", wanted);
	return error;
}

/* ---- What they say together -------------------------------------------------------------------------------------- */

static int check_gpu(struct text *text, const struct servers *servers, uint32_t gpu)
{
	const struct node *node = &servers->nodes[gpu], *first = &servers->nodes[0];
	if (!node->ports)
		return WRONG(text, "GPU %u has no link to a switch", gpu);
	if (node->ports != first->ports || node->ports > NIC_PORTS_MOST)
		return WRONG(text,
			"GPU %u has %u links to switches, and GPU 0 has %u: equally many, at most %d, are supported",
			gpu, node->ports, first->ports, NIC_PORTS_MOST);
	if (servers->count[NVSWITCHES] && !node->nvlink)
		return WRONG(text, "GPU %u has no link to an NVSwitch", gpu);
	text->line = node->nvlink;
	if (node->scale_up != first->scale_up || node->delay != first->delay)
		return text_wrong(text,
			"GPU %u has another rate or delay to its NVSwitches than GPU 0, line %u: "
			"unlike GPUs are not supported",
			gpu, first->nvlink);
	return 0;
}

static int check(struct text *text, const struct servers *servers)
{
	int error = 0;
	for (uint32_t i = 0; i < servers->gpus && !error; i++)
		error = check_gpu(text, servers, i);
	for (uint32_t i = servers->gpus; i < servers->count[NODES] && !error; i++)
		if (servers->nodes[i].kind == NVSWITCH && servers->nodes[i].server == NETWORK_NONE)
			error = WRONG(text, "NVSwitch %u has no link", i);
	if (!error && servers->nodes[0].delay > VB_HORIZON / 2)
		error = WRONG(text, "the way through an NVSwitch takes too long");
	return error;
}

/* Numbers the network's nodes anew, without NVSwitches. */
static void renumber(struct servers *servers)
{
	struct edges *edges = &servers->edges;
	edges->endpoints = servers->gpus;
	edges->a_machine = servers->count[GPUS_A_SERVER];
	edges->nodes = 0;
	for (uint32_t i = 0; i < servers->count[NODES]; i++)
		if (servers->nodes[i].kind != NVSWITCH)
			servers->switches[i] = edges->nodes++;
	for (uint32_t i = 0; i < edges->count; i++) {
		edges->all[i].a = servers->switches[edges->all[i].a];
		edges->all[i].b = servers->switches[edges->all[i].b];
	}
}

/* A transfer takes two links, to the NVSwitch and from it. */
static void describe(const struct servers *servers, struct hosts *hosts)
{
	if (servers->count[NVSWITCHES])
		*hosts = (struct hosts){ .gpus = servers->count[GPUS_A_SERVER],
			.nics = servers->count[GPUS_A_SERVER],
			.scale_up = servers->nodes[0].scale_up,
			.scale_up_time = 2 * servers->nodes[0].delay };
}

static int read_servers(struct text *text, struct servers *servers)
{
	struct span line;
	text_next(text, '#', &line);
	int error = read_counts(text, line, servers);
	if (!error)
		error = read_switches(text, servers);
	if (!error)
		error = read_links(text, servers);
	return error ? error : check(text, servers);
}

int topology_read_simai(struct text *text, const struct topology *like, struct network *network, struct hosts *hosts)
{
	struct servers servers = { 0 };
	int error = read_servers(text, &servers);
	if (!error) {
		renumber(&servers);
		error = edges_build(&servers.edges, text, like, network);
	}
	if (!error)
		describe(&servers, hosts);
	free(servers.edges.all);
	free(servers.nodes);
	free(servers.switches);
	return error;
}
