/* The port of UDP sockets: datagrams to and from port 4791, and trains of them where the kernel segments and merges.
 * It is done with what it is handed when send returns. Its inside is udp_state.h's. */
#ifndef VB_PORT_UDP_H
#define VB_PORT_UDP_H

#include "port/port.h"

struct vb_udp_config {
	int receive_fd;           /* the slot's UDP socket, or a courier's channel; stays the caller's */
	bool is_carried;          /* it is a channel: port/carried.h */
	uint8_t slot;             /* packets whose QPN names another slot are strays */
	struct vb_pcap *pcap;     /* or NULL */
	struct vb_faults *faults; /* or NULL */
	bool single_datagrams;    /* never send GSO trains, even to peers that take them */
	bool takes_marks; /* what is sent may be marked on its way: ECT(0), where its address vector says nothing of it
			   */
};

int vb_udp_open(const struct vb_udp_config *config, struct vb_port **port);
/* Another courier's channel is behind the descriptor, of the same slot. One whose courier has died is silent until
 * then: the descriptor stays, and is never readable. */
void vb_udp_renew_channel(struct vb_port *port);

#endif
