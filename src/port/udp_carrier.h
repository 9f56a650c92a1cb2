/* The carrier of a slot's UDP socket: datagrams to and from port 4791, and trains of them where the kernel segments and
 * merges. */
#ifndef VB_PORT_UDP_CARRIER_H
#define VB_PORT_UDP_CARRIER_H

#include "port/carrier.h"

/* receive_fd is the slot's socket and stays the caller's. flow_mask: the low bits of a flow that get source ports of
 * their own, 0, 1, 3 or 7. 0 or -errno. */
int vb_udp_carrier_open(int receive_fd, uint16_t flow_mask, struct vb_carrier **carrier);

#endif
