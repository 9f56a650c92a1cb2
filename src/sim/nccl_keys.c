/* See nccl_keys.h. */
#include "sim/nccl_keys.h"

#include <string.h>
#include "sim/simulation.h"

#define MANY_BYTES ((uint64_t)1 << 40)

/* Of a part of a collective, and what its workload gives. */
typedef bool idle_test(
	const struct simulation *simulation, const struct collective_job *job, const struct workload *given);

static bool has_one_qp(
	const struct simulation *simulation, const struct collective_job *job, const struct workload *given)
{
	return !given->nccl.is_cut || given->nccl.qps < 2;
}

static bool stays_in_a_host(
	const struct simulation *simulation, const struct collective_job *job, const struct workload *given)
{
	return given->nccl.qps < 2 || job->of.ranks <= job->of.gpus;
}

/* Of one byte there is one part, however many there may be. */
static bool has_no_more_parts(
	const struct simulation *simulation, const struct collective_job *job, const struct workload *given)
{
	struct collective bounded = job->of, free = job->of;

	bounded.bytes = free.bytes = MANY_BYTES;
	bounded.nccl.channels = given->nccl.channels;
	free.nccl.channels = 0;
	return collective_parts(&bounded, &simulation->hosts) == collective_parts(&free, &simulation->hosts);
}

/* What NCCL takes depends on the size, and a table has many. */
static bool has_no_pieces(
	const struct simulation *simulation, const struct collective_job *job, const struct workload *given)
{
	return !given->nccl.buffer || (!job->algorithm->edges && strcmp(given->algorithm, "nccl") != 0);
}

/* `of` is the key that would have to change. */
static const struct {
	const char *path, *of;
	idle_test *is_idle;
	const char *why;
} keys[] = {
	{ "workload.*.nccl.split-data", "workload.*.nccl.qps", has_one_qp, "nccl.qps is 1, and a message goes whole" },
	{ "workload.*.nccl.qps", "hosts.gpus", stays_in_a_host, "all ranks share a host, in which there are no QPs" },
	{ "workload.*.nccl.channels", "workload.*.algorithm", has_no_more_parts,
		"without it no more NICs are used at once" },
	{ "workload.*.nccl.buffsize", "workload.*.algorithm", has_no_pieces,
		"only chain, double-tree and nvls send pieces, and what is sent goes whole" },
};

static bool is_idle_in_all(const struct simulation *simulation, idle_test *is_idle)
{
	for (uint32_t i = 0; i < simulation->collective_count; i++) {
		const uint32_t workload = simulation->workload_of[i];
		if (!is_idle(simulation, &simulation->collectives[i],
			    &simulation->scenario->workloads[workload].workload))
			return false;
	}
	return simulation->collective_count > 0;
}

const char *nccl_keys_idle(const struct simulation *simulation, size_t *place, const char **why)
{
	const struct scenario *scenario = simulation->scenario;

	while (*place < sizeof(keys) / sizeof(*keys)) {
		const size_t i = (*place)++;
		if (!scenario_is_given(scenario, keys[i].path) || scenario_is_varied(scenario, keys[i].path) ||
			scenario_is_varied(scenario, keys[i].of) || !is_idle_in_all(simulation, keys[i].is_idle))
			continue;
		*why = keys[i].why;
		return keys[i].path;
	}
	return NULL;
}
