/* Listening sockets of both of the broker's names that a service manager made and keeps. While no broker runs, programs
 * wait for the next one instead of starting their own. sd_listen_fds(3). */
#ifndef VB_BROKER_GIVEN_H
#define VB_BROKER_GIVEN_H

enum {
	GIVEN_LISTENER = 4, /* the listener's descriptor; before it are the standard streams and the report */
	GIVEN_ANY_VERSION = 5,
	GIVEN_END = 6,
};

/* Call before any other descriptor is opened. 1: taken; 0: none were given to this process; -1: others were. */
int given_take(void);

#endif
