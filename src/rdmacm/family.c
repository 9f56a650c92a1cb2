/* Ids of a family. The broker gives families their meaning (host/connections.h). */
#include "rdmacm/family.h"
#include "rdmacm/objects.h"

void vb_id_set_family(struct rdma_cm_id *public, uint64_t family)
{
	vb_id_of(public)->options.family = family;
}

void vb_id_hear_lost_requests(struct rdma_cm_id *public)
{
	vb_id_of(public)->options.hears_lost_requests = true;
}

void vb_id_accepting(struct rdma_cm_id *public)
{
	const struct id_object *id = vb_id_of(public);
	if (vb_id_is_ours(id))
		vb_connections_accepting(&id->binding);
}
