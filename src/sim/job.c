/* See job.h. */
#include "sim/job.h"

#include <string.h>
#include "net/collectives.h"

vb_time job_completion(const struct simulation *simulation)
{
	const struct fabric_result *result = &simulation->result;
	return simulation->flows.tells_arrivals ? result->last_arrival : result->last_flow;
}

/* busbw over algbw, of n ranks: nccl-tests' PERFORMANCE.md. */
static double bus_factor(const char *kind, double n)
{
	return strcmp(kind, "allreduce") == 0 ? 2 * (n - 1) / n : (n - 1) / n;
}

bool job_bandwidth(const struct simulation *simulation, struct job_bandwidth *bandwidth)
{
	const struct scenario *scenario = simulation->scenario;
	const struct fabric_result *result = &simulation->result;

	if (!simulation->flows.tells_arrivals || scenario->workload_count != 1 || result->end != FABRIC_DONE ||
		result->flows_failed)
		return false;
	const struct workload *workload = &scenario->workloads[0].workload;
	if (!collective_is_kind(workload->kind) || strcmp(workload->kind, "barrier") == 0)
		return false;
	const uint32_t ranks = workload->endpoints ? workload->endpoints : simulation->network.endpoint_count;
	const vb_time time = job_completion(simulation) - workload->start;
	const double algbw = (double)workload->bytes * VB_S / 1e9 / (double)time;
	*bandwidth = (struct job_bandwidth){ .kind = workload->kind,
		.algorithm = *workload->algorithm ? workload->algorithm : *collective_algorithms(workload->kind),
		.ranks = ranks,
		.bytes = workload->bytes,
		.time = time,
		.algbw = algbw,
		.busbw = algbw * bus_factor(workload->kind, ranks) };
	return true;
}
