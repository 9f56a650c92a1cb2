/* The end of an id.
 * Holds: when rdma_destroy_id returns, nothing refers to the id: the CM's id goes first, so that it causes no further
 * event; then the id's requests and the events that wait in the channel; the call waits last until all fetched events
 * are acknowledged. */
#include "rdmacm/objects.h"

/* Takes a request that was not fetched, without its CM's id; or NULL. A thread that fetches it at the same time may
 * win. */
static struct id_object *take_request(struct id_object *listener)
{
	bool is_ours = vb_id_lock_cm(listener) != NULL;
	struct id_object *request = vb_events_take_request(listener);
	if (!is_ours)
		return request;
	if (request)
		vb_id_destroy_cm(request);
	vb_connections_unlock();
	return request;
}

/* Rejects the requests that were not fetched. The listener's CM id is gone, so no further ones come. */
static void destroy_requests(struct id_object *listener)
{
	for (struct id_object *request; (request = take_request(listener));)
		vb_id_free(request);
}

/* A forked child leaves its copies of the parent's ids alone: threads of the parent may have held their locks. */
VB_EXPORT int rdma_destroy_id(struct rdma_cm_id *public)
{
	if (vb_call_fails(VB_CALL_rdma_destroy_id))
		return -1;
	struct id_object *id = vb_id_of(public);

	if (!vb_id_is_ours(id))
		return 0;
	pthread_mutex_lock(&id->calls);
	vb_id_leave_groups(id);
	if (id->device || id->cm) {
		if (vb_id_lock_cm(id)) {
			vb_id_destroy_cm(id);
			vb_connections_unlock();
		}
	}
	bool is_listening = id->state == ID_LISTENING; /* another thread may be applying an event */
	pthread_mutex_unlock(&id->calls);
	if (is_listening)
		destroy_requests(id);
	vb_id_end_resolution(id);
	vb_id_drop_shown_event(id);
	vb_events_finish(id);
	vb_id_free(id);
	return 0;
}
