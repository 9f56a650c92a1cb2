/* Counters objects: the frames and bytes that flows took. The program chooses the place of each figure in the array
 * that it reads. As with adapters, it first says which figures it wants, then names the object in a flow.
 * Holds: the figures do not change while a flow counts. Several flows may count into one object. */
#include <stdlib.h>
#include <string.h>
#include "verbs/objects.h"

struct ibv_counters *vb_counters_ops_create(struct ibv_context *context, struct ibv_counters_init_attr *attr)
{
	if (vb_refuses_forked(context))
		return vb_fail(VB_FORKED_ERRNO);
	if (attr->comp_mask)
		return vb_fail(EOPNOTSUPP);
	struct counters_object *counters = calloc(1, sizeof(*counters));
	if (!counters)
		return vb_fail(ENOMEM);
	counters->ibv.context = context;
	counters->host_lane = vb_host_lane_of(context);
	pthread_mutex_init(&counters->mutex, NULL);
	vb_object_add(context, OBJECT_COUNTERS, &counters->link);
	return &counters->ibv;
}

int vb_counters_ops_destroy(struct ibv_counters *ibv)
{
	struct counters_object *counters = vb_counters_of(ibv);
	if (vb_is_forked(ibv->context))
		return VB_FORKED_ERRNO;
	if (counters->flows)
		return EBUSY;
	vb_object_remove(ibv->context, &counters->link);
	pthread_mutex_destroy(&counters->mutex);
	free(counters);
	return 0;
}

/* As with adapters, an existing flow cannot be counted afterwards. */
int vb_counters_ops_attach(struct ibv_counters *ibv, struct ibv_counter_attach_attr *attr, struct ibv_flow *flow)
{
	struct counters_object *counters = vb_counters_of(ibv);
	if (vb_refuses_forked(ibv->context))
		return VB_FORKED_ERRNO;
	if (flow || attr->comp_mask ||
		(attr->counter_desc != IBV_COUNTER_PACKETS && attr->counter_desc != IBV_COUNTER_BYTES))
		return ENOTSUP;
	pthread_mutex_lock(&counters->mutex);
	int err = counters->flows ? EBUSY : counters->point_count == COUNTERS_POINTS ? ENOMEM : 0;
	if (!err)
		counters->points[counters->point_count++] = *attr;
	pthread_mutex_unlock(&counters->mutex);
	return err;
}

/* Values without an attached counter read 0. */
int vb_counters_ops_read(struct ibv_counters *ibv, uint64_t *values, uint32_t count, uint32_t flags)
{
	struct counters_object *counters = vb_counters_of(ibv);
	if (vb_refuses_forked(ibv->context))
		return VB_FORKED_ERRNO;
	if (flags & ~(uint32_t)IBV_READ_COUNTERS_ATTR_PREFER_CACHED)
		return EOPNOTSUPP;
	int err = vb_host_lane_lock(counters->host_lane);
	if (err)
		return -err;
	const struct vb_flow_tally tally = counters->tally;
	vb_host_lane_unlock(counters->host_lane);
	pthread_mutex_lock(&counters->mutex);
	for (unsigned i = 0; !err && i < counters->point_count; i++)
		if (counters->points[i].index >= count)
			err = EINVAL;
	if (!err && count)
		memset(values, 0, count * sizeof(*values));
	for (unsigned i = 0; !err && i < counters->point_count; i++) {
		const struct ibv_counter_attach_attr *point = &counters->points[i];
		values[point->index] += point->counter_desc == IBV_COUNTER_PACKETS ? tally.frames : tally.bytes;
	}
	pthread_mutex_unlock(&counters->mutex);
	return err;
}

void vb_counters_hold(struct counters_object *counters, int change)
{
	if (!counters)
		return;
	pthread_mutex_lock(&counters->mutex);
	counters->flows += (unsigned)change;
	pthread_mutex_unlock(&counters->mutex);
}
