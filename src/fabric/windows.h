/* How time goes on, in one thread or in several. */
#ifndef FABRIC_WINDOWS_H
#define FABRIC_WINDOWS_H

#include "fabric/state.h"

/* Starts a thread for each shard but the first; nonzero: that cannot be. */
int windows_open(struct fabric *fabric);
void windows_close(struct fabric *fabric);
bool windows_peek(struct fabric *fabric, vb_time *at);      /* when something happens next; false: never */
bool windows_step(struct fabric *fabric);                   /* the next event of a single shard; false: there is none */
void windows_advance(struct fabric *fabric, vb_time until); /* all that happens before `until` */

/* What a run costs: nobody here has a clock for anything else. */
double windows_wall_s(void);
double windows_cpu_s(void); /* of the process */

#endif
