/* What a message takes on a network without load: the bytes that its packets have on the wire, and the time until the
 * last of them has arrived, with nothing else to hold it back. */
#ifndef NET_UNLOADED_H
#define NET_UNLOADED_H

#include <stdbool.h>
#include <stdint.h>
#include "net/network.h"
#include "net/route.h"

/* Of a packet beside its payload, on Ethernet; a message's first packet has a RETH more. */
#define FRAMING_ROCE_OVERHEAD 82u /* preamble 8, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4, gap 12 */

enum { UNLOADED_LINKS = 1024 }; /* of a way, at most */

/* How messages are cut into packets. */
struct framing {
	uint32_t mtu;                         /* payload of a packet, bytes */
	uint32_t data_overhead, ack_overhead; /* wire bytes of a packet beside its payload, and of an ack; 0: those of
						 RoCEv2 over Ethernet */
};

/* Links in the order in which packets take them, from an endpoint to an endpoint. */
struct way {
	uint32_t links[UNLOADED_LINKS];
	uint32_t count;
};

/* One of the shortest ways, which all have as many links; false: there is none. */
bool unloaded_way(
	const struct network *network, const struct routes *routes, uint32_t src, uint32_t dst, struct way *way);

uint64_t framing_packets(const struct framing *framing, uint64_t bytes);
uint64_t framing_wire_bytes(const struct framing *framing, uint64_t bytes); /* of all these packets */
uint64_t framing_ack_bytes(const struct framing *framing);                  /* of one ack on the wire */

/* From when the source's NIC learns of the message until its last bit is in the destination's memory. */
vb_time unloaded_message_time(
	const struct network *network, const struct way *way, const struct framing *framing, uint64_t bytes);
/* From there until the source's NIC has the ack; way: the one back. */
vb_time unloaded_ack_time(const struct network *network, const struct way *back, const struct framing *framing);

#endif
