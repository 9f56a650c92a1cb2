/* The machine's network interfaces as the kernel tells them (rtnetlink), before they become devices. */
#ifndef VB_HOST_INTERFACES_H
#define VB_HOST_INTERFACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/gid.h"

#define VB_INTERFACE_ADDRESSES 64

struct vb_interface {
	uint32_t index;
	char name[16];
	uint32_t mtu;
	bool is_up, is_running, is_loopback;
	uint8_t mac[6]; /* zero when it has none */
	unsigned address_count;
	struct vb_gid addresses[VB_INTERFACE_ADDRESSES]; /* usable ones, in the kernel's order, IPv4 mapped */
};

/* *list is malloc'ed. -errno. */
int vb_interfaces_read(struct vb_interface **list, size_t *count);
/* The interface of the default route; 0 when there is none. */
uint32_t vb_interfaces_default(void);
/* Megabits a second; 0 when the interface has no such notion, or makes it up. */
uint64_t vb_interface_speed(const char *name);
/* A socket that becomes readable when links or addresses change; -errno. */
int vb_interfaces_watch(void);
/* Reads everything that waits in it. */
void vb_interfaces_drain(int fd);

#endif
