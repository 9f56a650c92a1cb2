/* Whether a thread that polls shares its core: it comes back late, though it neither slept nor computed meanwhile, or
 * another thread takes the core that it yields. Then the progress thread does better to wait for it than to run as
 * well, and the poller should yield as soon as it finds nothing. What a poller that finds nothing should do besides is
 * said here, too.
 *
 * Pure, but for the two functions at the end. Threads: each thread has a state of its own. */
#ifndef VB_HOST_CROWDING_H
#define VB_HOST_CROWDING_H

#include "base/time.h"

/* A thread at one of its polls. */
struct vb_presence {
	vb_time at;
	vb_time cpu; /* that it has had so far */
	long sleeps; /* how often it has given its core up to wait for something */
};

struct vb_crowding {
	struct vb_presence last;
	unsigned kept_away;              /* so many times in a row, when it came late */
	struct vb_deadline shares_until; /* others take the core that it yields, and give it back */
	struct vb_deadline sleeps_until; /* they do not give it back, so it sleeps instead, */
	vb_time sleeps_for;              /* for so long since the last yield */
	bool is_idle;                    /* its polls find nothing */
	vb_time yield_at, sleep_at;      /* while it is idle */
};

enum vb_rest { VB_REST_NOT, VB_REST_YIELD, VB_REST_SLEEP };

/* The thread polls. When it comes late, this says whether it was kept away. */
void vb_crowding_polled(struct vb_crowding *crowding, const struct vb_presence *presence);
/* It has yielded, from since to now. */
void vb_crowding_yielded(struct vb_crowding *crowding, vb_time since, vb_time now);

/* It comes late, but it comes. */
bool vb_crowding_is_kept_away(const struct vb_crowding *crowding);
/* Its poll has found nothing: what it should do before it polls again. */
enum vb_rest vb_crowding_rest(struct vb_crowding *crowding, vb_time now);
/* It has slept for a moment. */
void vb_crowding_slept(struct vb_crowding *crowding, vb_time now);
/* Its poll has found something, or it waits asleep: it does not spin. */
void vb_crowding_is_of_use(struct vb_crowding *crowding);

/* The calling thread's state, and how the calling thread is now: a system call. */
struct vb_crowding *vb_crowding_of_caller(void);
struct vb_presence vb_presence_of_caller(vb_time now);

#endif
