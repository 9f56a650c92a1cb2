/* The port of a live process: framing (framing.h) over the carrier that its slot has, which is a UDP socket or, where
 * the process may not have that, a forwarder's channel. It is done with a batch when send returns. */
#ifndef VB_PORT_UDP_H
#define VB_PORT_UDP_H

#include "port/port.h"

struct vb_udp_config {
	int receive_fd;           /* the slot's UDP socket, or a forwarder's channel; stays the caller's */
	bool is_carried;          /* it is a channel: port/carried.h */
	uint8_t slot;             /* packets whose QPN names another slot are strays */
	struct vb_pcap *pcap;     /* or NULL */
	struct vb_faults *faults; /* or NULL */
	bool single_datagrams;    /* never send trains, even to peers that take them */
	bool takes_marks; /* packets may be marked on their way: ECT(0), where the address vector says nothing of it */
	uint16_t flow_mask; /* low bits of a packet's flow (1, 3, 7 .. 63) that have source ports of their own to each
			       destination slot; 0: one port for all flows */
};

int vb_udp_open(const struct vb_udp_config *config, struct vb_port **port); /* 0 or -errno */
/* Another forwarder's channel is behind the descriptor, of the same slot. Once a forwarder has died, the descriptor
 * stays, and is never readable until then. */
void vb_udp_renew_channel(struct vb_port *port);

#endif
