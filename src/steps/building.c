/* See building.h. */
#include "steps/building.h"
#include <string.h>
#include "net/grow.h"

#define TREE_BYTES (1u << 20) /* an allreduce of less goes by trees, as in NCCL */

uint32_t add(struct building *building, struct step_operation operation)
{
	struct step_program *program = building->program;
	if (!grow_by_one(&program->operations, &program->room, program->count, sizeof(*program->operations))) {
		building->is_out_of_memory = true;
		return STEP_NONE;
	}
	if (operation.kind != STEP_COMPUTE && building->plan->bytes_part > 0)
		operation.bytes = (uint64_t)((double)operation.bytes * building->plan->bytes_part) + 1;
	program->operations[program->count] = operation;
	if (operation.stream == STREAM_DATA)
		building->data = program->count;
	return program->count++;
}

uint32_t add_beside(struct building *building, struct step_operation operation)
{
	operation.waits[0] = building->last;
	operation.waits[1] = building->also;
	return add(building, operation);
}

void add_next(struct building *building, struct step_operation operation)
{
	building->last = add_beside(building, operation);
	building->also = STEP_NONE;
}

void compute(struct building *building, double work)
{
	const struct step_plan *plan = building->plan;
	const vb_time time = (vb_time)(work / (plan->tflops * plan->mfu) + 0.5); /* 1 TFLOP/s is one a picosecond */
	add_next(building, (struct step_operation){ .kind = STEP_COMPUTE, .stream = STREAM_COMPUTE, .time = time });
}

void wait_also(struct building *building, uint32_t operation)
{
	if (operation == STEP_NONE)
		return;
	if (building->also != STEP_NONE)
		compute(building, 0);
	building->also = operation;
}

struct step_operation collective(enum step_stream stream, enum step_dimension dimension, const char *kind, double bytes)
{
	return (struct step_operation){ .kind = STEP_COLLECTIVE,
		.stream = (uint8_t)stream,
		.dimension = (uint8_t)dimension,
		.collective = kind,
		.algorithm = bytes < TREE_BYTES && strcmp(kind, "allreduce") == 0 ? "double-tree" : NULL,
		.bytes = (uint64_t)(bytes + 0.5) };
}

void communicate(struct building *building, enum step_dimension dimension, const char *kind, double bytes)
{
	if (step_members(building->plan, dimension) > 1 && bytes >= 1)
		add_next(building, collective(STREAM_LAYERS, dimension, kind, bytes));
}

uint32_t communicate_beside(struct building *building, enum step_dimension dimension, const char *kind, double bytes)
{
	if (step_members(building->plan, dimension) == 1 || bytes < 1)
		return STEP_NONE;
	return add_beside(
		building, collective(dimension == STEP_CP ? STREAM_CONTEXT : STREAM_LAYERS, dimension, kind, bytes));
}
