/* Contradictions in a scenario and their consequences. None of them prevents a run. */
#ifndef SIM_WARNINGS_H
#define SIM_WARNINGS_H

#include <stdint.h>

struct simulation;

enum { WARNINGS_MOST = 16, WARNING_BYTES = 400 };

struct warnings {
	char texts[WARNINGS_MOST][WARNING_BYTES];
	unsigned count;
};

/* Fills in simulation->warnings: each kind once, where it is worst or first. */
void warnings_find(struct simulation *simulation);

#endif
