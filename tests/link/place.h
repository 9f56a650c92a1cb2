/* The two ends: a network namespace each, with a TUN device link0 in it, whose other side is the relay's. */
#ifndef TESTS_LINK_PLACE_H
#define TESTS_LINK_PLACE_H

#include <stdbool.h>

#define LINK_NEAR_IPV4 "10.78.0.1"
#define LINK_FAR_IPV4  "10.78.0.2"

struct link_place {
	int namespace_fd, device_fd;
	bool takes_udp_trains; /* the device: Linux 6.2 and later */
};

/* Leaves the user, mount and PID namespaces of the caller: children are in new ones, and end when the first of them
 * does. An ordinary user becomes root of a user namespace of its own. 0 or -errno; what says what failed. */
int link_place_leave(const char **what);
/* In that first child: its own view of processes. False where that is not allowed; then /proc shows those outside. */
bool link_place_show_processes(void);
/* Makes a namespace with lo and link0 up, and moves the caller into it. number: 0 near, 1 far. 0 or -errno. */
int link_place_make(struct link_place *place, unsigned number, unsigned mtu, const char **what);
/* Moves the calling process into the namespace, with the /sys of that. 0 or -errno. */
int link_place_enter(const struct link_place *place);
/* A process of the caller's namespace listens on this TCP port. */
bool link_place_listens(unsigned port);
/* Packets that link0 of the caller's namespace dropped before they reached its other side. */
unsigned long long link_place_dropped(void);

#endif
