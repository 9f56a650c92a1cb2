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

/* ---- Ranks and places -------------------------------------------------------------------------------------------- */

static uint32_t index_of(const struct collective_job *job, uint32_t rank)
{
	assert(rank < job->groups->ranks && job->groups->index_of[rank] != RANK_GROUPS_NONE);
	return job->groups->index_of[rank];
}

static uint32_t place_of(const struct collective_job *job, uint32_t rank)
{
	return collective_place_of(&job->of, index_of(job, rank) % job->of.ranks);
}

/* The rank of the run that is at this place of the same group. */
static uint32_t rank_at(const struct collective_job *job, uint32_t rank, uint32_t place)
{
	const uint32_t index = index_of(job, rank);
	return job->groups->rank_at[index - index % job->of.ranks + collective_rank_at(&job->of, place)];
}

uint32_t collective_job_sends(const struct collective_job *job, uint32_t rank)
{
	return collective_sends(&job->of, job->algorithm, place_of(job, rank));
}

struct collective_step collective_job_message(const struct collective_job *job, uint32_t rank, uint32_t number)
{
	struct collective_step step = collective_message(&job->of, job->algorithm, place_of(job, rank), number);
	step.to = rank_at(job, rank, step.to);
	return step;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

/* In a message's tag, which of its request it is (struct collective_sent). */
enum { CUT_SHIFT = 32 };

/* Each QP is a connection, and takes a path of its own. */
static void send(const struct collective_out *calls, const struct collective_sent *sent)
{
	const struct out *out = (const struct out *)calls;
	const struct collective *of = &out->job->of;
	out->sink->send(
		out->sink, &(struct message){ .src = out->rank,
				   .dst = rank_at(out->job, out->rank, sent->to),
				   .bytes = sent->bytes,
				   .start = out->at,
				   .tag = sent->tag | (uint64_t)sent->cut << CUT_SHIFT,
				   .channel = collective_opens_each(out->job->algorithm) ? 0 : 1 + of->part + sent->qp,
				   .part = (uint16_t)of->part,
				   .entropy = (uint16_t)sent->qp,
				   .traffic_class = of->traffic_class,
				   .tells_arrival = true,
				   .is_piece = sent->is_piece,
				   .is_copy = sent->is_copy,
				   .is_of_sum = sent->is_of_sum });
}

static struct collective_part *part_of(const struct collective_job *job, uint32_t rank)
{
	return &job->parts[index_of(job, rank)];
}

static void go_on(struct collective_job *job, uint32_t rank, vb_time at, struct job_sink *sink)
{
	const struct out out = { { send }, job, sink, rank, at };
	collective_part_go_on(&job->of, job->algorithm, place_of(job, rank), part_of(job, rank), &out.calls);
}

static void begin(struct job *job, uint32_t rank, struct job_sink *sink)
{
	struct collective_job *its = (struct collective_job *)job;
	if (its->groups->index_of[rank] != RANK_GROUPS_NONE)
		go_on(its, rank, its->of.start, sink);
}

static void go_on_if(int may, struct collective_job *job, uint32_t rank, vb_time at, struct job_sink *sink)
{
	if (may < 0)
		sink->lack_memory(sink);
	else if (may > 0)
		go_on(job, rank, at, sink);
}

static void arrived(
	struct job *job, uint32_t rank, uint64_t tag, vb_time at, const void *carried, struct job_sink *sink)
{
	struct collective_job *its = (struct collective_job *)job;
	const int may = collective_part_arrived(
		&its->of, its->algorithm, part_of(its, rank), (uint32_t)tag, (uint32_t)(tag >> CUT_SHIFT));
	go_on_if(may, its, rank, at, sink);
}

static void ended(struct job *job, uint32_t rank, uint64_t tag, vb_time at, const struct flow_result *result,
	const void *carried, struct job_sink *sink)
{
	struct collective_job *its = (struct collective_job *)job;
	(void)result;
	const int may = collective_part_ended(
		&its->of, its->algorithm, part_of(its, rank), (uint32_t)tag, (uint32_t)(tag >> CUT_SHIFT));
	go_on_if(may, its, rank, at, sink);
}

static const struct job_kind kind = { .begin = begin, .arrived = arrived, .ended = ended, .ends_by_arrival = true };

int collective_job_open(struct collective_job *job, const struct collective *of, const struct rank_groups *groups)
{
	const struct collective_algorithm *algorithm = collective_find(of);
	const size_t ranks = (size_t)groups->count * groups->size;
	assert(of->ranks == groups->size && of->nccl.qps <= COLLECTIVE_MOST_QPS);
	*job = (struct collective_job){ .job = { .kind = &kind,
						.operations = groups->count * collective_cut_messages(of, algorithm),
						.ranks = groups->ranks,
						.rails = of->nccl.rails },
		.of = *of,
		.algorithm = algorithm,
		.groups = groups,
		.parts = calloc(ranks, sizeof(*job->parts)) };
	return job->parts ? 0 : -ENOMEM;
}

void collective_job_close(struct collective_job *job)
{
	for (size_t i = 0; job->parts && i < (size_t)job->groups->count * job->groups->size; i++)
		collective_part_close(&job->parts[i]);
	free(job->parts);
	*job = (struct collective_job){ 0 };
}
