/* A broker that has ended, where no other process would wait for it. */
#ifndef VB_HOST_BROKER_REAP_H
#define VB_HOST_BROKER_REAP_H

/* The broker at the other end of the connection, which outlives its starter, is an orphan, and the child of the process
 * that adopts orphans. Where that is this process (the first of a container that has no init, or a subreaper), a thread
 * waits for it, and takes its exit status: else it would stay a zombie. Waits for nothing itself. Elsewhere nothing
 * happens. */
void vb_broker_reap(int connection);
/* The program has closed descriptors of ours: the thread's may be the program's own by now, and is not touched any
 * more. Any thread. */
void vb_broker_reap_lost(void);

#endif
