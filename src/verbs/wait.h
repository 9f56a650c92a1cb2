/* What a wait for events does when a signal comes, for both libraries. libibverbs.so.1 exports it under its private
 * version node VERBENA_PRIVATE. */
#ifndef VB_VERBS_WAIT_H
#define VB_VERBS_WAIT_H

#include <stdbool.h>

/* After EINTR: may the wait go on, as that of a read() would whose signals' handlers all restart it? */
bool vb_signal_ends_wait(void);

#endif
