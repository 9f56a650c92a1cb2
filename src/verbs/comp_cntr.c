/* Completion counters: how much work has completed. The engine counts where it completes (core/work_count.c); here
 * counters are made, attached, set and read.
 * Holds: a counter outlives the QPs that count into it. Reading drives the device as polling does, since a program may
 * wait for a value and never look at a completion queue. */
#include <stdlib.h>
#include <string.h>
#include "verbs/later.h"
#include "verbs/objects.h"

static struct comp_cntr_object *object_of(struct later_comp_cntr *counter)
{
	return vb_container_of(counter, struct comp_cntr_object, ibv);
}

/* The caller says how big its structure is. */
VB_EXPORT int later_query_comp_cntr_caps(
	struct ibv_context *context, struct later_comp_cntr_caps *caps, size_t caps_size)
{
	if (vb_call_fails(VB_CALL_ibv_query_comp_cntr_caps))
		return errno;
	const struct later_comp_cntr_caps full = {
		.max_value = UINT64_MAX,
		.max_counters = VB_MAX_OBJECTS,
		.supported_qp_attach_ops = VB_COUNTED_MASK,
	};
	memset(caps, 0, caps_size);
	memcpy(caps, &full, caps_size < sizeof(full) ? caps_size : sizeof(full));
	return 0;
}

VB_EXPORT struct later_comp_cntr *later_create_comp_cntr(
	struct ibv_context *context, struct later_comp_cntr_init_attr *attr)
{
	if (vb_call_fails(VB_CALL_ibv_create_comp_cntr))
		return NULL;
	if (vb_refuses_forked(context))
		return vb_fail(VB_FORKED_ERRNO);
	if (attr->comp_mask || attr->flags)
		return vb_fail(EINVAL);
	if (attr->type != LATER_COMP_CNTR_WRS && attr->type != LATER_COMP_CNTR_BYTES)
		return vb_fail(ENOTSUP);
	struct comp_cntr_object *counter = calloc(1, sizeof(*counter));
	if (!counter)
		return vb_fail(ENOMEM);
	counter->ibv.context = context;
	counter->ibv.handle = vb_object_handle();
	counter->work.is_bytes = attr->type == LATER_COMP_CNTR_BYTES;
	vb_object_add(context, OBJECT_COMP_CNTR, &counter->link);
	return &counter->ibv;
}

VB_EXPORT int later_destroy_comp_cntr(struct later_comp_cntr *ibv)
{
	if (vb_call_fails(VB_CALL_ibv_destroy_comp_cntr))
		return errno;
	struct comp_cntr_object *counter = object_of(ibv);
	if (vb_is_forked(ibv->context))
		return VB_FORKED_ERRNO;
	if (atomic_load(&counter->attached))
		return EBUSY;
	vb_object_remove(ibv->context, &counter->link);
	free(counter);
	return 0;
}

VB_EXPORT int later_qp_attach_comp_cntr(
	struct ibv_qp *ibv, struct later_comp_cntr *counter, struct later_qp_attach_comp_cntr_attr *attr)
{
	if (vb_call_fails(VB_CALL_ibv_qp_attach_comp_cntr))
		return errno;
	struct qp_object *qp = vb_qp_of(ibv);
	if (vb_refuses_forked(ibv->context))
		return VB_FORKED_ERRNO;
	if (counter->context != ibv->context || attr->comp_mask || attr->op_mask == 0)
		return EINVAL;
	if (attr->op_mask & ~(uint32_t)VB_COUNTED_MASK)
		return ENOTSUP;
	int err = vb_host_lane_lock(qp->host_lane);
	if (err)
		return -err;
	atomic_fetch_or(&object_of(counter)->lanes, vb_host_lane_bit(qp->host_lane));
	err = vb_qp_count_work(qp->qp, &object_of(counter)->work, attr->op_mask);
	for (int kind = 0; !err && kind < VB_COUNTED_KINDS; kind++) {
		if (attr->op_mask >> kind & 1) {
			qp->owner->counters[kind] = object_of(counter); /* the counter outlives the QP */
			vb_users_add(&object_of(counter)->attached, 1);
		}
	}
	vb_host_lane_unlock(qp->host_lane);
	return -err;
}

void vb_comp_cntr_detach(struct qp_object *qp)
{
	for (int kind = 0; kind < VB_COUNTED_KINDS; kind++) {
		if (qp->counters[kind])
			vb_users_add(&qp->counters[kind]->attached, -1);
	}
}

/* Of a call about the value: 0 or an errno. */
static int admit(const struct later_comp_cntr *counter, enum vb_call call)
{
	if (vb_call_fails(call))
		return errno;
	return vb_refuses_forked(counter->context) ? VB_FORKED_ERRNO : 0;
}

VB_EXPORT int later_set_comp_cntr(struct later_comp_cntr *counter, uint64_t value)
{
	int err = admit(counter, VB_CALL_ibv_set_comp_cntr);
	if (!err)
		atomic_store(&object_of(counter)->work.done, value);
	return err;
}

VB_EXPORT int later_set_err_comp_cntr(struct later_comp_cntr *counter, uint64_t value)
{
	int err = admit(counter, VB_CALL_ibv_set_err_comp_cntr);
	if (!err)
		atomic_store(&object_of(counter)->work.failed, value);
	return err;
}

VB_EXPORT int later_inc_comp_cntr(struct later_comp_cntr *counter, uint64_t amount)
{
	int err = admit(counter, VB_CALL_ibv_inc_comp_cntr);
	if (!err)
		atomic_fetch_add(&object_of(counter)->work.done, amount);
	return err;
}

VB_EXPORT int later_inc_err_comp_cntr(struct later_comp_cntr *counter, uint64_t amount)
{
	int err = admit(counter, VB_CALL_ibv_inc_err_comp_cntr);
	if (!err)
		atomic_fetch_add(&object_of(counter)->work.failed, amount);
	return err;
}

static uint64_t read_value(struct later_comp_cntr *counter, const _Atomic uint64_t *from)
{
	unsigned lanes = atomic_load_explicit(&object_of(counter)->lanes, memory_order_relaxed);
	vb_device_drive(vb_host_of(counter->context), lanes ? lanes : 1);
	return atomic_load_explicit(from, memory_order_acquire);
}

VB_EXPORT int later_read_comp_cntr(struct later_comp_cntr *counter, uint64_t *value)
{
	int err = admit(counter, VB_CALL_ibv_read_comp_cntr);
	if (!err)
		*value = read_value(counter, &object_of(counter)->work.done);
	return err;
}

VB_EXPORT int later_read_err_comp_cntr(struct later_comp_cntr *counter, uint64_t *value)
{
	int err = admit(counter, VB_CALL_ibv_read_err_comp_cntr);
	if (!err)
		*value = read_value(counter, &object_of(counter)->work.failed);
	return err;
}
