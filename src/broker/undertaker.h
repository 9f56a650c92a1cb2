/* Closes what may hold whoever closes it. Descriptors can be attached to any message of a Unix socket, and the last to
 * close a socket that lingers, or a file of somebody's own file system, waits as long as its sender likes; so does
 * whoever closes a connection in which such a message waits. So the worker takes no descriptor from whom it does not
 * trust, and leaves the end of such a connection to a process of its own, which is killed when it is stuck. */
#ifndef VB_BROKER_UNDERTAKER_H
#define VB_BROKER_UNDERTAKER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

struct undertaker {
	int link; /* -1: there is none now */
	pid_t pid;
};

/* Takes over fd, of which the caller's copy is to be the last; never waits. */
void undertaker_bury(struct undertaker *undertaker, int fd);
void undertaker_dismiss(struct undertaker *undertaker);
/* Looks at the next message of a connection, and takes neither it nor a descriptor that it has. *sender: by the
 * kernel's word (SO_PASSCRED); its uid is -1 where that says nothing, and at the connection's end. 0 or -errno:
 * -EAGAIN nothing there. */
int undertaker_look(int connection, bool *has_descriptors, struct ucred *sender);

#endif
