/* Workloads of kind rl: weights from trainers to replicas, and rollouts back. */
#include <inttypes.h>
#include "sim/services.h"
#include "sim/simulation.h"

enum { WEIGHT_BYTES = 2 }; /* of a parameter */

static int open_weights(struct service *service, const struct simulation *simulation, char *why, unsigned why_size)
{
	const struct scenario_workload *given = &simulation->scenario->workloads[service->workload];
	struct weights of = { .first = given->workload.first,
		.trainers = given->service.trainers,
		.replicas = given->service.replicas,
		.shards = given->step.plan.tp,
		.piece = given->service.piece,
		.rollout = given->service.rollout,
		.shape = given->service.shape == SERVICE_TREE ? WEIGHTS_TREE : WEIGHTS_CHAIN,
		.start = given->workload.start,
		.traffic_class = given->workload.traffic_class };
	int rc = service_bytes(simulation, service->workload, WEIGHT_BYTES, &of.bytes, why, why_size);

	if (!rc)
		rc = weights_check(&of, why, why_size);
	if (!rc)
		rc = service_check_ranks(simulation, of.first, weights_ranks(&of), "replicas", why, why_size);
	if (!rc)
		rc = weights_job_open(&service->weights, &of);
	service->job = &service->weights.job;
	return rc;
}

static struct service_load load(const struct service *service)
{
	const struct weights *of = &service->weights.of;
	return (struct service_load){ .messages = (double)service->job->operations,
		.bytes = (double)of->bytes * of->replicas + (double)of->rollout * of->replicas,
		.open = 2 * service->weights.parts * of->replicas,
		.from = of->first,
		.to = of->first + of->trainers };
}

static void put_time(FILE *out, const char *what, vb_time time)
{
	char text[32];
	fprintf(out, "%s %s", what, time < 0 ? "-" : value_time_text(time, text, sizeof(text)));
}

static void tell(const struct service *service, const struct simulation *simulation, FILE *out)
{
	const struct weights *of = &service->weights.of;
	const vb_time spread = weights_job_spread(&service->weights);
	char bytes[32];

	(void)simulation;
	fprintf(out,
		"rl %" PRIu32 ": weights of %s from %" PRIu32 " trainers to %" PRIu32 " replicas of %" PRIu32
		" ranks, by a %s",
		service->workload, value_bytes_text(of->bytes, bytes, sizeof(bytes)), of->trainers, of->replicas,
		of->shards, of->shape == WEIGHTS_TREE ? "tree" : "chain");
	put_time(out, ": all have them at", spread);
	if (spread > 0)
		fprintf(out, " (%.2f GB/s a replica)", (double)of->bytes / 1e9 / ((double)spread / VB_S));
	if (of->rollout)
		put_time(out, ", rollouts are back at", weights_job_back(&service->weights));
	fputc('\n', out);
}

static void tell_json(const struct service *service, const struct simulation *simulation, FILE *out)
{
	(void)simulation;
	fprintf(out,
		", \"bytes\": %" PRIu64 ", \"replicas\": %" PRIu32 ", \"weights_ps\": %" PRId64
		", \"rollouts_ps\": %" PRId64,
		service->weights.of.bytes, service->weights.of.replicas, weights_job_spread(&service->weights),
		weights_job_back(&service->weights));
}

static void close_weights(struct service *service)
{
	weights_job_close(&service->weights);
}

const struct service_kind service_weights = { "rl", open_weights, load, tell, tell_json, close_weights };
