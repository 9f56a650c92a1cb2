/* A cache of the addresses of this network namespace's interfaces. */
#ifndef VB_BROKER_ADDRESSES_H
#define VB_BROKER_ADDRESSES_H

#include <stdint.h>
#include "base/gid.h"

/* The index of the interface that has this address; 0: none has. now in milliseconds. */
uint32_t addresses_interface(const struct vb_gid *gid, uint64_t now);

#endif
