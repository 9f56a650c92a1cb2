/* The preload library that gives a program rsockets where it asks for sockets. It needs only rsocket.h of the other
 * libraries.
 *
 * A program's descriptor of an rsocket is the rsocket's own, or a duplicate of it, which the kernel knows as well; a
 * table gives the rsocket behind it. All other descriptors go to the C library.
 * Holds: librdmacm and libibverbs get the C library's functions, not these. */
#ifndef VB_RSPRELOAD_RSPRELOAD_H
#define VB_RSPRELOAD_RSPRELOAD_H

#include <poll.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#define VB_HOOK __attribute__((visibility("default")))

/* ---- The C library's functions (real.c) -------------------------------------------------------------------------- */

/* clang-format off */
#define VB_REAL_FUNCTIONS(X) \
	X(int, socket, (int, int, int)) \
	X(int, bind, (int, const struct sockaddr *, socklen_t)) \
	X(int, listen, (int, int)) \
	X(int, accept, (int, struct sockaddr *, socklen_t *)) \
	X(int, accept4, (int, struct sockaddr *, socklen_t *, int)) \
	X(int, connect, (int, const struct sockaddr *, socklen_t)) \
	X(ssize_t, recv, (int, void *, size_t, int)) \
	X(ssize_t, recvfrom, (int, void *, size_t, int, struct sockaddr *, socklen_t *)) \
	X(ssize_t, recvmsg, (int, struct msghdr *, int)) \
	X(ssize_t, send, (int, const void *, size_t, int)) \
	X(ssize_t, sendto, (int, const void *, size_t, int, const struct sockaddr *, socklen_t)) \
	X(ssize_t, sendmsg, (int, const struct msghdr *, int)) \
	X(ssize_t, read, (int, void *, size_t)) \
	X(ssize_t, readv, (int, const struct iovec *, int)) \
	X(ssize_t, write, (int, const void *, size_t)) \
	X(ssize_t, writev, (int, const struct iovec *, int)) \
	X(int, poll, (struct pollfd *, nfds_t, int)) \
	X(int, ppoll, (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *)) \
	X(int, select, (int, fd_set *, fd_set *, fd_set *, struct timeval *)) \
	X(int, pselect, (int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *)) \
	X(int, epoll_ctl, (int, int, int, struct epoll_event *)) \
	X(int, epoll_wait, (int, struct epoll_event *, int, int)) \
	X(int, epoll_pwait, (int, struct epoll_event *, int, int, const sigset_t *)) \
	X(int, shutdown, (int, int)) \
	X(int, close, (int)) \
	X(int, getpeername, (int, struct sockaddr *, socklen_t *)) \
	X(int, getsockname, (int, struct sockaddr *, socklen_t *)) \
	X(int, setsockopt, (int, int, int, const void *, socklen_t)) \
	X(int, getsockopt, (int, int, int, void *, socklen_t *)) \
	X(int, fcntl, (int, int, ...)) \
	X(int, ioctl, (int, unsigned long, ...)) \
	X(int, dup, (int)) \
	X(int, dup2, (int, int)) \
	X(int, dup3, (int, int, int)) \
	X(ssize_t, sendfile, (int, int, off_t *, size_t))
/* clang-format on */

struct vb_real {
#define DECLARE(type, name, arguments) type(*name) arguments;
	VB_REAL_FUNCTIONS(DECLARE)
#undef DECLARE
};

const struct vb_real *vb_real(void);

/* ---- Descriptors (table.c) --------------------------------------------------------------------------------------- */

/* The rsocket behind fd; -1: fd is another descriptor, or this thread is inside a function of an rsocket. */
int vb_rsocket_of(int fd);
void vb_table_add(int fd, int rsocket);
/* Removes fd; true: it was the last descriptor of its rsocket. */
bool vb_table_remove(int fd);
/* Events that an edge-triggered waiter was told, and shall not be told again; true: one of them was told. */
void vb_told(int rsocket, short events);
bool vb_take_told(int rsocket, short events);

/* Each call of rsocket.h stands between these. */
void vb_enter(void);
void vb_leave(void);
bool vb_is_inside(void);

#define VB_INSIDE(call)                                                                                                \
	({                                                                                                             \
		vb_enter();                                                                                            \
		__typeof__(call) vb_inside_result = (call);                                                            \
		vb_leave();                                                                                            \
		vb_inside_result;                                                                                      \
	})

/* ---- Configuration (config.c) ------------------------------------------------------------------------------------ */

/* True: the program shall have an rsocket of that kind. */
bool vb_config_wants(int domain, int type, int protocol);
void vb_config_set_sizes(int rsocket); /* RS_SQ_SIZE, RS_RQ_SIZE, RS_INLINE */
/* For the summary of VERBENA_STATS=1. */
void vb_count_rsocket(void);
void vb_count_ordinary(int domain, int type, const char *why);

/* ---- Waiting (wait.c, epoll.c) ----------------------------------------------------------------------------------- */

/* poll with the program's descriptors, which may include rsockets. */
int vb_poll(struct pollfd *fds, nfds_t count, int timeout_ms, const sigset_t *mask);
void vb_epoll_forget(int fd); /* a closed rsocket's */
/* A call may have changed these states of the rsocket: edge-triggered waiters are told of them again. */
void vb_epoll_expect(int rsocket, short events);
void vb_epoll_close(int epfd); /* of any other closed descriptor, which may have been an instance */

#endif
