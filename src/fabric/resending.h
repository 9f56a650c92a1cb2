/* How endpoints send again what was lost, for messages that are no packets. */
#ifndef FABRIC_RESENDING_H
#define FABRIC_RESENDING_H

#include "fabric/fabric.h"
#include "net/stalls.h"

/* Of engines and ideal endpoints. */
struct resending fabric_resending(const struct fabric_config *config);

#endif
