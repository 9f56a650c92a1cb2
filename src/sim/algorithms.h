/* Which congestion controls there are, by name. */
#ifndef SIM_ALGORITHMS_H
#define SIM_ALGORITHMS_H

#include <stddef.h>
#include "cc/cc.h"

/* NULL: there is none of this name. */
const struct vb_cc_algorithm *algorithm_find(const char *name);
/* Why not, and which there are. */
void algorithm_refuse(const char *name, char *why, size_t size);

#endif
