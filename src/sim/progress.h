/* How far a run is, on standard error, every so many seconds: a line that is written over on a terminal, else one after
 * another. And whether the
 * person has seen enough: a first interrupt ends the run, which then says what it has; a second ends the program. */
#ifndef SIM_PROGRESS_H
#define SIM_PROGRESS_H

#include <stdbool.h>
#include "fabric/fabric.h"

struct progress {
	unsigned every_s; /* 0: it is not told */
	double told_s;    /* when it was told last, since the beginning */
	bool is_terminal, has_line;
	vb_time limit;    /* of virtual time; 0: none */
	uint64_t packets; /* of data, if none is sent twice */
};

void progress_start(struct progress *progress);                                   /* listens to interrupts */
bool progress_tell(struct progress *progress, const struct fabric_progress *now); /* false: it is to end */
bool progress_is_interrupted(void);
void progress_end(struct progress *progress); /* clears its line */

#endif
