/* The loopback interface is down: the most common mistake in containers, which no errno tells of. */
#ifndef VB_HOST_LOOPBACK_H
#define VB_HOST_LOOPBACK_H

#include "base/gid.h"

/* A line for the user, with the cure; NULL: it is up, or the user was told before. peer: which could not be reached; or
 * NULL: there is no device. */
const char *vb_loopback_fault(const struct vb_gid *peer);

#endif
