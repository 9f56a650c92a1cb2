/* Fork. No page is pinned, and no hardware writes memory: registered memory survives a fork like any other, and there
 * is nothing to prepare. In the child, each verb refuses objects of devices that the parent opened (vb_is_forked,
 * vb_refuses_forked). Devices that the child opens are its own. */
#include "verbs/objects.h"

int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

VB_EXPORT int ibv_fork_init(void)
{
	if (vb_call_fails(VB_CALL_ibv_fork_init))
		return errno;
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
