/* Memory windows. Binding is a work request: post.c. */
#include <stdlib.h>
#include "verbs/objects.h"

struct ibv_mw *vb_mw_ops_alloc(struct ibv_pd *pd, enum ibv_mw_type type)
{
	if (vb_refuses_forked(pd->context))
		return vb_fail(VB_FORKED_ERRNO);
	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return vb_fail(EINVAL);
	struct mw_object *mw = malloc(sizeof(*mw));
	if (!mw)
		return vb_fail(ENOMEM);
	int err = vb_mw_create(((struct pd_object *)pd)->pd, (int)type, &mw->mw);
	if (err) {
		free(mw);
		return vb_fail(-err);
	}
	mw->ibv = (struct ibv_mw){
		.context = pd->context,
		.pd = pd,
		.rkey = vb_mw_key(mw->mw),
		.handle = vb_object_handle(),
		.type = type,
	};
	vb_pd_hold(pd, 1);
	vb_object_add(pd->context, OBJECT_MW, &mw->link);
	return &mw->ibv;
}

int vb_mw_ops_dealloc(struct ibv_mw *ibv)
{
	struct mw_object *mw = (struct mw_object *)ibv;
	int err = -vb_device_lock(vb_host_of(ibv->context), VB_ALL_LANES);
	if (err)
		return err;
	err = vb_mw_destroy(mw->mw);
	vb_device_unlock(vb_host_of(ibv->context), VB_ALL_LANES);
	if (err)
		return -err;
	vb_object_remove(ibv->context, &mw->link);
	vb_pd_hold(ibv->pd, -1);
	free(mw);
	return 0;
}
