/* Adding operations to a program, one after another or beside what comes next. */
#ifndef STEPS_BUILDING_H
#define STEPS_BUILDING_H

#include "steps/program.h"

struct building {
	const struct step_plan *plan;
	struct step_program *program;
	uint32_t last, also; /* what the next operation waits for; STEP_NONE: nothing */
	uint32_t data;       /* the last on the stream of data; STEP_NONE: there is none */
	double gradients;    /* parameters whose gradients are there, and not sent yet */
	uint32_t *gathers;   /* by layer: the operation that brings its parameters; STEP_NONE: they are there */
	bool is_out_of_memory;
};

/* Each returns the operation's number, or STEP_NONE. As it is: */
uint32_t add(struct building *building, struct step_operation operation);
/* Beside what comes next, which does not wait for it. */
uint32_t add_beside(struct building *building, struct step_operation operation);

/* The next operation waits for these. */
void add_next(struct building *building, struct step_operation operation);
/* For this many operations of arithmetic, of one rank. */
void compute(struct building *building, double work);
/* A collective; none, where a rank is alone or nothing is sent. */
void communicate(struct building *building, enum step_dimension dimension, const char *kind, double bytes);
uint32_t communicate_beside(struct building *building, enum step_dimension dimension, const char *kind, double bytes);
/* For an operation that was added before, too; STEP_NONE is none. */
void wait_also(struct building *building, uint32_t operation);

struct step_operation collective(
	enum step_stream stream, enum step_dimension dimension, const char *kind, double bytes);

#endif
