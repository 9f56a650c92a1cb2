/* For tests with sockets: a network namespace of their own, with lo up, so that the machine's stays as it is. */
#ifndef VB_TESTS_NAMESPACE_H
#define VB_TESTS_NAMESPACE_H

#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* False where that is not allowed. */
static inline bool own_namespace(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };

	if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return false;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	int rc = ioctl(fd, SIOCSIFFLAGS, &request);
	close(fd);
	return rc == 0;
}

#endif
