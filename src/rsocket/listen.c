/* Listening. As with sockets, a connection is made before the program accepts it: one thread answers the requests of
 * all listeners, up to each one's backlog, so that a peer's rconnect does not wait for our program.
 * Holds: connections that nobody accepted are closed with their listener.
 * Not here: the queue of requests (requests.c), the calls (accept.c). */
#include "rsocket/listen.h"

#include <stdlib.h>
#include <string.h>
#include "os/thread.h"
#include "rdmacm/family.h"

/* The peer learns how many mappings there are before the program accepts, and the program may ask for mappings until
 * then. So many fit into the page that the table takes anyway. */
enum { EARLY_MAPPINGS = 127 };

/* ---- Connections ------------------------------------------------------------------------------------------------- */

/* Makes the request's id that of rs, and answers. */
static int adopt(struct vb_rsocket *rs, const struct vb_rs_request *request)
{
	struct vb_rs_hello hello;
	uint8_t bytes[VB_RS_HELLO_LENGTH];

	rs->id = request->id;
	rs->id->context = rs;
	if (rdma_migrate_id(rs->id, rs->channel))
		return -errno;
	int error = vb_rs_stream_open(rs);
	if (error)
		return error;
	memcpy(&rs->peer, rdma_get_peer_addr(rs->id), sizeof(rs->peer));
	vb_rs_stream_hello(rs, &hello);
	vb_rs_hello_encode(&hello, bytes);
	struct rdma_conn_param param = vb_rs_conn_param(bytes);
	/* Started before the answer is sent: the peer's first bytes may be here when rdma_accept returns. */
	vb_rs_stream_start(rs, &request->hello);
	if (rdma_accept(rs->id, &param) == 0)
		return 0;
	return errno == EINVAL ? -ECONNABORTED : -errno; /* the peer has given up meanwhile */
}

int vb_rs_make_connection(struct vb_rs_request *request, int domain, const struct vb_rs_options *options)
{
	struct vb_rsocket *rs = vb_rs_create(domain, SOCK_STREAM, options);
	if (!rs) {
		int error = -errno;
		vb_rs_refuse(request->id);
		return error;
	}
	rs->options.is_nonblocking = false;
	int error = adopt(rs, request);
	if (error) {
		rdma_reject(rs->id, NULL, 0);
		vb_rs_put(rs);
		return error;
	}
	request->rs = rs;
	return 0;
}

/* ---- The thread that answers ------------------------------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_running;

/* The child does not have this thread. */
static void on_fork_child(void)
{
	static const pthread_once_t never = PTHREAD_ONCE_INIT;

	is_running = false;
	memcpy(&once, &never, sizeof(once));
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, on_fork_child);
}

/* Forked children have the listener, too. A connection that is made early could not be passed on to them, while an
 * unanswered request is repeated and goes to the process that accepts by then. */
static bool is_left_to_children(const struct vb_rsocket *listener)
{
	return !listener->is_accepting && listener->children != vb_rs_children();
}

/* The next request that may become a connection. */
static struct vb_rs_request *next_to_make(struct vb_rsocket *listener)
{
	if (listener->is_closing || is_left_to_children(listener) || listener->made_count >= listener->backlog)
		return NULL;
	struct vb_list *link = vb_list_pop(&listener->requests);
	if (!link)
		return NULL;
	listener->made_count++;
	return vb_rs_request_of(link);
}

static void keep(struct vb_rsocket *listener, struct vb_rs_request *request, int error)
{
	if (error || listener->is_closing || listener->state != VB_RS_LISTENING) {
		listener->made_count--;
		if (!error)
			vb_rs_close(request->rs);
		free(request);
		return;
	}
	vb_list_add_tail(&listener->made, &request->link);
	vb_rs_kick(listener);
}

/* The listener's lock is not held while a connection is made. */
static void serve(struct vb_rsocket *listener)
{
	struct vb_rs_request *request;

	pthread_mutex_lock(&listener->lock);
	if (!listener->is_driven) /* else the wake may be for the thread that waits there */
		vb_rs_note_awake(listener);
	if (vb_rs_take_events(listener))
		vb_rs_kick(listener);
	while ((request = next_to_make(listener))) {
		struct vb_rs_options options = listener->options;
		pthread_mutex_unlock(&listener->lock);
		if (options.mappings < EARLY_MAPPINGS)
			options.mappings = EARLY_MAPPINGS;
		int error = vb_rs_make_connection(request, listener->domain, &options);
		pthread_mutex_lock(&listener->lock);
		keep(listener, request, error);
	}
	pthread_mutex_unlock(&listener->lock);
}

static void *answer_requests(void *unused)
{
	for (;;) {
		struct vb_rsocket *listener = vb_rs_listeners_wait();
		if (!listener)
			continue;
		serve(listener);
		vb_rs_put(listener);
	}
	return NULL;
}

static void start_thread(void)
{
	pthread_t thread;

	if (vb_rs_listeners_open())
		return;
	is_running = vb_thread_start(&thread, answer_requests, NULL) == 0;
	if (is_running)
		pthread_detach(thread);
}

/* Without the thread, connections are made when they are accepted. */
static void answer_in_background(struct vb_rsocket *rs)
{
	pthread_once(&once, start_thread);
	if (is_running)
		vb_rs_listeners_add(rs);
}

/* ---- Listening --------------------------------------------------------------------------------------------------- */

int vb_rs_listen(struct vb_rsocket *rs, int backlog)
{
	if (rs->type != SOCK_STREAM)
		return -EOPNOTSUPP;
	rs->backlog = backlog > 0 ? (uint32_t)backlog : 1;
	if (rs->state == VB_RS_LISTENING)
		return 0;
	int error = vb_rs_bind_any(rs);
	if (error)
		return error;
	if (rs->state != VB_RS_BOUND)
		return -EINVAL;
	rs->children = vb_rs_children();
	vb_id_hear_lost_requests(rs->id);
	if (rdma_listen(rs->id, (int)rs->backlog))
		return errno == EADDRNOTAVAIL ? -EADDRINUSE : -errno; /* see bind_error */
	vb_rs_set_state(rs, VB_RS_LISTENING);
	answer_in_background(rs);
	return 0;
}

void vb_rs_note_accepting(struct vb_rsocket *rs)
{
	if (rs->state != VB_RS_LISTENING || rs->is_accepting)
		return;
	rs->is_accepting = true;
	vb_id_accepting(rs->id);
}
