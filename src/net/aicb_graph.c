/* See aicb.h: the operations of each rank, in the order in which SimAI runs them (Workload.cc). */
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "net/aicb.h"

enum stream { COMPUTING, BLOCKING, BESIDE };

/* Of the rank that is being added: what comes next waits for `last`, and for `also`; GRAPH_NONE: for nothing. */
struct building {
	const struct aicb *aicb;
	struct job_file *file;
	uint32_t *group_of[MEMBERS]; /* by rank; NULL: no line has a communication of these */
	uint32_t rank, last, also;
};

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

struct ranks {
	uint32_t first, stride, count;
};

/* Those that a rank communicates with, itself among them. */
static struct ranks ranks_of(const struct aicb_shape *shape, enum aicb_members members, uint32_t rank)
{
	const uint32_t tp = shape->tp, at = rank / tp % shape->dp; /* of the data parallel ones, which it is */
	switch (members) {
	case TP:
		return (struct ranks){ rank - rank % tp, 1, tp };
	case DP:
		return (struct ranks){ rank - at * tp, tp, shape->dp };
	case EP:
		return (struct ranks){ rank - at % shape->ep * tp, tp, shape->ep };
	case DP_EP:
	default:
		assert(members == DP_EP);
		return (struct ranks){ rank - at / shape->ep * shape->ep * tp, shape->ep * tp, shape->dp / shape->ep };
	}
}

static bool is_run(const struct aicb_shape *shape, const struct aicb_communication *communication)
{
	return communication->bytes > 0 && ranks_of(shape, communication->members, 0).count > 1;
}

static int add_group(struct graph *graph, const struct ranks *ranks)
{
	if (ranks->count == graph->ranks)
		return graph_add_group(graph, NULL, ranks->count);
	uint32_t *list = malloc(ranks->count * sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < ranks->count; i++)
		list[i] = ranks->first + i * ranks->stride;
	assert(list[ranks->count - 1] < graph->ranks);
	int error = graph_add_group(graph, list, ranks->count);
	free(list);
	return error;
}

/* A group is made where its lowest rank comes. */
static int add_groups(struct building *building, enum aicb_members members)
{
	const struct aicb_shape *shape = &building->aicb->shape;
	struct graph *graph = &building->file->graph;
	uint32_t *group_of = malloc(shape->all * sizeof(*group_of));
	building->group_of[members] = group_of;
	if (!group_of)
		return -ENOMEM;
	for (uint32_t rank = 0; rank < shape->all; rank++) {
		const struct ranks ranks = ranks_of(shape, members, rank);
		assert(ranks.first <= rank);
		if (ranks.first == rank && add_group(graph, &ranks))
			return -ENOMEM;
		group_of[rank] = ranks.first == rank ? graph->group_count - 1 : group_of[ranks.first];
	}
	return 0;
}

/* ---- Operations -------------------------------------------------------------------------------------------------- */

static int add(struct building *building, const struct graph_operation *operation, const struct aicb_line *line)
{
	struct job_file *file = building->file;
	int error = job_file_add(file, operation, line->number);
	const uint32_t number = file->graph.count - 1;
	if (!error && building->last != GRAPH_NONE)
		error = graph_add_wait(&file->graph, number, building->last, GRAPH_ENDED);
	if (!error && building->also != GRAPH_NONE)
		error = graph_add_wait(&file->graph, number, building->also, GRAPH_ENDED);
	return error;
}

static void go_on(struct building *building)
{
	building->last = building->file->graph.count - 1;
	building->also = GRAPH_NONE;
}

static int compute(struct building *building, const struct aicb_line *line, enum aicb_pass pass)
{
	if (line->time[pass] == 0)
		return 0;
	int error = add(building,
		&(struct graph_operation){
			.rank = building->rank, .kind = GRAPH_COMPUTE, .stream = COMPUTING, .time = line->time[pass] },
		line);
	if (!error)
		go_on(building);
	return error;
}

/* `beside` is this communication, which the next operation does not wait for; GRAPH_NONE: there is none. */
static int communicate_beside(struct building *building, const struct aicb_line *line, enum aicb_pass pass,
	enum stream stream, uint32_t *beside)
{
	const struct aicb_communication *communication = &line->communication[pass];
	struct graph *graph = &building->file->graph;
	struct graph_operation operation = { .rank = building->rank,
		.kind = GRAPH_COLLECTIVE,
		.stream = (uint8_t)stream,
		.bytes = communication->bytes };
	*beside = GRAPH_NONE;
	if (!is_run(&building->aicb->shape, communication))
		return 0;
	operation.group = building->group_of[communication->members][building->rank];
	int error = graph_find_collective(graph, communication->kind, NULL, &operation.collective);
	if (!error)
		error = add(building, &operation, line);
	if (!error)
		*beside = graph->count - 1;
	return error;
}

static int communicate(struct building *building, const struct aicb_line *line, enum aicb_pass pass)
{
	uint32_t number;
	int error = communicate_beside(building, line, pass, BLOCKING, &number);
	if (!error && number != GRAPH_NONE)
		go_on(building);
	return error;
}

static int go_forward(struct building *building, const struct aicb_line *line)
{
	uint32_t unawaited;
	if (building->aicb->order == MICRO)
		return communicate_beside(building, line, WEIGHT, BESIDE, &unawaited);
	int error = compute(building, line, FORWARD);
	return error ? error : communicate(building, line, FORWARD);
}

/* The first line's input is the data, of which ASTRA-sim's DATA computes no gradient and MODEL sends none. */
static int go_backward(struct building *building, const struct aicb_line *line, bool is_first)
{
	uint32_t unawaited, input = GRAPH_NONE;
	int error = 0;
	switch (building->aicb->order) {
	case TRANSFORMER:
		error = compute(building, line, INPUT);
		if (!error)
			error = communicate(building, line, INPUT);
		if (!error)
			error = compute(building, line, WEIGHT);
		return error ? error : communicate_beside(building, line, WEIGHT, BESIDE, &unawaited);
	case DATA:
		error = compute(building, line, WEIGHT);
		if (!error)
			error = communicate_beside(building, line, WEIGHT, BESIDE, &unawaited);
		return error || is_first ? error : compute(building, line, INPUT);
	case MODEL:
		error = compute(building, line, INPUT);
		if (!error && !is_first)
			error = communicate_beside(building, line, INPUT, BLOCKING, &input);
		if (!error)
			error = compute(building, line, WEIGHT);
		if (input != GRAPH_NONE) /* this line's weights do not wait for it, the next line does */
			building->also = input;
		return error;
	case MICRO:
	case NEEDS_DIMENSIONS:
		break;
	}
	return 0;
}

static int add_rank(struct building *building, uint32_t rank)
{
	const struct aicb *aicb = building->aicb;
	int error = 0;
	building->rank = rank;
	building->last = building->also = GRAPH_NONE;
	for (uint32_t i = 0; !error && i < aicb->count; i++)
		error = go_forward(building, &aicb->lines[i]);
	for (uint32_t i = aicb->count; !error && i-- > 0;)
		error = go_backward(building, &aicb->lines[i], i == 0);
	return error;
}

uint64_t aicb_operations_each(const struct aicb *aicb)
{
	uint64_t each = 0;
	for (uint32_t i = 0; i < aicb->count; i++)
		for (int pass = 0; pass < PASSES; pass++)
			each += (uint64_t)(aicb->lines[i].time[pass] > 0) +
				is_run(&aicb->shape, &aicb->lines[i].communication[pass]);
	return each;
}

/* Those that the lines need, and no others. */
static int add_all_groups(struct building *building)
{
	const struct aicb *aicb = building->aicb;
	int error = 0;
	for (uint32_t i = 0; !error && i < aicb->count; i++)
		for (int pass = 0; !error && pass < PASSES; pass++) {
			const struct aicb_communication *communication = &aicb->lines[i].communication[pass];
			if (is_run(&aicb->shape, communication) && !building->group_of[communication->members])
				error = add_groups(building, communication->members);
		}
	return error;
}

int aicb_add(const struct aicb *aicb, struct job_file *file)
{
	struct building building = { .aicb = aicb, .file = file };
	assert(file->graph.count == 0 && aicb->order != NEEDS_DIMENSIONS);
	assert((uint64_t)aicb->shape.tp * aicb->shape.dp * aicb->shape.pp == aicb->shape.all);
	file->graph.ranks = aicb->shape.all;
	int error = add_all_groups(&building);
	for (uint32_t rank = 0; !error && rank < aicb->shape.all; rank++)
		error = add_rank(&building, rank);
	for (int i = 0; i < MEMBERS; i++)
		free(building.group_of[i]);
	return error;
}
