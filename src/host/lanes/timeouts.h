/* All times and counts by which a lane changes hands, and by which the threads that run it sleep, spin and give way:
 * one table. Who uses one is said behind it. */
#ifndef VB_HOST_TIMEOUTS_H
#define VB_HOST_TIMEOUTS_H

#include "base/time.h"

/* ---- Who runs the lane: ownership.c ------------------------------------------------------------------------------ */

/* A thread that polls and has a core to itself is never away for longer. One that was is missed. */
#define VB_POLLER_LATE (200 * VB_US)
/* The same where pollers share their core with others. Less than the millisecond after which a peer that hears nothing
 * probes. */
#define VB_POLLER_LATE_CROWDED (800 * VB_US)
/* A thread that posts without a poll counts as present for so long after the last look at the port. It polls when it
 * has posted what there is room for, and takes many acknowledgements at once; later somebody else looks. */
#define VB_PRESENT_BY_POSTS VB_POLLER_LATE_CROWDED
/* The progress thread looks for pollers at least so often, ... */
#define VB_POLLER_LOOK_MOST (3200 * VB_US)
/* ... and so often where packets come and pollers have their cores to themselves, or where posts waited for the next
 * poll (held_posts.h), or for a waiter that left and is expected back. */
#define VB_POLLER_LOOK_BUSY VB_POLLER_LATE_CROWDED
/* A poller looks so often whether it was kept away from its core: a system call. */
#define VB_PRESENCE_EVERY (VB_POLLER_LATE / 2)
/* Polls in a row after which threads that poll own the lane. */
#define VB_POLLS_TO_OWN 8

/* ---- What a poller looks at: turn.c ------------------------------------------------------------------------------ */

/* Between looks at a port that is quiet, by a thread that polls among local peers. By time, since a thread that shares
 * its core has few turns. */
#define VB_PORT_EVERY (10 * VB_US)
/* The same by a thread that is about to sleep on the port. */
#define VB_PORT_SELDOM (100 * VB_US)

/* ---- What a poller does that finds nothing: crowding.c ----------------------------------------------------------- */

#define VB_POLLER_YIELD_AFTER (50 * VB_US) /* and then again */
#define VB_POLLER_SLEEP_AFTER (10 * VB_MS)
/* A thread that works between its polls loses less than half of its time, unless it has just lost a slice. */
#define VB_POLLER_SLEEP_EVERY (100 * VB_US)
/* Asked for; the kernel makes it about 60 us. */
#define VB_POLLER_SLEEP (1 * VB_US)
/* A yield that takes longer has let another thread run. */
#define VB_POLLER_YIELD_TAKEN (2 * VB_US)
/* A core that another thread took is taken for shared so long: threads that share one take turns in less. */
#define VB_POLLER_SHARES_FOR (5 * VB_MS)
/* A yield that takes longer has cost a slice of the scheduler, or what was left of one: it went to a thread that does
 * not give way. Turns of threads that do are shorter. */
#define VB_POLLER_YIELD_SLICE (1 * VB_MS)
/* The poller then sleeps at each poll in vain, for so long at first and twice as long each time. The next yield tells
 * whether that thread is still there, and costs up to 4 ms if it is. */
#define VB_POLLER_SLEEPS_FIRST (8 * VB_MS)
#define VB_POLLER_SLEEPS_MOST  (64 * VB_MS)

/* ---- How long posts may wait for the next poll: held_posts.c ----------------------------------------------------- */

/* After so long since the newest post, a program that then polls or posts has done something else in between. */
#define VB_HELD_LATE (20 * VB_US)
/* The same if another thread drives the lane. It is shorter: riding requests leave with the next acknowledgement
 * anyway, and the program may be waiting for a flag that it posted behind its data. */
#define VB_HELD_LATE_ABSENT (5 * VB_US)

/* ---- How long the progress thread stays awake for local peers: progress.c ---------------------------------------- */

#define VB_LINGER_LEAST (8 * VB_US)
#define VB_LINGER_MOST  (50 * VB_US)
/* How long a wake-up takes in a virtual machine. */
#define VB_LINGER_WAKING (40 * VB_US)
/* How often it yields while it lingers. */
#define VB_LINGER_YIELD_EVERY (10 * VB_US)
/* A yield that takes longer has let another thread run, which wants the core. */
#define VB_LINGER_YIELD_TAKEN (3 * VB_US)
/* At most, before it looks at other things. */
#define VB_LINGER_IN_A_ROW (500 * VB_US)

/* ---- Threads that wait: host_lane_wait.c ------------------------------------------------------------------------- */

/* Without a progress thread, a thread that waits beside the one that owns the lane looks so often whether that one has
 * gone. */
#define VB_WAIT_BESIDE (10 * VB_MS)
/* For what the port was given to come back. */
#define VB_WAIT_FOR_PORT (1 * VB_MS)

#endif
