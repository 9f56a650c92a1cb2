/* Protection domains, parent domains and thread domains.
 * Holds: a parent domain stands for the same domain of the engine as its protection domain, which outlives it. Objects
 * of a parent domain that has allocators lie in the program's memory. */
#include <stdlib.h>
#include <string.h>
#include "verbs/objects.h"

#define ALLOCATION_ALIGNMENT 64

VB_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	if (vb_call_fails(VB_CALL_ibv_alloc_pd))
		return NULL;
	if (vb_refuses_forked(context))
		return vb_fail(VB_FORKED_ERRNO);
	struct pd_object *pd = calloc(1, sizeof(*pd));
	if (!pd)
		return vb_fail(ENOMEM);
	int err = vb_pd_create(vb_device_nic(vb_host_of(context)), &pd->pd);
	if (err) {
		free(pd);
		return vb_fail(-err);
	}
	pd->ibv.context = context;
	pd->ibv.handle = vb_object_handle();
	vb_object_add(context, OBJECT_PD, &pd->link);
	return &pd->ibv;
}

VB_EXPORT int ibv_dealloc_pd(struct ibv_pd *ibv)
{
	if (vb_call_fails(VB_CALL_ibv_dealloc_pd))
		return errno;
	struct pd_object *pd = (struct pd_object *)ibv;
	if (vb_is_forked(ibv->context))
		return VB_FORKED_ERRNO;
	if (atomic_load(&pd->users))
		return EBUSY;
	int err = pd->base ? 0 : vb_pd_destroy(pd->pd);
	if (err)
		return -err;
	if (pd->base)
		vb_pd_hold(&pd->base->ibv, -1);
	if (pd->td)
		vb_users_add(&pd->td->users, -1);
	vb_object_remove(ibv->context, &pd->link);
	free(pd);
	return 0;
}

/* ---- Parent domains ---------------------------------------------------------------------------------------------- */

static int check_parent(struct ibv_context *context, const struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT |
			       LATER_PARENT_DOMAIN_ALLOW_CC_UNPROTECTED; /* it allows plain memory, which ours is */
	if (!attr->pd || attr->pd->context != context || (attr->td && attr->td->context != context))
		return EINVAL;
	if (attr->comp_mask & ~known)
		return EOPNOTSUPP;
	bool has_allocators = attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	return has_allocators && (!attr->alloc || !attr->free) ? EINVAL : 0;
}

struct ibv_pd *vb_pd_ops_alloc_parent(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	int err = vb_refuses_forked(context) ? VB_FORKED_ERRNO : check_parent(context, attr);
	if (err)
		return vb_fail(err);
	struct pd_object *pd = calloc(1, sizeof(*pd));
	if (!pd)
		return vb_fail(ENOMEM);
	struct pd_object *given = (struct pd_object *)attr->pd;
	pd->base = given;
	pd->pd = given->pd;
	pd->td = (struct td_object *)attr->td;
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		pd->allocators.alloc = attr->alloc;
		pd->allocators.free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		pd->allocators.pd_context = attr->pd_context;
	pd->ibv.context = context;
	pd->ibv.handle = given->ibv.handle;
	vb_pd_hold(attr->pd, 1);
	if (pd->td)
		vb_users_add(&pd->td->users, 1);
	vb_object_add(context, OBJECT_PARENT_DOMAIN, &pd->link);
	return &pd->ibv;
}

void *vb_pd_alloc(struct ibv_pd *ibv, size_t size, enum vb_allocation kind, bool *is_programs)
{
	const struct ibv_parent_domain_init_attr *by = ibv ? &((struct pd_object *)ibv)->allocators : NULL;
	void *memory = IBV_ALLOCATOR_USE_DEFAULT;
	if (by && by->alloc)
		memory = by->alloc(ibv, by->pd_context, size, ALLOCATION_ALIGNMENT, kind);
	*is_programs = memory != IBV_ALLOCATOR_USE_DEFAULT;
	if (!*is_programs)
		return calloc(1, size);
	return memory ? memset(memory, 0, size) : NULL;
}

void vb_pd_free(struct ibv_pd *ibv, void *memory, enum vb_allocation kind, bool is_programs)
{
	if (!is_programs) {
		free(memory);
		return;
	}
	const struct ibv_parent_domain_init_attr *by = &((struct pd_object *)ibv)->allocators;
	by->free(ibv, by->pd_context, memory, kind);
}

/* ---- Thread domains ---------------------------------------------------------------------------------------------- */

struct ibv_td *vb_td_ops_alloc(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	if (vb_refuses_forked(context))
		return vb_fail(VB_FORKED_ERRNO);
	if (attr->comp_mask)
		return vb_fail(EOPNOTSUPP);
	struct td_object *td = calloc(1, sizeof(*td));
	if (!td)
		return vb_fail(ENOMEM);
	td->ibv.context = context;
	td->host_lane = vb_device_host_lane_of_domain(vb_host_of(context));
	vb_object_add(context, OBJECT_TD, &td->link);
	return &td->ibv;
}

int vb_td_ops_dealloc(struct ibv_td *ibv)
{
	struct td_object *td = (struct td_object *)ibv;
	if (vb_is_forked(ibv->context))
		return VB_FORKED_ERRNO;
	if (atomic_load(&td->users))
		return EBUSY;
	vb_object_remove(ibv->context, &td->link);
	free(td);
	return 0;
}
