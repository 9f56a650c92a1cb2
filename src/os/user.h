/* The user of a process, by the ids that the kernel shows: of a socket's other end, a message's sender, a file of
 * /proc.
 *
 * An id is shown as our user namespace maps it. If the namespace does not map all ids, every user that it leaves out is
 * shown as the overflow id. That id then names no user: it becomes VB_USER_UNKNOWN, which equals no user, unless the
 * process is proved to be our own user's. The proof is that the kernel lets us signal it. A namespace that maps all ids
 * has no such case.
 *
 * Threads: any. No call here is a cancellation point. All read files, so they are for rare moments. */
#ifndef VB_OS_USER_H
#define VB_OS_USER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#define VB_USER_UNKNOWN ((uid_t)-1)

/* The meaning of ids in our user namespace; valid while the process stays in it. */
struct vb_users {
	bool maps_all;
	uid_t overflow;
};
struct vb_users vb_users_read(void);

/* The user of a process that is shown with this id. pidfd: the process, or -1 for no proof. */
uid_t vb_user_of(const struct vb_users *users, uid_t shown, int pidfd);

/* The user of the other end of a Unix socket, as the kernel noted it when that end connected or began to listen;
 * *shown, if not NULL, is the kernel's own word. VB_USER_UNKNOWN also where the kernel says nothing. */
uid_t vb_user_of_peer(const struct vb_users *users, int socket, struct ucred *shown);

/* The user of the process at this moment, if its real, effective and saved ids are equal. Else VB_USER_UNKNOWN, also
 * for a process that we cannot see or that has ended. */
uid_t vb_user_of_process(const struct vb_users *users, int pidfd);

/* The process's number in our pid namespace; 0: it is in a namespace that we cannot see, or has ended. */
pid_t vb_pid_of(int pidfd);

/* A pidfd of the process at the other end of a Unix socket; the caller closes it. pid is its number by SO_PEERCRED. -1:
 * there is none. Before Linux 6.5 the number may be another process's by now. */
int vb_peer_pidfd(int socket, pid_t pid);

#endif
