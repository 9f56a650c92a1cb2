/* See collective_job.h. */
#include "net/collective_job.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"

/* What a rank remembers: so much and no more, however many messages there are. */
struct collective_rank {
	uint64_t arrived; /* FOR_ALL_BEFORE: a bit for each step; FOR_ALL_OF_A_HALF: how many of the first half */
	uint32_t sent;    /* FOR_ALL_BEFORE: steps */
};

static void send(const struct collective_job *job, uint32_t rank, uint32_t number, vb_time at, struct job_sink *sink)
{
	const struct collective_step step = job->algorithm->step(&job->of, rank, number);
	const bool is_at_once = job->algorithm->waiting == FOR_ALL_OF_A_HALF;
	sink->send(sink, &(struct message){ .src = rank,
				 .dst = step.to,
				 .bytes = step.bytes,
				 .start = at,
				 .tag = number,
				 .channel = is_at_once ? 0 : 1,
				 .traffic_class = job->of.traffic_class,
				 .tells_arrival = true });
}

/* The first step, or where a rank sends to all at once, all of the first half. */
static void begin(struct job *job, uint32_t rank, struct job_sink *sink)
{
	struct collective_job *its = (struct collective_job *)job;
	const bool is_at_once = its->algorithm->waiting == FOR_ALL_OF_A_HALF;
	its->ranks[rank].sent = is_at_once ? its->of.ranks - 1 : 1;
	for (uint32_t step = 0; step < its->ranks[rank].sent; step++)
		send(its, rank, step, its->of.start, sink);
}

static void send_what_may(struct collective_job *its, uint32_t rank, vb_time at, struct job_sink *sink)
{
	struct collective_rank *state = &its->ranks[rank];
	while (state->sent < its->steps && (~state->arrived & ((1ull << state->sent) - 1)) == 0)
		send(its, rank, state->sent++, at, sink);
}

static void arrived(struct job *job, uint32_t rank, uint64_t tag, vb_time at, struct job_sink *sink)
{
	struct collective_job *its = (struct collective_job *)job;
	struct collective_rank *state = &its->ranks[rank];
	const uint32_t others = its->of.ranks - 1;
	assert(tag < its->steps);
	switch (its->algorithm->waiting) {
	case FOR_THE_LAST:
		if (tag + 1 < its->steps)
			send(its, rank, (uint32_t)tag + 1, at, sink);
		break;
	case FOR_ALL_BEFORE:
		state->arrived |= 1ull << tag;
		send_what_may(its, rank, at, sink);
		break;
	case FOR_ALL_OF_A_HALF:
		if (tag < others && ++state->arrived == others)
			for (uint32_t step = others; step < its->steps; step++)
				send(its, rank, step, at, sink);
		break;
	}
}

static const struct job_kind kind = { .begin = begin, .arrived = arrived, .ends_by_arrival = true };

int collective_job_open(struct collective_job *job, const struct collective *of)
{
	const struct collective_algorithm *algorithm = collective_find(of);
	const uint32_t steps = algorithm->steps(of->ranks);
	*job = (struct collective_job){
		.job = { .kind = &kind, .operations = (uint64_t)of->ranks * steps, .endpoints = of->ranks },
		.of = *of,
		.algorithm = algorithm,
		.steps = steps,
		.ranks = calloc(of->ranks, sizeof(*job->ranks))
	};
	return job->ranks ? 0 : -ENOMEM;
}

void collective_job_close(struct collective_job *job)
{
	free(job->ranks);
	*job = (struct collective_job){ 0 };
}
