/* From interfaces to devices, as a pure function; host.h has what others call. */
#ifndef VB_HOST_DEVICES_H
#define VB_HOST_DEVICES_H

#include "host/host.h"
#include "host/interfaces.h"

/* Fills devices (room for count) from interfaces and returns how many there are. default_index: the interface of the
 * default route. wanted: a comma-separated list as in VERBENA_DEVICES, or "all". Speed is left 0. */
size_t vb_devices_from_interfaces(const struct vb_interface *interfaces, size_t count, uint32_t default_index,
	const char *wanted, struct vb_device_info *devices);
/* The largest IB MTU that fits a network MTU, in bytes; 0 when none does. */
uint32_t vb_device_mtu(uint32_t netdev_mtu);
/* As vb_devices_list, whatever VERBENA_DEVICES says. */
int vb_devices_all(struct vb_device_info **list, size_t *count);

#endif
