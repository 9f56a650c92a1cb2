/* Descriptors that pass between processes, by a SOCK_SEQPACKET or SOCK_DGRAM socket of AF_UNIX.
 *
 * The sender keeps its descriptors. The receiver owns what it gets, which is close-on-exec. Descriptors come all or not
 * at all: where some are too many for the caller, or for this process, all that came are closed, and the result says
 * so. A packet of another length than expected counts as such, too (vb_pass_receive).
 *
 * Not cancelled: no call here is a cancellation point. */
#ifndef VB_OS_PASSING_H
#define VB_OS_PASSING_H

#include <stddef.h>
#include <sys/types.h>

#define VB_PASS_MAX 4u /* descriptors of a packet */

enum vb_passed {
	VB_PASSED_ALL,
	VB_PASSED_LOST,    /* this process, or its limit, had no room for all */
	VB_PASSED_SURPLUS, /* there were more than the caller takes */
};

/* Sends length bytes and the descriptors as one packet; 0 or -errno, -EINVAL with more than VB_PASS_MAX. Where the
 * receiver asks for the sender (SO_PASSCRED), the kernel names the real user. A set-user-ID program acts as its
 * effective user, and says so, which the kernel checks. */
int vb_pass_send(int to, const void *bytes, size_t length, const int *fds, unsigned count, int flags);

/* Receives one packet of exactly length bytes with at most max descriptors. 0, or -errno: -EAGAIN nothing there,
 * -ECONNRESET the other end is gone, -EMFILE all came but descriptors for which this process has no room, -EPROTO
 * another shape. *count is 0 unless all is well. */
int vb_pass_receive(int from, void *bytes, size_t length, int *fds, unsigned max, unsigned *count, int flags);

/* Receives one packet of any length with at most max descriptors: its length, which may be more than size, or -errno.
 * *count is 0 unless *passed is VB_PASSED_ALL. */
ssize_t vb_pass_receive_any(
	int from, void *bytes, size_t size, int *fds, unsigned max, unsigned *count, enum vb_passed *passed, int flags);

#endif
