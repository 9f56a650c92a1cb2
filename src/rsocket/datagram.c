/* Datagram rsockets: whom we know, what has arrived, and the calls (datagram.h says how it works).
 * Holds: whatever a datagram claims, it makes us send to the address it came from and to no other. A datagram that
 * comes when the queue is full is lost, as with UDP. */
#include "rsocket/datagram.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/gid.h"

enum {
	BUCKETS = 64,
	PEERS_MAX = 65536,
	QUEUE_MAX = 1024,
	ASK_AGAIN_US = 1000000, /* a peer may be another one than it was, behind the same address */
};

struct peer {
	struct vb_list link;
	union vb_rs_address address;
	struct vb_rs_ud *ud;
	struct ibv_ah *ah; /* NULL: its queue pair is not known */
	uint32_t qpn;
	int64_t known_us; /* since when */
};

struct arrival {
	struct vb_list link;
	union vb_rs_address from;
	struct vb_rs_ud *ud; /* whose buffer it lies in; NULL: behind this */
	uint32_t index;
	size_t length;
	const uint8_t *data;
};

struct rs_datagram {
	int udp;
	struct vb_list uds;
	struct vb_list peers[BUCKETS];
	uint32_t peer_count, unanswered; /* unanswered: peers that were written to by UDP alone */
	struct vb_list arrivals;
	uint32_t arrival_count;
	bool is_connected;
};

/* ---- Peers ------------------------------------------------------------------------------------------------------- */

static struct vb_list *bucket_of(struct rs_datagram *dg, const union vb_rs_address *address)
{
	union ibv_gid gid = vb_rs_address_gid(address);
	uint32_t sum = address->ipv4.sin_port;
	for (int i = 0; i < 16; i++)
		sum = sum * 31 + gid.raw[i];
	return &dg->peers[sum % BUCKETS];
}

/* Which of our addresses reaches it: the kernel's routes say so. */
static int source_for(struct rsocket *rs, const union vb_rs_address *to, union vb_rs_address *local)
{
	struct rs_datagram *dg = rs->datagram;
	union vb_rs_address own;
	socklen_t length = sizeof(own);

	memset(&own, 0, sizeof(own));
	if (getsockname(dg->udp, &own.any, &length))
		return -errno;
	own.ipv4.sin_port = 0;
	int probe = socket(rs->domain, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (probe < 0)
		return -errno;
	memset(local, 0, sizeof(*local));
	length = sizeof(*local);
	int error = bind(probe, &own.any, vb_rs_address_length(&own)) ||
				    connect(probe, &to->any, vb_rs_address_length(to)) ||
				    getsockname(probe, &local->any, &length)
			    ? -errno
			    : 0;
	close(probe);
	local->ipv4.sin_port = 0;
	return error;
}

static void forget_peer(struct rs_datagram *dg, struct peer *peer)
{
	vb_list_remove(&peer->link);
	if (peer->ah)
		ibv_destroy_ah(peer->ah);
	else
		dg->unanswered--;
	dg->peer_count--;
	free(peer);
}

/* A program that writes to ever new peers begins anew rather than growing for ever. */
static void forget_peers(struct rs_datagram *dg)
{
	for (int i = 0; i < BUCKETS; i++) {
		vb_list_for_each_safe (link, &dg->peers[i])
			forget_peer(dg, vb_container_of(link, struct peer, link));
	}
}

static int make_peer(struct rsocket *rs, const union vb_rs_address *address, struct vb_list *bucket, struct peer **made)
{
	struct rs_datagram *dg = rs->datagram;
	union vb_rs_address local;
	struct vb_rs_ud *ud;

	int error = source_for(rs, address, &local);
	if (!error)
		error = vb_rs_ud_get(rs, &dg->uds, &local, &ud);
	if (error)
		return error;
	if (dg->peer_count >= PEERS_MAX)
		forget_peers(dg);
	struct peer *peer = calloc(1, sizeof(*peer));
	if (!peer)
		return -ENOMEM;
	peer->address = *address;
	peer->ud = ud;
	vb_list_add_tail(bucket, &peer->link);
	dg->peer_count++;
	dg->unanswered++;
	*made = peer;
	return 0;
}

static int get_peer(struct rsocket *rs, const union vb_rs_address *address, struct peer **found)
{
	struct vb_list *bucket = bucket_of(rs->datagram, address);

	vb_list_for_each (link, bucket) {
		*found = vb_container_of(link, struct peer, link);
		if (vb_rs_address_equal(&(*found)->address, address, true))
			return 0;
	}
	return make_peer(rs, address, bucket, found);
}

static void learn_qpn(struct rs_datagram *dg, struct peer *peer, uint32_t qpn)
{
	peer->known_us = vb_rs_now_us();
	peer->qpn = qpn;
	if (peer->ah)
		return;
	peer->ah = vb_rs_ud_create_ah(peer->ud, &peer->address);
	if (peer->ah)
		dg->unanswered--;
}

/* ---- What arrives ------------------------------------------------------------------------------------------------ */

static void queue(struct rsocket *rs, struct arrival *arrival)
{
	vb_list_add_tail(&rs->datagram->arrivals, &arrival->link);
	rs->datagram->arrival_count++;
	vb_rs_changed(rs);
}

static void drop(struct rs_datagram *dg, struct arrival *arrival)
{
	vb_list_remove(&arrival->link);
	dg->arrival_count--;
	if (arrival->ud && vb_rs_ud_give_back(arrival->ud, arrival->index))
		arrival->ud->is_broken = true;
	free(arrival);
}

/* The sender that it names has to be the one whose packet it was: IPv4's header stands at the end of the GRH. A
 * loopback address may be whoever sends from the address that he sends to: this host. */
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

/* Peers of both families write to a socket of IPv6. */
static bool is_wanted(const struct rsocket *rs, union vb_rs_address *from)
{
	return vb_rs_address_convert(from, (sa_family_t)rs->domain) &&
	       (!rs->datagram->is_connected || vb_rs_address_equal(&rs->peer, from, true));
}

static void on_datagram(struct rsocket *rs, struct vb_rs_ud *ud, uint32_t index, uint32_t length)
{
	const uint8_t *grh = vb_rs_ud_received(ud, index);
	union vb_rs_address from;
	struct arrival *arrival = NULL;

	size_t header = vb_rs_ud_header_decode(&from, grh + VB_RS_GRH, length);
	if (header && is_from(grh, &from) && is_wanted(rs, &from))
		arrival = malloc(sizeof(*arrival));
	if (!arrival) {
		if (vb_rs_ud_give_back(ud, index))
			ud->is_broken = true;
		return;
	}
	*arrival = (struct arrival){
		.from = from, .ud = ud, .index = index, .length = length - header, .data = grh + VB_RS_GRH + header
	};
	queue(rs, arrival);
}

static void answer(struct rsocket *rs, const struct peer *peer)
{
	struct vb_rs_udp_header header = { .qpn = peer->ud->id->qp->qp_num, .target = peer->address };
	uint8_t bytes[VB_RS_HEADER_MAX];
	size_t length = vb_rs_udp_header_encode(&header, bytes);

	/* When it is lost the peer's next datagram asks again. */
	sendto(rs->datagram->udp, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL, &peer->address.any,
		vb_rs_address_length(&peer->address));
}

static void queue_copy(struct rsocket *rs, const union vb_rs_address *from, const uint8_t *data, size_t length)
{
	if (rs->datagram->arrival_count >= QUEUE_MAX)
		return;
	struct arrival *arrival = malloc(sizeof(*arrival) + length);
	if (!arrival)
		return;
	*arrival = (struct arrival){ .from = *from, .length = length, .data = (uint8_t *)(arrival + 1) };
	memcpy(arrival + 1, data, length);
	queue(rs, arrival);
}

static void on_udp(struct rsocket *rs, const union vb_rs_address *from, const uint8_t *bytes, size_t length)
{
	struct vb_rs_udp_header header;
	struct peer *peer;

	size_t own = vb_rs_udp_header_decode(&header, bytes, length);
	if (!own)
		return;
	int error = get_peer(rs, from, &peer);
	if (!error)
		learn_qpn(rs->datagram, peer, header.qpn);
	if (!header.is_data)
		return;
	if (!error)
		answer(rs, peer);
	queue_copy(rs, from, bytes + own, length - own);
}

static bool take_udp(struct rsocket *rs)
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

bool vb_rs_datagram_progress(struct rsocket *rs, bool is_all)
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

bool vb_rs_datagram_arm(struct rsocket *rs)
{
	bool was_any = false;

	vb_list_for_each (link, &rs->datagram->uds)
		was_any |= vb_rs_ud_arm(vb_container_of(link, struct vb_rs_ud, link));
	return was_any;
}

/* ---- Making and ending ------------------------------------------------------------------------------------------- */

/* Takes the kernel's socket over, also when it fails. */
static int open_on(struct rsocket *rs, int udp)
{
	struct rs_datagram *dg = calloc(1, sizeof(*dg));
	if (!dg) {
		close(udp);
		return -ENOMEM;
	}
	vb_list_init(&dg->uds);
	vb_list_init(&dg->arrivals);
	for (int i = 0; i < BUCKETS; i++)
		vb_list_init(&dg->peers[i]);
	rs->datagram = dg;
	dg->udp = udp;
	return vb_rs_watch(rs, udp);
}

int vb_rs_datagram_open(struct rsocket *rs)
{
	int udp = socket(rs->domain, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return udp < 0 ? -errno : open_on(rs, udp);
}

int vb_rs_datagram_inherit(struct rsocket *rs, const struct rsocket *from)
{
	int udp = fcntl(from->datagram->udp, F_DUPFD_CLOEXEC, 0);
	int error = udp < 0 ? -errno : open_on(rs, udp);

	if (!error) {
		rs->datagram->is_connected = from->datagram->is_connected;
		rs->peer = from->peer;
	}
	return error;
}

void vb_rs_datagram_leave(const struct rsocket *from)
{
	vb_list_for_each (link, &from->datagram->uds)
		close(vb_container_of(link, struct vb_rs_ud, link)->completions->fd);
	close(from->datagram->udp);
}

void vb_rs_datagram_close(struct rsocket *rs)
{
	struct rs_datagram *dg = rs->datagram;

	vb_list_for_each_safe (link, &dg->arrivals)
		drop(dg, vb_container_of(link, struct arrival, link));
	forget_peers(dg);
	vb_list_for_each_safe (link, &dg->uds)
		vb_rs_ud_close(vb_container_of(link, struct vb_rs_ud, link));
	if (dg->udp >= 0)
		close(dg->udp);
	free(dg);
	rs->datagram = NULL;
}

int vb_rs_datagram_bind(struct rsocket *rs, const struct sockaddr *addr, socklen_t length)
{
	int on = rs->options.is_reuse, only = rs->options.is_ipv6_only, udp = rs->datagram->udp;

	if (setsockopt(udp, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		return -errno;
	if (rs->domain == AF_INET6 && setsockopt(udp, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only)))
		return -errno;
	return bind(udp, addr, length) ? -errno : 0;
}

int vb_rs_datagram_connect(struct rsocket *rs, const struct sockaddr *addr, socklen_t length)
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

int vb_rs_datagram_name(struct rsocket *rs, struct sockaddr *addr, socklen_t *length)
{
	return getsockname(rs->datagram->udp, addr, length) ? -errno : 0;
}

int vb_rs_datagram_peer(struct rsocket *rs, struct sockaddr *addr, socklen_t *length)
{
	return getpeername(rs->datagram->udp, addr, length) ? -errno : 0;
}

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

static int send_udp(struct rsocket *rs, const struct peer *peer, const struct iovec *iov, size_t count)
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

static bool may_send(const struct rsocket *rs)
{
	vb_list_for_each (link, &rs->datagram->uds) {
		const struct vb_rs_ud *ud = vb_container_of(link, struct vb_rs_ud, link);
		if (!ud->free_count && !ud->is_broken)
			return false;
	}
	return true;
}

static int send_to_peer(struct rsocket *rs, struct peer *peer, const struct iovec *iov, size_t count, size_t length)
{
	union vb_rs_address sender = peer->ud->local, own;
	socklen_t own_length = sizeof(own);
	uint8_t header[VB_RS_HEADER_MAX];

	if (!peer->ah || peer->ud->is_broken || vb_rs_now_us() - peer->known_us > ASK_AGAIN_US)
		return send_udp(rs, peer, iov, count);
	if (getsockname(rs->datagram->udp, &own.any, &own_length))
		return -errno;
	sender.ipv4.sin_port = own.ipv4.sin_port;
	size_t header_length = vb_rs_ud_header_encode(&sender, header);
	if (header_length + length > peer->ud->mtu)
		return send_udp(rs, peer, iov, count);
	return vb_rs_ud_send(peer->ud, peer->ah, peer->qpn, header, header_length, iov, count, length);
}

/* The UDP socket takes its port when it first sends, and our header has to tell it. */
static int take_port(struct rsocket *rs)
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

static int target_of(struct rsocket *rs, const struct sockaddr *to, socklen_t length, union vb_rs_address *address)
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

static int send_locked(struct rsocket *rs, const union vb_rs_address *to, const struct iovec *iov, size_t count,
	size_t length, int flags)
{
	bool is_nonblocking = rs->options.is_nonblocking || flags & MSG_DONTWAIT;
	struct peer *peer;

	int error = -rs->error;
	rs->error = 0;
	if (!error)
		error = take_port(rs);
	if (!error)
		error = get_peer(rs, to, &peer);
	if (error)
		return error;
	if (!peer->ah || vb_rs_now_us() - peer->known_us > ASK_AGAIN_US)
		vb_rs_datagram_progress(rs, true);
	error = vb_rs_wait(rs, may_send, is_nonblocking, rs->options.send_timeout_us);
	if (!error)
		error = get_peer(rs, to, &peer); /* peers may have been forgotten meanwhile */
	return error ? error : send_to_peer(rs, peer, iov, count, length);
}

ssize_t vb_rs_datagram_send(struct rsocket *rs, const struct iovec *iov, size_t count, int flags,
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

static bool may_receive(const struct rsocket *rs)
{
	return !vb_list_empty(&rs->datagram->arrivals) || rs->error;
}

short vb_rs_datagram_ready(const struct rsocket *rs)
{
	return (vb_list_empty(&rs->datagram->arrivals) ? 0 : POLLIN | POLLRDNORM) |
	       (may_send(rs) ? POLLOUT | POLLWRNORM : 0);
}

static size_t scatter(const struct arrival *arrival, const struct iovec *iov, size_t count)
{
	size_t at = 0;

	for (size_t i = 0; i < count && at < arrival->length; i++) {
		size_t left = arrival->length - at, n = iov[i].iov_len < left ? iov[i].iov_len : left;
		memcpy(iov[i].iov_base, arrival->data + at, n);
		at += n;
	}
	return at;
}

static void tell_sender(const struct arrival *arrival, struct sockaddr *from, socklen_t *length)
{
	socklen_t full = vb_rs_address_length(&arrival->from);

	if (!from || !length)
		return;
	memcpy(from, &arrival->from, *length < full ? *length : full);
	*length = full;
}

static ssize_t receive_locked(struct rsocket *rs, const struct iovec *iov, size_t count, int flags,
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
	struct arrival *arrival = vb_container_of(rs->datagram->arrivals.next, struct arrival, link);
	size_t length = scatter(arrival, iov, count);
	tell_sender(arrival, from, from_length);
	if (length < arrival->length)
		*message_flags |= MSG_TRUNC;
	ssize_t result = flags & MSG_TRUNC ? (ssize_t)arrival->length : (ssize_t)length;
	if (!(flags & MSG_PEEK))
		drop(rs->datagram, arrival);
	return result;
}

ssize_t vb_rs_datagram_receive(struct rsocket *rs, const struct iovec *iov, size_t count, int flags,
	struct sockaddr *from, socklen_t *from_length, int *message_flags)
{
	if (flags & ~(MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC | MSG_NOSIGNAL | MSG_WAITALL | MSG_CMSG_CLOEXEC))
		return -EOPNOTSUPP;
	pthread_mutex_lock(&rs->lock);
	ssize_t result = receive_locked(rs, iov, count, flags, from, from_length, message_flags);
	pthread_mutex_unlock(&rs->lock);
	return result;
}
