/* What in a scenario contradicts itself, and what comes of it: nothing of it keeps a run from running. */
#ifndef SIM_WARNINGS_H
#define SIM_WARNINGS_H

#include <stdint.h>

struct simulation;

enum { WARNINGS_MOST = 16, WARNING_BYTES = 400 };

struct warnings {
	char texts[WARNINGS_MOST][WARNING_BYTES];
	unsigned count;
};

/* Into simulation->warnings, each kind once, with where it is worst or first. */
void warnings_find(struct simulation *simulation);

#endif
