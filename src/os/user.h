/* Whose a process is, by the ids that the kernel shows us: of a socket's other end, a message's sender, a file of
 * /proc.
 *
 * An id is shown as our user namespace maps it. Where that does not map all ids, every user that it leaves out is
 * shown as the overflow id. That id then names nobody: it is VB_USER_UNKNOWN here, which equals no user, unless the
 * process is proved to be our own. The proof is that the kernel lets us signal it. A namespace that maps all ids knows
 * no such case.
 *
 * Threads: any. No call here is a cancellation point; all are for rare moments, for they read files. */
#ifndef VB_OS_USER_H
#define VB_OS_USER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#define VB_USER_UNKNOWN ((uid_t)-1)

/* What ids mean in our user namespace, for as long as we stay in it. */
struct vb_users {
	bool maps_all;
	uid_t overflow;
};
struct vb_users vb_users_read(void);

/* The user of a process that is shown with this id. pidfd: the process, or -1, and then nothing is proved. */
uid_t vb_user_of(const struct vb_users *users, uid_t shown, int pidfd);

/* The user of the other end of a Unix socket, as the kernel noted it when that end connected or began to listen;
 * *shown, if not NULL, is the kernel's own word. VB_USER_UNKNOWN also where the kernel says nothing. */
uid_t vb_user_of_peer(const struct vb_users *users, int socket, struct ucred *shown);

/* The user that the process is at this moment: its real, effective and saved ids are one. VB_USER_UNKNOWN where they
 * are not, and of a process that we cannot see, or that has ended. */
uid_t vb_user_of_process(const struct vb_users *users, int pidfd);

/* The process's number here; 0: it is of a pid namespace that we do not see into, or has ended. */
pid_t vb_pid_of(int pidfd);

/* The process at the other end of a Unix socket, where pid is its number by SO_PEERCRED; the caller's to close. -1: it
 * cannot be had. Before Linux 6.5 the number may be another process's by now. */
int vb_peer_pidfd(int socket, pid_t pid);

#endif
