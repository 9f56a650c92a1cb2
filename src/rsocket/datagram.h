/* A datagram rsocket has a UDP socket, which holds its address and port and finds peers. For each of our addresses that
 * it sends from, it has an unreliable datagram queue pair, which carries the data once the peer's queue pair is known.
 *
 * The first datagram to a peer goes through UDP, behind a header that tells our queue pair's number. The peer answers
 * with its own number, in a header alone. From then on datagrams go from queue pair to queue pair, behind a header that
 * tells the sender's address and port. A datagram that does not fit into the path's MTU always goes through UDP.
 * These formats are those of librdmacm's rsockets. */
#ifndef VB_RSOCKET_DATAGRAM_H
#define VB_RSOCKET_DATAGRAM_H

#include "rsocket/objects.h"

enum {
	VB_RS_DATAGRAM_MAX = 2048, /* with its header */
	VB_RS_HEADER_MAX = 28,
	VB_RS_UDP_HEADER_IPV4 = 16,
	VB_RS_UDP_HEADER_IPV6 = 28,
	VB_RS_UD_HEADER_IPV4 = 8,
	VB_RS_UD_HEADER_IPV6 = 24,
	VB_RS_GRH = 40,
	VB_RS_QKEY = 0x01234567, /* of all queue pairs in librdmacm's UDP port space */
};

/* ---- Formats (datagram_wire.c): pure ----------------------------------------------------------------------------- */

struct vb_rs_udp_header {
	bool is_data; /* else the answer */
	uint32_t qpn;
	union vb_rs_address target; /* the receiver; its port is not told */
};

/* These return the header's length; 0: it is none. A header has the family of the address in it. A mapped address is
 * sent as IPv4, since the peer's socket may be of that family. */
size_t vb_rs_udp_header_encode(const struct vb_rs_udp_header *header, uint8_t to[VB_RS_HEADER_MAX]);
size_t vb_rs_udp_header_decode(struct vb_rs_udp_header *header, const uint8_t *from, size_t length);
size_t vb_rs_ud_header_encode(const union vb_rs_address *address, uint8_t to[VB_RS_HEADER_MAX]);
size_t vb_rs_ud_header_decode(union vb_rs_address *sender, const uint8_t *from, size_t length);

/* ---- Queue pairs (datagram_qp.c): under the rsocket's lock ------------------------------------------------------- */

struct vb_rs_ud {
	struct vb_list link;
	union vb_rs_address local; /* its port is 0 */
	struct rdma_cm_id *id;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory; /* receives, then sends */
	size_t room;
	uint32_t receives, sends; /* numbers of buffers */
	uint32_t *free_sends, free_count;
	uint32_t mtu;
	uint8_t gid_index;
	bool is_armed, is_broken;
};

/* The queue pair of the local address among uds; it is made if there is none yet. 0 or -errno. */
int vb_rs_ud_get(struct vb_rsocket *rs, struct vb_list *uds, const union vb_rs_address *local, struct vb_rs_ud **found);
void vb_rs_ud_close(struct vb_rs_ud *ud);
struct ibv_ah *vb_rs_ud_create_ah(struct vb_rs_ud *ud, const union vb_rs_address *to);
/* Sends header and data. 0 or -errno; -EAGAIN: no buffer is free (free_count). */
int vb_rs_ud_send(struct vb_rs_ud *ud, struct ibv_ah *ah, uint32_t qpn, const uint8_t *header, size_t header_length,
	const struct iovec *iov, size_t count, size_t length);
/* A received datagram, valid until its buffer is given back. */
uint8_t *vb_rs_ud_received(struct vb_rs_ud *ud, uint32_t index); /* GRH first */
int vb_rs_ud_give_back(struct vb_rs_ud *ud, uint32_t index);
/* Takes completions, and calls arrive for each datagram, whose length is without the GRH. */
typedef void vb_rs_ud_arrive(struct vb_rsocket *rs, struct vb_rs_ud *ud, uint32_t index, uint32_t length);
void vb_rs_ud_poll(struct vb_rsocket *rs, struct vb_rs_ud *ud, vb_rs_ud_arrive *arrive);
bool vb_rs_ud_take_events(struct vb_rs_ud *ud);
bool vb_rs_ud_arm(struct vb_rs_ud *ud); /* false: it was armed already */

/* ---- Peers (datagram_peers.c): under the rsocket's lock ---------------------------------------------------------- */

struct vb_rs_peer {
	struct vb_list link;
	union vb_rs_address address;
	struct vb_rs_ud *ud;
	struct ibv_ah *ah; /* NULL: its queue pair is not known */
	uint32_t qpn;
	int64_t known_us; /* when it last told the number */
};

/* The peer at that address, made when it is not there yet. 0 or -errno. */
int vb_rs_get_peer(struct vb_rsocket *rs, const union vb_rs_address *address, struct vb_rs_peer **found);
void vb_rs_learn_qpn(struct rs_datagram *dg, struct vb_rs_peer *peer, uint32_t qpn);
/* A program that writes to ever new peers begins anew rather than growing without end. */
void vb_rs_forget_peers(struct rs_datagram *dg);

/* ---- The rsocket's own (datagram.c): under its lock -------------------------------------------------------------- */

struct vb_rs_arrival {
	struct vb_list link;
	union vb_rs_address from;
	struct vb_rs_ud *ud; /* its buffer holds the data; NULL: the data is behind this structure */
	uint32_t index;
	size_t length;
	const uint8_t *data;
};

enum { VB_RS_BUCKETS = 64 };

struct rs_datagram {
	int udp;
	struct vb_list uds;
	struct vb_list peers[VB_RS_BUCKETS];
	uint32_t peer_count, unanswered; /* unanswered: peers that were written to by UDP alone */
	struct vb_list arrivals;
	uint32_t arrival_count;
	bool is_connected;
};

int vb_rs_datagram_open(struct vb_rsocket *rs);
int vb_rs_datagram_inherit(struct vb_rsocket *rs, const struct vb_rsocket *from); /* they share the kernel's socket */
void vb_rs_datagram_leave(const struct vb_rsocket *from); /* closes the child's copy of its parent's descriptors */
int vb_rs_datagram_bind(struct vb_rsocket *rs, const struct sockaddr *addr, socklen_t length);
int vb_rs_datagram_connect(struct vb_rsocket *rs, const struct sockaddr *addr, socklen_t length);
int vb_rs_datagram_name(struct vb_rsocket *rs, struct sockaddr *addr, socklen_t *length);
int vb_rs_datagram_peer(struct vb_rsocket *rs, struct sockaddr *addr, socklen_t *length);
/* Takes it out of the queue. */
void vb_rs_arrival_drop(struct rs_datagram *dg, struct vb_rs_arrival *arrival);

/* ---- Sending and receiving (datagram_io.c) ----------------------------------------------------------------------- */

ssize_t vb_rs_datagram_send(struct vb_rsocket *rs, const struct iovec *iov, size_t count, int flags,
	const struct sockaddr *to, socklen_t length);
/* *from_length is room and then the address's length; *message_flags gets MSG_TRUNC. */
ssize_t vb_rs_datagram_receive(struct vb_rsocket *rs, const struct iovec *iov, size_t count, int flags,
	struct sockaddr *from, socklen_t *from_length, int *message_flags);

#endif
