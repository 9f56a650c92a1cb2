/* See flow_job.h. Holds: a flow's source hears of all that the flow waits for (net/flows.h), so no two threads write
 * one flow's waits_left. */
#include "net/flow_job.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"

static struct flow_job *of(struct job *job)
{
	return (struct flow_job *)job;
}

bool flow_job_tells(const struct flow_job *job, uint32_t flow)
{
	const struct flow_followers *its = &job->followers;
	for (uint32_t i = its->first ? its->first[flow] : 0; its->first && i < its->first[flow + 1]; i++)
		if (its->followers[i].event == FLOW_ARRIVED)
			return true;
	return false;
}

static void send(const struct flow_job *job, uint32_t number, vb_time start, struct job_sink *sink)
{
	const struct flow *flow = &job->list->flows[number];
	job->results[number].start = start;
	sink->send(sink, &(struct message){ .src = flow->src,
				 .dst = flow->dst,
				 .bytes = flow->bytes,
				 .start = start,
				 .tag = number,
				 .entropy = (uint16_t)(number ^ number >> 16),
				 .traffic_class = flow->traffic_class,
				 .tells_arrival = flow_job_tells(job, number) });
}

/* ---- Flows that begin at a time of their own --------------------------------------------------------------------- */

static void send_next(struct flow_job *job, uint32_t endpoint, struct job_sink *sink)
{
	if (job->next[endpoint] == job->first[endpoint + 1])
		return;
	const uint32_t flow = job->order[job->next[endpoint]++];
	assert(job->list->flows[flow].src == endpoint);
	send(job, flow, job->list->flows[flow].start, sink);
}

static void begin(struct job *job, uint32_t endpoint, struct job_sink *sink)
{
	send_next(of(job), endpoint, sink);
}

static void begun(struct job *job, uint32_t endpoint, uint64_t tag, struct job_sink *sink)
{
	if (of(job)->list->flows[tag].waits == 0)
		send_next(of(job), endpoint, sink);
}

/* ---- Flows that wait --------------------------------------------------------------------------------------------- */

/* Flows for which this was the last event to wait for begin; all of them are the endpoint's own. */
static void let_begin(struct flow_job *job, uint32_t endpoint, uint64_t flow, enum flow_event event, vb_time at,
	struct job_sink *sink)
{
	const struct flow_followers *its = &job->followers;
	for (uint32_t i = its->first ? its->first[flow] : 0; its->first && i < its->first[flow + 1]; i++) {
		const uint32_t next = its->followers[i].flow;
		if (its->followers[i].event != event)
			continue;
		assert(job->list->flows[next].src == endpoint);
		assert(job->waits_left[next] > 0 || job->list->flows[next].spare > 0);
		if (job->waits_left[next] == 0) /* it began without this one */
			continue;
		if (--job->waits_left[next] == 0)
			send(job, next, at + job->list->flows[next].start, sink);
	}
	(void)endpoint;
}

static void ended(struct job *job, uint32_t endpoint, uint64_t tag, vb_time at, const struct flow_result *result,
	const void *carried, struct job_sink *sink)
{
	assert(of(job)->results[tag].fct == -1);
	of(job)->results[tag] = *result;
	let_begin(of(job), endpoint, tag, FLOW_ENDED, at, sink);
}

static void arrived(
	struct job *job, uint32_t endpoint, uint64_t tag, vb_time at, const void *carried, struct job_sink *sink)
{
	let_begin(of(job), endpoint, tag, FLOW_ARRIVED, at, sink);
}

static const struct job_kind kind = { .begin = begin, .begun = begun, .ended = ended, .arrived = arrived };

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

struct start {
	vb_time at;
	uint32_t flow;
};

static int by_start(const void *a, const void *b)
{
	const struct start *one = a, *other = b;
	return one->at != other->at ? (one->at > other->at) - (one->at < other->at)
				    : (one->flow > other->flow) - (one->flow < other->flow);
}

static bool is_sorted(const struct flow_job *job, uint32_t from, uint32_t to)
{
	for (uint32_t i = from + 1; i < to; i++)
		if (job->list->flows[job->order[i - 1]].start > job->list->flows[job->order[i]].start)
			return false;
	return true;
}

static int sort(const struct flow_job *job, uint32_t from, uint32_t to)
{
	if (is_sorted(job, from, to))
		return 0;
	struct start *starts = calloc(to - from, sizeof(*starts));
	if (!starts)
		return -ENOMEM;
	for (uint32_t i = from; i < to; i++)
		starts[i - from] = (struct start){ job->list->flows[job->order[i]].start, job->order[i] };
	qsort(starts, to - from, sizeof(*starts), by_start);
	for (uint32_t i = from; i < to; i++)
		job->order[i] = starts[i - from].flow;
	free(starts);
	return 0;
}

/* first[i + 2] counts the flows of source i; after the sums, first[i + 1] is where its next one is stored. */
static int sort_by_source(struct flow_job *job, uint32_t endpoints)
{
	const struct flow_list *list = job->list;
	int error = 0;
	for (uint32_t i = 0; i < list->count; i++)
		if (list->flows[i].waits == 0)
			job->first[list->flows[i].src + 2]++;
	for (uint32_t i = 2; i < endpoints + 2; i++)
		job->first[i] += job->first[i - 1];
	for (uint32_t i = 0; i < list->count; i++)
		if (list->flows[i].waits == 0)
			job->order[job->first[list->flows[i].src + 1]++] = i;
	for (uint32_t i = 0; i < endpoints && !error; i++) {
		job->next[i] = job->first[i];
		error = sort(job, job->first[i], job->first[i + 1]);
	}
	return error;
}

int flow_job_open(struct flow_job *job, const struct flow_list *list, uint32_t endpoints, struct flow_result *results)
{
	*job = (struct flow_job){ .job = { .kind = &kind, .operations = list->count, .ranks = endpoints },
		.list = list,
		.results = results };
	int error = flow_followers_make(&job->followers, list);
	job->first = calloc((size_t)endpoints + 2, sizeof(*job->first));
	job->next = calloc((size_t)endpoints + 1, sizeof(*job->next));
	job->order = calloc((size_t)list->count + 1, sizeof(*job->order));
	if (list->wait_count)
		job->waits_left = calloc(list->count, sizeof(*job->waits_left));
	if (!error && (!job->first || !job->next || !job->order || (list->wait_count && !job->waits_left)))
		error = -ENOMEM;
	if (!error)
		error = sort_by_source(job, endpoints);
	if (error) {
		flow_job_close(job);
		return error;
	}
	for (uint32_t i = 0; i < list->count; i++) {
		const uint32_t waits = list->flows[i].waits;
		results[i] = (struct flow_result){ .start = waits ? 0 : list->flows[i].start, .fct = -1 };
		if (job->waits_left)
			job->waits_left[i] = waits - list->flows[i].spare;
	}
	return 0;
}

void flow_job_close(struct flow_job *job)
{
	flow_followers_free(&job->followers);
	free(job->waits_left);
	free(job->first);
	free(job->next);
	free(job->order);
	*job = (struct flow_job){ 0 };
}
