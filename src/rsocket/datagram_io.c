/* Sending and receiving datagrams.
 * Not here: how they arrive (datagram.c). */
#include "rsocket/datagram.h"

#include <string.h>
#include <sys/uio.h>
#include "base/gid.h"
#include "os/clock.h"

/* The rsocket behind an address may have been replaced by another: its number is asked for again. */
enum { ASK_AGAIN_US = 1000000 };

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

static int send_udp(struct vb_rsocket *rs, const struct vb_rs_peer *peer, const struct iovec *iov, size_t count)
{
	struct vb_rs_udp_header header = { .is_data = true, .qpn = peer->ud->id->qp->qp_num, .target = peer->address };
	uint8_t bytes[VB_RS_HEADER_MAX + VB_RS_DATAGRAM_MAX];
	size_t length = vb_rs_udp_header_encode(&header, bytes);

	for (size_t i = 0; i < count; i++) {
		memcpy(bytes + length, iov[i].iov_base, iov[i].iov_len);
		length += iov[i].iov_len;
	}
	ssize_t sent = sendto(rs->datagram->udp, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL, &peer->address.any,
		vb_rs_address_length(&peer->address));
	return sent < 0 ? -errno : 0;
}

static bool may_send(const struct vb_rsocket *rs)
{
	vb_list_for_each (link, &rs->datagram->uds) {
		const struct vb_rs_ud *ud = vb_container_of(link, struct vb_rs_ud, link);
		if (!ud->free_count && !ud->is_broken)
			return false;
	}
	return true;
}

static int send_to_peer(
	struct vb_rsocket *rs, struct vb_rs_peer *peer, const struct iovec *iov, size_t count, size_t length)
{
	union vb_rs_address sender = peer->ud->local, own;
	socklen_t own_length = sizeof(own);
	uint8_t header[VB_RS_HEADER_MAX];

	if (!peer->ah || peer->ud->is_broken || vb_clock_us() - peer->known_us > ASK_AGAIN_US)
		return send_udp(rs, peer, iov, count);
	if (getsockname(rs->datagram->udp, &own.any, &own_length))
		return -errno;
	sender.ipv4.sin_port = own.ipv4.sin_port;
	size_t header_length = vb_rs_ud_header_encode(&sender, header);
	if (header_length + length > peer->ud->mtu)
		return send_udp(rs, peer, iov, count);
	return vb_rs_ud_send(peer->ud, peer->ah, peer->qpn, header, header_length, iov, count, length);
}

/* The UDP socket would get its port with its first datagram, whose header already has to tell it. */
static int take_port(struct vb_rsocket *rs)
{
	union vb_rs_address own;
	socklen_t length = sizeof(own);

	memset(&own, 0, sizeof(own));
	if (getsockname(rs->datagram->udp, &own.any, &length))
		return -errno;
	if (own.ipv4.sin_port)
		return 0;
	own.any.sa_family = (sa_family_t)rs->domain;
	return bind(rs->datagram->udp, &own.any, vb_rs_address_length(&own)) ? -errno : 0;
}

static int target_of(struct vb_rsocket *rs, const struct sockaddr *to, socklen_t length, union vb_rs_address *address)
{
	if (!to || !length) {
		*address = rs->peer;
		return rs->datagram->is_connected ? 0 : -EDESTADDRREQ;
	}
	memset(address, 0, sizeof(*address));
	memcpy(address, to, length < sizeof(*address) ? length : sizeof(*address));
	if (address->any.sa_family != rs->domain)
		return -EAFNOSUPPORT;
	return length < vb_rs_address_length(address) ? -EINVAL : 0;
}

static int send_locked(struct vb_rsocket *rs, const union vb_rs_address *to, const struct iovec *iov, size_t count,
	size_t length, int flags)
{
	bool is_nonblocking = rs->options.is_nonblocking || flags & MSG_DONTWAIT;
	struct vb_rs_peer *peer;

	int error = -rs->error;
	rs->error = 0;
	if (!error)
		error = take_port(rs);
	if (!error)
		error = vb_rs_get_peer(rs, to, &peer);
	if (error)
		return error;
	if (!peer->ah || vb_clock_us() - peer->known_us > ASK_AGAIN_US)
		vb_rs_datagram_progress(rs, true);
	error = vb_rs_wait(rs, may_send, is_nonblocking, rs->options.send_timeout_us);
	if (!error)
		error = vb_rs_get_peer(rs, to, &peer); /* other threads may have made us forget peers meanwhile */
	return error ? error : send_to_peer(rs, peer, iov, count, length);
}

ssize_t vb_rs_datagram_send(struct vb_rsocket *rs, const struct iovec *iov, size_t count, int flags,
	const struct sockaddr *to, socklen_t to_length)
{
	union vb_rs_address address;
	size_t length = 0;

	if (flags & ~(MSG_DONTWAIT | MSG_NOSIGNAL | MSG_CONFIRM))
		return -EOPNOTSUPP;
	for (size_t i = 0; i < count; i++)
		length += iov[i].iov_len;
	size_t header = rs->domain == AF_INET ? VB_RS_UD_HEADER_IPV4 : VB_RS_UD_HEADER_IPV6;
	if (length > VB_RS_DATAGRAM_MAX - header)
		return -EMSGSIZE;
	pthread_mutex_lock(&rs->lock);
	int error = target_of(rs, to, to_length, &address);
	if (!error)
		error = send_locked(rs, &address, iov, count, length, flags);
	pthread_mutex_unlock(&rs->lock);
	return error ? error : (ssize_t)length;
}

/* ---- Receiving --------------------------------------------------------------------------------------------------- */

static bool may_receive(const struct vb_rsocket *rs)
{
	return !vb_list_empty(&rs->datagram->arrivals) || rs->error;
}

short vb_rs_datagram_ready(const struct vb_rsocket *rs)
{
	return (vb_list_empty(&rs->datagram->arrivals) ? 0 : POLLIN | POLLRDNORM) |
	       (may_send(rs) ? POLLOUT | POLLWRNORM : 0);
}

static size_t scatter(const struct vb_rs_arrival *arrival, const struct iovec *iov, size_t count)
{
	size_t at = 0;

	for (size_t i = 0; i < count && at < arrival->length; i++) {
		size_t left = arrival->length - at, n = iov[i].iov_len < left ? iov[i].iov_len : left;
		memcpy(iov[i].iov_base, arrival->data + at, n);
		at += n;
	}
	return at;
}

static void tell_sender(const struct vb_rs_arrival *arrival, struct sockaddr *from, socklen_t *length)
{
	socklen_t full = vb_rs_address_length(&arrival->from);

	if (!from || !length)
		return;
	memcpy(from, &arrival->from, *length < full ? *length : full);
	*length = full;
}

static ssize_t receive_locked(struct vb_rsocket *rs, const struct iovec *iov, size_t count, int flags,
	struct sockaddr *from, socklen_t *from_length, int *message_flags)
{
	bool is_nonblocking = rs->options.is_nonblocking || flags & MSG_DONTWAIT;

	int error = vb_rs_wait(rs, may_receive, is_nonblocking, rs->options.receive_timeout_us);
	if (!error && vb_list_empty(&rs->datagram->arrivals)) {
		error = -rs->error;
		rs->error = 0;
	}
	if (error)
		return error;
	struct vb_rs_arrival *arrival = vb_container_of(rs->datagram->arrivals.next, struct vb_rs_arrival, link);
	size_t length = scatter(arrival, iov, count);
	tell_sender(arrival, from, from_length);
	if (length < arrival->length)
		*message_flags |= MSG_TRUNC;
	ssize_t result = flags & MSG_TRUNC ? (ssize_t)arrival->length : (ssize_t)length;
	if (!(flags & MSG_PEEK))
		vb_rs_arrival_drop(rs->datagram, arrival);
	return result;
}

ssize_t vb_rs_datagram_receive(struct vb_rsocket *rs, const struct iovec *iov, size_t count, int flags,
	struct sockaddr *from, socklen_t *from_length, int *message_flags)
{
	if (flags & ~(MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC | MSG_NOSIGNAL | MSG_WAITALL | MSG_CMSG_CLOEXEC))
		return -EOPNOTSUPP;
	pthread_mutex_lock(&rs->lock);
	ssize_t result = receive_locked(rs, iov, count, flags, from, from_length, message_flags);
	pthread_mutex_unlock(&rs->lock);
	return result;
}
