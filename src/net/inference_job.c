/* See inference_job.h. Holds: what is kept of a request's part is written in calls for the rank that gets it. */
#include "net/inference_job.h"
#include <errno.h>
#include <stdlib.h>
#include "net/why.h"

#define MOST_RANKS    (1u << 20)
#define MOST_REQUESTS 1000000
#define MOST_MESSAGES (1u << 26)
#define MOST_TOKENS   (1ull << 30)
#define MOST_TIME     ((vb_time)40 * 86400 * VB_S)

static struct inference_job *of_job(struct job *job)
{
	return (struct inference_job *)job;
}

uint64_t inference_ranks(const struct inference *of)
{
	return ((uint64_t)of->prefill + of->decode) * of->tp;
}

static uint64_t bytes_of(const struct inference_job *job, uint32_t request, uint32_t place)
{
	const uint64_t bytes = job->of.kv_bytes * job->requests->list[request].input;
	const uint64_t its = bytes / job->of.tp + (place < bytes % job->of.tp);
	return its ? its : 1;
}

int inference_check(const struct inference *of, const struct inference_requests *requests, char *why, unsigned why_size)
{
	uint64_t tokens = 0;
	vb_time busy = 0;
	if (!of->prefill || !of->decode || !of->tp || !of->batch)
		return why_not(why, why_size, "%s: none; write 1 or more",
			!of->prefill  ? "prefill"
			: !of->decode ? "decode"
			: !of->tp     ? "tp"
				      : "batch");
	if (of->prefill > MOST_RANKS || of->decode > MOST_RANKS || inference_ranks(of) > MOST_RANKS)
		return why_not(why, why_size, "prefill: more ranks than a run takes; write fewer");
	if (requests->count > MOST_REQUESTS || (uint64_t)requests->count * of->tp > MOST_MESSAGES)
		return why_not(why, why_size, "requests: more messages than a run takes; write fewer");
	for (uint32_t i = 0; i < requests->count; i++) {
		tokens += requests->list[i].output;
		if (requests->list[i].prefill > MOST_TIME - busy)
			return why_not(why, why_size,
				"requests: their prefills take more than 40 days; write fewer, or a faster GPU");
		busy += requests->list[i].prefill;
	}
	if (tokens > MOST_TOKENS)
		return why_not(why, why_size, "requests: more than 2^30 tokens to decode; write fewer");
	return 0;
}

/* ---- Prefill ----------------------------------------------------------------------------------------------------- */

/* Each request goes to the group that is free first; of several, the lowest. */
static void schedule(struct inference_job *job, vb_time *free_at)
{
	for (uint32_t i = 0; i < job->requests->count; i++) {
		const struct inference_request *its = &job->requests->list[i];
		uint32_t group = 0;
		for (uint32_t k = 1; k < job->of.prefill; k++)
			group = free_at[k] < free_at[group] ? k : group;
		const vb_time arrival = job->of.start + its->arrival;
		free_at[group] = (free_at[group] > arrival ? free_at[group] : arrival) + its->prefill;
		job->ready[i] = free_at[group];
		job->group_of[i] = group;
		job->group_first[group + 1]++;
	}
}

static int plan(struct inference_job *job)
{
	vb_time *free_at = calloc(job->of.prefill, sizeof(*free_at));
	uint32_t *next = calloc(job->of.prefill, sizeof(*next));
	if (free_at && next) {
		schedule(job, free_at);
		for (uint32_t k = 0; k < job->of.prefill; k++) {
			next[k] = job->group_first[k];
			job->group_first[k + 1] += next[k];
		}
		for (uint32_t i = 0; i < job->requests->count; i++)
			job->order[next[job->group_of[i]]++] = i;
	}
	const int rc = free_at && next ? 0 : -ENOMEM;
	free(free_at);
	free(next);
	return rc;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

/* The tag is a request's place in the order. */
static void send(const struct inference_job *job, uint32_t rank, uint32_t at, struct job_sink *sink)
{
	const struct inference *of = &job->of;
	const uint32_t request = job->order[at], place = (rank - of->first) % of->tp;
	sink->send(sink, &(struct message){ .src = rank,
				 .dst = of->first + (of->prefill + request % of->decode) * of->tp + place,
				 .bytes = bytes_of(job, request, place),
				 .start = job->ready[request],
				 .tag = at,
				 .part = (uint16_t)request,
				 .entropy = (uint16_t)request,
				 .traffic_class = of->traffic_class,
				 .tells_arrival = true });
}

static void begin(struct job *job, uint32_t rank, struct job_sink *sink)
{
	const struct inference_job *its = of_job(job);
	if (rank < its->of.first || rank - its->of.first >= its->of.prefill * its->of.tp)
		return;
	const uint32_t group = (rank - its->of.first) / its->of.tp;
	if (its->group_first[group] < its->group_first[group + 1])
		send(its, rank, its->group_first[group], sink);
}

static void begun(struct job *job, uint32_t rank, uint64_t tag, struct job_sink *sink)
{
	const struct inference_job *its = of_job(job);
	const uint32_t group = (rank - its->of.first) / its->of.tp;
	if (tag + 1 < its->group_first[group + 1])
		send(its, rank, (uint32_t)tag + 1, sink);
}

static void arrived(
	struct job *job, uint32_t rank, uint64_t tag, vb_time at, const void *carried, struct job_sink *sink)
{
	const struct inference_job *its = of_job(job);
	(void)carried;
	(void)sink;
	its->came[(size_t)its->order[tag] * its->of.tp + (rank - its->of.first) % its->of.tp] = at;
}

static const struct job_kind kind = { .begin = begin, .begun = begun, .arrived = arrived, .ends_by_arrival = true };

int inference_job_open(struct inference_job *job, const struct inference *of, const struct inference_requests *requests)
{
	const size_t parts = (size_t)requests->count * of->tp;
	*job = (struct inference_job){
		.job = { .kind = &kind, .operations = parts, .ranks = of->first + (uint32_t)inference_ranks(of) },
		.of = *of,
		.requests = requests,
		.order = calloc(requests->count, sizeof(*job->order)),
		.group_first = calloc((size_t)of->prefill + 1, sizeof(*job->group_first)),
		.group_of = calloc(requests->count, sizeof(*job->group_of)),
		.ready = calloc(requests->count, sizeof(*job->ready)),
		.came = calloc(parts, sizeof(*job->came))
	};
	const bool has_all = job->order && job->group_first && job->group_of && job->ready && job->came;
	if (!has_all || plan(job)) {
		inference_job_close(job);
		return -ENOMEM;
	}
	for (size_t i = 0; i < parts; i++)
		job->came[i] = -1;
	return 0;
}

void inference_job_close(struct inference_job *job)
{
	free(job->order);
	free(job->group_first);
	free(job->group_of);
	free(job->ready);
	free(job->came);
	*job = (struct inference_job){ 0 };
}
