/* XRC: domains, SRQs that packets name by number, and the QPs that hand requests on to them. */
#ifndef VB_CORE_XRC_H
#define VB_CORE_XRC_H

#include "core/memory.h"
#include "core/queues.h"

struct vb_qp;

void vb_srq_table_init(struct vb_srq_table *table);
void vb_srq_table_deinit(struct vb_srq_table *table);

/* An XRC SRQ gets its number and can be named from now on; -ENOMEM when the table is full. */
int vb_xrc_enter_srq(struct vb_srq *srq);
/* Nobody can name it any more, and no QP of its domain has anything of it. */
void vb_xrc_remove_srq(struct vb_srq *srq);

/* An XRC_RECV QP joins and leaves its domain. */
void vb_xrc_add_qp(struct vb_qp *qp);
void vb_xrc_remove_qp(struct vb_qp *qp);

/* A request names SRQ number: receives, memory and completions of the QP are that SRQ's from now on. False: there is no
 * such SRQ in the QP's domain, or a message is under way into another. */
bool vb_xrc_turn_to(struct vb_qp *qp, uint32_t number);

/* The domain of that SRQ's memory; NULL: there is no such SRQ. */
const struct vb_pd *vb_xrc_domain(const struct vb_qp *qp, uint32_t number);

void vb_xrc_check(const struct vb_qp *qp); /* of XRC_RECV */

#endif
