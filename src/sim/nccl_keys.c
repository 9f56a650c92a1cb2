/* See nccl_keys.h. */
#include "sim/nccl_keys.h"

#include <string.h>
#include "net/graph_shares.h"
#include "net/why.h"
#include "sim/simulation.h"

#define MANY_BYTES ((uint64_t)1 << 40)

int nccl_keys_heed(struct simulation *simulation, char *why, size_t size)
{
	const struct nccl_settings *nccl = &simulation->scenario->job_nccl;

	if (nccl->qps > 1 && !graph_shares_have_room(&simulation->hosts, nccl))
		return why_not(why, (unsigned)size,
			"job.nccl.qps: two ranks have %d connections at most, for all ports of a host's NICs: write "
			"fewer QPs, or job.nccl.channels",
			MESSAGE_MOST_CHANNEL);
	simulation->hosts = hosts_to(&simulation->hosts, nccl->rails);
	return 0;
}

/* A collective, or a part of one, and what the scenario gives it. */
struct asked {
	const struct collective *of;
	const struct nccl_settings *given;
	const char *algorithm; /* as given */
};

typedef bool idle_test(const struct simulation *simulation, const struct asked *asked);

static bool has_one_qp(const struct simulation *simulation, const struct asked *asked)
{
	return !asked->given->is_cut || asked->given->qps < 2;
}

static bool stays_in_a_host(const struct simulation *simulation, const struct asked *asked)
{
	return asked->given->qps < 2 || asked->of->ranks <= asked->of->gpus;
}

/* Of one byte there is one part, however many there may be. */
static bool has_no_more_parts(const struct simulation *simulation, const struct asked *asked)
{
	struct collective bounded = *asked->of, free = *asked->of;

	bounded.bytes = free.bytes = MANY_BYTES;
	bounded.nccl.channels = asked->given->channels;
	free.nccl.channels = 0;
	return collective_parts(&bounded, &simulation->hosts) == collective_parts(&free, &simulation->hosts);
}

/* What NCCL takes depends on the size, and a table has many. */
static bool has_no_pieces(const struct simulation *simulation, const struct asked *asked)
{
	return !asked->given->buffer || (!collective_find(asked->of)->edges && strcmp(asked->algorithm, "nccl") != 0);
}

static bool has_one_way_out(const struct simulation *simulation, const struct asked *asked)
{
	return asked->given->rails != RAILS_AS_HOSTS && !simulation->hosts.gpus;
}

enum { OF_WORKLOADS, OF_JOB, PLACES };

/* The paths of both places; `of` is the key that would have to change. */
static const struct nccl_key {
	const char *path[PLACES], *of[PLACES];
	idle_test *is_idle;
	const char *why;
	bool is_by_flows; /* heeded by steps that run by flows */
} keys[] = {
	{ { "workload.*.nccl.split-data", "job.nccl.split-data" }, { "workload.*.nccl.qps", "job.nccl.qps" },
		has_one_qp, "nccl.qps is 1, and a message goes whole", true },
	{ { "workload.*.nccl.qps", "job.nccl.qps" }, { "hosts.gpus", "hosts.gpus" }, stays_in_a_host,
		"all ranks share a host, in which there are no QPs", true },
	{ { "workload.*.nccl.channels", "job.nccl.channels" }, { "workload.*.algorithm", "hosts.gpus" },
		has_no_more_parts, "without it no more NICs are used at once", true },
	{ { "workload.*.nccl.buffsize", "job.nccl.buffsize" }, { "workload.*.algorithm", "run.mode" }, has_no_pieces,
		"only chain, double-tree and nvls send pieces, and what is sent goes whole", false },
	{ { "workload.*.nccl.pxn", "job.nccl.pxn" }, { "hosts.gpus", "hosts.gpus" }, has_one_way_out,
		"without hosts.gpus each endpoint is a rank, and has one NIC", true },
};

/* ---- Workloads --------------------------------------------------------------------------------------------------- */

static const char *idle_in_workloads(const struct simulation *simulation, const struct nccl_key *key)
{
	for (uint32_t i = 0; i < simulation->collective_count; i++) {
		const struct workload *workload = &simulation->scenario->workloads[simulation->workload_of[i]].workload;
		const struct asked asked = { &simulation->collectives[i].of, &workload->nccl, workload->algorithm };
		if (!key->is_idle(simulation, &asked))
			return NULL;
	}
	return simulation->collective_count > 0 ? key->why : NULL;
}

/* ---- A job from a file, and steps -------------------------------------------------------------------------------- */

static const char *idle_in_graph(const struct simulation *simulation, const struct nccl_key *key)
{
	const struct graph *graph = &simulation->job_file.graph;
	const char *why = "the job has no collectives between ranks";

	for (uint32_t i = 0; i < graph->count; i++) {
		if (graph->operations[i].kind != GRAPH_COLLECTIVE)
			continue;
		const struct collective of = graph_shares_collective(&simulation->graph_job.shares, i);
		const struct asked asked = { &of, &simulation->scenario->job_nccl, "" };
		if (of.ranks < 2)
			continue;
		if (!key->is_idle(simulation, &asked))
			return NULL;
		why = key->why;
	}
	return why;
}

static const char *idle_in_job(const struct simulation *simulation, const struct nccl_key *key)
{
	const struct scenario *scenario = simulation->scenario;
	const struct asked no_collective = { NULL, &scenario->job_nccl, "" };
	const bool is_of_sends = key->is_idle == has_one_way_out;

	if (!simulation->has_graph && !simulation->step_count)
		return "it is of a job from a file (--job) and of steps of training, and there is none";
	if (is_of_sends)
		return key->is_idle(simulation, &no_collective) ? key->why : NULL;
	if (simulation->has_graph)
		return idle_in_graph(simulation, key);
	if (scenario->mode == MODE_FORMULA)
		return "a formula knows no messages: run.mode: packets, or run.mode: flows";
	return scenario->mode == MODE_FLOWS && !key->is_by_flows ? "by flows a step has no pieces: run.mode: packets"
								 : NULL;
}

const char *nccl_keys_idle(const struct simulation *simulation, size_t *place, const char **why)
{
	const struct scenario *scenario = simulation->scenario;

	while (*place < PLACES * sizeof(keys) / sizeof(*keys)) {
		const size_t i = (*place)++, which = i % PLACES;
		const struct nccl_key *key = &keys[i / PLACES];
		if (!scenario_is_given(scenario, key->path[which]) || scenario_is_varied(scenario, key->path[which]) ||
			scenario_is_varied(scenario, key->of[which]))
			continue;
		*why = (which == OF_JOB ? idle_in_job : idle_in_workloads)(simulation, key);
		if (*why)
			return key->path[which];
	}
	return NULL;
}
