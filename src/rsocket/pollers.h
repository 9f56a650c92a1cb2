/* The rpoll calls under way (pollers.c). */
#ifndef VB_RSOCKET_POLLERS_H
#define VB_RSOCKET_POLLERS_H

#include "rsocket/objects.h"

struct vb_rs_poller {
	struct vb_list link;
	unsigned calls; /* under way */
	int wake_fd;
};

/* The calling thread's, which it keeps with its descriptor as long as it lives; NULL without memory or descriptors. */
struct vb_rs_poller *vb_rs_own_poller(void);
void vb_rs_poller_enter(struct vb_rs_poller *poller);
void vb_rs_poller_leave(struct vb_rs_poller *poller);
void vb_rs_wake_pollers(void);

#endif
