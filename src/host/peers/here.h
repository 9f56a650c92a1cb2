/* The addresses of this network namespace, as they were a moment ago. Not for several threads at once. */
#ifndef VB_HOST_HERE_H
#define VB_HOST_HERE_H

#include <stdbool.h>
#include "base/gid.h"
#include "base/time.h"

struct vb_here {
	bool is_read;
	vb_time read_at;
	unsigned count;
	struct vb_gid *addresses;
};

/* Asks the kernel, at most once a second, about an address that was not there before. */
bool vb_here_has(struct vb_here *here, const struct vb_gid *gid, vb_time now);
void vb_here_read(struct vb_here *here, vb_time now); /* they have changed */
void vb_here_free(struct vb_here *here);

#endif
