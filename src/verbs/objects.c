/* The lists of a context's objects, by kind, so that ibv_close_device finds the objects that a program left behind.
 * This is below all files that make objects; context.c, which destroys the objects that are left, is above them. */
#include "verbs/objects.h"

void vb_object_add(struct ibv_context *context, enum object_kind kind, struct vb_list *link)
{
	struct context_object *object = vb_context_of(context);
	pthread_mutex_lock(&object->objects_lock);
	vb_list_add_tail(&object->objects[kind], link);
	pthread_mutex_unlock(&object->objects_lock);
}

void vb_object_remove(struct ibv_context *context, struct vb_list *link)
{
	struct context_object *object = vb_context_of(context);
	pthread_mutex_lock(&object->objects_lock);
	vb_list_remove(link);
	pthread_mutex_unlock(&object->objects_lock);
}

uint32_t vb_object_handle(void)
{
	static atomic_uint next;
	return atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) + 1;
}
