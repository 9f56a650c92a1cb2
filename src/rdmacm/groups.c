/* The multicast groups that an id is in, and their QP: it is attached when the event of the group is fetched
 * (ibv_attach_mcast makes the host join, so that switches know).
 * Holds: an id is in a group once; leaving removes an event that was not fetched.
 * Not here: the calls (multicast.c). */
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "rdmacm/objects.h"

struct group *vb_group_find(struct id_object *id, const struct vb_gid *gid)
{
	vb_list_for_each (link, &id->groups) {
		struct group *group = vb_container_of(link, struct group, link);
		if (vb_gid_equal(&group->gid, gid))
			return group;
	}
	return NULL;
}

static union ibv_gid to_ibv(const struct vb_gid *gid)
{
	union ibv_gid to;
	memcpy(to.raw, gid->raw, sizeof(to.raw));
	return to;
}

static void detach(struct id_object *id, struct group *group)
{
	union ibv_gid gid = to_ibv(&group->gid);
	if (group->is_attached && id->public.qp)
		ibv_detach_mcast(id->public.qp, &gid, 0);
	group->is_attached = false;
}

void vb_group_leave(struct id_object *id, struct group *group)
{
	assert(vb_list_linked(&group->link));
	detach(id, group);
	vb_events_forget_group(id, group);
	vb_list_remove(&group->link);
	free(group);
}

void vb_id_detach_groups(struct id_object *id)
{
	vb_list_for_each (link, &id->groups)
		detach(id, vb_container_of(link, struct group, link));
}

void vb_id_leave_groups(struct id_object *id)
{
	while (!vb_list_empty(&id->groups))
		vb_group_leave(id, vb_container_of(id->groups.next, struct group, link));
}

/* Another thread may have left the group since this one fetched the event. */
void vb_group_arrive(struct id_object *id, struct event_object *event)
{
	vb_list_for_each (link, &id->groups) {
		struct group *group = vb_container_of(link, struct group, link);
		if (group != event->group)
			continue;
		union ibv_gid gid = to_ibv(&group->gid);
		if (!id->public.qp || group->is_send_only || group->is_attached)
			return;
		int error = ibv_attach_mcast(id->public.qp, &gid, 0);
		group->is_attached = !error;
		if (error) {
			event->public.event = RDMA_CM_EVENT_MULTICAST_ERROR;
			event->public.status = -error;
		}
		return;
	}
}
