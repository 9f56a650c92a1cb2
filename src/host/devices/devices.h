/* From interfaces to devices, as a pure function. The functions for other rooms are in host.h. */
#ifndef VB_HOST_DEVICES_H
#define VB_HOST_DEVICES_H

#include "host/host.h"
#include "host/devices/interfaces.h"

/* Fills devices (room for count) from interfaces and returns how many there are. default_index: the interface of the
 * default route. wanted: a comma-separated list as in VERBENA_DEVICES; "all", which leaves loopback's out beside
 * others; NULL: that one too. Speed is left 0. */
size_t vb_devices_from_interfaces(const struct vb_interface *interfaces, size_t count, uint32_t default_index,
	const char *wanted, struct vb_device_info *devices);
/* The largest IB MTU that fits a network MTU, in bytes; 0 when none does. */
uint32_t vb_device_mtu(uint32_t netdev_mtu);
/* As vb_devices_list, with wanted for VERBENA_DEVICES, or NULL. Says nothing. */
int vb_devices_named(const char *wanted, struct vb_device_info **list, size_t *count);

/* The devices that a program may have been shown: loopback's too, though another may have come since. */
int vb_devices_openable(struct vb_device_info **list, size_t *count);
/* This process has loopback's device open, or not any more. */
void vb_devices_hold_loopback(bool is_held);

/* A name among those wanted that is no device, and why. */
struct vb_name_fault {
	char name[64];
	const char *why; /* "there is no such interface" */
};

/* The next of them in a list of names, not "all"; moves *wanted past it. False: no more. */
bool vb_devices_next_fault(
	const struct vb_interface *interfaces, size_t count, const char **wanted, struct vb_name_fault *fault);

#endif
