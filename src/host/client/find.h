/* Finding the broker of this network namespace, or having one started. */
#ifndef VB_HOST_BROKER_FIND_H
#define VB_HOST_BROKER_FIND_H

#include <stdbool.h>
#include <stddef.h>

struct vb_broker_finder {
	bool accepts_any; /* also another user's */
	char *libexec;    /* where its program lies; or NULL */
	int stop_fd;      /* readable when the search is to end */
};

/* *fd is a connection that the broker has welcomed. Else why says that its owner was not accepted, that it does not
 * answer, or that none could be started. -ECANCELED: stop_fd. Waits ten seconds at most. */
int vb_broker_find(const struct vb_broker_finder *finder, int *fd, char *why, size_t why_size);
/* False: stop_fd has become readable meanwhile. */
bool vb_broker_pause(const struct vb_broker_finder *finder, int ms);

#endif
