/* The inside of the carriers of UDP sockets: the sockets that they send from, and how messages are read from a
 * descriptor. Both send alike; udp_carrier.c and channel_carrier.c differ in where they receive.
 *
 * Holds: the receive descriptor only receives. Sending is from sockets of the carrier's own, each bound to a port in
 * 0xC000-0xFFFF and unconnected with path-MTU mode PROBE, so that the kernel sends DF and identification 0 and counts
 * up from there within a train.
 * Not here: the options of the slot's socket (receive_socket.h), which a forwarder and the broker set too. */
#ifndef VB_PORT_SOCKETS_H
#define VB_PORT_SOCKETS_H

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include "base/list.h"
#include "port/carried.h"
#include "port/carrier.h"

#define VB_SEND_SOCKETS     32  /* at once; beyond it the longest unused one changes its key */
#define VB_SEND_SOCKETS_MAX 192 /* the same, where flows have source ports of their own */
#define VB_FLOWS_MAX        64  /* source ports to one destination slot */
#define VB_SOCKET_KEYS      (256 * 2 * VB_FLOWS_MAX)
#define VB_TX_CONTROL_BYTES 160
#define VB_RX_CONTROL_BYTES 256
#define VB_RX_BUFFER_BYTES  65536
#define VB_SCOPES           4

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

struct vb_send_socket {
	int fd;
	uint16_t port;
	uint16_t key; /* of socket_of_key: steering, IP version and the flow's bits */
	uint64_t used_at;
};

/* On which interface a link-local address is. */
struct vb_scope {
	struct vb_gid address;
	uint32_t ifindex;
	vb_time found_at;
};

/* The open sockets. Holds: key k has sockets[socket_of_key[k] - 1], whose key is k, or none (0). */
struct vb_send_pool {
	unsigned count, most;
	uint64_t uses;
	struct vb_send_socket sockets[VB_SEND_SOCKETS_MAX];
	uint8_t socket_of_key[VB_SOCKET_KEYS]; /* index + 1 */
};

struct vb_sender {
	struct vb_send_pool pool;
	struct vb_scope scopes[VB_SCOPES];
	unsigned scope_next;
	uint8_t order[VB_CARRIER_TX]; /* the messages of a send, those of one socket together */
	struct mmsghdr headers[VB_CARRIER_TX];
	union {
		struct sockaddr_in ipv4;
		struct sockaddr_in6 ipv6;
	} names[VB_CARRIER_TX];
	_Alignas(size_t) uint8_t control[VB_CARRIER_TX][VB_TX_CONTROL_BYTES];
};

/* ---- Receiving --------------------------------------------------------------------------------------------------- */

struct vb_receiver {
	unsigned count;             /* messages of the last read */
	unsigned want;              /* how many to ask for: grows while reads come back full */
	uint32_t overflow_seen;     /* the kernel's count of drops, which wraps */
	uint64_t overflow;          /* what it has grown by */
	bool knows_overflow;        /* overflow_seen is this socket's */
	struct vb_carried *carried; /* one a buffer, where a forwarder brings what is received; else NULL */
	struct mmsghdr headers[VB_CARRIER_RX];
	struct iovec iov[VB_CARRIER_RX][2]; /* the forwarder's header, if any, and the buffer */
	struct sockaddr_storage names[VB_CARRIER_RX];
	_Alignas(size_t) uint8_t control[VB_CARRIER_RX][VB_RX_CONTROL_BYTES];
	uint8_t *buffers; /* VB_CARRIER_RX * VB_RX_BUFFER_BYTES */
};

/* ---- Both -------------------------------------------------------------------------------------------------------- */

struct vb_sockets {
	struct vb_carrier carrier;
	int receive_fd; /* the caller's; -1 once abandoned */
	bool is_cut;    /* the forwarder has died: nothing is read until another one's channel is there */
	struct vb_sender sender;
	struct vb_receiver receiver;
};

static inline struct vb_sockets *vb_sockets_of(const struct vb_carrier *carrier)
{
	return vb_container_of((struct vb_carrier *)carrier, struct vb_sockets, carrier);
}

/* A socket has failed with error. That it is no socket any more is said once. */
static inline void vb_sockets_note_errno(struct vb_sockets *sockets, int error)
{
	if ((error != EBADF && error != ENOTSOCK) || sockets->carrier.is_lost)
		return;
	sockets->carrier.is_lost = true;
	sockets->carrier.fds_version++;
}

/* sockets.c: parts that both kinds of carrier have. with_channel: messages come with a forwarder's header. NULL: no
 * memory. */
struct vb_sockets *vb_sockets_create(
	const struct vb_carrier_ops *ops, int receive_fd, uint16_t flow_mask, bool with_channel);
unsigned vb_sockets_fds(const struct vb_carrier *carrier, int fds[VB_CARRIER_FDS]);
void vb_sockets_abandon(struct vb_carrier *carrier, bool closes);
void vb_sockets_close(struct vb_carrier *carrier);

/* As many sockets as there may be: more where flows have source ports of their own. */
void vb_send_pool_init(struct vb_send_pool *pool, bool has_flows);
/* send_pool.c: the socket of a key, made when there is none; NULL with errno. flow is the port to try first. */
struct vb_send_socket *vb_send_pool_get(struct vb_send_pool *pool, uint16_t key, bool is_ipv4, uint16_t flow);
void vb_send_pool_check(const struct vb_send_pool *pool); /* base/invariant.h */

/* socket_send.c: two operations of a carrier. */
void vb_sockets_route(struct vb_carrier *carrier, struct vb_tx_message *messages, unsigned count);
void vb_sockets_send(struct vb_carrier *carrier, struct vb_tx_message *messages, unsigned count, vb_time now);

/* socket_receive.c: reads into the receiver's buffers; the count is the receiver's. */
void vb_receiver_init(struct vb_receiver *receiver);
void vb_sockets_read(struct vb_sockets *sockets);
/* Addresses and sizes of the messages that were read, as the kernel or a forwarder has told them. */
void vb_receiver_describe(struct vb_receiver *receiver, struct vb_rx_message messages[VB_CARRIER_RX]);

#endif
