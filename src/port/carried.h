/* A datagram, or a merged train, as a forwarder passes it on (src/broker/forwarder.c): one message of a SOCK_SEQPACKET
 * channel, this header and then the bytes. The kernel's control data comes along unchanged. */
#ifndef VB_PORT_CARRIED_H
#define VB_PORT_CARRIED_H

#include <netinet/in.h>
#include <stdint.h>

#define VB_CARRIED_CONTROL 256

struct vb_carried {
	uint32_t name_length, control_length;
	union {
		struct sockaddr_in ipv4;
		struct sockaddr_in6 ipv6;
	} name; /* the sender's address */
	_Alignas(8) uint8_t control[VB_CARRIED_CONTROL];
};

#endif
