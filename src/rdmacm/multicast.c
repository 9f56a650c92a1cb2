/* Multicast: an id joins a group, an IP multicast address, and leaves it. The event says how to send to the group.
 * Not here: the list of groups and the attached QP (groups.c). */
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "rdmacm/objects.h"

enum { GROUP_HOP_LIMIT = 64 };

/* Fills in how to send to a group. */
static int fill_event(struct id_object *id, const struct group *group, struct event_object *event)
{
	struct rdma_ud_param *param = &event->public.param.ud;
	struct device_entry *device;
	struct vb_way way = {
		.local = id->way.local,
		.remote = group->gid,
		.traffic_class = id->options.tos,
		.hop_limit = GROUP_HOP_LIMIT,
	};
	int error = vb_device_of_gid(&way.local, &device, &way.gid_index);
	if (error)
		return error;
	vb_way_ah_attr(&way, &param->ah_attr);
	param->private_data = group->context;
	param->qp_num = VB_QPN_MULTICAST;
	param->qkey = RDMA_UDP_QKEY;
	return 0;
}

static int join(struct id_object *id, const struct sockaddr *addr, bool is_send_only, void *context)
{
	if (!addr || !vb_sockaddr_length(addr) || !vb_sockaddr_is_multicast(addr))
		return -EINVAL;
	if (!id->device || !vb_id_is_datagram(id) || addr->sa_family != id->public.route.addr.src_addr.sa_family)
		return -EINVAL;
	struct vb_gid gid = vb_sockaddr_gid(addr);
	if (vb_group_find(id, &gid))
		return -EADDRINUSE;
	struct group *group = calloc(1, sizeof(*group));
	struct event_object *event = vb_event_create(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	int error = group && event ? 0 : -ENOMEM;
	if (!error) {
		group->gid = gid;
		group->context = context;
		group->is_send_only = is_send_only;
		event->group = group;
		error = fill_event(id, group, event);
	}
	if (error) {
		free(group);
		free(event);
		return error;
	}
	assert(event->owner == id);
	vb_list_add_tail(&id->groups, &group->link);
	vb_event_queue(event);
	return 0;
}

VB_EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *public, struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
	if (vb_call_fails(VB_CALL_rdma_join_multicast_ex))
		return -1;
	const uint32_t needed = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	struct id_object *id = vb_id_of(public);

	if (!attr || attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED || (attr->comp_mask & needed) != needed ||
		attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return vb_result(-EINVAL);
	if (vb_id_is_refused(id))
		return -1;
	pthread_mutex_lock(&id->calls);
	int error = join(id, attr->addr, attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, context);
	pthread_mutex_unlock(&id->calls);
	return vb_id_complete(id, error);
}

VB_EXPORT int rdma_join_multicast(struct rdma_cm_id *public, struct sockaddr *addr, void *context)
{
	if (vb_call_fails(VB_CALL_rdma_join_multicast))
		return -1;
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
		.addr = addr,
	};
	return rdma_join_multicast_ex(public, &attr, context);
}

VB_EXPORT int rdma_leave_multicast(struct rdma_cm_id *public, struct sockaddr *addr)
{
	if (vb_call_fails(VB_CALL_rdma_leave_multicast))
		return -1;
	struct id_object *id = vb_id_of(public);

	if (!addr || !vb_sockaddr_length(addr))
		return vb_result(-EINVAL);
	struct vb_gid gid = vb_sockaddr_gid(addr);
	if (vb_id_is_refused(id))
		return -1;
	pthread_mutex_lock(&id->calls);
	struct group *group = vb_group_find(id, &gid);
	if (group)
		vb_group_leave(id, group);
	pthread_mutex_unlock(&id->calls);
	return vb_result(group ? 0 : -EADDRNOTAVAIL);
}
