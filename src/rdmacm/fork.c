/* Forks. The ids that a parent made belong to the parent alone: its child has a copy, leaves it unchanged, and refuses
 * calls about it. The child makes ids of its own, on devices that it opens itself.
 * Not here: locks, which the files that have them make anew in a child (channel.c, devices.c). */
#include "rdmacm/objects.h"

static uint32_t generation; /* counts the forks between the first process and this one */

static void on_fork_child(void)
{
	generation++;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, on_fork_child);
}

uint32_t vb_generation(void)
{
	return generation;
}

int vb_cm_refuse_forked(void)
{
	return vb_refuse_forked("made rdma_cm ids or event channels", "make them again");
}

bool vb_id_is_ours(const struct id_object *id)
{
	return id->generation == generation;
}

bool vb_id_is_refused(const struct id_object *id)
{
	if (vb_id_is_ours(id))
		return false;
	errno = -vb_cm_refuse_forked();
	return true;
}

struct vb_cm *vb_id_lock_cm(const struct id_object *id)
{
	return vb_id_is_ours(id) ? vb_connections_lock() : NULL;
}
