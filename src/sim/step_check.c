/* See step_check.h. */
#include "sim/step_check.h"

#include <errno.h>
#include <string.h>
#include "sim/estimate.h"
#include "sim/flow_check.h"
#include "sim/memory_limit.h"
#include "sim/step_job.h"
#include "steps/piece.h"

enum { TRIES = 4 };

struct run {
	struct step_plan plan; /* the piece's */
	struct step_job job;
};

static int open_run(const struct simulation *simulation, const struct step *step, struct run *run,
	const struct step_check *check, char *why, size_t size)
{
	run->plan = piece_of(&step->plan, check->bytes_part);
	return step_job_open(simulation, &run->plan, &run->job, why, size);
}

/* As many bytes as the limit allows: a message has at least one packet, so fewer bytes may be no fewer packets. */
static int open_largest(const struct simulation *simulation, const struct step *step, double packet_hops,
	struct run *run, struct step_check *check, char *why, size_t size)
{
	struct estimate estimate = { 0 };

	for (unsigned i = 0; i < TRIES; i++) {
		int rc = open_run(simulation, step, run, check, why, size);
		if (rc)
			return rc;
		estimate_run(&run->job.with, &estimate);
		if (estimate.packet_hops <= packet_hops)
			return 0;
		step_job_close(&run->job);
		check->bytes_part *= 0.99 * packet_hops / estimate.packet_hops;
	}
	snprintf(check->why_not, sizeof(check->why_not),
		"the messages of one layer and micro-batch a stage alone are %.2g packet-hops by packets, and a check "
		"has %.2g",
		estimate.packet_hops, packet_hops);
	return 0;
}

/* ---- Both ways --------------------------------------------------------------------------------------------------- */

static int run_fast(const struct step *step, const struct run *run, struct step_check *check)
{
	int rc = timing_run(&run->plan, &step->network, &check->ours);

	if (rc == -EHOSTUNREACH) {
		snprintf(check->why_not, sizeof(check->why_not), "the piece waits for a link that stays down");
		return 0;
	}
	if (!rc)
		rc = step_graph_account(&run->plan, &run->job.with.graph_job, &check->packets);
	check->is_made = !rc;
	return rc;
}

static int run_packets(const struct step *step, const struct run *run, struct step_check *check, char *why, size_t size)
{
	struct fabric_result result = { 0 };
	int rc = fabric_run(&run->job.with.config, &result, why, (unsigned)size);

	if (rc == -EINVAL)
		snprintf(check->why_not, sizeof(check->why_not), "by packets it cannot run: %s", why);
	if (rc)
		return rc == -EINVAL ? 0 : rc;
	check->packet_hops = result.packet_hops;
	check->cpu_s = result.cpu_s + result.setup_cpu_s;
	check->drops = result.drops + result.lost;
	check->pauses = result.pauses;
	check->resent = result.resent_packets;
	if (result.end == FABRIC_STOPPED)
		snprintf(check->why_not, sizeof(check->why_not), "it was interrupted");
	else if (result.end == FABRIC_LIMIT)
		snprintf(check->why_not, sizeof(check->why_not), "by packets the piece reaches run.limit");
	else if (result.end == FABRIC_MEMORY)
		snprintf(check->why_not, sizeof(check->why_not), "by packets the piece has not enough memory");
	else if (result.end != FABRIC_DONE || result.flows_failed)
		snprintf(check->why_not, sizeof(check->why_not), "by packets the piece does not come to its end");
	else
		rc = run_fast(step, run, check);
	fabric_result_free(&result);
	return rc;
}

static int check_memory(const struct step *step, struct step_check *check)
{
	const struct step_plan piece = piece_of(&step->plan, check->bytes_part);
	uint64_t operations, bytes;
	int rc = step_graph_size(&piece, &operations, &bytes);

	check->layers = piece.model.layers;
	check->micro_batches = plan_micro_batches(&piece);
	if (!rc && bytes > memory_limit(""))
		snprintf(check->why_not, sizeof(check->why_not),
			"the piece needs %.1f GB of memory by packets, for %.3g M operations", (double)bytes / 1e9,
			(double)operations / 1e6);
	return rc;
}

int step_check_run(const struct simulation *simulation, const struct step *step, const struct check_limit *limit,
	struct step_check *check, char *why, size_t size)
{
	struct run run = { 0 };

	*check = (struct step_check){ .bytes_part = limit->bytes_part > 0 ? limit->bytes_part : 1 };
	int rc = check_memory(step, check);
	if (rc || *check->why_not)
		return rc;
	if (limit->bytes_part > 0)
		rc = open_run(simulation, step, &run, check, why, size);
	else
		rc = open_largest(simulation, step, limit->packet_hops, &run, check, why, size);
	if (!rc && !*check->why_not)
		rc = run_packets(step, &run, check, why, size);
	step_job_close(&run.job);
	return rc;
}
