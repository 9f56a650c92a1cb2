/* See checkpoint_job.h. Holds: what is kept of a rank or node is written in calls for it alone. */
#include "net/checkpoint_job.h"
#include <errno.h>
#include <stdlib.h>
#include "net/why.h"

enum {
	UNDER_WAY = CHECKPOINT_UNDER_WAY,
	ASKING_BYTES = 64,
	MOST_MESSAGES = 1 << 30,
};

struct checkpoint_rank {
	uint32_t sent, ended, asked, got;
	vb_time restored; /* -1: not yet */
};

/* Kinds of messages: the highest two bits of a tag. Then come the rank's number and the message's. */
enum what { WRITTEN, ASKED, READ };

static uint64_t tag_of(enum what what, uint32_t rank, uint32_t number)
{
	return (uint64_t)what << 62 | (uint64_t)rank << 32 | number;
}

static enum what what_of(uint64_t tag)
{
	return (enum what)(tag >> 62);
}

static uint32_t rank_of(uint64_t tag)
{
	return (uint32_t)(tag >> 32 & 0x3fffffff);
}

static uint64_t part_of(const struct checkpoint_job *job, uint32_t rank)
{
	return storage_share(job->of.bytes, job->sides->rank_count, rank);
}

static uint32_t messages_of(const struct checkpoint_job *job, uint32_t rank)
{
	return (uint32_t)((part_of(job, rank) + job->of.message - 1) / job->of.message);
}

static uint64_t bytes_of(const struct checkpoint_job *job, uint32_t rank, uint32_t number)
{
	const uint64_t rest = part_of(job, rank) - number * job->of.message;
	return rest < job->of.message ? rest : job->of.message;
}

static uint32_t node_of(const struct checkpoint_job *job, uint32_t rank, uint32_t number)
{
	return job->sides->nodes[(rank + number) % job->sides->node_count];
}

int checkpoint_check(const struct checkpoint *of, const struct storage_sides *sides, char *why, unsigned why_size)
{
	if (of->bytes < sides->rank_count)
		return why_not(why, why_size, "bytes: fewer than one for each rank; write more");
	if (of->bytes / of->message + sides->rank_count > MOST_MESSAGES / 3)
		return why_not(
			why, why_size, "message: so small ones are more messages than a run takes; write a larger one");
	return 0;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

static struct checkpoint_job *of_job(struct job *job)
{
	return (struct checkpoint_job *)job;
}

static void send(const struct checkpoint_job *job, enum what what, uint32_t rank, uint32_t number, vb_time at,
	struct job_sink *sink)
{
	const uint32_t its = job->sides->ranks[rank], node = node_of(job, rank, number);
	sink->send(sink, &(struct message){ .src = what == READ ? node : its,
				 .dst = what == READ ? its : node,
				 .bytes = what == ASKED ? ASKING_BYTES : bytes_of(job, rank, number),
				 .start = at,
				 .tag = tag_of(what, rank, number),
				 .channel = 1 + what,
				 .part = (uint16_t)number,
				 .traffic_class = job->of.traffic_class,
				 .tells_arrival = true });
}

static void go_on_writing(const struct checkpoint_job *job, uint32_t rank, vb_time at, struct job_sink *sink)
{
	struct checkpoint_rank *its = &job->ranks[rank];
	while (its->sent < messages_of(job, rank) && its->sent - its->ended < UNDER_WAY)
		send(job, WRITTEN, rank, its->sent++, at, sink);
}

static void go_on_reading(const struct checkpoint_job *job, uint32_t rank, vb_time at, struct job_sink *sink)
{
	struct checkpoint_rank *its = &job->ranks[rank];
	while (its->asked < messages_of(job, rank) && its->asked - its->got < UNDER_WAY)
		send(job, ASKED, rank, its->asked++, at, sink);
	if (its->got == messages_of(job, rank))
		its->restored = at;
}

static void begin(struct job *job, uint32_t rank, struct job_sink *sink)
{
	const uint32_t number = of_job(job)->sides->number_of[rank];
	if (number != STORAGE_NONE)
		go_on_writing(of_job(job), number, of_job(job)->of.start, sink);
}

static void ended(struct job *job, uint32_t rank, uint64_t tag, vb_time at, const struct flow_result *result,
	const void *carried, struct job_sink *sink)
{
	struct checkpoint_job *of = of_job(job);
	struct checkpoint_rank *its = &of->ranks[rank_of(tag)];
	(void)rank;
	(void)carried;
	if (what_of(tag) != WRITTEN || result->error)
		return;
	its->ended++;
	go_on_writing(of, rank_of(tag), at, sink);
	if (its->ended < messages_of(of, rank_of(tag)) || !of->of.restores)
		return;
	go_on_reading(of, rank_of(tag), at, sink);
}

static void arrived(
	struct job *job, uint32_t rank, uint64_t tag, vb_time at, const void *carried, struct job_sink *sink)
{
	struct checkpoint_job *of = of_job(job);
	const uint32_t its = rank_of(tag);
	(void)carried;
	switch (what_of(tag)) {
	case WRITTEN:
		of->stored[of->sides->node_of[rank]] = at;
		break;
	case ASKED:
		send(of, READ, its, (uint32_t)tag, at, sink);
		break;
	case READ:
		of->ranks[its].got++;
		go_on_reading(of, its, at, sink);
		break;
	}
}

static const struct job_kind kind = { .begin = begin, .arrived = arrived, .ended = ended, .ends_by_arrival = true };

/* ---- Opening, and the result ------------------------------------------------------------------------------------- */

int checkpoint_job_open(struct checkpoint_job *job, const struct checkpoint *of, const struct storage_sides *sides)
{
	*job = (struct checkpoint_job){ .job = { .kind = &kind, .ranks = sides->all },
		.of = *of,
		.sides = sides,
		.ranks = calloc(sides->rank_count, sizeof(*job->ranks)),
		.stored = calloc(sides->node_count, sizeof(*job->stored)) };
	if (!job->ranks || !job->stored) {
		checkpoint_job_close(job);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < sides->node_count; i++)
		job->stored[i] = -1;
	for (uint32_t i = 0; i < sides->rank_count; i++) {
		job->ranks[i].restored = -1;
		job->job.operations += (uint64_t)messages_of(job, i) * (of->restores ? 3 : 1);
	}
	return 0;
}

vb_time checkpoint_job_stored(const struct checkpoint_job *job)
{
	vb_time last = -1;
	for (uint32_t i = 0; i < job->sides->rank_count; i++)
		if (job->ranks[i].ended < messages_of(job, i))
			return -1;
	for (uint32_t i = 0; i < job->sides->node_count; i++)
		last = job->stored[i] > last ? job->stored[i] : last;
	return last - job->of.start;
}

vb_time checkpoint_job_restored(const struct checkpoint_job *job)
{
	vb_time last = -1;
	for (uint32_t i = 0; i < job->sides->rank_count; i++) {
		const struct checkpoint_rank *its = &job->ranks[i];
		if (its->restored < 0)
			return -1;
		last = its->restored > last ? its->restored : last;
	}
	return last - job->of.start;
}

void checkpoint_job_close(struct checkpoint_job *job)
{
	free(job->ranks);
	free(job->stored);
	*job = (struct checkpoint_job){ 0 };
}
