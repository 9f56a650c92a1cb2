/* Keys of steps that a scenario gives, and that change nothing. */
#ifndef SIM_STEP_KEYS_H
#define SIM_STEP_KEYS_H

#include <stddef.h>

struct simulation;

/* The next from *place on that no step of the scenario heeds, and why; NULL: there are no more. A key whose condition a
 * variant changes is not among them. Begin with 0. */
const char *step_keys_idle(const struct simulation *simulation, size_t *place, const char **why);

#endif
