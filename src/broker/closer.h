/* Closes descriptors whose close may block. Any message of a Unix socket can carry descriptors. The last close of a
 * lingering socket, or of a file on a sender's own file system, may wait as long as that sender likes; so may closing a
 * connection in which such a message waits. So the worker takes no descriptor from a client that it does not trust, and
 * leaves closing such a connection to a process of its own, which is killed when it is stuck. */
#ifndef VB_BROKER_CLOSER_H
#define VB_BROKER_CLOSER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

struct closer {
	int link; /* -1: there is no such process now */
	pid_t pid;
};

/* Takes over fd, which must be the last copy; never waits. */
void closer_take(struct closer *closer, int fd);
void closer_dismiss(struct closer *closer);
/* Peeks at the next message of a connection, without taking it or its descriptors. *sender: as the kernel sees it
 * (SO_PASSCRED); its uid is -1 if that is not known, and at the connection's end. 0 or -errno; -EAGAIN: no message. */
int closer_look(int connection, bool *has_descriptors, struct ucred *sender);

#endif
