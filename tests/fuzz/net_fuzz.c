/* Any bytes as a file of a network ('t' before them), of flows ('f'), of a distribution of sizes ('s'), of a job ('g')
 * or of requests for inference ('i'): it is refused with a reason, or it is a network whose links lead back and whose
 * routes lead on, flows between its endpoints that all begin, sizes that can be drawn, a job whose ranks end, or
 * requests in order. Nothing may be leaked. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "net/flow_text.h"
#include "net/graph_job.h"
#include "net/inference_requests.h"
#include "net/job_file.h"
#include "net/loggops.h"
#include "net/route.h"
#include "net/sizes.h"
#include "net/topology_text.h"

enum { ENDPOINTS = 100, RANKS = 16, MOST_ROUTES = 1 << 18 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static char why[100];

static void require(bool holds)
{
	if (!holds)
		abort();
}

/* A refusal has a reason, and what is accepted has none. */
static bool is_accepted(int error)
{
	require(error == 0 || (error == -EINVAL && why[0] && memchr(why, 0, sizeof(why))));
	return error == 0;
}

static void check_links(const struct network *network)
{
	for (uint32_t i = 0; i < network->link_count; i++) {
		const struct network_link *link = &network->links[i], *back = &network->links[link->reverse];
		require(back->reverse == i && back->from == link->to && back->to == link->from);
		require(link->bits_per_second > 0 && link->delay >= 0);
		require(link->fault == NETWORK_NONE || link->fault < network->fault_count);
	}
	for (uint32_t i = 0; i < network->endpoint_count; i++)
		require(network->links[network->endpoints[i].link].from == i);
}

/* From endpoint 0 to all others, always by the first choice. */
static void check_routes(const struct network *network)
{
	if ((uint64_t)network->switch_count * network->endpoint_count > MOST_ROUTES)
		return;
	struct routes *routes = routes_make(network);
	require(routes);
	for (uint32_t i = 1; i < network->endpoint_count; i++) {
		network_node at = network->links[network->endpoints[0].link].to;
		for (uint32_t steps = 0; at != i; steps++) {
			require(network_is_switch(at) && steps <= network->switch_count);
			struct route_choice choice = routes_towards(routes, network_index(at), i);
			require(choice.count > 0);
			at = network->links[choice.links[0]].to;
		}
	}
	routes_free(routes);
}

static void read_network(struct text *text)
{
	struct network network = { 0 };
	struct hosts hosts;
	const struct topology like = { .profile = { .name = "p" }, .nic = { .name = "n" } };
	if (is_accepted(topology_read_text(text, &like, &network, &hosts))) {
		require(hosts_check(&hosts, network.endpoint_count, why, sizeof(why)) == 0);
		check_links(&network);
		check_routes(&network);
	} else
		require(!network.links && !network.endpoints);
	network_free(&network);
}

static void read_flows(struct text *text)
{
	struct flow_list list = { 0 };
	if (is_accepted(flow_list_read_text(&list, text, ENDPOINTS)))
		require(flow_list_check(&list, ENDPOINTS, why, sizeof(why)) == 0);
	else
		require(list.count == 0 && list.wait_count == 0);
	flow_list_free(&list);
}

static void read_sizes(struct text *text)
{
	struct sizes sizes;
	if (!is_accepted(sizes_read(text, &sizes)))
		return;
	uint64_t most = sizes.points[sizes.count - 1].bytes;
	require(sizes_mean_millibytes(&sizes) / 1000 <= most);
	for (int i = 0; i < 64; i++)
		require(sizes_draw(&sizes, UINT64_MAX >> i) - 1 < most);
	sizes_free(&sizes);
}

/* All members of a group have the collective that one of them has. */
static void check_collectives(const struct graph *graph)
{
	for (uint32_t i = 0; i < graph->count; i++) {
		const struct graph_operation *its = &graph->operations[i];
		require(its->rank < graph->ranks && i >= graph->first[its->rank] && i < graph->first[its->rank + 1]);
		if (its->kind != GRAPH_COLLECTIVE)
			continue;
		const uint32_t last = graph->groups[its->group].count - 1;
		const struct graph_operation *same = &graph->operations[graph_same_at(graph, i, last)];
		require(same->rank == graph_rank_of(&graph->groups[its->group], last));
		require(same->bytes == its->bytes && same->collective == its->collective);
	}
}

static void check_job(const struct graph *graph)
{
	struct graph_job job;
	check_collectives(graph);
	require(graph_job_open(&job, graph, &(struct hosts){ 0 }, &(struct nccl_settings){ 0 }) == 0);
	graph_job_close(&job);
}

static bool has_collectives(const struct graph *graph)
{
	for (uint32_t i = 0; i < graph->count; i++)
		if (graph->operations[i].kind == GRAPH_COLLECTIVE)
			return true;
	return false;
}

static void read_job(struct text *text)
{
	const struct job_file_options options = { .gpus = RANKS };
	const struct loggops parameters = { .L = 2500, .o = 1500, .g = 1000, .G = 6, .O = 7, .S = 99 };
	struct job_file file;
	struct loggops_result result;
	if (is_accepted(job_file_read_text(&file, text, &options))) {
		require(file.graph.count > 0 && file.graph.first[file.graph.ranks] == file.graph.count);
		check_job(&file.graph);
		const int error =
			has_collectives(&file.graph) ? -ERANGE : loggops_play(&file.graph, &parameters, &result);
		require(error == 0 || error == -ERANGE);
		require(error || (result.unfinished == 0) == (result.first_unfinished == GRAPH_NONE));
		require(error || result.ends[result.last_rank] >= result.ends[0]);
		if (!error)
			loggops_result_free(&result);
	} else {
		require(!file.graph.operations && !file.where);
	}
	job_file_free(&file);
}

static void read_requests(struct text *text)
{
	struct inference_requests requests;
	if (is_accepted(inference_requests_read_text(&requests, text, 0)))
		require(requests.count > 0 && requests.list[0].arrival == 0);
	for (uint32_t i = 1; i < requests.count; i++)
		require(requests.list[i].arrival >= requests.list[i - 1].arrival && requests.list[i].input &&
			requests.list[i].output);
	inference_requests_free(&requests);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	if (length == 0)
		return 0;
	struct text text = text_of("f", (const char *)bytes + 1, length - 1, why, sizeof(why));
	why[0] = 0;
	if (bytes[0] == 't')
		read_network(&text);
	else if (bytes[0] == 'f')
		read_flows(&text);
	else if (bytes[0] == 's')
		read_sizes(&text);
	else if (bytes[0] == 'g')
		read_job(&text);
	else if (bytes[0] == 'i')
		read_requests(&text);
	return 0;
}
