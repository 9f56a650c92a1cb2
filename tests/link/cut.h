/* What a TUN device gives, cut into the packets of the wire: one IP packet, or a train of TCP segments or UDP datagrams
 * that the kernel left to the device (GSO), behind a struct virtio_net_hdr.
 *
 * Holds: bytes are read within their length alone, whatever they are. The packets of a train are those that a network
 * card would send: numbered on in IPv4 identification and TCP sequence, PSH and FIN on the last, CWR on the first.
 * Their checksums are as the device gave them: left to be completed, of which a struct virtio_net_hdr before each
 * tells. */
#ifndef TESTS_LINK_CUT_H
#define TESTS_LINK_CUT_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct link_cut {
	const uint8_t *packet; /* the IP packet that was read; the caller's */
	size_t length;
	struct virtio_net_hdr header; /* of each packet that is cut from it */
	uint16_t source_port;         /* of UDP or TCP; 0: neither */
	size_t headers, segment;      /* bytes of headers, and of payload in each packet but the last */
	unsigned count;
};

/* False: it is nothing that can be cut, and no packet. */
bool link_cut_begin(struct link_cut *cut, const uint8_t *bytes, size_t length);
/* Bytes of packet number i with its struct virtio_net_hdr; without, it is what the link carries. */
size_t link_cut_length(const struct link_cut *cut, unsigned i);
/* Writes it: link_cut_length bytes. */
void link_cut_write(const struct link_cut *cut, unsigned i, uint8_t *bytes);

#endif
