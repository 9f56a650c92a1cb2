/* The calls that bind and connect an rsocket, and those that ask for its addresses. */
#include "rsocket/datagram.h"

#include <string.h>

static int check_address(const struct vb_rsocket *rs, const struct sockaddr *addr, socklen_t length)
{
	if (!addr || length < sizeof(sa_family_t))
		return -EINVAL;
	if (addr->sa_family != rs->domain)
		return -EAFNOSUPPORT;
	socklen_t least = rs->domain == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	return length < least ? -EINVAL : 0;
}

VB_RS_EXPORT int rbind(int fd, const struct sockaddr *addr, socklen_t length)
{
	struct vb_rsocket *rs = vb_rs_get(fd);
	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	int error = check_address(rs, addr, length);
	if (!error && rs->type == SOCK_DGRAM)
		error = vb_rs_datagram_bind(rs, addr, length);
	else if (!error)
		error = vb_rs_bind_stream(rs, addr);
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
	return vb_rs_result(error);
}

/* ---- Connecting -------------------------------------------------------------------------------------------------- */

static bool is_decided(const struct vb_rsocket *rs)
{
	return rs->state != VB_RS_CONNECTING;
}

/* As with TCP, the unspecified address stands for this machine. */
static void set_peer(struct vb_rsocket *rs, const struct sockaddr *addr)
{
	size_t length = addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

	memset(&rs->peer, 0, sizeof(rs->peer));
	memcpy(&rs->peer, addr, length);
	if (addr->sa_family == AF_INET && rs->peer.ipv4.sin_addr.s_addr == htonl(INADDR_ANY))
		rs->peer.ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else if (addr->sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&rs->peer.ipv6.sin6_addr))
		rs->peer.ipv6.sin6_addr = in6addr_loopback;
}

static int start_connecting(struct vb_rsocket *rs, const struct sockaddr *addr)
{
	if (vb_rs_is_connected(rs))
		return -EISCONN;
	if (rs->state == VB_RS_CONNECTING)
		return -EALREADY;
	if (rs->state == VB_RS_LISTENING)
		return -EOPNOTSUPP;
	if (rs->state == VB_RS_CLOSED)
		return -ECONNABORTED;
	int error = rs->state == VB_RS_IDLE ? vb_rs_set_id_options(rs) : 0;
	if (error)
		return error;
	set_peer(rs, addr);
	if (rdma_resolve_addr(rs->id, NULL, &rs->peer.any, VB_RS_RESOLVE_MS))
		return errno == ENODEV ? -ENETUNREACH : -errno;
	vb_rs_set_state(rs, VB_RS_CONNECTING);
	return 0;
}

static int finish_connecting(struct vb_rsocket *rs)
{
	int error = vb_rs_wait(rs, is_decided, rs->options.is_nonblocking, rs->options.send_timeout_us);
	if (error == -EAGAIN)
		return -EINPROGRESS;
	if (error)
		return error;
	/* It was connected, and the peer may have closed by now: reading tells of that. */
	if (rs->receiver.size)
		return 0;
	error = rs->error ? -rs->error : -ECONNABORTED;
	rs->error = 0;
	return error;
}

static int connect_stream(struct vb_rsocket *rs, const struct sockaddr *addr)
{
	/* A nonblocking program asks with a second call how the first ended. */
	if (rs->state == VB_RS_CONNECTING) {
		vb_rs_progress_all(rs, NULL);
		if (vb_rs_is_connected(rs))
			return 0;
		if (rs->state == VB_RS_CLOSED)
			return finish_connecting(rs);
	}
	int error = start_connecting(rs, addr);
	return error ? error : finish_connecting(rs);
}

VB_RS_EXPORT int rconnect(int fd, const struct sockaddr *addr, socklen_t length)
{
	struct vb_rsocket *rs = vb_rs_get(fd);
	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	int error;
	if (rs->type == SOCK_DGRAM) {
		error = vb_rs_datagram_connect(rs, addr, length);
	} else {
		error = check_address(rs, addr, length);
		if (!error)
			error = connect_stream(rs, addr);
	}
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
	return vb_rs_result(error);
}

/* ---- Names ------------------------------------------------------------------------------------------------------- */

VB_RS_EXPORT int rgetpeername(int fd, struct sockaddr *addr, socklen_t *length)
{
	struct vb_rsocket *rs = vb_rs_get(fd);
	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	int error;
	if (!addr || !length)
		error = -EFAULT;
	else if (rs->type == SOCK_DGRAM)
		error = vb_rs_datagram_peer(rs, addr, length);
	else if (vb_rs_is_connected(rs) || (rs->state == VB_RS_CLOSED && rs->cq && !rs->error))
		error = vb_rs_copy_address(&rs->peer, addr, length);
	else
		error = -ENOTCONN;
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
	return vb_rs_result(error);
}

static int stream_name(struct vb_rsocket *rs, struct sockaddr *addr, socklen_t *length)
{
	union vb_rs_address name = { .any.sa_family = (sa_family_t)rs->domain };

	if (rs->state != VB_RS_IDLE && rs->id)
		memcpy(&name, rdma_get_local_addr(rs->id), sizeof(name));
	if (!name.any.sa_family)
		name.any.sa_family = (sa_family_t)rs->domain;
	return vb_rs_copy_address(&name, addr, length);
}

VB_RS_EXPORT int rgetsockname(int fd, struct sockaddr *addr, socklen_t *length)
{
	struct vb_rsocket *rs = vb_rs_get(fd);
	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	int error;
	if (!addr || !length)
		error = -EFAULT;
	else
		error = rs->type == SOCK_DGRAM ? vb_rs_datagram_name(rs, addr, length) : stream_name(rs, addr, length);
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
	return vb_rs_result(error);
}
