/* Finds ports that wait for each other in a cycle, for ever. */
#ifndef FABRIC_DEADLOCK_H
#define FABRIC_DEADLOCK_H

#include "fabric/state.h"

#define DEADLOCK_PATIENCE VB_MS

/* Searches between windows, at most once in a while. True: the previous search found a cycle and nothing in it has
 * moved since; or is_still (nothing at all happens for as long) and there is a cycle. Then fabric->cycle has its links.
 * A cycle that a watchdog will break does not count. */
bool deadlock_is_found(struct fabric *fabric, vb_time now, bool is_still);

#endif
