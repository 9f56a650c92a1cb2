/* See flow_check.h. */
#include "sim/flow_check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "sim/simulation.h"
#include "sim/traffic.h"

/* The run's messages, smaller. */
struct piece {
	const struct simulation *simulation;
	struct flow_list flows;
	struct graph graph; /* but for its operations, the simulation's */
	struct graph_job graph_job;
	bool has_graph;
	struct collective_job *collectives;
	struct service *services; /* whole: they are not cut */
	struct job **jobs;        /* collectives, then services */
	uint32_t job_count, collective_count, service_count;
};

static uint64_t part_of(uint64_t bytes, double part)
{
	const uint64_t less = (uint64_t)((double)bytes * part);
	return less ? less : 1;
}

static int cut_flows(struct piece *piece, double part)
{
	const struct flow_list *of = &piece->simulation->flows;

	piece->flows = *of;
	piece->flows.flows = malloc(((size_t)of->count + 1) * sizeof(*of->flows));
	if (!piece->flows.flows)
		return -ENOMEM;
	for (uint32_t i = 0; i < of->count; i++) {
		piece->flows.flows[i] = of->flows[i];
		piece->flows.flows[i].bytes = part_of(of->flows[i].bytes, part);
	}
	return 0;
}

static int cut_graph(struct piece *piece, double part)
{
	const struct graph *of = &piece->simulation->job_file.graph;

	piece->graph = *of;
	piece->graph.operations = malloc(((size_t)of->count + 1) * sizeof(*of->operations));
	if (!piece->graph.operations)
		return -ENOMEM;
	memcpy(piece->graph.operations, of->operations, of->count * sizeof(*of->operations));
	for (uint32_t i = 0; i < of->count; i++)
		if (of->operations[i].kind != GRAPH_COMPUTE)
			piece->graph.operations[i].bytes = part_of(of->operations[i].bytes, part);
	int rc = graph_job_open(
		&piece->graph_job, &piece->graph, &piece->simulation->hosts, &piece->simulation->scenario->job_nccl);
	piece->has_graph = !rc;
	if (!rc)
		piece->jobs[piece->job_count++] = &piece->graph_job.job;
	return rc;
}

static int cut_collectives(struct piece *piece, double part)
{
	const struct simulation *simulation = piece->simulation;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < simulation->collective_count; i++) {
		struct collective of = simulation->collectives[i].of;
		of.bytes = part_of(of.bytes, part);
		rc = collective_job_open(&piece->collectives[i], &of, simulation->collectives[i].groups);
		piece->collective_count += !rc;
		if (!rc)
			piece->jobs[piece->job_count++] = &piece->collectives[i].job;
	}
	return rc;
}

static int open_services(struct piece *piece)
{
	const struct simulation *simulation = piece->simulation;
	char why[200];
	int rc = 0;

	for (uint32_t i = 0; !rc && i < simulation->service_count; i++) {
		struct service *its = &piece->services[i];
		*its = (struct service){ .kind = simulation->services[i].kind,
			.workload = simulation->services[i].workload };
		rc = its->kind->open(its, simulation, why, sizeof(why));
		piece->service_count += !rc;
		if (!rc)
			piece->jobs[piece->job_count++] = its->job;
	}
	return rc;
}

static int open_piece(struct piece *piece, const struct simulation *simulation, double part)
{
	*piece = (struct piece){ .simulation = simulation,
		.collectives = calloc(simulation->job_count + 1, sizeof(*piece->collectives)),
		.services = calloc(simulation->service_count + 1, sizeof(*piece->services)),
		.jobs = calloc(simulation->job_count + 1, sizeof(struct job *)) };
	int rc = piece->collectives && piece->services && piece->jobs ? cut_flows(piece, part) : -ENOMEM;
	if (rc)
		return rc;
	rc = simulation->has_graph ? cut_graph(piece, part) : cut_collectives(piece, part);
	return rc ? rc : open_services(piece);
}

static void close_piece(struct piece *piece)
{
	if (piece->has_graph)
		graph_job_close(&piece->graph_job);
	for (uint32_t i = 0; i < piece->collective_count; i++)
		collective_job_close(&piece->collectives[i]);
	for (uint32_t i = 0; i < piece->service_count; i++)
		piece->services[i].kind->close(&piece->services[i]);
	free(piece->graph.operations);
	free(piece->flows.flows);
	free(piece->collectives);
	free(piece->services);
	free(piece->jobs);
}

/* One way, from the beginning: jobs keep what has happened. */
static int run_one(const struct simulation *simulation, double part, bool by_flows, struct fabric_result *result,
	char *why, size_t size)
{
	struct fabric_config config = simulation->config;
	struct piece piece;
	int rc = open_piece(&piece, simulation, part);

	config.flows = &piece.flows;
	config.jobs = piece.jobs;
	config.job_count = piece.job_count;
	config.captured_count = 0;
	config.tells_messages = config.tells_queues = config.tells_series = config.tells_pauses = false;
	config.by_flows = by_flows;
	if (!rc)
		rc = fabric_run(&config, result, why, (unsigned)size);
	close_piece(&piece);
	return rc;
}

/* ---- The error --------------------------------------------------------------------------------------------------- */

static vb_time end_of(const struct simulation *simulation, const struct fabric_result *result, uint32_t workload)
{
	vb_time last = 0;

	for (uint32_t i = 0; i < simulation->job_count; i++) {
		const bool is_collective = i < simulation->collective_count;
		const vb_time start = is_collective ? simulation->collectives[i].of.start : 0,
			      its = result->job_ends[i] - start;
		if (simulation->workload_of[i] == workload && its > last)
			last = its;
	}
	return last;
}

static void find_phases(const struct simulation *simulation, const struct fabric_result *flows,
	const struct fabric_result *packets, struct flow_check *check)
{
	/* Of a list it is not known whose its flows are. */
	const bool has_phases = !simulation->has_graph && simulation->flows.count == 0;

	for (uint32_t i = 0; has_phases && i < simulation->scenario->workload_count; i++) {
		const double there = (double)end_of(simulation, packets, i);
		if (there <= 0)
			continue;
		const double error = (double)end_of(simulation, flows, i) / there - 1;
		if (!check->has_phases || fabs(error) > fabs(check->worst_error)) {
			check->worst = i;
			check->worst_error = error;
		}
		check->has_phases = true;
	}
}

static void compare(const struct simulation *simulation, const struct fabric_result *flows,
	const struct fabric_result *packets, struct flow_check *check)
{
	check->packet_hops = packets->packet_hops;
	check->drops = packets->drops + packets->lost;
	check->pauses = packets->pauses;
	check->resent = packets->resent_packets;
	if (packets->end == FABRIC_STOPPED || flows->end == FABRIC_STOPPED)
		snprintf(check->why_not, sizeof(check->why_not), "it was interrupted");
	else if (packets->end == FABRIC_LIMIT)
		snprintf(check->why_not, sizeof(check->why_not), "by packets it reaches run.limit");
	else if (packets->end == FABRIC_MEMORY)
		snprintf(check->why_not, sizeof(check->why_not), "by packets it has not enough memory");
	else if (packets->end != FABRIC_DONE || packets->flows_failed || packets->last_flow <= 0)
		snprintf(check->why_not, sizeof(check->why_not), "by packets it does not come to its end");
	if (*check->why_not)
		return;
	check->is_made = true;
	check->error = (double)flows->last_flow / (double)packets->last_flow - 1;
	find_phases(simulation, flows, packets, check);
}

/* As many bytes as the limit allows. A message has one packet at least, so fewer bytes may be no fewer packets. */
static double largest_part(const struct simulation *simulation, double packet_hops, struct flow_check *check)
{
	struct simulation by_packets = *simulation;
	struct estimate estimate = { 0 };

	const struct traffic traffic = traffic_of(simulation);
	by_packets.config.by_flows = false;
	estimate_run(&by_packets, &estimate);
	if (estimate.packet_hops <= packet_hops)
		return 1;
	if (simulation->service_count)
		snprintf(check->why_not, sizeof(check->why_not),
			"all of it is %.2g packet-hops, and workloads of its kinds are not cut", estimate.packet_hops);
	else if (traffic.messages / traffic.packets * estimate.packet_hops > packet_hops)
		snprintf(check->why_not, sizeof(check->why_not), "its messages alone are more than %.2g packet-hops",
			packet_hops);
	return packet_hops / estimate.packet_hops;
}

int flow_check_run(const struct simulation *simulation, const struct check_limit *limit, struct flow_check *check,
	char *why, size_t size)
{
	const double bytes_part = limit->bytes_part;
	struct fabric_result flows = { 0 }, packets = { 0 };

	assert(limit->packet_hops > 0);
	*check = (struct flow_check){ 0 };
	check->bytes_part = bytes_part > 0 ? bytes_part : largest_part(simulation, limit->packet_hops, check);
	if (bytes_part > 0 && bytes_part < 1 && simulation->service_count)
		snprintf(check->why_not, sizeof(check->why_not),
			"workloads of its kinds are not cut: leave out --exact-check");
	if (*check->why_not)
		return 0;
	int rc = run_one(simulation, check->bytes_part, false, &packets, why, size);
	if (!rc)
		rc = run_one(simulation, check->bytes_part, true, &flows, why, size);
	if (!rc)
		compare(simulation, &flows, &packets, check);
	if (rc == -EINVAL)
		snprintf(check->why_not, sizeof(check->why_not), "by packets it cannot run: %s", why);
	fabric_result_free(&flows);
	fabric_result_free(&packets);
	return rc == -EINVAL ? 0 : rc;
}
