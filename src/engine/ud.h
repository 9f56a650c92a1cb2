/* UD, both ways, and multicast. */
#ifndef VB_ENGINE_UD_H
#define VB_ENGINE_UD_H

#include "base/list.h"
#include "engine/nic.h"

struct vb_send_wqe;

void vb_ud_receive(struct vb_qp *qp, const struct vb_path *path, const struct vb_packet *packet);
/* Also from mcast.c: whatever address it came to. */
void vb_ud_deliver(struct vb_qp *qp, const struct vb_path *path, const struct vb_packet *packet);
uint32_t vb_ud_qkey(const struct vb_qp *qp, const struct vb_send_wqe *wqe);
void vb_ud_start(struct vb_qp *qp, struct vb_send_wqe *wqe); /* the one at the cursor has its PSN, and is handed out */
bool vb_ud_emit(struct vb_qp *qp, struct vb_batch *batch, vb_time now);

/* mcast.c */
struct vb_mcast_attachment {
	struct vb_list lane_link, qp_link;
	struct vb_gid gid;
	struct vb_qp *qp;
};

void vb_mcast_receive(struct vb_lane *lane, const struct vb_path *path, const struct vb_packet *packet);

#endif
