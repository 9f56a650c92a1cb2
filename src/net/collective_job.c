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

/* A part's QP, in its tag from here on; 0: it is the whole request. */
enum { QP_SHIFT = 32 };

/* Each QP is a connection, and takes a path of its own. */
static void send_by(
	const struct out *out, const struct collective_sent *sent, uint32_t qp, uint64_t bytes, uint64_t tag)
{
	const struct collective *of = &out->job->of;
	out->sink->send(
		out->sink, &(struct message){ .src = out->rank,
				   .dst = rank_at(out->job, out->rank, sent->to),
				   .bytes = bytes,
				   .start = out->at,
				   .tag = tag,
				   .channel = collective_opens_each(out->job->algorithm) ? 0 : 1 + of->part + qp,
				   .part = (uint16_t)of->part,
				   .entropy = (uint16_t)qp,
				   .traffic_class = of->traffic_class,
				   .tells_arrival = true,
				   .is_piece = sent->is_piece,
				   .is_copy = sent->is_copy,
				   .is_of_sum = sent->is_of_sum });
}

static void send(const struct collective_out *calls, const struct collective_sent *sent)
{
	const struct out *out = (const struct out *)calls;
	const struct collective *of = &out->job->of;
	const uint32_t from = place_of(out->job, out->rank);
	const uint32_t cuts = sent->opens ? 1 : collective_cuts(of, from, sent->to);
	if (sent->opens)
		send_by(out, sent, collective_qps(of, from, sent->to), sent->bytes, sent->tag);
	else if (cuts == 1)
		send_by(out, sent, sent->turn % collective_qps(of, from, sent->to), sent->bytes, sent->tag);
	for (uint32_t qp = 0; cuts > 1 && qp < cuts; qp++)
		send_by(out, sent, qp, collective_cut(sent->bytes, cuts, qp),
			sent->tag | (uint64_t)(qp + 1) << QP_SHIFT);
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

/* Whether this was all of a request. */
static bool is_whole(const struct collective_job *job, struct number_map *parts, uint64_t tag, struct job_sink *sink)
{
	const uint32_t qp = (uint32_t)(tag >> QP_SHIFT);
	if (qp == 0)
		return true;
	const int came = collective_cut_came(parts, (uint32_t)tag, job->of.nccl.qps, qp - 1);
	if (came < 0)
		sink->lack_memory(sink);
	return came > 0;
}

static void arrived(
	struct job *job, uint32_t rank, uint64_t tag, vb_time at, const void *carried, struct job_sink *sink)
{
	struct collective_job *its = (struct collective_job *)job;
	if (its->cut && !is_whole(its, &its->cut[index_of(its, rank)].came, tag, sink))
		return;
	collective_part_arrived(&its->of, its->algorithm, part_of(its, rank), (uint32_t)tag);
	go_on(its, rank, at, sink);
}

static void ended(struct job *job, uint32_t rank, uint64_t tag, vb_time at, const struct flow_result *result,
	const void *carried, struct job_sink *sink)
{
	struct collective_job *its = (struct collective_job *)job;
	(void)result;
	if (its->cut && !is_whole(its, &its->cut[index_of(its, rank)].ended, tag, sink))
		return;
	if (collective_part_ended(its->algorithm, part_of(its, rank), (uint32_t)tag))
		go_on(its, rank, at, sink);
}

static const struct job_kind kind = { .begin = begin, .arrived = arrived, .ended = ended, .ends_by_arrival = true };

int collective_job_open(struct collective_job *job, const struct collective *of, const struct rank_groups *groups)
{
	const struct collective_algorithm *algorithm = collective_find(of);
	const size_t ranks = (size_t)groups->count * groups->size;
	const bool is_cut = of->nccl.is_cut && of->nccl.qps > 1;
	assert(of->ranks == groups->size && of->nccl.qps <= COLLECTIVE_MOST_QPS);
	*job = (struct collective_job){ .job = { .kind = &kind,
						.operations = groups->count * collective_cut_messages(of, algorithm),
						.ranks = groups->ranks,
						.rails = of->rails },
		.of = *of,
		.algorithm = algorithm,
		.groups = groups,
		.parts = calloc(ranks, sizeof(*job->parts)),
		.cut = is_cut ? calloc(ranks, sizeof(*job->cut)) : NULL };
	if (job->parts && (job->cut || !is_cut))
		return 0;
	collective_job_close(job);
	return -ENOMEM;
}

void collective_job_close(struct collective_job *job)
{
	for (size_t i = 0; job->cut && i < (size_t)job->groups->count * job->groups->size; i++) {
		number_map_free(&job->cut[i].came);
		number_map_free(&job->cut[i].ended);
	}
	free(job->cut);
	free(job->parts);
	*job = (struct collective_job){ 0 };
}
