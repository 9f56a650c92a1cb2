/* See ranks.h. */
#include "sim/ranks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net/placement.h"
#include "sim/why_about.h"

/* ---- Hosts ------------------------------------------------------------------------------------------------------- */

uint32_t simulation_ranks(const struct simulation *simulation)
{
	return hosts_ranks(&simulation->hosts, simulation->network.endpoint_count);
}

/* Switches that have endpoints; of rails, where a host has an endpoint at several, those of the first. */
static uint32_t leaves_of(const struct network *network)
{
	const uint32_t nics =
		network->endpoint_count > 1 && network->endpoints[1].machine == network->endpoints[0].machine;
	network_node last = NETWORK_NONE;
	uint32_t leaves = 0;

	for (uint32_t i = 0; i < network_back_endpoints(network); i++) {
		const network_node to = network_leaf_of(network, i);
		const bool is_first_of_machine =
			!nics || i == 0 || network->endpoints[i].machine != network->endpoints[i - 1].machine;
		if (is_first_of_machine && to != last) {
			leaves++;
			last = to;
		}
	}
	return leaves;
}

/* The scenario's keys, before the network's file. */
static struct hosts merge_hosts(const struct scenario *scenario, const struct hosts *of_file)
{
	const bool has_gpu = scenario_is_given(scenario, "hosts.gpu");
	struct hosts hosts = scenario->hosts;

	if (!of_file->gpus)
		return hosts;
	if (!has_gpu && !scenario_is_given(scenario, "hosts.gpus")) {
		hosts.gpus = of_file->gpus;
		if (!scenario_is_given(scenario, "hosts.nics"))
			hosts.nics = of_file->nics;
	}
	if (!has_gpu && !scenario_is_given(scenario, "hosts.scale-up"))
		hosts.scale_up = of_file->scale_up;
	if (!scenario_is_given(scenario, "hosts.scale-up-delay"))
		hosts.scale_up_time = of_file->scale_up_time;
	return hosts;
}

int ranks_set_hosts(struct simulation *simulation, char *why, size_t size)
{
	simulation->hosts = merge_hosts(simulation->scenario, &simulation->hosts);
	if (!simulation->hosts.nics)
		simulation->hosts.nics = simulation->hosts.gpus;
	simulation->hosts.ports = network_nic_ports(&simulation->network);
	simulation->hosts.keeps_rails &= simulation->hosts.gpus > 0;
	int rc = hosts_check(&simulation->hosts, simulation->network.endpoint_count, why, (unsigned)size);
	return rc ? why_about(why, size, "hosts") : 0;
}

/* ---- Placement --------------------------------------------------------------------------------------------------- */

static int fill_in(struct simulation *simulation, const char *placement, char *why, unsigned why_size)
{
	const uint32_t ranks = simulation_ranks(simulation);

	if (strcmp(placement, "spread") == 0)
		return placement_spread(simulation->gpu_of, ranks, simulation->hosts.gpus,
			leaves_of(&simulation->network), why, why_size);
	if (*placement >= '0' && *placement <= '9')
		return placement_by_list(simulation->gpu_of, ranks, placement, why, why_size);
	return placement_by_order(simulation->gpu_of, ranks, &simulation->dimensions, placement, why, why_size);
}

static int place(struct simulation *simulation, char *why, size_t size)
{
	const char *placement = simulation->scenario->placement;

	if (strcmp(placement, "packed") == 0)
		return 0;
	simulation->gpu_of = calloc(simulation_ranks(simulation) + 1, sizeof(*simulation->gpu_of));
	if (!simulation->gpu_of)
		return -ENOMEM;
	int rc = fill_in(simulation, placement, why, (unsigned)size);
	simulation->hosts.gpu_of = simulation->gpu_of;
	return rc == -EINVAL ? why_about(why, size, "hosts.placement") : rc;
}

int ranks_place(struct simulation *simulation, char *why, size_t size)
{
	simulation->dimensions = simulation->scenario->dimensions;
	int rc = dimensions_complete(&simulation->dimensions, simulation_ranks(simulation), why, (unsigned)size);
	return rc ? why_about(why, size, "ranks.dimensions") : place(simulation, why, size);
}

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

static int open_groups(struct simulation *simulation, uint32_t number, const struct dimensions_named *named)
{
	const struct dimensions *dimensions = &simulation->dimensions;
	const uint32_t ranks = dimensions_ranks(dimensions), each = dimensions_size(dimensions, named);
	uint32_t *lists = calloc(ranks, sizeof(*lists));

	if (!lists)
		return -ENOMEM;
	dimensions_list_groups(dimensions, named, lists);
	int rc = rank_groups_open_lists(&simulation->groups[number], &simulation->hosts, lists, ranks / each, each);
	free(lists);
	return rc;
}

/* All groups of the dimensions that the workload names. */
static int group_by_dimensions(
	struct simulation *simulation, uint32_t number, const struct workload *workload, char *why, size_t size)
{
	struct dimensions_named named;
	int rc = dimensions_name(&simulation->dimensions, workload->group, &named, why, (unsigned)size);

	if (rc)
		return rc;
	if (workload->endpoints || workload->first) {
		snprintf(why, size, "its groups have their own ranks: leave out endpoints and first");
		return -EINVAL;
	}
	if (dimensions_size(&simulation->dimensions, &named) < 2) {
		snprintf(why, size, "%s has one rank, which has nobody to send to: write a larger size, or no workload",
			workload->group);
		return -EINVAL;
	}
	return open_groups(simulation, number, &named);
}

int ranks_group(struct simulation *simulation, uint32_t number, uint32_t count, char *why, size_t size)
{
	const struct workload *workload = &simulation->scenario->workloads[number].workload;
	const uint32_t ranks = simulation_ranks(simulation), first = workload->first;

	if (*workload->group) {
		int rc = group_by_dimensions(simulation, number, workload, why, size);
		return rc == -EINVAL ? why_about(why, size, "group") : rc;
	}
	if (first > ranks || count > ranks - first || count < 2) {
		snprintf(why, size,
			"a collective of %" PRIu32 " ranks from rank %" PRIu32 " on, in a network of %" PRIu32, count,
			first, ranks);
		return -EINVAL;
	}
	return rank_groups_open(&simulation->groups[number], &simulation->hosts, first, count);
}
