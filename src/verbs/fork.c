/* Fork. No page is pinned and no device writes behind the process's back: registered memory survives a fork like any
 * other, and there is nothing to prepare. What the parent opened is refused by
 * each verb in the child (vb_is_forked); devices that the child opens are its own. */
#include "verbs/objects.h"

int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

VB_EXPORT int ibv_fork_init(void)
{
	return 0;
}

VB_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

VB_EXPORT int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

VB_EXPORT int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}
