/* See job.h. */
#include "sim/job.h"

#include <string.h>
#include "net/collectives.h"

vb_time job_completion(const struct simulation *simulation)
{
	const struct fabric_result *result = &simulation->result;
	return simulation->flows.tells_arrivals ? result->last_arrival : result->last_flow;
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
	/* busbw counts what a ring sends, whatever the algorithm: nccl-tests' PERFORMANCE.md. */
	const struct collective ring = {
		.kind = workload->kind, .algorithm = "ring", .ranks = ranks, .bytes = workload->bytes
	};
	const double gb_s = VB_S / 1e9 / (double)time; /* of a byte */
	*bandwidth = (struct job_bandwidth){ .kind = workload->kind,
		.algorithm = *workload->algorithm ? workload->algorithm : collective_algorithm(workload->kind, 0),
		.ranks = ranks,
		.bytes = workload->bytes,
		.time = time,
		.algbw = (double)workload->bytes * gb_s,
		.busbw = collective_law(&ring).bytes * gb_s };
	return true;
}
