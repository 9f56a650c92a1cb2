/* Ports that wait for each other in a cycle, and will for ever. */
#ifndef FABRIC_DEADLOCK_H
#define FABRIC_DEADLOCK_H

#include "fabric/state.h"

#define DEADLOCK_PATIENCE VB_MS

/* Looked for between windows, at most once in so long. True: there was a cycle the last time, and nothing in it has
 * moved since; or is_still, as nothing at all happens for as long. Then fabric->cycle are its links. One that a
 * watchdog will free is none. */
bool deadlock_is_found(struct fabric *fabric, vb_time now, bool is_still);

#endif
