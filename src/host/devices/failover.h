/* The addresses of this host that a queue pair may go over to (roce/failover.h). */
#ifndef VB_HOST_FAILOVER_H
#define VB_HOST_FAILOVER_H

#include "engine/nic.h"

struct vb_further {
	unsigned count;
	struct vb_address addresses[VB_LANE_ADDRESSES];
	char ifnames[VB_LANE_ADDRESSES][16];
};

/* As they are now; none without failover, or where the settings are malformed. Any thread. */
void vb_further_read(struct vb_further *further);
/* The interface of an address of ours, for people. */
const char *vb_further_interface(const struct vb_further *further, const struct vb_gid *gid);

#endif
