/* How a network is cut into parts, one for each thread. */
#ifndef FABRIC_PARTS_H
#define FABRIC_PARTS_H

#include "fabric/state.h"

/* As many as were asked for, and the network has places with endpoints; 1 where captures want one order. */
uint32_t parts_count(const struct fabric_config *config);
/* Gives each switch and endpoint its part, and the fabric its window. */
void parts_cut(struct fabric *fabric);

#endif
