/* How time goes on, in one thread or several. */
#ifndef FABRIC_WINDOWS_H
#define FABRIC_WINDOWS_H

#include "fabric/state.h"

/* Starts a thread for each shard except the first; nonzero: that failed. */
int windows_open(struct fabric *fabric);
void windows_close(struct fabric *fabric);
bool windows_peek(struct fabric *fabric, vb_time *at); /* the time of the next event; false: there is none */
bool windows_step(struct fabric *fabric);              /* the next event of a single shard; false: there is none */

/* A caller may stop a run: it is asked by one thread, of a single shard after every so many events, of several after
 * each window.
 */
struct watch {
	bool (*stops)(void *user);
	void *user;
};

/* All events before `until`; false: the watch stopped it before. NULL: none watches. */
bool windows_advance(struct fabric *fabric, vb_time until, const struct watch *watch);

/* The cost of a run. No other part of the room reads a clock. */
double windows_wall_s(void);
double windows_cpu_s(void); /* of the process */

#endif
