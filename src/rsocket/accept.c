/* The calls that listen and accept.
 * Not here: the thread that makes connections meanwhile (listen.c). */
#include "rsocket/listen.h"

#include <stdlib.h>

/* The answering thread needs less to make a connection of a request. */
enum { MAKING_US = 1000000 };

VB_RS_EXPORT int rlisten(int fd, int backlog)
{
	struct vb_rsocket *rs = vb_rs_get(fd);
	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	int error = vb_rs_listen(rs, backlog);
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
	return vb_rs_result(error);
}

/* ---- Accepting --------------------------------------------------------------------------------------------------- */

static bool has_request(const struct vb_rsocket *rs)
{
	return !vb_list_empty(&rs->made) || !vb_list_empty(&rs->requests) || rs->state != VB_RS_LISTENING;
}

/* A place in the backlog is free: wakes the answering thread for a request that found none. */
static void take_made(struct vb_rsocket *rs)
{
	rs->made_count--;
	if (!vb_list_empty(&rs->requests) && vb_rs_listeners_has(rs))
		vb_rs_wake(rs);
}

/* Takes the oldest connection out of the listener or, where none is made yet, the oldest request. */
static int next_request(struct vb_rsocket *rs, struct vb_rs_request **request)
{
	if (rs->type != SOCK_STREAM)
		return -EOPNOTSUPP;
	if (rs->state != VB_RS_LISTENING)
		return -EINVAL;
	vb_rs_note_accepting(rs);
	/* A request that rpoll saw may just be becoming a connection. */
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
	*request = vb_rs_request_of(link);
	return 0;
}

/* Starts what was put off until the program accepts, and enters the connection in the table. */
static int finish(struct vb_rsocket *rs)
{
	pthread_mutex_lock(&rs->lock);
	int error = rs->options.is_keepalive ? vb_rs_keepalive_start(rs) : 0;
	pthread_mutex_unlock(&rs->lock);
	if (!error)
		error = vb_rs_enter(rs);
	if (error)
		vb_rs_close(rs);
	return error ? error : rs->fd;
}

static int accept_next(struct vb_rsocket *listener)
{
	struct vb_rs_request *request = NULL;

	pthread_mutex_lock(&listener->lock);
	int error = next_request(listener, &request);
	struct vb_rs_options options = listener->options;
	pthread_mutex_unlock(&listener->lock);
	if (error)
		return error;
	if (!request->rs)
		error = vb_rs_make_connection(request, listener->domain, &options);
	if (!error)
		error = finish(request->rs);
	free(request);
	return error;
}

VB_RS_EXPORT int raccept(int fd, struct sockaddr *addr, socklen_t *length)
{
	struct vb_rsocket *listener = vb_rs_get(fd);
	if (!listener)
		return -1;
	int accepted = accept_next(listener);
	vb_rs_put(listener);
	if (accepted < 0)
		return vb_rs_result(accepted);
	struct vb_rsocket *rs = vb_rs_get(accepted);
	if (!rs)
		return -1;
	int error = vb_rs_copy_address(&rs->peer, addr, length);
	vb_rs_put(rs);
	if (!error)
		return accepted;
	rclose(accepted);
	return vb_rs_result(error);
}
