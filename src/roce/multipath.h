/* The paths of a QP that recovers selectively: source ports, by which networks choose among equal links. Packets take
 * turns on them by their PSN, a flowlet of so many at a time. A path whose packet is lost or marked gets another port,
 * and so does each after a while, for the one that was left may be good again. [lane] */
#ifndef VB_ROCE_MULTIPATH_H
#define VB_ROCE_MULTIPATH_H

#include "core/objects.h"
#include "roce/rails.h"

struct vb_outgoing;
struct vb_paths_account;

struct vb_one_path {
	uint16_t port;
	uint8_t rail;
	uint32_t rtt; /* ns, the newest by this port; 0: none was measured */
};

struct vb_multipath {
	uint16_t count;       /* or VB_PATHS_ALL */
	uint8_t shift;        /* 1 << shift packets are a flowlet */
	uint32_t draws;       /* ever */
	uint32_t left;        /* exchanges for a loss or a mark */
	uint32_t renewed_psn; /* when one was last given another port without need */
	uint16_t next;        /* to be given one so */
	struct vb_rails rails;
	struct vb_one_path path[];
};

/* NULL: the QP has one path. */
struct vb_multipath *vb_multipath_of(const struct vb_qp *qp);
/* Of the packet at psn, sent for the first time. */
uint32_t vb_multipath_path(const struct vb_multipath *paths, uint32_t psn);
/* As many as the lane's configuration says; NULL: one, the QP's own flow, or no memory for more. */
struct vb_multipath *vb_multipath_create(const struct vb_qp *qp);
/* The packet of that PSN goes by its path, if the QP has several. */
void vb_multipath_take(const struct vb_qp *qp, struct vb_outgoing *out, uint32_t psn);
/* What is sent again goes by another path than before, for that one may be dead: each time by the next. */
void vb_multipath_go_by_another(struct vb_qp *qp, struct vb_outgoing *out, uint32_t psn);
/* The packet of that PSN was lost on its way, or marked. */
void vb_multipath_leave(struct vb_qp *qp, uint32_t psn);
/* The packet of that PSN, sent once, took so long to be acknowledged. */
void vb_multipath_note_rtt(struct vb_qp *qp, uint32_t psn, vb_time rtt);
struct vb_paths_account vb_multipath_account(const struct vb_qp *qp);
/* All before psn has arrived. */
void vb_multipath_renew(struct vb_qp *qp, uint32_t psn);

#endif
