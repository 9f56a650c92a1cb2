/* How rsockets wait: for completions of many queues at once, asleep in their lanes. libibverbs.so.1 exports this to
 * librdmacm.so.1 under its private version node VERBENA_PRIVATE. Threads: any. */
#ifndef VB_VERBS_WAIT_H
#define VB_VERBS_WAIT_H

#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>

/* After EINTR: true if the wait must end, as a read() would that some signal's handler does not restart. */
bool vb_signal_ends_wait(void);

/* The lanes that bring completions to the queue, a bit each. A look at them by any queue serves all. */
unsigned vb_cq_lanes(struct ibv_cq *cq);
/* As ibv_poll_cq(), but with no look at the lanes. */
int vb_cq_take_here(struct ibv_cq *cq, int n, struct ibv_wc *wc);

#define VB_ASLEEP_FDS 57 /* room that vb_poll_asleep needs behind the count of fds */

/* As poll(), with the lanes' descriptors beside the caller's: what arrives wakes the caller itself, which takes it in,
 * rather than a thread of ours that wakes the caller by an event. It may end with nothing ready, when a completion
 * event was raised meanwhile. lanes: at least one, of the context's process. */
int vb_poll_asleep(struct ibv_context *context, unsigned lanes, struct pollfd *fds, unsigned count, int timeout_ms);

#endif
