/* The first process of the link's PID namespace: makes the two places, starts the relay and what is to run, waits until
 * that ends, and ends all. When it ends, however it does, the kernel ends all others, and the namespaces go with them.
 */
#ifndef TESTS_LINK_KEEPER_H
#define TESTS_LINK_KEEPER_H

#include <stdio.h>
#include <sys/types.h>
#include "relay.h"

#define LINK_FAILED 125 /* exit status: there was no link, and nothing ran */

/* Returns the exit status. outer: the caller's process ID as those outside see it. json: or NULL. */
int link_keeper_run(const struct link_options *options, struct link_report *report, pid_t outer, FILE *json);

#endif
