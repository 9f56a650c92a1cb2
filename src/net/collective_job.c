/* See collective_job.h. */
#include "net/collective_job.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"

/* For one call. */
struct out {
	struct collective_out calls;
	const struct collective_job *job;
	struct job_sink *sink;
	uint32_t rank;
	vb_time at;
};

static void send(const struct collective_out *calls, const struct collective_sent *sent)
{
	const struct out *out = (const struct out *)calls;
	const struct collective *of = &out->job->of;
	out->sink->send(out->sink, &(struct message){ .src = out->rank,
					   .dst = collective_rank_at(of, sent->to),
					   .bytes = sent->bytes,
					   .start = out->at,
					   .tag = sent->tag,
					   .channel = collective_opens_each(out->job->algorithm) ? 0 : 1 + of->turned,
					   .traffic_class = of->traffic_class,
					   .tells_arrival = true,
					   .is_copy = sent->is_copy,
					   .is_of_sum = sent->is_of_sum });
}

static struct collective_part *part_of(const struct collective_job *job, uint32_t rank)
{
	assert(rank >= job->of.first && rank - job->of.first < job->of.ranks);
	return &job->parts[rank - job->of.first];
}

static void go_on(struct collective_job *job, uint32_t rank, vb_time at, struct job_sink *sink)
{
	const struct out out = { { send }, job, sink, rank, at };
	collective_part_go_on(
		&job->of, job->algorithm, collective_place_of(&job->of, rank), part_of(job, rank), &out.calls);
}

static void begin(struct job *job, uint32_t rank, struct job_sink *sink)
{
	struct collective_job *its = (struct collective_job *)job;
	if (rank >= its->of.first)
		go_on(its, rank, its->of.start, sink);
}

static void arrived(struct job *job, uint32_t rank, uint64_t tag, vb_time at, struct job_sink *sink)
{
	struct collective_job *its = (struct collective_job *)job;
	collective_part_arrived(&its->of, its->algorithm, part_of(its, rank), (uint32_t)tag);
	go_on(its, rank, at, sink);
}

static void ended(struct job *job, uint32_t rank, uint64_t tag, vb_time at, const struct flow_result *result,
	struct job_sink *sink)
{
	struct collective_job *its = (struct collective_job *)job;
	(void)result;
	if (collective_part_ended(its->algorithm, part_of(its, rank), (uint32_t)tag))
		go_on(its, rank, at, sink);
}

static const struct job_kind kind = { .begin = begin, .arrived = arrived, .ended = ended, .ends_by_arrival = true };

int collective_job_open(struct collective_job *job, const struct collective *of)
{
	const struct collective_algorithm *algorithm = collective_find(of);
	*job = (struct collective_job){
		.job = { .kind = &kind, .operations = collective_messages(of), .ranks = of->first + of->ranks },
		.of = *of,
		.algorithm = algorithm,
		.parts = calloc(of->ranks, sizeof(*job->parts))
	};
	return job->parts ? 0 : -ENOMEM;
}

void collective_job_close(struct collective_job *job)
{
	free(job->parts);
	*job = (struct collective_job){ 0 };
}
