/* Decoding, of inference_job.h: each group decodes a batch step by step, and requests join and leave it between steps.
 */
#include <errno.h>
#include <stdlib.h>
#include "net/inference_job.h"

/* A group. Requests wait in the order in which their KV came. */
struct decoding {
	const struct inference_job *job;
	struct inference_times *times;
	uint32_t *waiting, *batch, *left; /* requests; tokens that are left, by request */
	uint32_t waiting_count, next, batch_count;
	uint64_t context; /* tokens of all in the batch */
	vb_time now;
};

struct coming {
	vb_time at;
	uint32_t request;
};

static int by_coming(const void *a, const void *b)
{
	const struct coming *one = a, *other = b;
	return one->at != other->at ? (one->at > other->at) - (one->at < other->at)
				    : (one->request > other->request) - (one->request < other->request);
}

/* When all parts of its KV had come; -1: never. */
static vb_time coming_of(const struct inference_job *job, uint32_t request)
{
	vb_time last = -1;
	for (uint32_t k = 0; k < job->of.tp; k++) {
		const vb_time its = job->came[(size_t)request * job->of.tp + k];
		if (its < 0)
			return -1;
		last = its > last ? its : last;
	}
	return last;
}

/* The first token is the prefill's: it counts from when the request can be decoded. */
static uint32_t list_group(
	const struct inference_job *job, uint32_t group, struct inference_times *times, struct coming *list)
{
	uint32_t count = 0;
	for (uint32_t i = group; i < job->requests->count; i += job->of.decode) {
		const vb_time at = coming_of(job, i);
		times[i] = (struct inference_times){ at, -1 };
		if (at >= 0)
			list[count++] = (struct coming){ at, i };
	}
	qsort(list, count, sizeof(*list), by_coming);
	return count;
}

static void join(struct decoding *group)
{
	const struct inference_requests *requests = group->job->requests;
	if (group->batch_count == 0 && group->next < group->waiting_count) {
		const vb_time at = group->times[group->waiting[group->next]].first;
		group->now = at > group->now ? at : group->now;
	}
	while (group->next < group->waiting_count && group->batch_count < group->job->of.batch &&
		group->times[group->waiting[group->next]].first <= group->now) {
		const uint32_t request = group->waiting[group->next++];
		group->left[request] = requests->list[request].output - 1;
		if (!group->left[request]) {
			group->times[request].last = group->times[request].first;
			continue;
		}
		group->context += requests->list[request].input + 1;
		group->batch[group->batch_count++] = request;
	}
}

static vb_time step_time(const struct decoding *group)
{
	const struct inference *of = &group->job->of;
	const double weights = of->one_ps * group->batch_count;
	const double takes = (weights < of->all_ps ? weights : of->all_ps) + of->kv_ps * (double)group->context;
	const vb_time left = INT64_MAX / 2 - group->now; /* a slow memory may take longer than a time can tell */
	return takes < (double)left ? (vb_time)takes : left;
}

static void step(struct decoding *group)
{
	const struct inference_requests *requests = group->job->requests;
	uint32_t kept = 0;
	group->now += step_time(group);
	group->context += group->batch_count;
	for (uint32_t i = 0; i < group->batch_count; i++) {
		const uint32_t request = group->batch[i];
		if (--group->left[request] > 0) {
			group->batch[kept++] = request;
			continue;
		}
		group->times[request].last = group->now;
		group->context -= (uint64_t)requests->list[request].input + requests->list[request].output;
	}
	group->batch_count = kept;
}

static void decode(struct decoding *group, const struct coming *list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		group->waiting[i] = list[i].request;
	group->waiting_count = count;
	group->next = group->batch_count = 0;
	group->context = 0;
	group->now = 0;
	while (group->next < count || group->batch_count) {
		join(group);
		if (group->batch_count)
			step(group);
	}
}

int inference_job_times(const struct inference_job *job, struct inference_times *times)
{
	const uint32_t count = job->requests->count;
	struct coming *list = calloc(count, sizeof(*list));
	struct decoding group = { .job = job,
		.times = times,
		.waiting = calloc(count, sizeof(uint32_t)),
		.batch = calloc(count, sizeof(uint32_t)),
		.left = calloc(count, sizeof(uint32_t)) };
	const int rc = list && group.waiting && group.batch && group.left ? 0 : -ENOMEM;
	for (uint32_t i = 0; !rc && i < job->of.decode; i++)
		decode(&group, list, list_group(job, i, times, list));
	free(list);
	free(group.waiting);
	free(group.batch);
	free(group.left);
	return rc;
}
