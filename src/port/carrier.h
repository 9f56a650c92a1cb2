/* A carrier moves datagrams between this process and its peers. A message is one datagram, or a train: datagrams of
 * equal size to one destination, of which the last may be shorter, that travel in one piece as far as the carrier can
 * manage. The framing (framing.h) stands above: it writes and reads the bytes of whole datagrams. A carrier sees bytes,
 * addresses and what the network is told of them, and knows nothing of RoCE.
 *
 *   ops->route(carrier, messages, count);       where each message will leave: sets src_port, which the bytes cover
 *   ... the framing writes the bytes ...
 *   ops->send(carrier, messages, count, now);   sets error
 *   count = ops->receive(carrier, messages);    at most VB_CARRIER_RX
 *
 * Holds for each carrier: no call blocks. Messages of one source port leave in the order in which they are handed over.
 * IPv4 datagrams leave with DF set, and with their number in the train as identification, since an ICRC covers both.
 * The carrier is done with a message's bytes when send returns. One thread at a time uses a carrier.
 *
 * The kinds are udp_carrier.h (the slot's UDP socket) and channel_carrier.h (a forwarder's channel). A carrier that
 * encrypts would have these operations too, and call those of another one below it. A carrier of a device's queues
 * (AF_XDP) would write IP and UDP headers itself.
 * Not here: which packets make a train, and the bytes (framing.h). */
#ifndef VB_PORT_CARRIER_H
#define VB_PORT_CARRIER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include "engine/nic.h"

#define VB_CARRIER_TX       VB_BATCH_PACKETS /* messages of one send, at most */
#define VB_CARRIER_RX       16               /* messages of one receive, at most */
#define VB_CARRIER_SEGMENTS 64               /* datagrams of a train, at most: UDP_MAX_SEGMENTS of older kernels */
#define VB_CARRIER_IOV      1024             /* pieces of a message, at most: UIO_MAXIOV */
#define VB_CARRIER_FDS      1                /* at most */
#define VB_CARRIER_HOPS     64               /* the hop limit that costs nothing to ask for */

/* To be sent. */
struct vb_tx_message {
	const struct vb_gid *src, *dst; /* IPv4 mapped; both of one version */
	const struct iovec *iov;        /* the bytes of all datagrams, one behind the other */
	uint16_t iov_count;
	uint16_t segment;      /* bytes of each datagram of a train but the last; 0: a single datagram */
	uint16_t flow;         /* a wish for the source port; its bits of flow_mask choose among several */
	uint8_t steering;      /* messages that differ in it never share a source port: the receiving kernel merges by
				  addresses and ports, and steers what it has merged by the first datagram */
	uint8_t traffic_class; /* with the ECN bits */
	uint8_t hop_limit;
	uint8_t socket;    /* the carrier's own, from route to send */
	uint16_t src_port; /* set by route */
	int error;         /* set by route and send: 0, or a positive errno. Send leaves out messages without a route */
};

/* Received. */
struct vb_rx_message {
	struct vb_path path;
	uint8_t *bytes;    /* of all datagrams, the carrier's until the next receive; the framing may change them */
	uint32_t length;   /* of all together; 0: of no use, as it was cut short or has no sender's address */
	uint32_t overflow; /* datagrams that the receive buffer had no room for before it; wraps */
	uint32_t segment;  /* bytes of each datagram but the last; at least length for a single one */
};

struct vb_carrier;

struct vb_carrier_ops {
	void (*route)(struct vb_carrier *carrier, struct vb_tx_message *messages, unsigned count);
	void (*send)(struct vb_carrier *carrier, struct vb_tx_message *messages, unsigned count, vb_time now);
	/* Without waiting; returns how many. Those of the receive before are void. */
	unsigned (*receive)(struct vb_carrier *carrier, struct vb_rx_message messages[VB_CARRIER_RX]);
	/* How many descriptors become readable when there is something to receive. */
	unsigned (*fds)(const struct vb_carrier *carrier, int fds[VB_CARRIER_FDS]);
	/* Datagrams for this carrier that the kernel has dropped since it was opened, because a buffer was full. */
	uint64_t (*overflow)(const struct vb_carrier *carrier);
	/* Forgets all descriptors, and closes those of its own if closes. Nothing moves any more. */
	void (*abandon)(struct vb_carrier *carrier, bool closes);
	void (*close)(struct vb_carrier *carrier);
};

/* The head of every carrier. */
struct vb_carrier {
	const struct vb_carrier_ops *ops;
	uint32_t largest_train; /* bytes of a train, at most; 0: it takes none */
	uint16_t flow_mask;     /* of vb_tx_message.flow: the bits that choose a source port; 0: all flows have one */
	unsigned fds_version;   /* counts up when the descriptors, or what is behind them, are others */
	bool is_lost;           /* a descriptor was found to be no socket: the program closed it. Counted as another */
};

#endif
