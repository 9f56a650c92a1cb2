/* Shutting down and closing one rsocket, and freeing it with its last reference.
 * Holds: the bytes that the program sent have arrived at the peer's NIC before the connection goes, unless the program
 * was told otherwise or its SO_LINGER ran out. Bytes that have arrived stay readable until the rsocket is closed.
 * Not here: the calls (socket.c). */
#include "rsocket/listen.h"

#include <stdlib.h>
#include <unistd.h>
#include "base/invariant.h"

/* Enough for all retries of a NIC. The acknowledgement does not wait for the peer's program. */
enum { LINGER_US = 30 * 1000000 };

static bool has_control_slot(const struct vb_rsocket *rs)
{
	return rs->control_used < VB_RS_CONTROL_SLOTS || !vb_rs_is_connected(rs);
}

/* A peer that has left reads nothing, so nothing can be lost. */
static bool is_all_sent(const struct vb_rsocket *rs)
{
	return !rs->under_way || rs->peer_state == VB_RS_PEER_LEFT;
}

static int64_t linger_us(const struct vb_rsocket *rs)
{
	/* A timeout of 0 would have no end. */
	return rs->options.linger_s < 0 ? LINGER_US : (int64_t)rs->options.linger_s * 1000000 + 1;
}

/* Sends the peer a control message, behind all that was sent. */
static int say_last(struct vb_rsocket *rs, enum vb_rs_control what)
{
	int error = vb_rs_wait(rs, has_control_slot, false, linger_us(rs));
	if (error || !vb_rs_is_connected(rs))
		return error;
	return vb_rs_stream_control(rs, what);
}

/* Ends both directions, or the one that is left. */
static int disconnect(struct vb_rsocket *rs)
{
	int error = say_last(rs, VB_RS_DISCONNECT);
	vb_rs_end(rs, 0);
	if (!error)
		error = vb_rs_wait(rs, is_all_sent, false, linger_us(rs));
	return error == -EAGAIN ? 0 : error;
}

static int shut_write(struct vb_rsocket *rs)
{
	if (!vb_rs_can_write(rs))
		return 0;
	if (!vb_rs_can_read(rs))
		return disconnect(rs);
	vb_rs_set_state(rs, VB_RS_RECEIVE_ONLY);
	int error = say_last(rs, VB_RS_SHUTDOWN);
	vb_rs_kick(rs);
	return error;
}

/* Refuses all requests, and closes all connections that nobody accepted. */
static void drop_requests(struct vb_rsocket *rs)
{
	vb_rs_refuse_requests(rs);
	for (struct vb_rsocket *made; (made = vb_rs_pop_made(rs));)
		vb_rs_close(made);
}

int vb_rs_shut(struct vb_rsocket *rs, int how)
{
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	if (rs->type == SOCK_DGRAM)
		return 0;
	vb_rs_progress_all(rs, NULL);
	if (rs->state == VB_RS_LISTENING) {
		/* As with TCP, threads that wait for a connection are told. */
		vb_rs_end(rs, 0);
		drop_requests(rs);
		return 0;
	}
	if (!vb_rs_is_connected(rs))
		return -ENOTCONN;
	if (how == SHUT_WR)
		return shut_write(rs);
	if (how == SHUT_RD && vb_rs_can_write(rs)) {
		vb_rs_stop_reading(rs);
		vb_rs_kick(rs);
		return 0;
	}
	return disconnect(rs);
}

/* ---- Closing ----------------------------------------------------------------------------------------------------- */

static void close_connection(struct vb_rsocket *rs)
{
	/* The peer may have closed it already. */
	vb_rs_progress_all(rs, NULL);
	if (vb_rs_is_connected(rs))
		disconnect(rs);
	else if (rs->under_way && rs->cq && !rs->error)
		vb_rs_wait(rs, is_all_sent, false, linger_us(rs));
}

void vb_rs_close(struct vb_rsocket *rs)
{
	pthread_mutex_lock(&rs->lock);
	if (rs->type == SOCK_STREAM) {
		vb_rs_keepalive_stop(rs);
		vb_rs_listeners_remove(rs);
		close_connection(rs);
	}
	rs->is_closing = true;
	vb_rs_kick(rs);
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
}

/* The last reference is gone. */
static void destroy(struct vb_rsocket *rs)
{
	assert(!vb_list_linked(&rs->answered));
	vb_rs_keepalive_stop(rs);
	drop_requests(rs);
	assert(!rs->made_count);
	if (rs->datagram)
		vb_rs_datagram_close(rs);
	if (rs->cq && rs->state >= VB_RS_CONNECTED)
		rdma_disconnect(rs->id);
	vb_rs_stream_close(rs);
	if (rs->id)
		rdma_destroy_id(rs->id);
	if (rs->channel)
		rdma_destroy_event_channel(rs->channel);
	if (rs->fd >= 0)
		close(rs->fd);
	pthread_cond_destroy(&rs->changed);
	pthread_mutex_destroy(&rs->lock);
	pthread_mutex_destroy(&rs->receiving);
	pthread_mutex_destroy(&rs->sending);
	free(rs);
}

void vb_rs_put(struct vb_rsocket *rs)
{
	if (atomic_fetch_sub(&rs->references, 1) == 1)
		destroy(rs);
}
