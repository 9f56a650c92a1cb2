/* What a test leaves in its network namespace, and what to say of it. */
#ifndef TESTS_BROKER_LEFTOVERS_H
#define TESTS_BROKER_LEFTOVERS_H

#include <stdbool.h>
#include <sys/types.h>

#define MAX_BROKERS 64

/* The broker's processes in this namespace. */
unsigned list_brokers(pid_t found[static MAX_BROKERS]);
pid_t parent_of(pid_t pid);
/* Sockets on the port. */
unsigned count_sockets(void);

/* Its state, and what it has open, on stderr. */
void say_process(pid_t pid);

/* Ends the broker. False, and said of which processes, sockets and names, when something stays, or when one process of
 * the broker was alone and neither got another nor left. */
bool clear_leftovers(void);

#endif
