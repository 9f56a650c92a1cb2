/* UD, both ways, and multicast. */
#ifndef VB_ROCE_UD_H
#define VB_ROCE_UD_H

#include "base/list.h"
#include "core/datagram.h"
#include "roce/holder.h"

void vb_ud_receive(struct vb_qp *qp, const struct vb_path *path, const struct vb_packet *packet);
bool vb_ud_emit(struct vb_qp *qp, struct vb_batch *batch, vb_time now);

static inline struct vb_datagram vb_ud_datagram(const struct vb_path *path, const struct vb_packet *packet)
{
	return (struct vb_datagram){
		.row = vb_packet_row(packet),
		.path = path,
		.payload = packet->payload,
		.length = packet->payload_length,
		.src_qpn = packet->src_qpn,
		.qkey = packet->qkey,
		.imm = packet->imm,
		.is_solicited = packet->solicited,
	};
}

/* mcast.c */
struct vb_mcast_attachment {
	struct vb_list lane_link, qp_link;
	struct vb_gid gid;
	struct vb_qp *qp;
};

void vb_mcast_receive(struct vb_lane *lane, const struct vb_path *path, const struct vb_packet *packet);

#endif
