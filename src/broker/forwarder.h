/* Forwarders: each a process of the broker's user, which holds the socket of a slot and forwards its datagrams to a
 * process that may not have the socket. A process with a socket of the group can take all other processes' datagrams:
 * it may connect the socket, bind it to a device, or detach the group's program, and nothing shows which process did
 * it. So only the broker's own user and trusted users hold sockets.
 *
 * To the broker a forwarder is a client like any other: it outlives the broker and hands its socket to the next one. It
 * reads nothing from the process that it serves, and ends with it. */
#ifndef VB_BROKER_FORWARDER_H
#define VB_BROKER_FORWARDER_H

#include <stdint.h>
#include <sys/types.h>

struct forwarder_task {
	uint8_t slot; /* the slot to ask for; 0: any */
	pid_t pid;    /* the process that it serves, in the broker's pid namespace */
	uid_t uid;
	uint32_t number; /* the forwarder's, by which the worker recognises the connection for which it was started */
	uint32_t receive_buffer;
};

/* Starts a forwarder as a child of the caller. Returns the process's end of the channel (port/carried.h), or -errno. */
int forwarder_start(const struct forwarder_task *task);

#endif
