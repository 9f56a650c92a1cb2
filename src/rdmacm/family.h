/* What rsockets ask of ids beyond what programs may. The sockets of a parent and its children listen side by side, as a
 * family of ids whose ports are one; and a listening socket drops the requests whose senders have given up. */
#ifndef VB_RDMACM_FAMILY_H
#define VB_RDMACM_FAMILY_H

#include <rdma/rdma_cma.h>
#include <stdint.h>

/* Before it is bound. The family is a secret that its processes have in common; 0: none. */
void vb_id_set_family(struct rdma_cm_id *id, uint64_t family);
/* A listener whose program takes requests from now on: it has them before those of the family that do not say so. */
void vb_id_accepting(struct rdma_cm_id *id);
/* Before it listens: REJECTED and UNREACHABLE are reported of its requests before they are accepted, too. */
void vb_id_hear_lost_requests(struct rdma_cm_id *id);

#endif
