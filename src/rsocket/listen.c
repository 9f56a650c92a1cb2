/* Listening and accepting. As with sockets, a connection is made before the program accepts it: one thread answers the
 * requests of all listeners, as many as a listener's backlog, so that a peer's rconnect does not wait for our program.
 * Holds: a request whose private data is no rsocket's is rejected and never seen by the program; connections that
 * nobody accepted are closed with their listener. */
#include "rsocket/objects.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "os/thread.h"
#include "rdmacm/family.h"

/* The program may ask for mappings between listening and accepting, when the peer has been told how many there are: so
 * many lie in the page that a table takes anyway, and can be told of. */
enum { EARLY_MAPPINGS = 127 };

/* Within which the answering thread has made a connection of a request. */
enum { MAKING_US = 1000000 };

/* A request, or the connection that was made of it. */
struct request {
	struct vb_list link;
	struct rdma_cm_id *id;
	struct vb_rs_hello hello;
	struct rsocket *rs;
};

static struct request *request_of(struct vb_list *link)
{
	return vb_container_of(link, struct request, link);
}

static void refuse(struct rdma_cm_id *id)
{
	rdma_reject(id, NULL, 0);
	rdma_destroy_id(id);
}

/* ---- Requests: under the listener's lock ------------------------------------------------------------------------- */

static void queue_request(struct rsocket *rs, struct rdma_cm_id *id, const struct vb_rs_hello *hello)
{
	struct request *request = rs->state == VB_RS_LISTENING ? malloc(sizeof(*request)) : NULL;
	if (!request) {
		refuse(id);
		return;
	}
	*request = (struct request){ .id = id, .hello = *hello };
	vb_list_add_tail(&rs->requests, &request->link);
	vb_rs_changed(rs);
}

void vb_rs_take_request(struct rsocket *rs, struct rdma_cm_event *event)
{
	struct vb_rs_hello hello;
	struct rdma_cm_id *id = event->id;

	int error = vb_rs_hello_decode(&hello, event->param.conn.private_data, event->param.conn.private_data_len);
	rdma_ack_cm_event(event);
	if (error)
		refuse(id);
	else
		queue_request(rs, id, &hello);
}

static void drop(struct request *request)
{
	if (!request->rs)
		refuse(request->id);
	else
		vb_rs_abandon(request->rs);
	free(request);
}

static struct request *find_request(const struct rsocket *rs, const struct rdma_cm_id *id)
{
	vb_list_for_each (link, &rs->requests) {
		if (request_of(link)->id == id)
			return request_of(link);
	}
	return NULL;
}

/* One that is just being made a connection is not among them: accepting it will fail. */
void vb_rs_lose_request(struct rsocket *rs, struct rdma_cm_event *event)
{
	struct request *request = find_request(rs, event->id);

	rdma_ack_cm_event(event);
	if (!request)
		return;
	vb_list_remove(&request->link);
	drop(request);
}

void vb_rs_drop_requests(struct rsocket *rs)
{
	for (struct vb_list *link; (link = vb_list_pop(&rs->requests));)
		drop(request_of(link));
	for (struct vb_list *link; (link = vb_list_pop(&rs->made));)
		drop(request_of(link));
	rs->made_count = 0;
}

/* ---- Connections ------------------------------------------------------------------------------------------------- */

/* The request's id becomes rs's. */
static int adopt(struct rsocket *rs, const struct request *request)
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
	/* Before the answer is out: the peer's first bytes may be here when this returns. */
	vb_rs_stream_start(rs, &request->hello);
	if (rdma_accept(rs->id, &param) == 0)
		return 0;
	return errno == EINVAL ? -ECONNABORTED : -errno; /* whoever asked has given up meanwhile */
}

/* The request becomes a connection with the listener's options; 0 or -errno, and then its id is gone. */
static int make_connection(struct request *request, int domain, const struct vb_rs_options *options)
{
	struct rsocket *rs = vb_rs_create(domain, SOCK_STREAM, options);
	if (!rs) {
		int error = -errno;
		refuse(request->id);
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
static int listeners = -1; /* an epoll instance over their descriptors */
static bool is_running;

/* Children have the listener too: a connection made before the program asks for one would be kept from them, while a
 * request that is not answered comes again, and goes to whoever accepts by then. */
static bool is_left_to_children(const struct rsocket *listener)
{
	return !listener->is_accepting && listener->children != vb_rs_children();
}

/* The next request that may become a connection. */
static struct request *next_to_make(struct rsocket *listener)
{
	if (listener->is_closing || is_left_to_children(listener) || listener->made_count >= listener->backlog)
		return NULL;
	struct vb_list *link = vb_list_pop(&listener->requests);
	if (!link)
		return NULL;
	listener->made_count++;
	return request_of(link);
}

static void keep(struct rsocket *listener, struct request *request, int error)
{
	if (error || listener->is_closing || listener->state != VB_RS_LISTENING) {
		listener->made_count--;
		if (error)
			free(request);
		else
			drop(request);
		return;
	}
	vb_list_add_tail(&listener->made, &request->link);
	vb_rs_kick(listener);
}

/* The listener's lock is not held while a connection is made. */
static void serve(struct rsocket *listener)
{
	struct request *request;

	pthread_mutex_lock(&listener->lock);
	if (!listener->is_driven) /* or it may be who waits there that was woken */
		vb_rs_is_awake(listener);
	if (vb_rs_take_events(listener))
		vb_rs_kick(listener);
	while ((request = next_to_make(listener))) {
		struct vb_rs_options options = listener->options;
		pthread_mutex_unlock(&listener->lock);
		if (options.mappings < EARLY_MAPPINGS)
			options.mappings = EARLY_MAPPINGS;
		int error = make_connection(request, listener->domain, &options);
		pthread_mutex_lock(&listener->lock);
		keep(listener, request, error);
	}
	pthread_mutex_unlock(&listener->lock);
}

static void *answer_requests(void *unused)
{
	struct epoll_event event;

	for (;;) {
		if (epoll_wait(listeners, &event, 1, -1) != 1)
			continue;
		/* NULL: it is just being closed. */
		struct rsocket *listener = vb_rs_get(event.data.fd);
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

	listeners = epoll_create1(EPOLL_CLOEXEC);
	if (listeners < 0)
		return;
	is_running = vb_thread_start(&thread, answer_requests, NULL) == 0;
	if (is_running)
		pthread_detach(thread);
}

void vb_rs_forget_listeners(void)
{
	static const pthread_once_t never = PTHREAD_ONCE_INIT;

	/* The bare call: what stands before the C library's may want a lock that a thread of the parent held. */
	if (listeners >= 0)
		syscall(SYS_close, listeners);
	listeners = -1;
	is_running = false;
	memcpy(&once, &never, sizeof(once));
}

/* Without the thread connections are made when they are accepted. */
static void answer_in_background(struct rsocket *rs)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = rs->fd };

	pthread_once(&once, start_thread);
	rs->is_watched = is_running && epoll_ctl(listeners, EPOLL_CTL_ADD, rs->fd, &event) == 0;
}

void vb_rs_listen_stop(struct rsocket *rs)
{
	if (rs->is_watched)
		epoll_ctl(listeners, EPOLL_CTL_DEL, rs->fd, NULL);
}

/* ---- Listening --------------------------------------------------------------------------------------------------- */

int vb_rs_listen(struct rsocket *rs, int backlog)
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
	rs->state = VB_RS_LISTENING;
	answer_in_background(rs);
	return 0;
}

VB_RS_EXPORT int rlisten(int fd, int backlog)
{
	struct rsocket *rs = vb_rs_get(fd);
	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	int error = vb_rs_listen(rs, backlog);
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
	return vb_rs_result(error);
}

void vb_rs_note_accepting(struct rsocket *rs)
{
	if (rs->state != VB_RS_LISTENING || rs->is_accepting)
		return;
	rs->is_accepting = true;
	vb_id_accepting(rs->id);
}

/* ---- Accepting --------------------------------------------------------------------------------------------------- */

static bool has_request(const struct rsocket *rs)
{
	return !vb_list_empty(&rs->made) || !vb_list_empty(&rs->requests) || rs->state != VB_RS_LISTENING;
}

/* A place is free, and a request that found none need not wait until the program has accepted all that were before
 * it. */
static void take_made(struct rsocket *rs)
{
	rs->made_count--;
	if (rs->is_watched && !vb_list_empty(&rs->requests))
		vb_rs_wake(rs);
}

/* The oldest, taken out of the listener. */
static int next_request(struct rsocket *rs, struct request **request)
{
	if (rs->type != SOCK_STREAM)
		return -EOPNOTSUPP;
	if (rs->state != VB_RS_LISTENING)
		return -EINVAL;
	vb_rs_note_accepting(rs);
	/* What rpoll saw may just be on its way from a request to a connection. */
	bool is_nonblocking = rs->options.is_nonblocking && !(vb_list_empty(&rs->made) && rs->made_count);
	int64_t timeout_us = rs->options.is_nonblocking ? MAKING_US : rs->options.receive_timeout_us;
	int error = vb_rs_wait(rs, has_request, is_nonblocking, timeout_us);
	if (error)
		return error;
	struct vb_list *link = vb_list_pop(&rs->made);
	if (link)
		take_made(rs);
	else
		link = vb_list_pop(&rs->requests);
	if (!link)
		return -EINVAL;
	*request = request_of(link);
	return 0;
}

/* The connection's place in the table, and what waited for that. */
static int finish(struct rsocket *rs)
{
	pthread_mutex_lock(&rs->lock);
	int error = rs->options.is_keepalive ? vb_rs_keepalive_start(rs) : 0;
	pthread_mutex_unlock(&rs->lock);
	if (!error)
		error = vb_rs_enter(rs);
	if (error)
		vb_rs_abandon(rs);
	return error ? error : rs->fd;
}

static int accept_next(struct rsocket *listener)
{
	struct request *request = NULL;

	pthread_mutex_lock(&listener->lock);
	int error = next_request(listener, &request);
	struct vb_rs_options options = listener->options;
	pthread_mutex_unlock(&listener->lock);
	if (error)
		return error;
	if (!request->rs)
		error = make_connection(request, listener->domain, &options);
	if (!error)
		error = finish(request->rs);
	free(request);
	return error;
}

VB_RS_EXPORT int raccept(int fd, struct sockaddr *addr, socklen_t *length)
{
	struct rsocket *listener = vb_rs_get(fd);
	if (!listener)
		return -1;
	int accepted = accept_next(listener);
	vb_rs_put(listener);
	if (accepted < 0)
		return vb_rs_result(accepted);
	struct rsocket *rs = vb_rs_get(accepted);
	if (!rs)
		return -1;
	int error = vb_rs_copy_address(&rs->peer, addr, length);
	vb_rs_put(rs);
	if (!error)
		return accepted;
	rclose(accepted);
	return vb_rs_result(error);
}
