/* Listening for requests to a port, at one address or at all of them.
 * Not here: queueing a request (handler.c), answering it (accept.c). */
#include "rdmacm/objects.h"

enum { BACKLOG_MAX = 1024 };

/* An id that is not bound listens at a free port of IPv4, as a socket does. */
static int bind_anywhere(struct id_object *id)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	return vb_id_bind(id, (struct sockaddr *)&any);
}

static int make_listener(struct id_object *id)
{
	struct vb_cm *cm = vb_id_lock_cm(id);
	if (!cm)
		return -VB_FORKED_ERRNO;
	int error = vb_id_make_cm(id, cm);
	if (!error)
		error = vb_cm_listen(id->cm, vb_id_service(id, id->binding.port), &id->binding.address);
	vb_connections_unlock();
	return error;
}

static void unmake_listener(struct id_object *id)
{
	if (!vb_id_lock_cm(id))
		return;
	vb_id_destroy_cm(id);
	vb_connections_unlock();
}

/* The CM listens before the broker knows: requests come as soon as the broker does. */
static int listen_locked(struct id_object *id, int backlog)
{
	if (id->state == ID_IDLE) {
		int error = bind_anywhere(id);
		if (error)
			return error;
	}
	if (id->state != ID_BOUND)
		return -EINVAL;
	vb_events_lock();
	id->backlog = backlog > 0 && backlog < BACKLOG_MAX ? backlog : BACKLOG_MAX;
	vb_events_unlock();
	int error = make_listener(id);
	if (!error)
		error = vb_connections_listen(&id->binding);
	if (error)
		unmake_listener(id);
	else
		id->state = ID_LISTENING;
	return error;
}

VB_EXPORT int rdma_listen(struct rdma_cm_id *public, int backlog)
{
	if (vb_call_fails(VB_CALL_rdma_listen))
		return -1;
	struct id_object *id = vb_id_of(public);
	if (vb_id_is_refused(id))
		return -1;
	pthread_mutex_lock(&id->calls);
	int error = listen_locked(id, backlog);
	pthread_mutex_unlock(&id->calls);
	return vb_result(error);
}
