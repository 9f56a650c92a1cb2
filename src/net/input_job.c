/* See input_job.h. Holds: what is kept of a rank is written in calls for it alone. */
#include "net/input_job.h"
#include <errno.h>
#include <stdlib.h>
#include "net/why.h"

#define MOST_MESSAGES (1u << 30)
#define MOST_TIME     ((vb_time)40 * 86400 * VB_S)

static struct input_job *of_job(struct job *job)
{
	return (struct input_job *)job;
}

/* A step's first rank that gets its input from this node; further ones are node_count apart. */
static uint32_t first_rank(const struct input_job *job, uint32_t node, uint32_t step)
{
	const uint32_t nodes = job->sides->node_count;
	return (node + nodes - step % nodes) % nodes;
}

/* All that a node sends in a step, or in the next one in which it sends something. */
static void send_step(const struct input_job *job, uint32_t node, uint32_t step, struct job_sink *sink)
{
	while (step < job->of.steps && first_rank(job, node, step) >= job->sides->rank_count)
		step++;
	if (step == job->of.steps)
		return;
	for (uint32_t i = first_rank(job, node, step); i < job->sides->rank_count; i += job->sides->node_count)
		sink->send(sink, &(struct message){ .src = job->sides->nodes[node],
					 .dst = job->sides->ranks[i],
					 .bytes = job->of.bytes,
					 .start = job->of.start + step * job->of.step,
					 .tag = (uint64_t)step << 32 | i,
					 .channel = 1,
					 .part = (uint16_t)step,
					 .traffic_class = job->of.traffic_class,
					 .tells_arrival = true });
}

static void begin(struct job *job, uint32_t rank, struct job_sink *sink)
{
	const uint32_t node = of_job(job)->sides->node_of[rank];
	if (node != STORAGE_NONE)
		send_step(of_job(job), node, 0, sink);
}

static void begun(struct job *job, uint32_t rank, uint64_t tag, struct job_sink *sink)
{
	const uint32_t node = of_job(job)->sides->node_of[rank], step = (uint32_t)(tag >> 32);
	if ((uint32_t)tag == first_rank(of_job(job), node, step))
		send_step(of_job(job), node, step + 1, sink);
}

static void arrived(
	struct job *job, uint32_t rank, uint64_t tag, vb_time at, const void *carried, struct job_sink *sink)
{
	const struct input_job *its = of_job(job);
	const vb_time took = at - its->of.start - (vb_time)(tag >> 32) * its->of.step;
	vb_time *slowest = &its->slowest[(uint32_t)tag];
	(void)rank;
	(void)carried;
	(void)sink;
	*slowest = took > *slowest ? took : *slowest;
}

static const struct job_kind kind = { .begin = begin, .begun = begun, .arrived = arrived, .ends_by_arrival = true };

int input_check(const struct input *of, const struct storage_sides *sides, char *why, unsigned why_size)
{
	if (!of->steps)
		return why_not(why, why_size, "steps: none; write 1 or more");
	if (!of->bytes)
		return why_not(why, why_size, "tokens: none; write 1 or more");
	if (of->steps > MOST_MESSAGES / sides->rank_count)
		return why_not(why, why_size, "steps: more messages than a run takes; write fewer");
	if (of->step > MOST_TIME / of->steps)
		return why_not(why, why_size, "step-time: all steps take longer than a run may; write a shorter time");
	return 0;
}

int input_job_open(struct input_job *job, const struct input *of, const struct storage_sides *sides)
{
	*job = (struct input_job){
		.job = { .kind = &kind, .operations = (uint64_t)of->steps * sides->rank_count, .ranks = sides->all },
		.of = *of,
		.sides = sides,
		.slowest = calloc(sides->rank_count, sizeof(*job->slowest))
	};
	for (uint32_t i = 0; job->slowest && i < sides->rank_count; i++)
		job->slowest[i] = -1;
	return job->slowest ? 0 : -ENOMEM;
}

vb_time input_job_slowest(const struct input_job *job)
{
	vb_time most = -1;
	for (uint32_t i = 0; i < job->sides->rank_count; i++)
		most = job->slowest[i] > most ? job->slowest[i] : most;
	return most;
}

void input_job_close(struct input_job *job)
{
	free(job->slowest);
	*job = (struct input_job){ 0 };
}
