/* Events of a stream's connection manager id. Each moves the connection on, in whichever thread fetches it.
 * Holds: an event is acknowledged at once; its data is copied. */
#include "rdmacm/family.h"
#include "rsocket/objects.h"

enum { RETRIES = 7 }; /* as a count of receiver-not-ready retries, 7 means without end */

/* Reasons of a rejection. */
enum { REJECTED_NO_LISTENER = 8, REJECTED_BY_PROGRAM = 28, REJECTED_STALE = 10, REJECTED_MTU = 26 };

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

static int send_request(struct vb_rsocket *rs)
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

/* Starts the stream of the active side; the passive side started its own when it accepted. */
static int on_established(struct vb_rsocket *rs, const void *private_data, size_t length)
{
	struct vb_rs_hello remote;

	if (rs->state != VB_RS_CONNECTING) {
		vb_rs_note_peer(rs, VB_RS_PEER_READY);
		return 0;
	}
	int error = vb_rs_hello_decode(&remote, private_data, length);
	if (error) {
		rdma_disconnect(rs->id);
		return -ECONNREFUSED;
	}
	vb_rs_stream_start(rs, &remote);
	vb_rs_note_peer(rs, VB_RS_PEER_READY);
	vb_rs_changed(rs);
	return 0;
}

static int rejection(int reason)
{
	switch (reason) {
	case REJECTED_STALE:
		return -ECONNRESET;
	case REJECTED_MTU: /* there is a listener, but asking again is of no use */
		return -EHOSTUNREACH;
	default:
		return -ECONNREFUSED;
	}
}

/* An event on the way to a connection; 0 or why there will be none. */
static int on_step(struct vb_rsocket *rs, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return rdma_resolve_route(rs->id, VB_RS_RESOLVE_MS) ? -errno : 0;
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

static void on_event(struct vb_rsocket *rs, struct rdma_cm_event *event)
{
	int error = 0;

	switch (event->event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		error = on_established(rs, event->param.conn.private_data, event->param.conn.private_data_len);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		/* An orderly end is told by a message before this event. */
		if (rs->cq)
			vb_rs_stream_poll(rs, NULL);
		vb_rs_note_peer(rs, VB_RS_PEER_LEFT);
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

bool vb_rs_take_events(struct vb_rsocket *rs)
{
	struct rdma_cm_event *event;
	bool was_any = false;

	while (rs->channel && vb_channel_has_event(rs->channel) && rdma_get_cm_event(rs->channel, &event) == 0) {
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
