/* The inside of the UDP port, shared by its three files: udp.c (sockets, options, counters), udp_send.c, udp_receive.c.
 *
 * Always holds: the receive socket only receives. Sending is from sockets of the port's own, each bound to a port in
 * 0xC000-0xFFFF and unconnected with path-MTU mode PROBE, so that the kernel sends DF and identification 0 and counts
 * up from there within a train. */
#ifndef VB_PORT_UDP_STATE_H
#define VB_PORT_UDP_STATE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "port/carried.h"
#include "port/faults.h"
#include "port/udp.h"
#include "wire/icrc.h"

/* ---- Sending ---------------------------------------------------------------------------------------------------- */

#define TX_SOCKETS     32   /* at once; beyond it the longest unused one changes its slot */
#define TRAIN_SEGMENTS 64   /* UDP_MAX_SEGMENTS of older kernels */
#define MESSAGE_IOV    1024 /* UIO_MAXIOV */
/* Payloads up to this are copied beside their headers: one piece for the kernel, and no race of the ICRC with a program
 * that writes to memory being sent. */
#define COPY_BYTES         512
#define SCRATCH_PER_PACKET (VB_MAX_HEADER_BYTES + COPY_BYTES + 3 + VB_ICRC_LENGTH)
#define CONTROL_BYTES      160
#define REFUSED_MAX        8
#define SCOPES             4

/* GRO at the receiver merges by addresses and ports, and the steering program there sees the first packet of a merged
 * train only. So a sending socket serves one destination slot: two slots of one peer never share a source port. */
struct tx_socket {
	int fd;
	uint16_t port;
	uint16_t key; /* destination slot and IP version */
	uint64_t used_at;
};

/* One datagram or train, being built. */
struct tx_message {
	uint16_t first, count; /* of batch->out */
	struct tx_socket *socket;
	bool is_sent;
};

/* Which interface a link-local address is on. */
struct scope {
	struct vb_gid address;
	uint32_t ifindex;
	vb_time found_at;
};

struct sender {
	struct scope scopes[SCOPES];
	unsigned scope_next;
	struct tx_socket sockets[TX_SOCKETS];
	unsigned socket_count;
	uint8_t socket_of_key[512]; /* index + 1 */
	uint64_t sends;
	/* What the number of a packet in its train changes in its ICRC: of the first images_count, for such a
	 * length. */
	uint32_t images[TRAIN_SEGMENTS];
	uint32_t images_length, images_count;
	struct vb_gid refused[REFUSED_MAX]; /* our addresses from which the kernel takes no trains */
	unsigned refused_count;

	unsigned message_count, iov_count;
	uint8_t *cursor;
	struct tx_message messages[VB_BATCH_PACKETS];
	struct mmsghdr headers[VB_BATCH_PACKETS];
	struct iovec iov[VB_BATCH_IOV + 2 * VB_BATCH_PACKETS];
	union {
		struct sockaddr_in ipv4;
		struct sockaddr_in6 ipv6;
	} names[VB_BATCH_PACKETS];
	_Alignas(size_t) uint8_t control[VB_BATCH_PACKETS][CONTROL_BYTES];
	uint8_t scratch[VB_BATCH_PACKETS * SCRATCH_PER_PACKET];
	uint8_t whole[VB_MAX_PACKET_BYTES]; /* for the capture */
};

/* ---- Receiving -------------------------------------------------------------------------------------------------- */

#define RX_BUFFERS       16
#define RX_BUFFER_BYTES  65536
#define RX_HOT_BYTES     131072
#define RX_CONTROL_BYTES 256
#define DF_CLEAR_PEERS   4
#define DF_CLEAR_VOTES   3 /* packets in a row that verify only with DF clear, before a peer is believed to send so */

/* What has been learned of a peer that sends IPv4 with DF clear. */
struct df_peer {
	struct vb_gid src;
	unsigned votes;
};

struct receiver {
	unsigned count, next;   /* datagrams of the last read, and the first not yet looked at */
	unsigned want;          /* how many to ask for: grows while reads come back full */
	uint32_t offset;        /* in datagrams[next]: the first segment not yet looked at */
	struct vb_path path;    /* of datagrams[next], once it is_open */
	uint32_t segment;       /* bytes of each of its segments */
	bool is_open;           /* path and segment are datagrams[next]'s */
	uint16_t next_id;       /* IPv4 identification that its next segment has if they are numbered in order */
	uint32_t overflow_seen; /* the kernel's count of drops, which wraps */
	struct df_peer df_peers[DF_CLEAR_PEERS];
	unsigned df_peer_next;
	struct vb_carried *carried; /* one a buffer, where a courier brings what is received; else NULL */
	bool is_cut;                /* the courier has died */
	bool knows_overflow;        /* overflow_seen is this socket's */
	struct mmsghdr headers[RX_BUFFERS];
	struct iovec iov[RX_BUFFERS][2]; /* the courier's header, if any, and the buffer */
	struct sockaddr_storage names[RX_BUFFERS];
	_Alignas(size_t) uint8_t control[RX_BUFFERS][RX_CONTROL_BYTES];
	uint8_t *buffers; /* RX_BUFFERS * RX_BUFFER_BYTES */
};

struct vb_udp {
	struct vb_port port;
	struct vb_udp_config config;
	const struct vb_receipt *receipts; /* of the batch that was sent and not asked for yet */
	unsigned receipt_count;
	vb_time now; /* of the last receive or send */
	uint64_t counters[VB_PORT_COUNTER_COUNT];
	struct sender sender;
	struct receiver receiver;
};

static inline struct vb_udp *vb_udp_of(struct vb_port *port)
{
	return vb_container_of(port, struct vb_udp, port);
}

static inline const struct vb_udp *vb_udp_of_const(const struct vb_port *port)
{
	return vb_container_of((struct vb_port *)port, struct vb_udp, port);
}

/* The operations of the other two files: port.h. */
unsigned vb_udp_receive(struct vb_port *port, vb_time now);
bool vb_udp_next_train(struct vb_port *port, struct vb_train *train);
void vb_udp_send(struct vb_port *port, struct vb_batch *batch, vb_time now);

/* A socket has failed so: one that the program closed says what no other says. */
void vb_udp_note_errno(struct vb_udp *udp, int error);

/* The socket for a destination slot, made when there is none; NULL with errno. flow is the port to try first. */
struct tx_socket *vb_udp_tx_socket(struct sender *sender, uint8_t slot, bool is_ipv4, uint16_t flow);
/* The interface that has an address, as of a second ago at most; 0 when none has. */
uint32_t vb_udp_interface_of(struct sender *sender, const struct vb_gid *address, vb_time now);
void vb_udp_receiver_init(struct receiver *receiver);

#endif
