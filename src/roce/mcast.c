/* Multicast: which UD QPs are attached to which group, and its packets' way to each of them. IBA vol. 1, 10.5. */
#include <errno.h>
#include <stdlib.h>
#include "roce/roce.h"
#include "base/invariant.h"
#include "roce/ud.h"

static struct vb_mcast_attachment *find_attachment(const struct vb_qp *qp, const struct vb_gid *gid)
{
	vb_list_for_each (node, &vb_roce(qp)->mcast) {
		struct vb_mcast_attachment *attachment = vb_container_of(node, struct vb_mcast_attachment, qp_link);
		if (vb_gid_equal(&attachment->gid, gid))
			return attachment;
	}
	return NULL;
}

int vb_qp_attach_mcast(struct vb_qp *qp, const struct vb_gid *gid)
{
	if (qp->type != VB_QP_UD || !vb_gid_is_multicast(gid))
		return -EINVAL;
	if (find_attachment(qp, gid))
		return 0;
	struct vb_mcast_attachment *attachment =
		vb_roce_lane_of(qp)->mcast_count < VB_MAX_MCAST_ATTACH ? malloc(sizeof(*attachment)) : NULL;
	if (!attachment)
		return -ENOMEM;
	attachment->gid = *gid;
	attachment->qp = qp;
	vb_list_add_tail(&vb_roce_lane_of(qp)->mcast, &attachment->lane_link);
	vb_list_add_tail(&vb_roce(qp)->mcast, &attachment->qp_link);
	vb_roce_lane_of(qp)->mcast_count++;
	assert(vb_roce_lane_of(qp)->mcast_count <= VB_MAX_MCAST_ATTACH);
	return 0;
}

int vb_qp_detach_mcast(struct vb_qp *qp, const struct vb_gid *gid)
{
	struct vb_mcast_attachment *attachment = find_attachment(qp, gid);
	if (!attachment)
		return -EINVAL;
	vb_list_remove(&attachment->lane_link);
	vb_list_remove(&attachment->qp_link);
	vb_roce_lane_of(qp)->mcast_count--;
	free(attachment);
	return 0;
}

void vb_mcast_receive(struct vb_lane *lane, const struct vb_path *path, const struct vb_packet *packet)
{
	struct vb_datagram datagram = vb_ud_datagram(path, packet);
	bool is_wanted = false;
	vb_list_for_each (node, &vb_roce_lane(lane)->mcast) {
		struct vb_mcast_attachment *attachment = vb_container_of(node, struct vb_mcast_attachment, lane_link);
		if (!vb_gid_equal(&attachment->gid, &path->dst))
			continue;
		is_wanted = true;
		vb_datagram_deliver(attachment->qp, &datagram);
	}
	if (!is_wanted)
		vb_count(lane, VB_DROP_BAD_QPN, 1);
	assert(vb_gid_is_multicast(&path->dst));
}
