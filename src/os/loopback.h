/* The loopback interface, which is down in a fresh network namespace. */
#ifndef VB_OS_LOOPBACK_H
#define VB_OS_LOOPBACK_H

#include <net/if.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "os/descriptor.h"

#define VB_LOOPBACK_CURE "sudo ip link set lo up"

/* False also if that cannot be found out. */
static inline bool vb_loopback_is_down(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = vb_descriptor_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is_told = fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0;

	if (fd >= 0)
		close(fd);
	return is_told && !(request.ifr_flags & IFF_UP);
}

#endif
