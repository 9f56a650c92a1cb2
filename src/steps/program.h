/* What each rank of a stage does in a step: one program for all ranks of the stage, whatever their place in the other
 * dimensions.
 *
 * An operation begins when the one before it on its stream has ended, and the two that it waits for. */
#ifndef STEPS_PROGRAM_H
#define STEPS_PROGRAM_H

#include "base/time.h"
#include "steps/groups.h"
#include "steps/schedule.h"

#define STEP_NONE UINT32_MAX

/* 46 days: a step that comes to it takes longer, and its times are not known. */
#define STEP_MOST_TIME ((vb_time)4000000000000000000)

/* So many picoseconds after that, and no later than STEP_MOST_TIME. */
static inline vb_time step_later(vb_time at, double picoseconds)
{
	return picoseconds < (double)(STEP_MOST_TIME - at) ? at + (vb_time)(picoseconds + 0.5) : STEP_MOST_TIME;
}

enum step_kind { STEP_COMPUTE, STEP_COLLECTIVE, STEP_SEND, STEP_RECEIVE };

enum step_stream {
	STREAM_COMPUTE,
	STREAM_LAYERS, /* communication within layers */
	STREAM_CONTEXT,
	STREAM_SEND,
	STREAM_RECEIVE,
	STREAM_DATA, /* gradients and parameters */
	STEP_STREAMS,
};

struct step_operation {
	uint8_t kind, stream, dimension;
	const char *collective, *algorithm; /* of net/collectives.h; algorithm NULL: the kind's first */
	union {
		vb_time time;   /* STEP_COMPUTE */
		uint64_t bytes; /* others; a collective's as struct collective counts them */
	};
	uint32_t peer, tag; /* STEP_SEND, STEP_RECEIVE: the other stage, and what both call the message */
	uint32_t waits[2];  /* operations of this program; STEP_NONE: none */
};

struct step_program {
	struct step_operation *operations;
	uint32_t count, room;
};

/* Of a plan that passed plan_check; 0 or -ENOMEM. */
int program_make(const struct step_plan *plan, uint32_t stage, struct step_program *program);
void program_free(struct step_program *program);
/* Tags are below this. */
uint32_t program_tags(const struct step_plan *plan);
#endif
