/* Signals during a wait for events, for both libraries. libibverbs.so.1 exports this under its private version node
 * VERBENA_PRIVATE. */
#ifndef VB_VERBS_WAIT_H
#define VB_VERBS_WAIT_H

#include <stdbool.h>

/* After EINTR: true if the wait must end, as a read() would that some signal's handler does not restart. */
bool vb_signal_ends_wait(void);

#endif
