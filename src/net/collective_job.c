/* See collective_job.h. */
#include "net/collective_job.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"

/* What a rank remembers: so much and no more, however many messages there are. */
struct collective_rank {
	uint64_t arrived; /* collective_note_arrival */
	uint32_t sent;    /* steps */
};

static void send(const struct collective_job *job, uint32_t rank, uint32_t number, vb_time at, struct job_sink *sink)
{
	const struct collective_step step = job->algorithm->step(&job->of, collective_place_of(&job->of, rank), number);
	const bool is_at_once = job->algorithm->waiting == FOR_ALL_OF_A_HALF;
	sink->send(sink, &(struct message){ .src = rank,
				 .dst = collective_rank_at(&job->of, step.to),
				 .bytes = step.bytes,
				 .start = at,
				 .tag = number,
				 .channel = is_at_once ? 0 : 1 + job->of.turned,
				 .traffic_class = job->of.traffic_class,
				 .tells_arrival = true });
}

static void send_what_may(struct collective_job *job, uint32_t rank, vb_time at, struct job_sink *sink)
{
	struct collective_rank *state = &job->ranks[rank];
	while (state->sent < job->steps &&
		collective_may_send(job->algorithm, job->of.ranks, state->sent, state->arrived))
		send(job, rank, state->sent++, at, sink);
}

static void begin(struct job *job, uint32_t rank, struct job_sink *sink)
{
	struct collective_job *its = (struct collective_job *)job;
	send_what_may(its, rank, its->of.start, sink);
}

static void arrived(struct job *job, uint32_t rank, uint64_t tag, vb_time at, struct job_sink *sink)
{
	struct collective_job *its = (struct collective_job *)job;
	assert(tag < its->steps);
	collective_note_arrival(its->algorithm, its->of.ranks, (uint32_t)tag, &its->ranks[rank].arrived);
	send_what_may(its, rank, at, sink);
}

static const struct job_kind kind = { .begin = begin, .arrived = arrived, .ends_by_arrival = true };

int collective_job_open(struct collective_job *job, const struct collective *of)
{
	const struct collective_algorithm *algorithm = collective_find(of);
	const uint32_t steps = algorithm->steps(of->ranks);
	*job = (struct collective_job){
		.job = { .kind = &kind, .operations = (uint64_t)of->ranks * steps, .ranks = of->ranks },
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
