/* See child.h. */
#include "broker/child.h"

#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/invariant.h"
#include "broker/registry.h"

/* Closes the broker's descriptors, so that this child keeps no socket open. */
static void close_all_above(int last)
{
	enum { MOST = 4 * REGISTRY_CLIENTS };
	if (syscall(SYS_close_range, last + 1u, ~0u, 0) == 0)
		return;
	for (int fd = last + 1; fd < MOST; fd++)
		close(fd);
}

int child_begin(const char *name, int fd)
{
	enum { PLACE = 3 };
	assert(fd >= 0);
	prctl(PR_SET_NAME, name);
	if (dup2(fd, PLACE) != PLACE)
		_exit(1);
	close_all_above(PLACE);
	return PLACE;
}
