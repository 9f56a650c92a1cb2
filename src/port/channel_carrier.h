/* The carrier of a process that may not have its slot's socket. A forwarder of the broker's user holds the socket and
 * passes on what arrives, through a channel (carried.h). Sending is the process's own, as udp_carrier.h's. */
#ifndef VB_PORT_CHANNEL_CARRIER_H
#define VB_PORT_CHANNEL_CARRIER_H

#include "port/carrier.h"

/* channel_fd stays the caller's; flow_mask as vb_udp_carrier_open. 0 or -errno. */
int vb_channel_carrier_open(int channel_fd, uint16_t flow_mask, struct vb_carrier **carrier);
/* Another forwarder's channel is behind the descriptor, of the same slot. Until then, once a forwarder has died, the
 * descriptor stays and is never readable. */
void vb_channel_carrier_renew(struct vb_carrier *carrier);

#endif
