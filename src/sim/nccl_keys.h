/* NCCL's settings that a scenario gives, and that change nothing. */
#ifndef SIM_NCCL_KEYS_H
#define SIM_NCCL_KEYS_H

#include <stddef.h>

struct simulation;

/* The next from *place on that no collective of the scenario heeds, and why; NULL: there are no more. A key whose
 * condition a variant changes is not among them. Begin with 0. */
const char *nccl_keys_idle(const struct simulation *simulation, size_t *place, const char **why);

#endif
