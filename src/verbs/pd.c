/* Protection domains. */
#include <stdlib.h>
#include "verbs/objects.h"

VB_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	if (vb_host_is_forked_child())
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
	struct pd_object *pd = (struct pd_object *)ibv;
	if (vb_host_is_forked_child())
		return VB_FORKED_ERRNO;
	if (atomic_load(&pd->ahs))
		return EBUSY;
	int err = vb_pd_destroy(pd->pd);
	if (err)
		return -err;
	vb_object_remove(ibv->context, &pd->link);
	free(pd);
	return 0;
}
