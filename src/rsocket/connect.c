/* A stream's connection: each event of its channel moves it on, whoever fetches it.
 * Holds: an event is acknowledged at once; what it brought is copied. A request whose private data is no rsocket's is
 * rejected and never seen by the program. */
#include "rsocket/datagram.h"
#include "rsocket/objects.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	RESOLVE_MS = 2000,
	RETRIES = 7, /* 7 receiver-not-ready retries are without end */
};

/* What a rejected program is told. */
enum { REJECTED_NO_LISTENER = 8, REJECTED_BY_PROGRAM = 28, REJECTED_STALE = 10, REJECTED_MTU = 26 };

void vb_rs_end(struct rsocket *rs, int error)
{
	if (rs->state == VB_RS_CLOSED)
		return;
	rs->state = VB_RS_CLOSED;
	rs->can_read = rs->can_write = false;
	if (error)
		rs->error = error;
	vb_rs_kick(rs);
}

struct rdma_conn_param vb_rs_conn_param(const uint8_t *hello)
{
	return (struct rdma_conn_param){
		.private_data = hello,
		.private_data_len = VB_RS_HELLO_LENGTH,
		.flow_control = 1,
		.retry_count = RETRIES,
		.rnr_retry_count = RETRIES,
	};
}

/* ---- The active side --------------------------------------------------------------------------------------------- */

static int send_request(struct rsocket *rs)
{
	struct vb_rs_hello hello;
	uint8_t bytes[VB_RS_HELLO_LENGTH];

	int error = vb_rs_stream_open(rs);
	if (error)
		return error;
	vb_rs_stream_hello(rs, &hello);
	vb_rs_hello_encode(&hello, bytes);
	struct rdma_conn_param param = vb_rs_conn_param(bytes);
	return rdma_connect(rs->id, &param) ? -errno : 0;
}

/* The active side begins; the passive one did when it accepted. */
static int on_established(struct rsocket *rs, const void *private_data, size_t length)
{
	struct vb_rs_hello remote;

	if (rs->state != VB_RS_CONNECTING) {
		rs->is_confirmed = true;
		return 0;
	}
	int error = vb_rs_hello_decode(&remote, private_data, length);
	if (error) {
		rdma_disconnect(rs->id);
		return -ECONNREFUSED;
	}
	vb_rs_stream_start(rs, &remote);
	rs->is_confirmed = true;
	vb_rs_changed(rs);
	return 0;
}

static int rejection(int reason)
{
	switch (reason) {
	case REJECTED_STALE:
		return -ECONNRESET;
	case REJECTED_MTU: /* somebody listens, and asking again is of no use */
		return -EHOSTUNREACH;
	default:
		return -ECONNREFUSED;
	}
}

/* Before it is connected; 0 or why it never will be. */
static int on_step(struct rsocket *rs, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return rdma_resolve_route(rs->id, RESOLVE_MS) ? -errno : 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return send_request(rs);
	case RDMA_CM_EVENT_ADDR_ERROR:
		return event->status < 0 && event->status != -ETIMEDOUT && event->status != -ENODEV ? event->status
												    : -EHOSTUNREACH;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return -EHOSTUNREACH;
	case RDMA_CM_EVENT_UNREACHABLE:
		return event->status < 0 ? event->status : -ETIMEDOUT;
	case RDMA_CM_EVENT_REJECTED:
		return rejection(event->status);
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return event->status < 0 ? event->status : -ECONNREFUSED;
	default:
		return 0;
	}
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

static void on_event(struct rsocket *rs, struct rdma_cm_event *event)
{
	int error = 0;

	switch (event->event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		error = on_established(rs, event->param.conn.private_data, event->param.conn.private_data_len);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		/* In good order only if the peer had said so before. */
		if (rs->cq)
			vb_rs_stream_poll(rs);
		rs->has_left = true;
		error = -ECONNRESET;
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		error = -ENODEV;
		break;
	default:
		error = on_step(rs, event);
		break;
	}
	rdma_ack_cm_event(event);
	if (error)
		vb_rs_end(rs, -error);
}

bool vb_rs_take_events(struct rsocket *rs)
{
	struct rdma_cm_event *event;
	bool was_any = false;

	while (rs->channel && rdma_get_cm_event(rs->channel, &event) == 0) {
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			vb_rs_take_request(rs, event);
		else if (event->id != rs->id)
			vb_rs_lose_request(rs, event);
		else
			on_event(rs, event);
		was_any = true;
	}
	return was_any;
}

/* ---- Binding and listening --------------------------------------------------------------------------------------- */

static int set_id_options(struct rsocket *rs)
{
	int on = 1, only = rs->options.is_ipv6_only;

	if (rs->options.is_reuse && rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)))
		return -errno;
	if (rs->domain == AF_INET6 &&
		rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &only, sizeof(only)))
		return -errno;
	return 0;
}

static int check_address(const struct rsocket *rs, const struct sockaddr *addr, socklen_t length)
{
	if (!addr || length < sizeof(sa_family_t))
		return -EINVAL;
	if (addr->sa_family != rs->domain)
		return -EAFNOSUPPORT;
	socklen_t least = rs->domain == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	return length < least ? -EINVAL : 0;
}

static bool is_ours(const struct sockaddr *addr)
{
	union vb_rs_address name = { .any.sa_family = AF_UNSPEC };

	memcpy(&name, addr, addr->sa_family == AF_INET ? sizeof(name.ipv4) : sizeof(name.ipv6));
	name.ipv4.sin_port = 0;
	int fd = socket(addr->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is = fd >= 0 && bind(fd, &name.any, vb_rs_address_length(&name)) == 0;
	if (fd >= 0)
		close(fd);
	return is;
}

/* Where another has the port at all addresses librdmacm says EADDRNOTAVAIL, which of a socket is said of foreign
 * addresses alone. */
static int bind_error(const struct sockaddr *addr)
{
	int error = errno;
	return error == EADDRNOTAVAIL && is_ours(addr) ? -EADDRINUSE : -error;
}

int vb_rs_bind_stream(struct rsocket *rs, const struct sockaddr *addr)
{
	if (rs->state != VB_RS_IDLE)
		return -EINVAL;
	int error = set_id_options(rs);
	if (error)
		return error;
	error = vb_rs_set_family(rs);
	if (error)
		return error;
	if (rdma_bind_addr(rs->id, (struct sockaddr *)addr))
		return bind_error(addr);
	rs->state = VB_RS_BOUND;
	return 0;
}

VB_RS_EXPORT int rbind(int fd, const struct sockaddr *addr, socklen_t length)
{
	struct rsocket *rs = vb_rs_get(fd);
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

/* As a socket that was never bound, it gets any address and a port. */
int vb_rs_bind_any(struct rsocket *rs)
{
	union vb_rs_address any = { .any.sa_family = (sa_family_t)rs->domain };
	return rs->state == VB_RS_IDLE ? vb_rs_bind_stream(rs, &any.any) : 0;
}

/* ---- Connecting -------------------------------------------------------------------------------------------------- */

static bool is_decided(const struct rsocket *rs)
{
	return rs->state != VB_RS_CONNECTING;
}

/* Any address stands for the machine itself, as with TCP. */
static void set_peer(struct rsocket *rs, const struct sockaddr *addr)
{
	size_t length = addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

	memset(&rs->peer, 0, sizeof(rs->peer));
	memcpy(&rs->peer, addr, length);
	if (addr->sa_family == AF_INET && rs->peer.ipv4.sin_addr.s_addr == htonl(INADDR_ANY))
		rs->peer.ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else if (addr->sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&rs->peer.ipv6.sin6_addr))
		rs->peer.ipv6.sin6_addr = in6addr_loopback;
}

static int start_connecting(struct rsocket *rs, const struct sockaddr *addr)
{
	if (rs->state == VB_RS_CONNECTED)
		return -EISCONN;
	if (rs->state == VB_RS_CONNECTING)
		return -EALREADY;
	if (rs->state == VB_RS_LISTENING)
		return -EOPNOTSUPP;
	if (rs->state == VB_RS_CLOSED)
		return -ECONNABORTED;
	int error = rs->state == VB_RS_IDLE ? set_id_options(rs) : 0;
	if (error)
		return error;
	set_peer(rs, addr);
	if (rdma_resolve_addr(rs->id, NULL, &rs->peer.any, RESOLVE_MS))
		return errno == ENODEV ? -ENETUNREACH : -errno;
	rs->state = VB_RS_CONNECTING;
	return 0;
}

static int finish_connecting(struct rsocket *rs)
{
	int error = vb_rs_wait(rs, is_decided, rs->options.is_nonblocking, rs->options.send_timeout_us);
	if (error == -EAGAIN)
		return -EINPROGRESS;
	if (error)
		return error;
	/* A peer may have accepted and closed by now: reading tells of that. */
	if (rs->state == VB_RS_CONNECTED || rs->is_confirmed)
		return 0;
	error = rs->error ? -rs->error : -ECONNABORTED;
	rs->error = 0;
	return error;
}

static int connect_stream(struct rsocket *rs, const struct sockaddr *addr)
{
	/* A second call of a program that does not wait asks how it went. */
	if (rs->state == VB_RS_CONNECTING) {
		vb_rs_progress_all(rs);
		if (rs->state == VB_RS_CONNECTED)
			return 0;
		if (rs->state == VB_RS_CLOSED)
			return finish_connecting(rs);
	}
	int error = start_connecting(rs, addr);
	return error ? error : finish_connecting(rs);
}

VB_RS_EXPORT int rconnect(int fd, const struct sockaddr *addr, socklen_t length)
{
	struct rsocket *rs = vb_rs_get(fd);
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

/* ---- Names
 * --------------------------------------------------------------------------------------------------------------------
 */

int vb_rs_copy_address(const union vb_rs_address *from, struct sockaddr *addr, socklen_t *length)
{
	if (!addr)
		return 0;
	if (!length)
		return -EFAULT;
	socklen_t full = from->any.sa_family == AF_INET ? sizeof(from->ipv4) : sizeof(from->ipv6);
	memcpy(addr, from, *length < full ? *length : full);
	*length = full;
	return 0;
}

VB_RS_EXPORT int rgetpeername(int fd, struct sockaddr *addr, socklen_t *length)
{
	struct rsocket *rs = vb_rs_get(fd);
	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	int error;
	if (!addr || !length)
		error = -EFAULT;
	else if (rs->type == SOCK_DGRAM)
		error = vb_rs_datagram_peer(rs, addr, length);
	else if (rs->state == VB_RS_CONNECTED || (rs->state == VB_RS_CLOSED && rs->cq && !rs->error))
		error = vb_rs_copy_address(&rs->peer, addr, length);
	else
		error = -ENOTCONN;
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
	return vb_rs_result(error);
}

static int stream_name(struct rsocket *rs, struct sockaddr *addr, socklen_t *length)
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
	struct rsocket *rs = vb_rs_get(fd);
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
