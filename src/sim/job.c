/* See job.h. */
#include "sim/job.h"

#include <string.h>
#include "net/collectives.h"

bool job_bandwidth(const struct simulation *simulation, struct job_bandwidth *bandwidth)
{
	const struct fabric_result *result = &simulation->result;

	if (!simulation->given.ranks || simulation->scenario->workload_count != 1 || simulation->flows.count ||
		result->end != FABRIC_DONE || result->flows_failed)
		return false;
	const struct collective *of = &simulation->given;
	if (strcmp(of->kind, "barrier") == 0)
		return false;
	const vb_time time = result->last_flow - of->start;
	const double gb_s = VB_S / 1e9 / (double)time; /* of a byte */
	*bandwidth = (struct job_bandwidth){ .kind = of->kind,
		.algorithm = of->algorithm,
		.ranks = of->ranks,
		.groups = simulation->groups[0].count,
		.bytes = of->bytes,
		.time = time,
		.algbw = (double)of->bytes * gb_s,
		.busbw = collective_busbw(of) * (double)of->bytes * gb_s };
	return true;
}
