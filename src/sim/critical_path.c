/* See critical_path.h. */
#include "sim/critical_path.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "net/grow.h"
#include "net/job_file.h"

static bool is_computation(const struct graph_job *job, uint32_t operation)
{
	return job->graph->operations[operation].kind == GRAPH_COMPUTE;
}

/* From `until` back: a message for which it waited let it end; else what let it begin. `ended`: the operation that
 * ended then. If that is another, the path has come here by a message, and what let this one end does not matter. */
static struct critical_step step_of(const struct graph_job *job, uint32_t operation, vb_time until, uint32_t ended)
{
	const struct graph_record *record = &job->records[operation];
	struct critical_step step = { .operation = operation, .from = record->begin, .until = until };

	if (record->let_end != GRAPH_NONE && ended == operation) {
		step.cause = CRITICAL_MESSAGE;
		step.from = until; /* all that it did was to wait */
		return step;
	}
	if (record->let_begin != GRAPH_NONE)
		step.cause = CRITICAL_OPERATION;
	step.chain = graph_job_chain(job, ended);
	return step;
}

static uint32_t before(const struct graph_job *job, const struct critical_step *step)
{
	const struct graph_record *record = &job->records[step->operation];

	switch (step->cause) {
	case CRITICAL_MESSAGE:
		return record->let_end;
	case CRITICAL_OPERATION:
		return record->let_begin;
	case CRITICAL_NOTHING:
		break;
	}
	return GRAPH_NONE;
}

static void turn_round(struct critical_path *path)
{
	for (uint32_t i = 0, k = path->count; i + 1 < k--; i++) {
		const struct critical_step was = path->steps[i];
		path->steps[i] = path->steps[k];
		path->steps[k] = was;
	}
}

int critical_path_find(struct critical_path *path, const struct graph_job *job)
{
	uint32_t at = graph_job_last(job), ended = at, room = 0;
	vb_time until = at == GRAPH_NONE ? 0 : job->records[at].end;

	*path = (struct critical_path){ 0 };
	while (at != GRAPH_NONE) {
		const struct critical_step step = step_of(job, at, until, ended);
		if (!grow_by_one(&path->steps, &room, path->count, sizeof(*path->steps))) {
			critical_path_free(path);
			return -ENOMEM;
		}
		assert(step.from <= step.until && path->count / 2 <= job->graph->count);
		path->steps[path->count++] = step;
		*(is_computation(job, at) ? &path->computing : &path->network) += step.until - step.from;
		const uint32_t next = before(job, &step);
		ended = step.cause == CRITICAL_MESSAGE ? at : next;
		at = next;
		until = step.from;
	}
	turn_round(path);
	return 0;
}

vb_time critical_late(const struct graph_job *job, const struct critical_step *step)
{
	const struct graph_record *its = &job->records[step->operation];

	if (step->cause != CRITICAL_MESSAGE)
		return 0;
	const vb_time other = job->records[its->let_end].begin;
	return other > its->begin ? other - its->begin : 0;
}

bool critical_transfer(const struct graph_job *job, const struct critical_step *step, struct graph_transfer *transfer)
{
	const struct graph_operation *its = &job->graph->operations[step->operation];

	if (step->chain && step->chain->transfers)
		*transfer = step->chain->longest;
	else if (its->kind == GRAPH_SEND)
		*transfer = (struct graph_transfer){ .tag = step->operation,
			.from = its->rank,
			.to = its->peer,
			.sent = step->from,
			.took = step->until - step->from };
	return (step->chain && step->chain->transfers) || its->kind == GRAPH_SEND;
}

void critical_path_free(struct critical_path *path)
{
	free(path->steps);
	*path = (struct critical_path){ 0 };
}

const char *operation_kind(const struct graph_operation *operation)
{
	static const char *const kinds[] = { [GRAPH_COMPUTE] = "compute",
		[GRAPH_SEND] = "send",
		[GRAPH_RECEIVE] = "receive",
		[GRAPH_COLLECTIVE] = "collective" };
	return kinds[operation->kind];
}

const char *operation_text(const struct job_file *file, uint32_t operation, char *text, size_t size)
{
	const struct graph *graph = &file->graph;
	const struct graph_operation *its = &graph->operations[operation];
	char what[80] = "computes";

	switch ((enum graph_kind)its->kind) {
	case GRAPH_COMPUTE:
		break;
	case GRAPH_SEND:
		snprintf(what, sizeof(what), "sends %" PRIu64 " bytes to rank %" PRIu32, its->bytes, its->peer);
		break;
	case GRAPH_RECEIVE:
		if (its->peer == GRAPH_ANY)
			snprintf(what, sizeof(what), "receives from any rank");
		else
			snprintf(what, sizeof(what), "receives from rank %" PRIu32, its->peer);
		break;
	case GRAPH_COLLECTIVE:
		snprintf(what, sizeof(what), "%s of %" PRIu64 " bytes in group %" PRIu32,
			graph->collectives[its->collective].kind, its->bytes, its->group);
		break;
	}
	snprintf(text, size, "rank %" PRIu32 " %s (%s %" PRIu32 ")", its->rank, what, file->where_is,
		file->where[operation]);
	return text;
}
