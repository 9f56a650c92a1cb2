/* Listening sockets that a service manager made, of both of the broker's names, and keeps: while no broker runs,
 * programs wait for the next instead of starting one of their own. sd_listen_fds(3). */
#ifndef VB_BROKER_GIVEN_H
#define VB_BROKER_GIVEN_H

enum {
	GIVEN_LISTENER = 4, /* where it lies then; before it standard streams and the report */
	GIVEN_ANY_VERSION = 5,
	GIVEN_END = 6,
};

/* Before any other descriptor is opened. 1: we have them; 0: none were given to this process; -1: others were. */
int given_take(void);

#endif
