/* NCCL's settings that a scenario gives: those of the whole job, and those that change nothing. */
#ifndef SIM_NCCL_KEYS_H
#define SIM_NCCL_KEYS_H

#include <stddef.h>

struct simulation;

/* job.nccl of what runs, a job from a file or steps of training: its rails are those of all that runs. -EINVAL and why:
 * two ranks have not as many connections. */
int nccl_keys_heed(struct simulation *simulation, char *why, size_t size);
/* The next from *place on that no collective of the scenario heeds, and why; NULL: there are no more. A key whose
 * condition a variant changes is not among them. Begin with 0. */
const char *nccl_keys_idle(const struct simulation *simulation, size_t *place, const char **why);

#endif
