/* Ethernet frames through packet sockets, for raw packet QPs: frames are sent and received whole, and nothing is
 * decided here. To open a socket takes CAP_NET_RAW in the network namespace's user namespace. */
#ifndef VB_PORT_ETHERNET_H
#define VB_PORT_ETHERNET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "engine/nic.h"
#include "wire/frame.h"

/* A socket that sends through any interface and receives nothing; or -errno: -EPERM. */
int vb_ethernet_open_sender(void);
/* A socket that receives all frames that come in and go out through an interface; or -errno. */
int vb_ethernet_open_receiver(uint32_t ifindex);

/* Never blocks. 0, or a positive errno: EAGAIN when there is no room now. */
int vb_ethernet_send(int fd, uint32_t ifindex, const struct vb_iov *iov, unsigned iov_count);

struct vb_ethernet_frame {
	uint8_t *bytes; /* in the buffer */
	uint32_t length;
	bool is_outgoing;
};

/* The next frame, with the VLAN tag that the kernel keeps beside it put back. False: nothing has come, or it does not
 * fit into size bytes. */
bool vb_ethernet_receive(int fd, uint8_t *buffer, size_t size, struct vb_ethernet_frame *frame);

/* Frames that the interface must let through beside its own address and broadcasts. The kernel counts the interests. */
enum vb_ethernet_interest { VB_ETHERNET_OWN, VB_ETHERNET_ADDRESS, VB_ETHERNET_ALL_MULTICAST, VB_ETHERNET_EVERYTHING };

struct vb_ethernet_filter {
	enum vb_ethernet_interest interest;
	uint8_t mac[VB_MAC_LENGTH]; /* of ADDRESS */
};

/* 0 or -errno. */
int vb_ethernet_listen(int fd, uint32_t ifindex, const struct vb_ethernet_filter *filter);
void vb_ethernet_ignore(int fd, uint32_t ifindex, const struct vb_ethernet_filter *filter);

/* The interface's own address; zeros when it cannot be known. */
void vb_ethernet_address(int fd, const char *ifname, uint8_t mac[VB_MAC_LENGTH]);

#endif
