/* Ids: their memory, what they reserve, and the device and the CM's id that they have.
 * Not here: rdma_destroy_id (destroy.c), waiting in synchronous calls (sync.c). */
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
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
		return vb_result_null(vb_cm_refuse_forked());
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

void vb_id_unbind(struct id_object *id)
{
	assert(!id->is_bound || id->binding.port != 0);
	if (id->is_bound)
		vb_connections_unbind(&id->binding);
	id->is_bound = false;
}

void vb_id_free(struct id_object *id)
{
	assert(vb_list_empty(&id->groups));
	assert(!id->resolution);
	assert(id->fetched == id->acknowledged);
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
	if (vb_call_fails(VB_CALL_rdma_create_id))
		return -1;
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

/* An id that has rejected a reply may begin again while the former CM's id is in TIMEWAIT. */
int vb_id_make_cm(struct id_object *id, struct vb_cm *cm)
{
	if (id->cm)
		vb_cm_id_destroy(id->cm, vb_connections_now());
	id->cm = vb_cm_id_create(cm, id);
	return id->cm ? 0 : -ENOMEM;
}

void vb_id_destroy_cm(struct id_object *id)
{
	if (id->cm)
		vb_cm_id_destroy(id->cm, vb_connections_now());
	id->cm = NULL;
}

void vb_id_drop_shown_event(struct id_object *id)
{
	if (id->is_sync && id->public.event) {
		rdma_ack_cm_event(id->public.event);
		id->public.event = NULL;
	}
}
