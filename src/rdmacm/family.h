/* Functions of ids and channels for rsockets, beyond those for programs. The sockets of a parent and its children
 * listen side by side, as a family of ids that share their ports; a listening socket drops the requests whose senders
 * have given up.
 */
#ifndef VB_RDMACM_FAMILY_H
#define VB_RDMACM_FAMILY_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

/* To be called before the id is bound. The family is a secret that its processes share; 0: none. */
void vb_id_set_family(struct rdma_cm_id *id, uint64_t family);
/* The listener's program takes requests from now on: it gets them before the listeners of the family that have not said
 * so. */
void vb_id_accepting(struct rdma_cm_id *id);
/* An event waits in the channel, which asks no kernel. */
bool vb_channel_has_event(struct rdma_event_channel *channel);
/* To be called before the id listens: REJECTED and UNREACHABLE are also reported for requests that are not accepted
 * yet. */
void vb_id_hear_lost_requests(struct rdma_cm_id *id);

#endif
