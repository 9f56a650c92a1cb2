/* Fork. What its parent made is the parent's alone, of which a child has a copy that it leaves as it is: calls about
 * such an id are refused. What the child makes itself is its own, on devices that it opens itself. */
#include "rdmacm/objects.h"

static uint32_t generation; /* counts the forks between the first process and this one */

static void on_fork_child(void)
{
	generation++;
	vb_events_forget();
	vb_devices_forget();
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, on_fork_child);
}

uint32_t vb_generation(void)
{
	return generation;
}

struct vb_cm *vb_id_lock_cm(const struct id_object *id)
{
	return id->generation == generation ? vb_connections_lock() : NULL;
}
