/* Completion channels. Their events are in events.c. */
#include <stdlib.h>
#include "verbs/objects.h"

VB_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	if (vb_call_fails(VB_CALL_ibv_create_comp_channel))
		return NULL;
	if (vb_refuses_forked(context))
		return vb_fail(VB_FORKED_ERRNO);
	struct channel_object *channel = calloc(1, sizeof(*channel));
	if (!channel)
		return vb_fail(ENOMEM);
	int err = vb_event_queue_init(&channel->queue);
	if (err) {
		free(channel);
		return vb_fail(-err);
	}
	channel->ibv.context = context;
	channel->ibv.fd = channel->queue.fd;
	vb_object_add(context, OBJECT_CHANNEL, &channel->link);
	return &channel->ibv;
}

VB_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	if (vb_call_fails(VB_CALL_ibv_destroy_comp_channel))
		return errno;
	struct channel_object *channel = (struct channel_object *)ibv;
	struct ibv_context *context = ibv->context;
	if (vb_is_forked(context)) /* a thread of the parent may have held the lock */
		return VB_FORKED_ERRNO;
	pthread_mutex_lock(&context->mutex);
	bool is_used = ibv->refcnt != 0;
	pthread_mutex_unlock(&context->mutex);
	if (is_used)
		return EBUSY;
	vb_object_remove(context, &channel->link);
	vb_event_queue_deinit(&channel->queue);
	free(channel);
	return 0;
}
