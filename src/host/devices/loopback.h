/* The loopback interface is down: the commonest mistake in containers, of which no errno tells. */
#ifndef VB_HOST_LOOPBACK_H
#define VB_HOST_LOOPBACK_H

#include "base/gid.h"

/* A line for the user, with the cure; NULL: it is up, or that has been said. peer could not be reached; NULL: there is
 * no device. */
const char *vb_loopback_fault(const struct vb_gid *peer);

#endif
