/* Ports that wait for each other in a cycle, and will for ever. */
#ifndef FABRIC_DEADLOCK_H
#define FABRIC_DEADLOCK_H

#include "fabric/state.h"

/* Looked for at most every millisecond, between windows. True: there was one the last time, and nothing in it has moved
 * since; or is_idle, nothing ever will. Then fabric->cycle are its links. One that a watchdog will free is none. */
bool deadlock_is_found(struct fabric *fabric, vb_time now, bool is_idle);

#endif
