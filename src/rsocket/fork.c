/* The forks of this process: which rsockets are its own, and which are copies of its parent's and have no NIC
 * (inherit.c).
 * Not here: locks and threads, which each file makes usable in a child itself. */
#include "rsocket/objects.h"

static uint32_t generation; /* counts the forks down to this process */
static atomic_uint children;

static void on_fork_child(void)
{
	generation++;
}

static void on_fork_parent(void)
{
	atomic_fetch_add(&children, 1);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, on_fork_parent, on_fork_child);
}

uint32_t vb_rs_generation(void)
{
	return generation;
}

bool vb_rs_is_ours(const struct vb_rsocket *rs)
{
	return rs->generation == generation;
}

uint32_t vb_rs_children(void)
{
	return atomic_load(&children);
}
