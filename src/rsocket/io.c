/* Sending and receiving the bytes of a stream, and the calls that carry bytes.
 * Holds: bytes are copied outside the lock; one thread sends at a time, one receives. Bytes in the send ring belong to
 * the NIC until their WRITE is complete. Bytes that the ring has no room for stay in the program's buffer.
 * Not here: datagrams (datagram_io.c). */
#include "rsocket/datagram.h"

#include <string.h>
#include <sys/uio.h>

enum {
	MESSAGE_LEAST_MAX = 32768,
	MESSAGE_MAX = 131072, /* bytes: two trains; or an eighth of the ring, so that several are under way */
	COPIED_MAX = 32768,   /* bytes that the receiver copies before it gives their room back */
	CATCH_UP_US = 20000,
};

/* A call's position in the program's buffers. */
struct cursor {
	const struct iovec *iov;
	size_t count, at; /* at: offset in the first */
};

static size_t total_of(const struct iovec *iov, size_t count)
{
	size_t total = 0;
	for (size_t i = 0; i < count; i++)
		total += iov[i].iov_len;
	return total;
}

static void skip_empty(struct cursor *cursor)
{
	while (cursor->count && cursor->at == cursor->iov->iov_len) {
		cursor->iov++;
		cursor->count--;
		cursor->at = 0;
	}
}

/* Copies between the program's buffers and our ring; both have at least length bytes. */
static void copy(struct cursor *cursor, uint8_t *ring, size_t length, bool to_ring)
{
	while (length) {
		skip_empty(cursor);
		size_t n = cursor->iov->iov_len - cursor->at;
		n = n < length ? n : length;
		uint8_t *theirs = (uint8_t *)cursor->iov->iov_base + cursor->at;
		if (to_ring)
			memcpy(ring, theirs, n);
		else
			memcpy(theirs, ring, n);
		ring += n;
		cursor->at += n;
		length -= n;
	}
}

static bool is_nonblocking(const struct vb_rsocket *rs, int flags)
{
	return rs->options.is_nonblocking || flags & MSG_DONTWAIT;
}

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

static bool may_send(const struct vb_rsocket *rs)
{
	return vb_rs_stream_room(rs) || (!vb_rs_can_write(rs) && rs->state != VB_RS_CONNECTING);
}

static bool is_confirmed(const struct vb_rsocket *rs)
{
	return rs->peer_state != VB_RS_PEER_UNCONFIRMED || rs->state == VB_RS_CLOSED;
}

/* A server that sends first is a little ahead of its client's queue pair. A lost packet would cost more than this. */
static void let_peer_catch_up(struct vb_rsocket *rs, int flags)
{
	if (vb_rs_is_connected(rs) && !is_confirmed(rs) && !is_nonblocking(rs, flags))
		vb_rs_wait(rs, is_confirmed, false, CATCH_UP_US);
}

/* The reason why nothing can be sent. As with sockets, an error is told once. */
static ssize_t send_refusal(struct vb_rsocket *rs)
{
	int error = rs->error;
	rs->error = 0;
	if (error)
		return -error;
	return rs->state < VB_RS_CONNECTED ? -ENOTCONN : -EPIPE;
}

/* Sends one message: room is taken in both rings under the lock, filled outside it, posted under it. */
static int send_message(struct vb_rsocket *rs, struct cursor *cursor, uint32_t length, bool is_last)
{
	uint8_t small[512], *from = rs->send_ring + rs->sender.put_at;
	/* A message that is small because the ring ends there is not sent inline: the ring would stay at its end. */
	bool is_inline = is_last && length <= rs->inline_bytes && length <= sizeof(small);
	struct vb_rs_region place = vb_rs_sender_take(&rs->sender, length, is_inline);

	pthread_mutex_unlock(&rs->lock);
	if (is_inline)
		from = small;
	copy(cursor, from, length, true);
	pthread_mutex_lock(&rs->lock);
	if (!vb_rs_can_write(rs))
		return -EPIPE;
	struct vb_rs_post post = {
		.op = VB_RS_DATA,
		.value = length,
		.freed = is_inline ? 0 : length,
		.from = from,
		.length = length,
		.lkey = rs->send_mr->lkey,
		.remote_addr = place.addr,
		.remote_key = place.key,
		.is_inline = is_inline,
	};
	int error = vb_rs_stream_post(rs, &post);
	if (error)
		vb_rs_end(rs, -error);
	return error;
}

/* With lock held. The number of bytes sent, or -errno if there are none. */
static ssize_t send_locked(struct vb_rsocket *rs, struct cursor *cursor, size_t total, int flags)
{
	size_t sent = 0;
	int error = 0;

	let_peer_catch_up(rs, flags);
	while (sent < total) {
		error = vb_rs_wait(rs, may_send, is_nonblocking(rs, flags), rs->options.send_timeout_us);
		if (error || !vb_rs_can_write(rs))
			break;
		size_t left = total - sent;
		uint32_t room = vb_rs_stream_room(rs);
		uint32_t most = vb_rs_clamp(rs->options.send_bytes / 8, MESSAGE_LEAST_MAX, MESSAGE_MAX);
		room = room < most ? room : most;
		uint32_t length = left < room ? (uint32_t)left : room;
		error = send_message(rs, cursor, length, length == left);
		if (error)
			break;
		sent += length;
	}
	if (sent || !total)
		return (ssize_t)sent;
	return error && vb_rs_can_write(rs) ? error : send_refusal(rs);
}

static ssize_t send_stream(struct vb_rsocket *rs, const struct iovec *iov, size_t count, int flags)
{
	struct cursor cursor = { iov, count, 0 };

	if (flags & ~(MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE | MSG_EOR | MSG_CONFIRM | MSG_WAITALL))
		return -EOPNOTSUPP;
	vb_rs_lock_side(rs, &rs->sending);
	ssize_t sent = send_locked(rs, &cursor, total_of(iov, count), flags);
	vb_rs_unlock_side(rs, &rs->sending);
	return sent;
}

/* ---- Receiving --------------------------------------------------------------------------------------------------- */

static bool may_receive(const struct vb_rsocket *rs)
{
	return rs->receiver.ready || (!vb_rs_can_read(rs) && rs->state != VB_RS_CONNECTING);
}

/* The result when no byte is left to read. */
static ssize_t receive_end(struct vb_rsocket *rs)
{
	int error = rs->error;
	rs->error = 0;
	if (error)
		return -error;
	return rs->state < VB_RS_CONNECTED ? -ENOTCONN : 0;
}

static size_t take_ready(struct vb_rsocket *rs, struct cursor *cursor, size_t room, bool is_peek)
{
	struct vb_rs_receiver peeked = rs->receiver;
	size_t taken = 0;

	while (taken < room) {
		/* Other threads only add to what is ready, since we hold `receiving`. */
		struct vb_rs_receiver *receiver = is_peek ? &peeked : &rs->receiver;
		uint32_t together = vb_rs_receiver_together(receiver);
		uint32_t length = room - taken < together ? (uint32_t)(room - taken) : together;
		if (!length)
			break;
		/* In parts, so that the peer goes on sending meanwhile. */
		if (length > COPIED_MAX)
			length = COPIED_MAX;
		const uint8_t *from = rs->receive_ring + receiver->read_at;
		pthread_mutex_unlock(&rs->lock);
		copy(cursor, (uint8_t *)from, length, false);
		pthread_mutex_lock(&rs->lock);
		vb_rs_receiver_consume(receiver, length);
		taken += length;
		if (!is_peek)
			vb_rs_stream_send_credits(rs);
	}
	return taken;
}

static ssize_t receive_locked(struct vb_rsocket *rs, struct cursor *cursor, size_t total, int flags)
{
	bool is_peek = flags & MSG_PEEK, is_all = flags & MSG_WAITALL && !is_peek;
	size_t taken = 0;
	int error = 0;

	while (taken < total) {
		error = vb_rs_wait(rs, may_receive, is_nonblocking(rs, flags), rs->options.receive_timeout_us);
		if (error || !rs->receiver.ready)
			break;
		taken += take_ready(rs, cursor, total - taken, is_peek);
		if (!is_all)
			break;
	}
	if (taken || !total)
		return (ssize_t)taken;
	return error ? error : receive_end(rs);
}

static ssize_t receive_stream(struct vb_rsocket *rs, const struct iovec *iov, size_t count, int flags)
{
	struct cursor cursor = { iov, count, 0 };

	if (flags & ~(MSG_DONTWAIT | MSG_PEEK | MSG_WAITALL | MSG_NOSIGNAL | MSG_CMSG_CLOEXEC))
		return -EOPNOTSUPP;
	vb_rs_lock_side(rs, &rs->receiving);
	ssize_t received = receive_locked(rs, &cursor, total_of(iov, count), flags);
	vb_rs_unlock_side(rs, &rs->receiving);
	return received;
}

/* ---- The calls --------------------------------------------------------------------------------------------------- */

/* The rsocket behind fd, kept, if a call may carry so many bytes. NULL: errno. */
static struct vb_rsocket *get_for(int fd, const struct iovec *iov, size_t count)
{
	int error = count > IOV_MAX ? -EMSGSIZE : total_of(iov, count) > SSIZE_MAX ? -EINVAL : 0;
	if (!error)
		return vb_rs_get(fd);
	vb_rs_result(error);
	return NULL;
}

static ssize_t send_iov(
	int fd, const struct iovec *iov, size_t count, int flags, const struct sockaddr *to, socklen_t to_length)
{
	struct vb_rsocket *rs = get_for(fd, iov, count);
	if (!rs)
		return -1;
	ssize_t sent = rs->type == SOCK_DGRAM ? vb_rs_datagram_send(rs, iov, count, flags, to, to_length)
					      : send_stream(rs, iov, count, flags);
	vb_rs_put(rs);
	return vb_rs_size(sent);
}

static ssize_t receive_iov(int fd, const struct iovec *iov, size_t count, int flags, struct sockaddr *from,
	socklen_t *from_length, int *message_flags)
{
	struct vb_rsocket *rs = get_for(fd, iov, count);
	if (!rs)
		return -1;
	ssize_t received = rs->type == SOCK_DGRAM
				   ? vb_rs_datagram_receive(rs, iov, count, flags, from, from_length, message_flags)
				   : receive_stream(rs, iov, count, flags);
	/* A stream has one peer, whose address rgetpeername tells. */
	if (rs->type == SOCK_STREAM && from && from_length)
		*from_length = 0;
	vb_rs_put(rs);
	return vb_rs_size(received);
}

VB_RS_EXPORT ssize_t rsendto(
	int fd, const void *buf, size_t len, int flags, const struct sockaddr *to, socklen_t length)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	return send_iov(fd, &iov, 1, flags, to, length);
}

VB_RS_EXPORT ssize_t rsend(int fd, const void *buf, size_t len, int flags)
{
	return rsendto(fd, buf, len, flags, NULL, 0);
}

VB_RS_EXPORT ssize_t rsendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (!msg)
		return vb_rs_size(-EFAULT);
	if (msg->msg_controllen)
		return vb_rs_size(-EOPNOTSUPP);
	return send_iov(fd, msg->msg_iov, msg->msg_iovlen, flags, msg->msg_name, msg->msg_namelen);
}

VB_RS_EXPORT ssize_t rwrite(int fd, const void *buf, size_t count)
{
	return rsend(fd, buf, count, 0);
}

static bool is_count(int count)
{
	return count >= 0 && count <= IOV_MAX;
}

VB_RS_EXPORT ssize_t rwritev(int fd, const struct iovec *iov, int count)
{
	if (!is_count(count))
		return vb_rs_size(-EINVAL);
	return send_iov(fd, iov, (size_t)count, 0, NULL, 0);
}

VB_RS_EXPORT ssize_t rrecvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from, socklen_t *length)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	int message_flags = 0;
	return receive_iov(fd, &iov, 1, flags, from, length, &message_flags);
}

VB_RS_EXPORT ssize_t rrecv(int fd, void *buf, size_t len, int flags)
{
	return rrecvfrom(fd, buf, len, flags, NULL, NULL);
}

VB_RS_EXPORT ssize_t rrecvmsg(int fd, struct msghdr *msg, int flags)
{
	if (!msg)
		return vb_rs_size(-EFAULT);
	int message_flags = 0;
	socklen_t length = msg->msg_namelen;
	ssize_t received = receive_iov(fd, msg->msg_iov, msg->msg_iovlen, flags, msg->msg_name,
		msg->msg_name ? &length : NULL, &message_flags);
	if (received >= 0) {
		msg->msg_namelen = msg->msg_name ? length : 0;
		msg->msg_controllen = 0;
		msg->msg_flags = message_flags;
	}
	return received;
}

VB_RS_EXPORT ssize_t rread(int fd, void *buf, size_t count)
{
	return rrecv(fd, buf, count, 0);
}

VB_RS_EXPORT ssize_t rreadv(int fd, const struct iovec *iov, int count)
{
	if (!is_count(count))
		return vb_rs_size(-EINVAL);
	int message_flags = 0;
	return receive_iov(fd, iov, (size_t)count, 0, NULL, NULL, &message_flags);
}
