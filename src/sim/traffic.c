/* See traffic.h. */
#include "sim/traffic.h"

#include "base/invariant.h"

enum { STEPS_SEEN = 16 };

static void count(struct traffic *traffic, uint64_t bytes, double times, const struct fabric_config *config)
{
	const uint32_t every = config->ack_every ? config->ack_every : 16; /* 0: as sockets do, by bytes */
	const uint64_t packets = (bytes + config->mtu - 1) / config->mtu;

	traffic->messages += times;
	traffic->bytes += (double)bytes * times;
	traffic->packets += (double)packets * times;
	traffic->acks += (double)((packets + every - 1) / every) * times;
}

/* All ranks send what the first does, but for a byte. */
static void count_collective(
	struct traffic *traffic, const struct collective_job *job, const struct fabric_config *config)
{
	for (uint32_t step = 0; step < job->steps; step++)
		count(traffic, job->algorithm->step(&job->of, 0, step).bytes, job->of.ranks, config);
	traffic->classes |= (uint8_t)(1u << job->of.traffic_class);
}

struct traffic traffic_of(const struct simulation *simulation)
{
	const struct flow_list *list = &simulation->flows;
	struct traffic traffic = { 0 };

	for (uint32_t i = 0; i < list->count; i++) {
		count(&traffic, list->flows[i].bytes, 1, &simulation->config);
		traffic.classes |= (uint8_t)(1u << list->flows[i].traffic_class);
	}
	for (uint32_t i = 0; i < simulation->job_count; i++)
		count_collective(&traffic, &simulation->collectives[i], &simulation->config);
	return traffic;
}

static uint32_t steps_seen(const struct collective_job *job)
{
	return job->steps < STEPS_SEEN ? job->steps : STEPS_SEEN;
}

uint64_t traffic_flows(const struct simulation *simulation)
{
	uint64_t flows = simulation->flows.count;

	for (uint32_t i = 0; i < simulation->job_count; i++)
		flows += (uint64_t)simulation->collectives[i].of.ranks * steps_seen(&simulation->collectives[i]);
	return flows;
}

struct flow traffic_flow(const struct simulation *simulation, uint64_t number)
{
	const struct collective_job *job = simulation->collectives;

	if (number < simulation->flows.count)
		return simulation->flows.flows[number];
	number -= simulation->flows.count;
	for (; number >= (uint64_t)job->of.ranks * steps_seen(job); job++)
		number -= (uint64_t)job->of.ranks * steps_seen(job);
	assert(job < simulation->collectives + simulation->job_count);
	const uint32_t rank = (uint32_t)(number / steps_seen(job));
	const struct collective_step step = job->algorithm->step(&job->of, rank, (uint32_t)(number % steps_seen(job)));
	return (struct flow){ .src = rank,
		.dst = step.to,
		.bytes = step.bytes,
		.start = job->of.start,
		.traffic_class = job->of.traffic_class };
}
