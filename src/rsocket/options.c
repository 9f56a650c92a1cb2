/* The calls that set and get an rsocket's options, and rfcntl.
 * Not here: the effect of an option, which is where it is read; the defaults (defaults.c). */
#include "rsocket/datagram.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/time.h>

enum { KEEPALIVE_MAX_S = 32767 };

/* ---- Setting ----------------------------------------------------------------------------------------------------- */

/* Sizes are fixed once there is a queue pair, that is, once the connection has its device. */
static bool is_fixed(const struct vb_rsocket *rs)
{
	return rs->cq || rs->state >= VB_RS_CONNECTING;
}

static int set_size(struct vb_rsocket *rs, uint32_t *size, int64_t value, uint32_t least, uint32_t most)
{
	if (value < 0)
		return -EINVAL;
	/* As with TCP, the size of an existing buffer does not change, and that is no error. */
	if (!is_fixed(rs))
		*size = vb_rs_clamp(value, least, most);
	return 0;
}

static int set_timeout(int64_t *timeout_us, const void *value, socklen_t length)
{
	struct timeval timeout;

	if (length < sizeof(timeout))
		return -EINVAL;
	memcpy(&timeout, value, sizeof(timeout));
	if (timeout.tv_usec < 0 || timeout.tv_usec >= 1000000)
		return -EDOM;
	if (timeout.tv_sec < 0 || timeout.tv_sec > INT_MAX)
		timeout.tv_sec = timeout.tv_usec = 0;
	*timeout_us = (int64_t)timeout.tv_sec * 1000000 + timeout.tv_usec;
	return 0;
}

static int set_linger(struct vb_rsocket *rs, const void *value, socklen_t length)
{
	struct linger linger;

	if (length < sizeof(linger))
		return -EINVAL;
	memcpy(&linger, value, sizeof(linger));
	if (linger.l_onoff && linger.l_linger < 0)
		return -EINVAL;
	rs->options.linger_s = linger.l_onoff ? linger.l_linger : -1;
	return 0;
}

static int set_keepalive(struct vb_rsocket *rs, bool is_on)
{
	rs->options.is_keepalive = is_on;
	vb_rs_keepalive_stop(rs);
	return is_on && vb_rs_is_connected(rs) ? vb_rs_keepalive_start(rs) : 0;
}

static int set_socket(struct vb_rsocket *rs, int name, int value)
{
	struct vb_rs_options *options = &rs->options;

	switch (name) {
	case SO_REUSEADDR:
	case SO_REUSEPORT:
		options->is_reuse = value;
		return 0;
	case SO_KEEPALIVE:
		return set_keepalive(rs, value);
	case SO_OOBINLINE:
		options->is_oob_inline = value;
		return 0;
	case SO_RCVBUF:
		set_size(rs, &options->receive_bytes, value & ~1, VB_RS_BUFFER_MIN, VB_RS_BUFFER_MAX);
		return 0;
	case SO_SNDBUF:
		set_size(rs, &options->send_bytes, value, VB_RS_BUFFER_MIN, VB_RS_BUFFER_MAX);
		return 0;
	default:
		return -ENOPROTOOPT;
	}
}

static int set_tcp(struct vb_rsocket *rs, int name, int value)
{
	struct vb_rs_options *options = &rs->options;
	int *seconds = name == TCP_KEEPIDLE    ? &options->keepalive_idle_s
		       : name == TCP_KEEPINTVL ? &options->keepalive_interval_s
					       : &options->keepalive_count;

	switch (name) {
	case TCP_NODELAY:
		options->is_nodelay = value;
		return 0;
	case TCP_MAXSEG:
		return 0;
	case TCP_KEEPIDLE:
	case TCP_KEEPINTVL:
	case TCP_KEEPCNT:
		if (value < 1 || value > KEEPALIVE_MAX_S)
			return -EINVAL;
		*seconds = value;
		return options->is_keepalive ? set_keepalive(rs, true) : 0;
	default:
		return -ENOPROTOOPT;
	}
}

static int set_ipv6(struct vb_rsocket *rs, int name, int value)
{
	if (name != IPV6_V6ONLY)
		return -ENOPROTOOPT;
	if (rs->domain != AF_INET6)
		return -ENOPROTOOPT;
	if (rs->state != VB_RS_IDLE)
		return -EINVAL;
	rs->options.is_ipv6_only = value;
	return 0;
}

static int set_rdma(struct vb_rsocket *rs, int name, int value)
{
	struct vb_rs_options *options = &rs->options;

	if (is_fixed(rs))
		return -EINVAL;
	switch (name) {
	case RDMA_SQSIZE:
		return set_size(rs, &options->send_queue, value, VB_RS_QUEUE_MIN, VB_RS_QUEUE_MAX);
	case RDMA_RQSIZE:
		return set_size(rs, &options->receive_queue, value, VB_RS_QUEUE_MIN, VB_RS_QUEUE_MAX);
	case RDMA_INLINE:
		return set_size(rs, &options->inline_bytes, value, VB_RS_INLINE_MIN, VB_RS_INLINE_MAX);
	case RDMA_IOMAPSIZE:
		if (value < 0 || value > VB_RS_MAPPINGS_MAX)
			return -EINVAL;
		options->mappings = vb_rs_mappings_round((uint32_t)value);
		return 0;
	default: /* RDMA_ROUTE: path records are for InfiniBand; RoCE uses the kernel's routes */
		return -ENOPROTOOPT;
	}
}

static int set_option(struct vb_rsocket *rs, int level, int name, const void *value, socklen_t length)
{
	int number;

	if (!value)
		return -EFAULT;
	if (level == SOL_SOCKET && name == SO_LINGER)
		return set_linger(rs, value, length);
	if (level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO))
		return set_timeout(name == SO_RCVTIMEO ? &rs->options.receive_timeout_us : &rs->options.send_timeout_us,
			value, length);
	if (length < sizeof(number))
		return -EINVAL;
	memcpy(&number, value, sizeof(number));
	switch (level) {
	case SOL_SOCKET:
		return set_socket(rs, name, number);
	case IPPROTO_TCP:
		return rs->type == SOCK_STREAM ? set_tcp(rs, name, number) : -ENOPROTOOPT;
	case IPPROTO_IPV6:
		return set_ipv6(rs, name, number);
	case SOL_RDMA:
		return set_rdma(rs, name, number);
	default:
		return -ENOPROTOOPT;
	}
}

VB_RS_EXPORT int rsetsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	struct vb_rsocket *rs = vb_rs_get(fd);
	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	int error = set_option(rs, level, name, value, length);
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
	return vb_rs_result(error);
}

/* ---- Getting ----------------------------------------------------------------------------------------------------- */

static int take_error(struct vb_rsocket *rs)
{
	vb_rs_progress_all(rs, NULL);
	int error = rs->error;
	rs->error = 0;
	return error;
}

/* The value of a number, or -errno. No value is negative. */
static int64_t get_socket(struct vb_rsocket *rs, int name)
{
	const struct vb_rs_options *options = &rs->options;

	switch (name) {
	case SO_ERROR:
		return take_error(rs);
	case SO_TYPE:
		return rs->type;
	case SO_DOMAIN:
		return rs->domain;
	case SO_PROTOCOL:
		return rs->type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
	case SO_ACCEPTCONN:
		return rs->state == VB_RS_LISTENING;
	case SO_REUSEADDR:
	case SO_REUSEPORT:
		return options->is_reuse;
	case SO_KEEPALIVE:
		return options->is_keepalive;
	case SO_OOBINLINE:
		return options->is_oob_inline;
	case SO_RCVBUF:
		return options->receive_bytes;
	case SO_SNDBUF:
		return options->send_bytes;
	default:
		return -ENOPROTOOPT;
	}
}

/* The most bytes in one packet. Programs such as iperf3 also ask for it to choose the size of their datagrams. */
static int64_t max_segment(const struct vb_rsocket *rs)
{
	uint32_t most = VB_RS_DATAGRAM_MAX;
	struct ibv_port_attr port;

	if (rs->id && rs->id->verbs && !ibv_query_port(rs->id->verbs, rs->id->port_num, &port) &&
		128u << port.active_mtu < most)
		most = 128u << port.active_mtu;
	return most - VB_RS_UD_HEADER_IPV6;
}

static int64_t get_tcp(const struct vb_rsocket *rs, int name)
{
	const struct vb_rs_options *options = &rs->options;

	switch (name) {
	case TCP_NODELAY:
		return options->is_nodelay;
	case TCP_MAXSEG:
		return max_segment(rs);
	case TCP_KEEPIDLE:
		return options->keepalive_idle_s;
	case TCP_KEEPINTVL:
		return options->keepalive_interval_s;
	case TCP_KEEPCNT:
		return options->keepalive_count;
	default:
		return -ENOPROTOOPT;
	}
}

static int64_t get_rdma(const struct vb_rsocket *rs, int name)
{
	switch (name) {
	case RDMA_SQSIZE:
		return rs->options.send_queue;
	case RDMA_RQSIZE:
		return rs->options.receive_queue;
	case RDMA_INLINE:
		return rs->options.inline_bytes;
	case RDMA_IOMAPSIZE:
		return rs->options.mappings;
	default:
		return -ENOPROTOOPT;
	}
}

static int64_t get_number(struct vb_rsocket *rs, int level, int name)
{
	switch (level) {
	case SOL_SOCKET:
		return get_socket(rs, name);
	case IPPROTO_TCP:
		return rs->type == SOCK_STREAM ? get_tcp(rs, name) : -ENOPROTOOPT;
	case IPPROTO_IPV6:
		return rs->domain == AF_INET6 && name == IPV6_V6ONLY ? rs->options.is_ipv6_only : -ENOPROTOOPT;
	case SOL_RDMA:
		return get_rdma(rs, name);
	default:
		return -ENOPROTOOPT;
	}
}

static int copy_out(const void *from, socklen_t size, void *value, socklen_t *length)
{
	*length = *length < size ? *length : size;
	memcpy(value, from, *length);
	return 0;
}

static int get_option(struct vb_rsocket *rs, int level, int name, void *value, socklen_t *length)
{
	if (!value || !length)
		return -EFAULT;
	if (level == SOL_SOCKET && name == SO_LINGER) {
		int seconds = rs->options.linger_s;
		struct linger linger = { .l_onoff = seconds >= 0, .l_linger = seconds >= 0 ? seconds : 0 };
		return copy_out(&linger, sizeof(linger), value, length);
	}
	if (level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO)) {
		int64_t us = name == SO_RCVTIMEO ? rs->options.receive_timeout_us : rs->options.send_timeout_us;
		struct timeval timeout = { .tv_sec = us / 1000000, .tv_usec = us % 1000000 };
		return copy_out(&timeout, sizeof(timeout), value, length);
	}
	if (level == IPPROTO_TCP && name == TCP_INFO && rs->type == SOCK_STREAM) {
		/* Programs print what they find in it. We only know whether there is a connection. */
		struct tcp_info info = { .tcpi_state = vb_rs_is_connected(rs) ? TCP_ESTABLISHED : TCP_CLOSE };
		return copy_out(&info, sizeof(info), value, length);
	}
	int64_t number = get_number(rs, level, name);
	if (number < 0)
		return (int)number;
	int narrow = (int)number;
	return copy_out(&narrow, sizeof(narrow), value, length);
}

VB_RS_EXPORT int rgetsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	struct vb_rsocket *rs = vb_rs_get(fd);
	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	int error = get_option(rs, level, name, value, length);
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
	return vb_rs_result(error);
}

/* ---- fcntl ------------------------------------------------------------------------------------------------------- */

static int control(struct vb_rsocket *rs, int command, long argument)
{
	switch (command) {
	case F_GETFL:
		return O_RDWR | (rs->options.is_nonblocking ? O_NONBLOCK : 0);
	case F_SETFL:
		rs->options.is_nonblocking = argument & O_NONBLOCK;
		return 0;
	case F_GETFD:
	case F_SETFD: {
		int result = fcntl(rs->fd, command, argument);
		return result < 0 ? -errno : result;
	}
	default:
		return -EINVAL;
	}
}

VB_RS_EXPORT int rfcntl(int fd, int command, ...)
{
	va_list arguments;

	va_start(arguments, command);
	long argument = command == F_SETFL || command == F_SETFD ? va_arg(arguments, int) : 0;
	va_end(arguments);
	struct vb_rsocket *rs = vb_rs_get(fd);
	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	int result = control(rs, command, argument);
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
	return vb_rs_result(result);
}
