/* What rsockets ask of ids beyond what programs may: the sockets of a parent and its children listen side by side, as a
 * family of ids whose ports are one. */
#ifndef VB_RDMACM_FAMILY_H
#define VB_RDMACM_FAMILY_H

#include <rdma/rdma_cma.h>
#include <stdint.h>

/* Before it is bound. The family is a secret that its processes have in common; 0: none. */
void vb_id_set_family(struct rdma_cm_id *id, uint64_t family);
/* A listener whose program takes requests from now on: it has them before those of the family that do not say so. */
void vb_id_accepting(struct rdma_cm_id *id);

#endif
