/* Packets that are delivered at one time, joined again, as the driver of a network card does on receipt (GRO):
 * consecutive ones of a UDP or TCP flow become one train for the device, behind one struct virtio_net_hdr. This is the
 * inverse of cut.h: what it makes, link_cut_begin takes apart into the same packets.
 *
 * Holds: nothing is joined that the packets would not say by themselves: a gap in the sequence, in IPv4's numbers or in
 * sizes, or a difference of headers, ends a train. */
#ifndef TESTS_LINK_JOIN_H
#define TESTS_LINK_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINK_TRAIN_PACKETS 64

struct link_train {
	unsigned count;
	size_t length;             /* of bytes */
	size_t transport, headers; /* where the transport's header begins, and the payload; headers 0: takes no more */
	size_t segment;            /* payload of each packet but the last */
	uint8_t bytes[66000];      /* with struct virtio_net_hdr */
};

/* Takes a packet as link_cut_write made it; false: it does not join, and what there is has to be written first. An
 * empty train takes any packet. takes_udp: the device knows trains of UDP. */
bool link_train_add(struct link_train *train, const uint8_t *packet, size_t length, bool takes_udp);
/* Makes the headers those of a train, to be written. Setting count to 0 empties it. */
void link_train_end(struct link_train *train);

#endif
