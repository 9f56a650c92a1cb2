/* Identifiers: creation, destruction, and between which channels they move.
 * Holds: when rdma_destroy_id returns, nothing names the id any more: the CM's id went first, so no event of it
 * follows; then its requests, what waits in the channel, and last what was fetched, which its destruction waits for. */
#include <stdlib.h>
#include <string.h>
#include "rdmacm/objects.h"

/* A reply (or establishment, or refusal), a disconnection, the end of timewait. */
enum { CM_EVENTS_OF_AN_ID = 3 };

static void free_spare(struct id_object *id)
{
	for (struct vb_list *link; (link = vb_list_pop(&id->spare));)
		free(vb_container_of(link, struct event_object, link));
}

int vb_id_reserve_events(struct id_object *id)
{
	struct event_object *events[CM_EVENTS_OF_AN_ID];
	for (int i = 0; i < CM_EVENTS_OF_AN_ID; i++) {
		events[i] = malloc(sizeof(**events));
		if (events[i])
			continue;
		while (i-- > 0)
			free(events[i]);
		return -ENOMEM;
	}
	vb_events_lock();
	free_spare(id);
	for (int i = 0; i < CM_EVENTS_OF_AN_ID; i++)
		vb_list_add_tail(&id->spare, &events[i]->link);
	vb_events_unlock();
	return 0;
}

struct id_object *vb_id_create(
	struct rdma_event_channel *channel, void *context, enum rdma_port_space ps, enum ibv_qp_type qp_type)
{
	if (channel && !vb_channel_is_ours(channel))
		return vb_result_null(-VB_FORKED_ERRNO);
	struct id_object *id = calloc(1, sizeof(*id));
	if (!id)
		return vb_result_null(-ENOMEM);
	id->generation = vb_generation();
	id->is_sync = channel == NULL;
	if (id->is_sync)
		channel = rdma_create_event_channel();
	if (!channel) {
		free(id);
		return NULL;
	}
	id->public.channel = channel;
	id->public.context = context;
	id->public.ps = ps;
	id->public.qp_type = qp_type;
	pthread_mutex_init(&id->calls, NULL);
	vb_list_init(&id->groups);
	vb_list_init(&id->spare);
	return id;
}

void vb_id_free(struct id_object *id)
{
	vb_id_unbind(id);
	free_spare(id);
	if (id->is_sync)
		rdma_destroy_event_channel(id->public.channel);
	pthread_mutex_destroy(&id->calls);
	free(id->public.route.path_rec);
	free(id->template);
	free(id->connect_data);
	free(id);
}

VB_EXPORT int rdma_create_id(
	struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space ps)
{
	enum ibv_qp_type qp_type;

	switch (ps) {
	case RDMA_PS_TCP:
	case RDMA_PS_IB:
		qp_type = IBV_QPT_RC;
		break;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		qp_type = IBV_QPT_UD;
		break;
	default:
		return vb_result(-EINVAL);
	}
	struct id_object *made = vb_id_create(channel, context, ps, qp_type);
	if (!made)
		return -1;
	*id = &made->public;
	return 0;
}

void vb_id_set_device(struct id_object *id, struct device_entry *device, const struct vb_gid *gid)
{
	id->device = device;
	id->way.local = *gid;
	id->public.verbs = device->verbs;
	id->public.port_num = VB_PORT;
	if (!id->public.pd)
		id->public.pd = device->pd;
	struct rdma_ib_addr *addr = &id->public.route.addr.addr.ibaddr;
	memcpy(addr->sgid.raw, gid->raw, sizeof(addr->sgid.raw));
	addr->pkey = htobe16(VB_PKEY);
}

/* An id that rejected somebody may begin anew, while what it had is in TIMEWAIT. */
int vb_id_make_cm(struct id_object *id, struct vb_cm *cm)
{
	if (id->cm)
		vb_cm_id_destroy(id->cm, vb_connections_now());
	id->cm = vb_cm_id_create(cm, id);
	return id->cm ? 0 : -ENOMEM;
}

/* ---- Synchronous ids ------------------------------------------------------------------------------------------- */

static void drop_shown_event(struct id_object *id)
{
	if (id->is_sync && id->public.event) {
		rdma_ack_cm_event(id->public.event);
		id->public.event = NULL;
	}
}

/* How a synchronous call ends whose event this is. The reason of a REJ is the peer's to choose, 0 too. */
static int outcome(const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return -ECONNREFUSED;
	return event->status < 0 ? event->status : -event->status;
}

int vb_id_complete(struct id_object *id, int error)
{
	if (error || !id->is_sync)
		return vb_result(error);
	drop_shown_event(id);
	if (rdma_get_cm_event(id->public.channel, &id->public.event)) {
		id->public.event = NULL;
		return -1;
	}
	return vb_result(outcome(id->public.event));
}

int vb_id_migrate(struct id_object *id, struct rdma_event_channel *channel)
{
	bool to_sync = channel == NULL;
	if (id->generation != vb_generation() || (channel && !vb_channel_is_ours(channel)))
		return -VB_FORKED_ERRNO;
	if (to_sync && id->is_sync)
		return 0;
	if (to_sync)
		channel = rdma_create_event_channel();
	if (!channel)
		return -errno;
	drop_shown_event(id);
	struct rdma_event_channel *own = id->is_sync ? id->public.channel : NULL;
	vb_events_move(id, channel);
	if (own)
		rdma_destroy_event_channel(own);
	id->is_sync = to_sync;
	return 0;
}

VB_EXPORT int rdma_migrate_id(struct rdma_cm_id *public, struct rdma_event_channel *channel)
{
	return vb_result(vb_id_migrate(vb_id_of(public), channel));
}

/* ---- Destruction ----------------------------------------------------------------------------------------------- */

/* With the CM's mutex held. */
static void destroy_cm_id(struct id_object *id)
{
	if (id->cm)
		vb_cm_id_destroy(id->cm, vb_connections_now());
	id->cm = NULL;
}

/* A request that nobody fetched, without its CM's id; or NULL. It belongs to who takes it out of the channel: to us, or
 * to a thread that fetches it meanwhile. */
static struct id_object *take_request(struct id_object *listener)
{
	bool is_ours = vb_id_lock_cm(listener) != NULL;
	struct id_object *request = vb_events_take_request(listener);
	if (!is_ours)
		return request;
	if (request)
		destroy_cm_id(request);
	vb_connections_unlock();
	return request;
}

/* The requests that nobody fetched are rejected. Their listener is deaf already, so that no more come. */
static void destroy_requests(struct id_object *listener)
{
	for (struct id_object *request; (request = take_request(listener));)
		vb_id_free(request);
}

/* What a forked child has of its parent's ids is left as it is: threads that stayed behind may have held their
 * locks. */
VB_EXPORT int rdma_destroy_id(struct rdma_cm_id *public)
{
	struct id_object *id = vb_id_of(public);

	if (id->generation != vb_generation())
		return 0;
	pthread_mutex_lock(&id->calls);
	vb_id_leave_groups(id);
	if (id->device || id->cm) {
		if (vb_id_lock_cm(id)) {
			destroy_cm_id(id);
			vb_connections_unlock();
		}
	}
	bool is_listening = id->state == ID_LISTENING; /* another thread may be applying an event */
	pthread_mutex_unlock(&id->calls);
	if (is_listening)
		destroy_requests(id);
	vb_id_end_resolution(id);
	drop_shown_event(id);
	vb_events_finish(id);
	vb_id_free(id);
	return 0;
}
