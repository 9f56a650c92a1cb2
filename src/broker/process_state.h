/* The state of a process, from /proc. */
#ifndef VB_BROKER_PROCESS_STATE_H
#define VB_BROKER_PROCESS_STATE_H

#include <sys/types.h>
#include "wire/mad.h"

/* VB_PROCESS_NOT_TOLD if it cannot be seen. */
enum vb_process_state process_state(pid_t pid);

#endif
