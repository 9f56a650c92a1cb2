/* The progress of a run, on standard error every so many seconds: on a terminal one line that is overwritten, elsewhere
 * one line after another. It also handles interrupts: the first ends the run, which then reports its result so far; the
 * second ends the program. */
#ifndef SIM_PROGRESS_H
#define SIM_PROGRESS_H

#include <stdbool.h>
#include "fabric/fabric.h"

struct progress {
	unsigned every_s; /* 0: no progress lines */
	double told_s;    /* the time of the last line, from the beginning */
	bool is_terminal, has_line;
	const char *unit; /* what is counted: "flow" */
	const char *of;   /* "the check: "; NULL: the run itself */
	bool is_of_check;
	unsigned row, rows;  /* of a table: which row is under way, from 1; rows 0: it is no table */
	uint32_t runs_alone; /* of these the number under way: several jobs, each run alone; 0: they run together */
	vb_time limit;       /* of virtual time; 0: none */
	uint64_t packets;    /* of data, if none is sent twice */
};

void progress_start(struct progress *progress);                                   /* listens for interrupts */
bool progress_tell(struct progress *progress, const struct fabric_progress *now); /* false: the run is to end */
/* Another run begins, of one of the jobs. */
void progress_begin_alone(struct progress *progress, uint32_t number);
/* Another run begins, which holds it against packets. */
void progress_begin_check(struct progress *progress);
bool progress_is_interrupted(void);
void progress_end(struct progress *progress); /* clears its line */

#endif
