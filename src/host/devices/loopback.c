/* See loopback.h. */
#include "host/devices/loopback.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include "os/descriptor.h"
#include "os/loopback.h"

/* The kernel binds only to its own addresses. For a link-local one it would want the interface. */
static bool is_of_this_host(const struct vb_gid *gid)
{
	struct sockaddr_in6 name = { .sin6_family = AF_INET6 };

	if (vb_gid_is_loopback(gid))
		return true;
	memcpy(&name.sin6_addr, gid->raw, sizeof(gid->raw));
	int fd = vb_descriptor_socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is_ours = fd >= 0 && bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0;
	if (fd >= 0)
		close(fd);
	return is_ours;
}

const char *vb_loopback_fault(const struct vb_gid *peer)
{
	static atomic_flag was_said = ATOMIC_FLAG_INIT;

	if (!vb_loopback_is_down() || (peer && !is_of_this_host(peer)) || atomic_flag_test_and_set(&was_said))
		return NULL;
	return peer ? "the loopback interface is down, and what stays on this host needs it; cure: " VB_LOOPBACK_CURE
		    : "there is no device: no network interface is up and has an address; cure: " VB_LOOPBACK_CURE;
}
