/* Arriving datagrams, and the making and ending of a datagram rsocket (datagram.h says how it works).
 * Holds: we answer to the address that a datagram came from, whatever it claims. A datagram that comes when the queue
 * is full is lost, as with UDP.
 * Not here: sending and receiving (datagram_io.c). */
#include "rsocket/datagram.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "os/descriptor.h"
#include "base/gid.h"

enum { QUEUE_MAX = 1024 };

/* ---- What arrives ------------------------------------------------------------------------------------------------ */

static void queue(struct vb_rsocket *rs, struct vb_rs_arrival *arrival)
{
	vb_list_add_tail(&rs->datagram->arrivals, &arrival->link);
	rs->datagram->arrival_count++;
	vb_rs_changed(rs);
}

void vb_rs_arrival_drop(struct rs_datagram *dg, struct vb_rs_arrival *arrival)
{
	vb_list_remove(&arrival->link);
	dg->arrival_count--;
	if (arrival->ud && vb_rs_ud_give_back(arrival->ud, arrival->index))
		arrival->ud->is_broken = true;
	free(arrival);
}

/* The sender named in the datagram must be the source of its packet. An IPv4 header is at the end of the GRH. A
 * loopback address is right, too, if source and destination are the same address: this host. */
static bool is_from(const uint8_t *grh, const union vb_rs_address *sender)
{
	union ibv_gid gid = vb_rs_address_gid(sender);
	bool is_ipv6 = grh[0] >> 4 == 6;
	const uint8_t *source = is_ipv6 ? grh + 8 : grh + 32;
	size_t length = is_ipv6 ? 16 : 4;
	struct vb_gid named;

	memcpy(named.raw, gid.raw, sizeof(named.raw));
	if (vb_gid_is_loopback(&named) && !memcmp(source, source + length, length))
		return true;
	return (is_ipv6 || vb_gid_is_ipv4(&named)) && !memcmp(source, gid.raw + 16 - length, length);
}

/* An IPv6 socket has peers of both families. */
static bool is_wanted(const struct vb_rsocket *rs, union vb_rs_address *from)
{
	return vb_rs_address_convert(from, (sa_family_t)rs->domain) &&
	       (!rs->datagram->is_connected || vb_rs_address_equal(&rs->peer, from, true));
}

static void on_datagram(struct vb_rsocket *rs, struct vb_rs_ud *ud, uint32_t index, uint32_t length)
{
	const uint8_t *grh = vb_rs_ud_received(ud, index);
	union vb_rs_address from;
	struct vb_rs_arrival *arrival = NULL;

	size_t header = vb_rs_ud_header_decode(&from, grh + VB_RS_GRH, length);
	if (header && is_from(grh, &from) && is_wanted(rs, &from))
		arrival = malloc(sizeof(*arrival));
	if (!arrival) {
		if (vb_rs_ud_give_back(ud, index))
			ud->is_broken = true;
		return;
	}
	*arrival = (struct vb_rs_arrival){
		.from = from, .ud = ud, .index = index, .length = length - header, .data = grh + VB_RS_GRH + header
	};
	queue(rs, arrival);
}

static void answer(struct vb_rsocket *rs, const struct vb_rs_peer *peer)
{
	struct vb_rs_udp_header header = { .qpn = peer->ud->id->qp->qp_num, .target = peer->address };
	uint8_t bytes[VB_RS_HEADER_MAX];
	size_t length = vb_rs_udp_header_encode(&header, bytes);

	/* If it is lost, the peer's next datagram asks again. */
	sendto(rs->datagram->udp, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL, &peer->address.any,
		vb_rs_address_length(&peer->address));
}

static void queue_copy(struct vb_rsocket *rs, const union vb_rs_address *from, const uint8_t *data, size_t length)
{
	if (rs->datagram->arrival_count >= QUEUE_MAX)
		return;
	struct vb_rs_arrival *arrival = malloc(sizeof(*arrival) + length);
	if (!arrival)
		return;
	*arrival = (struct vb_rs_arrival){ .from = *from, .length = length, .data = (uint8_t *)(arrival + 1) };
	memcpy(arrival + 1, data, length);
	queue(rs, arrival);
}

static void on_udp(struct vb_rsocket *rs, const union vb_rs_address *from, const uint8_t *bytes, size_t length)
{
	struct vb_rs_udp_header header;
	struct vb_rs_peer *peer;

	size_t own = vb_rs_udp_header_decode(&header, bytes, length);
	if (!own)
		return;
	int error = vb_rs_get_peer(rs, from, &peer);
	if (!error)
		vb_rs_learn_qpn(rs->datagram, peer, header.qpn);
	if (!header.is_data)
		return;
	if (!error)
		answer(rs, peer);
	queue_copy(rs, from, bytes + own, length - own);
}

static bool take_udp(struct vb_rsocket *rs)
{
	uint8_t bytes[VB_RS_DATAGRAM_MAX + VB_RS_HEADER_MAX];
	bool was_any = false;

	for (;;) {
		union vb_rs_address from;
		socklen_t from_length = sizeof(from);
		memset(&from, 0, sizeof(from));
		ssize_t length = recvfrom(
			rs->datagram->udp, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC, &from.any, &from_length);
		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0) {
			if (errno != EAGAIN)
				rs->error = errno;
			return was_any || errno != EAGAIN;
		}
		was_any = true;
		if ((size_t)length <= sizeof(bytes) && vb_rs_address_length(&from))
			on_udp(rs, &from, bytes, (size_t)length);
	}
}

bool vb_rs_datagram_progress(struct vb_rsocket *rs, bool is_all)
{
	struct rs_datagram *dg = rs->datagram;
	bool was_any = false;

	vb_list_for_each (link, &dg->uds) {
		struct vb_rs_ud *ud = vb_container_of(link, struct vb_rs_ud, link);
		if (is_all)
			was_any |= vb_rs_ud_take_events(ud);
		vb_rs_ud_poll(rs, ud, on_datagram);
	}
	if (is_all || dg->unanswered)
		was_any |= take_udp(rs);
	return was_any;
}

bool vb_rs_datagram_arm(struct vb_rsocket *rs)
{
	bool was_any = false;

	vb_list_for_each (link, &rs->datagram->uds)
		was_any |= vb_rs_ud_arm(vb_container_of(link, struct vb_rs_ud, link));
	return was_any;
}

void vb_rs_datagram_add_lanes(const struct vb_rsocket *rs, struct vb_rs_lanes *to)
{
	vb_list_for_each (link, &rs->datagram->uds) {
		struct ibv_cq *cq = vb_container_of(link, struct vb_rs_ud, link)->cq;
		to->context = cq->context;
		to->lanes |= vb_cq_lanes(cq);
	}
}

/* ---- Making and ending ------------------------------------------------------------------------------------------- */

/* The kernel's socket is ours from here on; it is closed when this fails. */
static int open_on(struct vb_rsocket *rs, int udp)
{
	struct rs_datagram *dg = calloc(1, sizeof(*dg));
	if (!dg) {
		close(udp);
		return -ENOMEM;
	}
	vb_list_init(&dg->uds);
	vb_list_init(&dg->arrivals);
	for (int i = 0; i < VB_RS_BUCKETS; i++)
		vb_list_init(&dg->peers[i]);
	rs->datagram = dg;
	dg->udp = udp;
	return vb_rs_watch(rs, udp);
}

int vb_rs_datagram_open(struct vb_rsocket *rs)
{
	int udp = vb_descriptor_socket(rs->domain, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return udp < 0 ? -errno : open_on(rs, udp);
}

int vb_rs_datagram_inherit(struct vb_rsocket *rs, const struct vb_rsocket *from)
{
	int udp = fcntl(from->datagram->udp, F_DUPFD_CLOEXEC, 0);
	int error = udp < 0 ? -errno : open_on(rs, udp);

	if (!error) {
		rs->datagram->is_connected = from->datagram->is_connected;
		rs->peer = from->peer;
	}
	return error;
}

void vb_rs_datagram_leave(const struct vb_rsocket *from)
{
	vb_list_for_each (link, &from->datagram->uds)
		close(vb_container_of(link, struct vb_rs_ud, link)->completions->fd);
	close(from->datagram->udp);
}

void vb_rs_datagram_close(struct vb_rsocket *rs)
{
	struct rs_datagram *dg = rs->datagram;

	vb_list_for_each_safe (link, &dg->arrivals)
		vb_rs_arrival_drop(dg, vb_container_of(link, struct vb_rs_arrival, link));
	vb_rs_forget_peers(dg);
	vb_list_for_each_safe (link, &dg->uds)
		vb_rs_ud_close(vb_container_of(link, struct vb_rs_ud, link));
	if (dg->udp >= 0)
		close(dg->udp);
	free(dg);
	rs->datagram = NULL;
}

int vb_rs_datagram_bind(struct vb_rsocket *rs, const struct sockaddr *addr, socklen_t length)
{
	int on = rs->options.is_reuse, only = rs->options.is_ipv6_only, udp = rs->datagram->udp;

	if (setsockopt(udp, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		return -errno;
	if (rs->domain == AF_INET6 && setsockopt(udp, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only)))
		return -errno;
	return bind(udp, addr, length) ? -errno : 0;
}

int vb_rs_datagram_connect(struct vb_rsocket *rs, const struct sockaddr *addr, socklen_t length)
{
	struct rs_datagram *dg = rs->datagram;

	if (connect(dg->udp, addr, length))
		return -errno;
	dg->is_connected = addr->sa_family != AF_UNSPEC;
	if (!dg->is_connected)
		return 0;
	length = sizeof(rs->peer);
	memset(&rs->peer, 0, sizeof(rs->peer));
	return getpeername(dg->udp, &rs->peer.any, &length) ? -errno : 0;
}

int vb_rs_datagram_name(struct vb_rsocket *rs, struct sockaddr *addr, socklen_t *length)
{
	return getsockname(rs->datagram->udp, addr, length) ? -errno : 0;
}

int vb_rs_datagram_peer(struct vb_rsocket *rs, struct sockaddr *addr, socklen_t *length)
{
	return getpeername(rs->datagram->udp, addr, length) ? -errno : 0;
}
