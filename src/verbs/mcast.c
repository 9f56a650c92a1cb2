/* Multicast: a UD QP joins a group in two places, the process's sockets (host/) and the lane's table (engine/). A QP's
 * list of groups is kept here, so that attaching twice is harmless and closing leaves every group. */
#include <stdlib.h>
#include "verbs/objects.h"

static int group_find(const struct qp_object *qp, const struct vb_gid *group)
{
	for (unsigned i = 0; i < qp->group_count; i++) {
		if (vb_gid_equal(&qp->groups[i], group))
			return (int)i;
	}
	return -1;
}

static int attach(struct qp_object *qp, const struct vb_gid *group)
{
	if (group_find(qp, group) >= 0)
		return 0;
	struct vb_gid *groups = realloc(qp->groups, (qp->group_count + 1) * sizeof(*groups));
	if (!groups)
		return ENOMEM;
	qp->groups = groups;
	int err = vb_device_join(qp->host, qp->host_lane, group);
	if (err)
		return -err;
	err = vb_host_lane_lock(qp->host_lane);
	if (!err) {
		err = vb_qp_attach_mcast(qp->qp, group);
		vb_host_lane_unlock(qp->host_lane);
	}
	if (err) {
		vb_device_leave(qp->host, qp->host_lane, group);
		return -err;
	}
	groups[qp->group_count++] = *group;
	return 0;
}

static int detach(struct qp_object *qp, const struct vb_gid *group)
{
	int index = group_find(qp, group);
	if (index < 0)
		return EINVAL;
	int err = vb_host_lane_lock(qp->host_lane);
	if (err)
		return -err;
	err = vb_qp_detach_mcast(qp->qp, group);
	vb_host_lane_unlock(qp->host_lane);
	if (err)
		return -err;
	struct vb_gid gone = *group; /* may lie in the table */
	qp->groups[index] = qp->groups[--qp->group_count];
	vb_device_leave(qp->host, qp->host_lane, &gone);
	return 0;
}

typedef int change(struct qp_object *qp, const struct vb_gid *group);

/* Joining may block, so the list has the context's mutex rather than the host lane's. */
static int change_group(struct ibv_qp *ibv, const union ibv_gid *gid, change *change_it)
{
	struct vb_gid group = vb_gid_plain(gid);
	if (ibv->qp_type != IBV_QPT_UD || !vb_gid_is_multicast(&group))
		return EINVAL;
	pthread_mutex_lock(&ibv->context->mutex);
	int err = change_it(vb_qp_of(ibv), &group);
	pthread_mutex_unlock(&ibv->context->mutex);
	return err;
}

VB_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (vb_call_fails(VB_CALL_ibv_attach_mcast))
		return errno;
	return vb_refuses_forked(qp->context) ? VB_FORKED_ERRNO : change_group(qp, gid, attach);
}

VB_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (vb_call_fails(VB_CALL_ibv_detach_mcast))
		return errno;
	return vb_is_forked(qp->context) ? VB_FORKED_ERRNO : change_group(qp, gid, detach);
}

void vb_qp_leave_groups(struct qp_object *qp)
{
	while (qp->group_count && detach(qp, &qp->groups[0]) == 0)
		;
}
